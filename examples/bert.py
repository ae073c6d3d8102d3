"""A BERT encoder: token ids come in, one vector per token goes out.

The model of Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding"
(arXiv:1810.04805). Parameter names are those of `transformers`' BertModel, so published weights load as they are.
"""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import rushlight as torch
from rushlight import nn

F = nn.functional


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Sizes of the model, named as in a published `config.json`; the defaults are BERT-base, uncased."""

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1

    def __post_init__(self) -> None:
        if self.hidden_size % self.num_attention_heads:
            sizes = f"hidden_size {self.hidden_size}, num_attention_heads {self.num_attention_heads}"
            raise ValueError(f"hidden_size must be a multiple of num_attention_heads; got {sizes}")

    @classmethod
    def from_json(cls, path: str | Path) -> BertConfig:
        """The sizes in a `config.json`; entries that the encoder has no use for are passed over."""
        entries = json.loads(Path(path).read_text(encoding="utf-8"))
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in entries.items() if name in known})


class Embeddings(nn.Module):
    """Word + token type + position, normalised."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=0)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self, input_ids: torch.Tensor, token_type_ids: torch.Tensor | None, position_ids: torch.Tensor | None
    ) -> torch.Tensor:
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1], device=input_ids.device).unsqueeze(0)
        words = self.word_embeddings(input_ids)
        hidden = words + self.token_type_embeddings(token_type_ids) + self.position_embeddings(position_ids)
        return self.dropout(self.LayerNorm(hidden))


class SelfAttention(nn.Module):
    """Scaled dot-product attention of every token to every token, in several heads side by side."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.head_size = config.hidden_size // config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def split_heads(self, hidden: torch.Tensor) -> torch.Tensor:
        """(batch, tokens, hidden) to (batch, heads, tokens, head size)."""
        batch, tokens, _ = hidden.shape
        return hidden.view(batch, tokens, self.heads, self.head_size).transpose(1, 2)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None, head_mask: torch.Tensor | None) -> torch.Tensor:
        query = self.split_heads(self.query(hidden))
        key = self.split_heads(self.key(hidden))
        value = self.split_heads(self.value(hidden))
        if head_mask is None:
            dropout = self.dropout.p if self.training else 0.0
            context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
        else:
            context = self.masked_heads(query, key, value, mask, head_mask)
        batch, _, tokens, _ = context.shape
        return context.transpose(1, 2).reshape(batch, tokens, self.heads * self.head_size)

    def masked_heads(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        head_mask: torch.Tensor,
    ) -> torch.Tensor:
        """The same attention written out, because a head mask scales the probabilities, after softmax and dropout."""
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.head_size)
        if mask is not None:
            scores = scores + mask
        probabilities = self.dropout(F.softmax(scores, dim=-1))
        return torch.matmul(probabilities * head_mask.view(1, self.heads, 1, 1), value)


class ResidualOutput(nn.Module):
    """Project back to the hidden size, add what went into the block, normalise."""

    def __init__(self, config: BertConfig, inputs: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return self.LayerNorm(self.dropout(self.dense(hidden)) + residual)


class Attention(nn.Module):
    """The attention block: self-attention, then its residual output."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = SelfAttention(config)  # the name that published weights give it
        self.output = ResidualOutput(config, config.hidden_size)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None, head_mask: torch.Tensor | None) -> torch.Tensor:
        return self.output(self.self(hidden, mask, head_mask), hidden)


class Intermediate(nn.Module):
    """The widening half of the feed-forward block, with the exact (erf) GELU."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.dense(hidden))


class Layer(nn.Module):
    """One encoder layer: attention, then feed-forward."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = Intermediate(config)
        self.output = ResidualOutput(config, config.intermediate_size)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None, head_mask: torch.Tensor | None) -> torch.Tensor:
        attended = self.attention(hidden, mask, head_mask)
        return self.output(self.intermediate(attended), attended)


class Encoder(nn.Module):
    """The stack of layers."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList([Layer(config) for _ in range(config.num_hidden_layers)])

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None, head_masks: list[torch.Tensor | None]) -> torch.Tensor:
        for layer, head_mask in zip(self.layer, head_masks, strict=True):
            hidden = layer(hidden, mask, head_mask)
        return hidden


class Pooler(nn.Module):
    """One vector per sequence: a dense layer with tanh over the first token."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = nn.Tanh()

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.activation(self.dense(hidden[:, 0]))


class BertModel(nn.Module):
    """The encoder with its embeddings and, if `add_pooling_layer`, its pooler."""

    def __init__(self, config: BertConfig, add_pooling_layer: bool = True) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)
        self.pooler = Pooler(config) if add_pooling_layer else None

    def forward(
        self,
        input_ids: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        head_mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Encode a batch of token sequences.

        input_ids: (batch, tokens), int64. Each token's place in the vocabulary. BERT was trained on
            `[CLS] first text [SEP]` and `[CLS] first text [SEP] second text [SEP]`.
        token_type_ids: (batch, tokens), int64. 0 where a token belongs to the first text, 1 for the second.
            All first when left out.
        position_ids: (batch, tokens) or (1, tokens), int64, below `max_position_embeddings`. Each token's place in
            its sequence; 0, 1, 2, ... when left out.
        attention_mask: (batch, tokens) or (batch, tokens, tokens), any dtype. 1 where a token may be attended to,
            0 where it is padding; the three-dimensional form says it per query token. All 1 when left out.
        head_mask: (heads,) or (layers, heads), floating point. Each head's attention probabilities are multiplied
            by it, so that 0 silences a head; one row serves all layers. All 1 when left out.

        Returns (hidden, pooled): (batch, tokens, hidden size) and (batch, hidden size), or None without a pooler.
        """
        hidden = self.embeddings(input_ids, token_type_ids, position_ids)
        mask = additive_mask(attention_mask, hidden.dtype)
        hidden = self.encoder(hidden, mask, self.head_masks(head_mask))
        return hidden, self.pooler(hidden) if self.pooler is not None else None

    def head_masks(self, head_mask: torch.Tensor | None) -> list[torch.Tensor | None]:
        """The row of `head_mask` for each layer."""
        layers, heads = self.config.num_hidden_layers, self.config.num_attention_heads
        if head_mask is None:
            return [None] * layers
        shape = tuple(head_mask.shape)
        if shape == (heads,):
            return [head_mask] * layers
        if shape == (layers, heads):
            return [head_mask[index] for index in range(layers)]
        raise ValueError(f"head_mask has shape {shape}; expected ({heads},) or ({layers}, {heads})")


def additive_mask(attention_mask: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor | None:
    """What to add to the attention scores, broadcast over heads: 0 where allowed, very negative elsewhere."""
    if attention_mask is None:
        return None
    if attention_mask.dim() == 2:
        attention_mask = attention_mask.unsqueeze(1)
    elif attention_mask.dim() != 3:
        raise ValueError(
            f"attention_mask has shape {tuple(attention_mask.shape)}; expected (batch, tokens) or (batch, tokens, tokens)"
        )
    # The lowest finite number: a row of nothing but padding then averages, where -inf would turn it into NaN.
    return (1.0 - attention_mask.unsqueeze(1).to(dtype)) * torch.finfo(dtype).min


def load_bert(folder: str | Path, add_pooling_layer: bool = True) -> BertModel:
    """A BertModel in eval mode from a folder with `config.json` and `model.safetensors` or `pytorch_model.bin`.

    Raises FileNotFoundError when there is no weight file, RuntimeError when names or shapes do not match.
    """
    folder = Path(folder)
    model = BertModel(BertConfig.from_json(folder / "config.json"), add_pooling_layer)
    state = load_weights(folder)
    # Older files also hold the numbers 0, 1, 2, ..., which the model makes itself.
    state.pop("embeddings.position_ids", None)
    if not add_pooling_layer:
        state = {name: tensor for name, tensor in state.items() if not name.startswith("pooler.")}
    model.load_state_dict(state)
    return model.eval()


def load_weights(folder: Path) -> dict[str, torch.Tensor]:
    """The state dict in a model folder."""
    if (folder / "model.safetensors").exists():
        return torch.load_safetensors(folder / "model.safetensors")
    if (folder / "pytorch_model.bin").exists():
        return torch.load(folder / "pytorch_model.bin")
    raise FileNotFoundError(f"no model.safetensors or pytorch_model.bin in {folder}")

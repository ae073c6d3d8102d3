"""Note 4, "BertModel": the inputs of the note's docstring, on a small BERT with random weights (the model is examples/bert.py).

The tokens of both forms of input are the note's; padding is masked, a head can be silenced.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the repository, for examples/bert.py

import torch

from examples.bert import BertConfig, BertModel

pair = "[CLS] is this jack ##son ##ville ? [SEP] no it is not . [SEP]".split()
single = "[CLS] the dog is hairy . [SEP]".split()
words = sorted({*pair, *single})
length = len(pair)


def encode(tokens):
    return [1 + words.index(token) for token in tokens] + [0] * (length - len(tokens))


input_ids = torch.tensor([encode(pair), encode(single)])
first = pair.index("[SEP]") + 1
token_type_ids = torch.tensor([[0] * first + [1] * (length - first), [0] * length])
attention_mask = (input_ids != 0).long()
print("token_type_ids:", token_type_ids[0].tolist())

torch.manual_seed(0)
config = BertConfig(vocab_size=len(words) + 1, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                    intermediate_size=32, max_position_embeddings=length)  # fmt: skip
model = BertModel(config).eval()
with torch.no_grad():
    hidden, pooled = model(input_ids, token_type_ids, attention_mask=attention_mask)
    silenced, _ = model(input_ids, token_type_ids, attention_mask=attention_mask, head_mask=torch.tensor([1.0, 0.0]))
    alone, _ = model(input_ids[1:, : len(single)])
print("hidden:", tuple(hidden.shape), "pooled:", tuple(pooled.shape))
print("padding changes nothing:", torch.allclose(hidden[1, : len(single)], alone[0], atol=1e-5))
print("a silenced head changes the result:", not torch.allclose(hidden, silenced))

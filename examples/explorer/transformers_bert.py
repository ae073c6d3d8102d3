"""A small BERT of the transformers package, as it is written: `rushlight explore examples/explorer/transformers_bert.py`."""

import torch  # `rushlight explore` makes this Rushlight
from transformers import BertConfig, BertModel

config = BertConfig(hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=512, vocab_size=1000)
model = torch.compile(BertModel(config).eval())
ids = torch.randint(1000, (2, 32))
with torch.no_grad():
    for _ in range(10):
        model(input_ids=ids)

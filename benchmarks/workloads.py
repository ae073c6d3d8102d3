"""The list of workloads. To add one, make an instance of a `Workload` subclass and put it here."""

from __future__ import annotations

from benchmarks.encoder import EncoderWorkload
from benchmarks.small import SMALL_WORKLOADS
from benchmarks.training import TRAINING_WORKLOADS
from benchmarks.vision import VISION_WORKLOADS
from benchmarks.workload import Workload

WORKLOADS: list[Workload] = [
    EncoderWorkload(
        "minilm", "MiniLM-L6 encoder, batch 1, 128 tokens", layers=6, hidden=384, tokens=128, published=True
    ),
    EncoderWorkload("bert_base", "BERT-base encoder, batch 1, 128 tokens", layers=12, hidden=768, tokens=128),
    *VISION_WORKLOADS,
    *TRAINING_WORKLOADS,
    *SMALL_WORKLOADS,
]

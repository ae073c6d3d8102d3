"""safetensors: files of tensors, whole, in parts and with shared weights."""

from __future__ import annotations

import tempfile
from pathlib import Path

import safetensors
import torch
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

from tests.clients.networks import ramp
from tests.clients.stages import Client, stage

DTYPES = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool float8_e4m3fn".split()


class Tied(torch.nn.Module):
    """Two layers with one weight."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.second = torch.nn.Linear(4, 4)
        self.second.weight = self.first.weight


class Files(Client):
    name = "files"

    @stage
    def dtypes(self):
        tensors = {name: (ramp(3, 4) * 8).to(getattr(torch, name)) for name in DTYPES}
        again = load(save(tensors))
        return {name: [str(again[name].dtype), again[name].float()] for name in DTYPES}

    @stage
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            save_file(dict(a=ramp(2, 3), b=ramp(0, 3)), Path(folder) / "a.safetensors", metadata=dict(format="pt"))
            return load_file(Path(folder) / "a.safetensors")

    @stage
    def parts(self):
        with tempfile.TemporaryDirectory() as folder:
            save_file(dict(a=ramp(8, 6)), Path(folder) / "a.safetensors")
            with safetensors.safe_open(Path(folder) / "a.safetensors", framework="pt") as file:
                part = file.get_slice("a")
                return [list(file.keys()), part.get_shape(), part[2:5], part[:, 1], file.get_tensor("a")]

    @stage
    def not_contiguous(self):
        try:
            save(dict(a=ramp(4, 6).t()))
        except ValueError as error:
            return str(error).splitlines()[0][:60]

    @stage
    def shared(self):
        try:
            save(Tied().state_dict())
        except RuntimeError as error:
            return str(error).strip().splitlines()[0][:60]

    @stage
    def models(self):
        with tempfile.TemporaryDirectory() as folder:
            module, again = Tied(), Tied()
            torch.nn.init.constant_(module.first.weight, 3.0)
            save_model(module, str(Path(folder) / "a.safetensors"))
            told = load_model(again, str(Path(folder) / "a.safetensors"))
            return [again.second.weight, *map(sorted, told)]

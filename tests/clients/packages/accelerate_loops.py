"""accelerate: a loop of training, models without storage, and files in shards."""

from __future__ import annotations

import tempfile

import accelerate
import torch
from accelerate.utils import set_seed

from tests.clients.networks import made_weights, ramp
from tests.clients.stages import Client, stage


def network():
    """Two layers, with the weights that every process gives them."""
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 2))
    module.load_state_dict(made_weights(module))
    return module


def train(accelerator, passes=2):
    """Losses of some passes over sixteen rows."""
    module = network()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    rows = torch.utils.data.TensorDataset(ramp(16, 8), torch.arange(16) % 2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    module, optimizer, loader, schedule = accelerator.prepare(
        module, optimizer, torch.utils.data.DataLoader(rows, batch_size=4), schedule
    )
    losses = []
    for _ in range(passes):
        for batch, labels in loader:
            with accelerator.accumulate(module):
                loss = torch.nn.functional.cross_entropy(module(batch), labels)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(module.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(loss.detach().float())
    return module, torch.stack(losses)


class Loops(Client):
    name = "loops"

    @stage
    def build(self):
        self.accelerator = accelerate.Accelerator(cpu=True)
        return [str(self.accelerator.device), self.accelerator.num_processes]

    @stage
    def steps(self):
        return train(self.accelerator)[1]

    @stage
    def accumulate(self):
        return train(accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2))[1]

    @stage
    def bfloat16(self):
        accelerate.state.AcceleratorState._reset_state(True)
        losses = train(accelerate.Accelerator(cpu=True, mixed_precision="bf16"))[1]
        accelerate.state.AcceleratorState._reset_state(True)
        return round(float(losses.mean()), 1)

    @stage
    def save_and_load(self):
        accelerator = accelerate.Accelerator(cpu=True)
        module, _ = train(accelerator)
        before = [value.clone() for value in module.parameters()]
        with tempfile.TemporaryDirectory() as folder:
            accelerator.save_state(folder)
            with torch.no_grad():
                [value.zero_() for value in module.parameters()]
            accelerator.load_state(folder)
        return [*before, *module.parameters()]

    @stage
    def gather(self):
        return self.accelerator.gather_for_metrics(ramp(3))

    @stage
    def seed(self):
        set_seed(5)
        return [torch.rand(3), torch.randn(3)]

    @stage
    def find_executable_batch_size(self):
        tried = []

        @accelerate.utils.find_executable_batch_size(starting_batch_size=16)
        def run(batch_size):
            tried.append(batch_size)
            if batch_size > 4:
                raise RuntimeError("CUDA out of memory.")
            return batch_size

        return [run(), len(tried)]


class BigModels(Client):
    name = "big models"

    @stage
    def init_empty_weights(self):
        with accelerate.init_empty_weights():
            self.empty = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 2))
        return sorted({str(value.device) for value in self.empty.parameters()})

    @stage
    def sizes(self):
        return dict(accelerate.utils.compute_module_sizes(self.empty))

    @stage
    def device_map(self):
        return dict(accelerate.infer_auto_device_map(self.empty, max_memory=dict(cpu=10**9)))

    @stage
    def load_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            accelerate.Accelerator(cpu=True).save_model(network(), folder, max_shard_size="0.7KB")
            module = accelerate.load_checkpoint_and_dispatch(self.empty, folder, device_map={"": "cpu"})
        with torch.no_grad():
            return module(ramp(2, 8))

    @stage
    def cpu_offload(self):
        with tempfile.TemporaryDirectory() as folder:
            module = accelerate.disk_offload(network(), folder, execution_device=torch.device("cpu"))
            with torch.no_grad():
                return module(ramp(2, 8))

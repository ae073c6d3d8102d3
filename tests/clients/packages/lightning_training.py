"""lightning: Trainer and Fabric."""

from __future__ import annotations

import tempfile
from pathlib import Path

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint, StochasticWeightAveraging
from lightning.pytorch.loggers import CSVLogger

from tests.clients.networks import made_weights, ramp
from tests.clients.stages import Client, stage


def rows():
    return torch.utils.data.TensorDataset(ramp(16, 8), torch.arange(16) % 2)


def loader():
    return torch.utils.data.DataLoader(rows(), batch_size=4)


class Classifier(lightning.LightningModule):
    """Two layers, with the weights that every process gives them."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.save_hyperparameters()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.GELU(), torch.nn.Linear(width, 2))
        self.load_state_dict(made_weights(self))
        self.losses = []

    def forward(self, batch):
        return self.layers(batch)

    def training_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.losses.append(loss.detach().float())
        self.log("loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        self.log("validation", torch.nn.functional.cross_entropy(self(batch[0]), batch[1]))

    test_step = validation_step

    def predict_step(self, batch, index):
        return self(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.01)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


def trainer(**options):
    quiet = dict(enable_progress_bar=False, enable_model_summary=False, logger=False, enable_checkpointing=False)
    return lightning.Trainer(**{"accelerator": "cpu", "devices": 1, "max_epochs": 2, **quiet, **options})


class Training(Client):
    name = "Trainer"

    @stage
    def build(self):
        self.module = Classifier()
        return len(list(self.module.parameters()))

    @stage
    def fit(self):
        trainer().fit(self.module, loader(), loader())
        return torch.stack(self.module.losses)

    @stage
    def validate(self):
        return trainer().validate(self.module, loader(), verbose=False)[0]

    @stage
    def test(self):
        return trainer().test(self.module, loader(), verbose=False)[0]

    @stage
    def predict(self):
        return torch.cat(trainer().predict(self.module, loader()))

    @stage
    def accumulate_and_clip(self):
        module = Classifier()
        trainer(accumulate_grad_batches=2, gradient_clip_val=0.1).fit(module, loader())
        return torch.stack(module.losses)

    @stage
    def bfloat16(self):
        module = Classifier()
        trainer(precision="bf16-mixed").fit(module, loader())
        return round(float(torch.stack(module.losses).mean()), 1)

    @stage
    def callbacks(self):
        module = Classifier()
        told = trainer(callbacks=[EarlyStopping("validation", patience=1), StochasticWeightAveraging(0.01)], max_epochs=3)
        told.fit(module, loader(), loader())
        return [told.current_epoch, torch.stack(module.losses)]

    @stage
    def checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            module = Classifier()
            kept = ModelCheckpoint(folder, monitor="validation", save_last=True)
            trainer(callbacks=[kept], enable_checkpointing=True).fit(module, loader(), loader())
            again = Classifier.load_from_checkpoint(kept.best_model_path)
            with torch.no_grad():
                return again(ramp(2, 8))

    @stage
    def resume(self):
        with tempfile.TemporaryDirectory() as folder:
            first = trainer(max_epochs=1)
            first.fit(Classifier(), loader())
            first.save_checkpoint(Path(folder) / "a.ckpt")
            module = Classifier()
            trainer(max_epochs=2).fit(module, loader(), ckpt_path=str(Path(folder) / "a.ckpt"))
            return torch.stack(module.losses)

    @stage
    def log(self):
        with tempfile.TemporaryDirectory() as folder:
            logger = CSVLogger(folder)
            trainer(logger=logger, log_every_n_steps=1, callbacks=[LearningRateMonitor("epoch")]).fit(Classifier(), loader())
            return len((Path(logger.log_dir) / "metrics.csv").read_text().splitlines())

    @stage
    def summary(self):
        return str(lightning.pytorch.utilities.model_summary.ModelSummary(Classifier())).splitlines()[0]

    @stage
    def compile(self):
        module = Classifier()
        backend = {} if "rushlight" in torch.__version__ else dict(backend="eager")
        trainer().fit(torch.compile(module, **backend), loader())
        return torch.stack(module.losses)


class Fabric(Client):
    name = "Fabric"

    @stage
    def steps(self):
        fabric = lightning.Fabric(accelerator="cpu", devices=1)
        module = Classifier()
        module, optimizer = fabric.setup(module.layers, torch.optim.SGD(module.parameters(), lr=0.1))
        losses = []
        for batch, labels in fabric.setup_dataloaders(loader()):
            loss = torch.nn.functional.cross_entropy(module(batch), labels)
            fabric.backward(loss)
            fabric.clip_gradients(module, optimizer, max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.detach())
        return torch.stack(losses)

    @stage
    def save_and_load(self):
        fabric = lightning.Fabric(accelerator="cpu", devices=1)
        module = Classifier().layers
        with tempfile.TemporaryDirectory() as folder:
            fabric.save(Path(folder) / "a.pt", dict(module=module, step=3))
            state = dict(module=Classifier().layers, step=0)
            fabric.load(Path(folder) / "a.pt", state)
        return [state["step"], *state["module"].parameters()]

    @stage
    def seed(self):
        lightning.seed_everything(7, verbose=False)
        return torch.rand(3)

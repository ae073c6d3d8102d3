"""`torch.utils.tensorboard`: what TensorBoard reads of what was written."""

from __future__ import annotations

import numpy as np
import pytest

import rushlight as torch

pytest.importorskip("tensorboard")


def read(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder))
    found.Reload()
    return found


def test_numbers(tmp_path):
    with torch.utils.tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor([1.5], requires_grad=True), 1)
        writer.add_scalar("loss", 0.5, 2, walltime=7.0)
        writer.add_scalars("both", {"a": 1.0, "b": torch.tensor(2.0, dtype=torch.bfloat16)}, 3)
        with pytest.raises(AssertionError, match="one element"):
            writer.add_scalar("many", torch.ones(2))
    events = read(tmp_path).Scalars("loss")
    assert [(event.step, event.value) for event in events] == [(1, 1.5), (2, 0.5)] and events[1].wall_time == 7.0
    assert [read(tmp_path / f"both_{name}").Scalars("both")[0].value for name in "ab"] == [1.0, 2.0]


def test_histograms(tmp_path):
    values = torch.arange(-50.0, 50.0)
    with torch.utils.tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_histogram("default", values)
        writer.add_histogram("few", values, bins=10, max_bins=5)
        for wrong in (torch.ones(0), torch.tensor([float("nan")])):
            with pytest.raises(ValueError):
                writer.add_histogram("wrong", wrong)
    events = read(tmp_path)
    found = events.Histograms("default")[0].histogram_value
    assert (found.min, found.max, found.num, found.sum) == (-50, 49, 100, -50) and sum(found.bucket) == 100
    assert found.sum_squares == float(values.square().sum()) and len(found.bucket) == len(found.bucket_limit)
    assert sum(events.Histograms("few")[0].histogram_value.bucket) == 100
    assert len(events.Histograms("few")[0].histogram_value.bucket) <= 5


def test_pictures_sounds_and_texts(tmp_path):
    from io import BytesIO

    image = pytest.importorskip("PIL.Image")
    picture = torch.rand(3, 4, 6)
    with torch.utils.tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_image("one", picture, 1)
        writer.add_image("bytes", np.full((4, 6), 200, np.uint8), dataformats="HW")
        writer.add_images("grid", torch.rand(10, 1, 4, 6))
        writer.add_audio("sound", torch.linspace(-1, 1, 100), sample_rate=8000)
        writer.add_text("note", "some text")
        writer.add_hparams({"lr": 0.1}, {"accuracy": 0.5}, run_name="run")
        with pytest.raises(ValueError, match="does not fit"):
            writer.add_image("wrong", picture, dataformats="HW")
        assert hasattr(writer, "add_mesh") and not hasattr(writer, "add_sound")
        with pytest.raises(NotImplementedError, match="add_graph is not here"):
            writer.add_graph(None)
    events = read(tmp_path)
    decoded = np.asarray(image.open(BytesIO(events.Images("one")[0].encoded_image_string)))
    assert np.abs(decoded / 255 - picture.permute(1, 2, 0).numpy()).max() < 1 / 128
    assert (np.asarray(image.open(BytesIO(events.Images("bytes")[0].encoded_image_string))) == 200).all()
    assert (events.Images("grid")[0].width, events.Images("grid")[0].height) == (48, 8)
    assert events.Audio("sound")[0].sample_rate == 8000
    assert events.Tensors("note/text_summary")[0].tensor_proto.string_val[0] == b"some text"
    assert read(tmp_path / "run").Scalars("accuracy")[0].value == 0.5

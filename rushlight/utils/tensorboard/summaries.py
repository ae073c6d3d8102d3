"""Build TensorBoard's records from numbers, arrays and texts."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np

try:
    from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
except ModuleNotFoundError as missing:
    raise ImportError("torch.utils.tensorboard writes by the package tensorboard: pip install tensorboard") from missing

from rushlight.core.tensor import Tensor


def as_array(value: Any) -> np.ndarray:
    """Return a tensor, an array, a number or a sequence of numbers as an array."""
    if not isinstance(value, Tensor):
        return np.asarray(value)
    value = value.detach().resolve_conj().cpu()
    return (value.float() if value.dtype.is_floating_point and value.dtype.itemsize < 4 else value).numpy()


def scalar(tag: str, value: Any, new_style: bool = False, double_precision: bool = False) -> Any:
    """Return a number. AssertionError for arrays of several."""
    array = as_array(value).squeeze()
    if array.ndim:
        raise AssertionError(f"Tensor should contain one element (0 dimensions). Was given shape {array.shape}.")
    number = float(array)
    if not new_style and not double_precision:
        return Summary(value=[Summary.Value(tag=tag, simple_value=number)])
    kind = "DT_DOUBLE" if double_precision else "DT_FLOAT"
    content = {"double_val" if double_precision else "float_val": [number]}
    data = SummaryMetadata.PluginData(plugin_name="scalars")
    made = TensorProto(dtype=kind, **content)
    return Summary(value=[Summary.Value(tag=tag, tensor=made, metadata=SummaryMetadata(plugin_data=data))])


def histogram(tag: str, values: Any, bins: Any = "tensorflow", max_bins: int | None = None) -> Any:
    """Return a histogram of values. ValueError for no values, and for values that are not finite."""
    array = as_array(values).astype(np.float64).reshape(-1)
    if not array.size:
        raise ValueError("The input has no element.")
    if not np.isfinite(array).all():
        raise ValueError(f"add_histogram: values must be finite, and {tag!r} has some that are not")
    edges = _tensorflow_edges() if isinstance(bins, str) and bins == "tensorflow" else bins
    counts, limits = np.histogram(array, bins=edges)
    if max_bins is not None and len(counts) > max_bins:
        step = math.ceil(len(counts) / max_bins)
        counts = np.add.reduceat(counts, range(0, len(counts), step))
        limits = np.append(limits[:-1:step], limits[-1])
    used = np.flatnonzero(counts)
    first, last = max(used[0] - 1, 0), min(used[-1] + 2, len(counts))
    made = HistogramProto(
        min=array.min(), max=array.max(), num=array.size, sum=array.sum(), sum_squares=array.dot(array),
        bucket_limit=limits[first + 1 : last + 1].tolist(), bucket=counts[first:last].astype(np.float64).tolist(),
    )  # fmt: skip
    return Summary(value=[Summary.Value(tag=tag, histo=made)])


def raw_histogram(tag: str, **content: Any) -> Any:
    """Return a precomputed histogram, by the fields of TensorBoard's HistogramProto."""
    made = HistogramProto(**content)
    return Summary(value=[Summary.Value(tag=tag, histo=made)])


def _tensorflow_edges() -> list[float]:
    """Return edges that grow by a tenth from 1e-12 to 1e20, on both sides of 0."""
    edges, edge = [], 1e-12
    while edge < 1e20:
        edges.append(edge)
        edge *= 1.1
    return [*(-each for each in reversed(edges)), 0.0, *edges]


def image(tag: str, pictures: Any, dataformats: str) -> Any:
    """Return pictures; a batch becomes a grid. Floats range from 0 to 1, bytes from 0 to 255."""
    array = _as_rows(as_array(pictures), dataformats)
    if array.dtype != np.uint8:
        array = (array * 255.0).clip(0, 255).astype(np.uint8)
    height, width, channels = array.shape
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(array[:, :, 0] if channels == 1 else array).save(stream, format="PNG")
    made = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=stream.getvalue())
    return Summary(value=[Summary.Value(tag=tag, image=made)])


def _as_rows(array: np.ndarray, dataformats: str) -> np.ndarray:
    """Return an array in one of the orders of N, C, H, W as (H, W, C). ValueError where the order does not fit."""
    order = dataformats.upper()
    if len(order) != array.ndim or len(set(order)) != len(order) or not set(order) <= set("NCHW"):
        raise ValueError(f"dataformats={dataformats!r} does not fit a picture of shape {array.shape}")
    if "C" not in order:
        array, order = array[..., None], order + "C"
    if "N" in order:
        return _grid(array.transpose([order.index(name) for name in "NHWC"]))
    return array.transpose([order.index(name) for name in "HWC"])


def _grid(pictures: np.ndarray) -> np.ndarray:
    """Return pictures (N, H, W, C) beside each other, at most eight in a row."""
    count, height, width, channels = pictures.shape
    columns = min(count, 8)
    rows = math.ceil(count / columns)
    made = np.zeros((rows * height, columns * width, channels), pictures.dtype)
    for number, picture in enumerate(pictures):
        y, x = divmod(number, columns)
        made[y * height : (y + 1) * height, x * width : (x + 1) * width] = picture
    return made


def text(tag: str, content: str) -> Any:
    """Return a text, in Markdown."""
    data = SummaryMetadata.PluginData(plugin_name="text", content=b"")
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    made = TensorProto(dtype="DT_STRING", string_val=[content.encode()], tensor_shape=shape)
    return Summary(value=[Summary.Value(tag=f"{tag}/text_summary", tensor=made, metadata=SummaryMetadata(plugin_data=data))])


def audio(tag: str, sound: Any, sample_rate: int) -> Any:
    """Return a sound, numbers from -1 to 1."""
    import wave

    samples = as_array(sound).reshape(-1).clip(-1, 1)
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes((samples * 32767).astype("<i2").tobytes())
    made = Summary.Audio(
        sample_rate=sample_rate, num_channels=1, length_frames=len(samples), encoded_audio_string=stream.getvalue(),
        content_type="audio/wav",
    )  # fmt: skip
    return Summary(value=[Summary.Value(tag=tag, audio=made)])

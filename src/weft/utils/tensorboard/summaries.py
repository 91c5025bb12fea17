"""Values as the messages that event files hold."""

from __future__ import annotations

import io
import struct
import wave
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_DOUBLE, DT_FLOAT, DT_STRING

from weft._C import Tensor

_ROW = 8  # images that a row of several has
_SHAPE = TensorShapeProto


def array(value: Any) -> Any:
    """A tensor, number or array as a NumPy array. NotImplementedError for anything else."""
    if isinstance(value, Tensor):
        held = value.detach().cpu()
        return (held.float() if held.dtype.itemsize == 2 else held).numpy()
    if isinstance(value, np.ndarray) or np.isscalar(value):
        return np.asarray(value)
    got = type(value).__name__
    raise NotImplementedError(f"SummaryWriter: expected a tensor, an array or a number, got {got}")


def number(name: str, value: Any) -> float:
    """A value of one element as a number."""
    held = array(value)
    if held.size != 1:
        raise ValueError(f"{name}: expected a number, got {held.size} elements")
    return float(held.reshape(()))


def scalar(tag: str, value: Any, new_style: bool = False, double: bool = False) -> Summary:
    """A number; in the new style as a tensor, which may be of double precision."""
    held = number("add_scalar", value)
    if not new_style:
        return Summary(value=[Summary.Value(tag=tag, simple_value=held)])
    if double:
        tensor = TensorProto(double_val=[held], dtype=DT_DOUBLE)
    else:
        tensor = TensorProto(float_val=[held], dtype=DT_FLOAT)
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="scalars"))
    return Summary(value=[Summary.Value(tag=tag, tensor=tensor, metadata=metadata)])


def _edges() -> Any:
    """The edges of TensorFlow's buckets: growing by a tenth from 1e-12 to 1e20, both ways."""
    positive = 1e-12 * 1.1 ** np.arange(774)
    return np.concatenate([-positive[::-1], [0.0], positive])


def histogram(tag: str, values: Any, bins: Any = "tensorflow", most: int | None = None) -> Summary:
    """How many values lie in each bucket; "tensorflow" names its buckets, others are NumPy's."""
    held = array(values).astype(np.float64).ravel()
    if not held.size:
        raise ValueError("add_histogram: expected values, got none")
    edges = _edges() if bins == "tensorflow" else bins
    counts, limits = np.histogram(held, bins=edges)
    if most is not None and len(counts) > most:
        step = -(-len(counts) // most)
        ends = np.arange(0, len(counts), step)
        counts, limits = np.add.reduceat(counts, ends), np.append(limits[ends], limits[-1])
    filled = np.flatnonzero(counts)
    first, last = (filled[0], filled[-1] + 1) if filled.size else (0, 1)
    proto = HistogramProto(
        min=held.min(),
        max=held.max(),
        num=held.size,
        sum=held.sum(),
        sum_squares=held @ held,
        bucket_limit=[limits[first], *limits[first + 1 : last + 1]],
        bucket=[0.0, *counts[first:last]],
    )
    return Summary(value=[Summary.Value(tag=tag, histo=proto)])


def histogram_of_counts(tag: str, **fields: Any) -> Summary:
    """A histogram that was counted elsewhere."""
    return Summary(value=[Summary.Value(tag=tag, histo=HistogramProto(**fields))])


# Images -------------------------------------------------------------------------------------------


def image(tag: str, value: Any, dataformats: str) -> Summary:
    """One image, or a grid of several: floating values from 0 to 1, or bytes."""
    pixels = bytes_of(_pixels(array(value), dataformats.upper()))
    height, width, channels = pixels.shape
    proto = Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=png(pixels)
    )
    return Summary(value=[Summary.Value(tag=tag, image=proto)])


def _pixels(held: Any, layout: str) -> Any:
    """An array [height, width, channels] of 3 or 4 channels."""
    if len(layout) != held.ndim or set(layout) - set("NHWC") or not {"H", "W"} <= set(layout):
        raise ValueError(
            f"add_image: expected dataformats for {held.ndim} dimensions, got {layout!r}"
        )
    for missing in set("NC") - set(layout):
        held, layout = held[..., None], layout + missing
    held = held.transpose([layout.index(each) for each in "NHWC"])
    held = np.repeat(held, 3, -1) if held.shape[-1] == 1 else held
    count, height, width, channels = held.shape
    columns = min(count, _ROW)
    rows = -(-count // columns)
    blank = np.zeros((rows * columns - count, height, width, channels), held.dtype)
    grid = np.concatenate([held, blank]).reshape(rows, columns, height, width, channels)
    return grid.transpose(0, 2, 1, 3, 4).reshape(rows * height, columns * width, channels)


def bytes_of(held: Any) -> Any:
    """Floating values from 0 to 1 as bytes from 0 to 255; others are bytes."""
    scale = 255.0 if held.dtype.kind == "f" else 1
    return (held * scale).clip(0, 255).astype(np.uint8)


def png(pixels: Any) -> bytes:
    """Bytes [height, width, 3 or 4] as a PNG file."""
    return png_file(pixels, [(b"IDAT", zlib.compress(scanlines(pixels)))])


def scanlines(pixels: Any) -> bytes:
    """The rows of an image as PNG has them, without filters."""
    rows = pixels.reshape(len(pixels), -1)
    return np.concatenate([np.zeros((len(rows), 1), np.uint8), rows], 1).tobytes()


def png_file(pixels: Any, chunks: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A PNG file of images like this one, from what stands between its header and its end."""
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, {3: 2, 4: 6}[channels], 0, 0, 0)
    parts = ((b"IHDR", header), *chunks, (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*each) for each in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pixels_of(figures: Any, close: bool) -> Any:
    """Matplotlib's figures as an array [count, height, width, 3]."""
    listed = figures if isinstance(figures, (list, tuple)) else [figures]
    made = []
    for each in listed:
        each.canvas.draw()
        made.append(np.asarray(each.canvas.buffer_rgba())[..., :3])
        if close:
            each.clear()
    return np.stack(made)


# Sound, text, hyperparameters ---------------------------------------------------------------------


def audio(tag: str, value: Any, sample_rate: int) -> Summary:
    """Sound [samples] from -1 to 1 as a WAV file."""
    held = array(value).squeeze()
    if held.ndim != 1:
        raise ValueError(f"add_audio: expected one channel, got the shape {held.shape}")
    samples = (held.clip(-1, 1) * np.iinfo(np.int16).max).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setparams((1, 2, sample_rate, 0, "NONE", "NONE"))
        written.writeframes(samples.tobytes())
    proto = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=samples.size,
        encoded_audio_string=file.getvalue(),
        content_type="audio/wav",
    )
    return Summary(value=[Summary.Value(tag=tag, audio=proto)])


def text(tag: str, value: str) -> Summary:
    """A text, which TensorBoard shows as Markdown."""
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text"))
    tensor = TensorProto(
        dtype=DT_STRING,
        string_val=[value.encode("utf-8", "replace")],
        tensor_shape=_SHAPE(dim=[_SHAPE.Dim(size=1)]),
    )
    named = f"{tag}/text_summary"
    return Summary(value=[Summary.Value(tag=named, metadata=metadata, tensor=tensor)])

"""Videos as animated PNG files, which browsers show: one image, and a chunk for each frame."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary

from weft.utils.tensorboard.summaries import array, bytes_of, png_file, scanlines


def video(tag: str, value: Any, fps: float) -> Summary:
    """Videos [n, frames, channels, height, width] side by side, each frame for 1 / fps seconds."""
    held = array(value)
    if held.ndim != 5 or held.shape[2] not in (1, 3, 4):
        raise ValueError(
            "add_video: expected [n, frames, channels, height, width] of 1, 3 or 4 channels, got "
            f"{held.shape}"
        )
    frames = bytes_of(_side_by_side(held))
    count, height, width, channels = frames.shape
    proto = Summary.Image(
        height=height,
        width=width,
        colorspace=channels,
        encoded_image_string=_animated(frames, fps) if count else b"",
    )
    return Summary(value=[Summary.Value(tag=tag, image=proto)])


def _side_by_side(held: Any) -> Any:
    """Frames [frames, height, width, channels] of 3 or 4 channels, with all videos in a grid."""
    n, count, channels, height, width = held.shape
    padded = 1 << (n - 1).bit_length()
    rows = 2 ** ((n.bit_length() - 1) // 2)
    blank = np.zeros((padded - n, *held.shape[1:]), held.dtype)
    grid = np.concatenate([held, blank]).reshape(rows, -1, *held.shape[1:])
    made = grid.transpose(2, 0, 4, 1, 5, 3)
    made = made.reshape(count, rows * height, padded // rows * width, channels)
    return np.repeat(made, 3, -1) if channels == 1 else made


def _animated(frames: Any, fps: float) -> bytes:
    count, height, width, _ = frames.shape
    chunks = [(b"acTL", struct.pack(">II", count, 0))]  # 0: it repeats for ever
    sequence = 0
    for i, frame in enumerate(frames):
        box = (width, height, 0, 0, round(1000 / fps), 1000, 0, 0)
        chunks.append((b"fcTL", struct.pack(">IIIIIHHBB", sequence, *box)))
        data = zlib.compress(scanlines(frame))
        sequence += 1
        if i:  # the first frame is the image of readers that know no animations
            data = struct.pack(">I", sequence) + data
            sequence += 1
        chunks.append((b"fdAT" if i else b"IDAT", data))
    return png_file(frames[0], chunks)

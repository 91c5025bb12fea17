"""Points for TensorBoard's projector: tables of texts beside a configuration that names them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
from google.protobuf import text_format
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo, ProjectorConfig

from weft.utils.tensorboard import summaries


def write(
    folder: str, mat: Any, metadata: Any, label_img: Any, step: int, tag: str, header: Any
) -> None:
    """Adds points [count, features], with a label and an image [count, channels, height, width] for
    each, to the projector's configuration in `folder`."""
    points = summaries.array(mat)
    if points.ndim != 2:
        raise ValueError(f"add_embedding: expected points [n, features], got {points.shape}")
    inside = f"{step:05}/{quote(tag, safe='')}"
    path = os.path.join(folder, inside)
    os.makedirs(path, exist_ok=True)
    info = EmbeddingInfo(tensor_name=f"{tag}:{step:05}", tensor_path=f"{inside}/tensors.tsv")
    if metadata is not None:
        info.metadata_path = f"{inside}/metadata.tsv"
        _write_labels(os.path.join(path, "metadata.tsv"), metadata, header, len(points))
    if label_img is not None:
        info.sprite.image_path = f"{inside}/sprite.png"
        info.sprite.single_image_dim.extend([label_img.shape[3], label_img.shape[2]])
        _write_sprite(os.path.join(path, "sprite.png"), summaries.array(label_img), len(points))
    with open(os.path.join(path, "tensors.tsv"), "w", encoding="utf-8") as file:
        file.writelines("\t".join(map(str, row)) + "\n" for row in points.tolist())
    _add(os.path.join(folder, "projector_config.pbtxt"), info)


def _write_labels(path: str, metadata: Sequence[Any], header: Any, count: int) -> None:
    if len(metadata) != count:
        raise ValueError(f"add_embedding: expected {count} labels, got {len(metadata)}")
    rows = [header, *metadata] if header else metadata
    lines = ["\t".join(map(str, r)) if isinstance(r, (list, tuple)) else str(r) for r in rows]
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(each + "\n" for each in lines)


def _write_sprite(path: str, images: Any, count: int) -> None:
    """All images in one square of images."""
    if images.ndim != 4 or len(images) != count:
        raise ValueError(f"add_embedding: expected {count} images, got {images.shape}")
    side = int(np.ceil(np.sqrt(count)))
    blank = np.zeros((side * side - count, *images.shape[1:]), images.dtype)
    grid = np.concatenate([images, blank]).reshape(side, side, *images.shape[1:])
    square = grid.transpose(0, 3, 1, 4, 2).reshape(
        side * images.shape[2], side * images.shape[3], images.shape[1]
    )
    square = np.repeat(square, 3, -1) if square.shape[-1] == 1 else square
    with open(path, "wb") as file:
        file.write(summaries.png(summaries.bytes_of(square)))


def _add(path: str, info: EmbeddingInfo) -> None:
    config = ProjectorConfig()
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text_format.Parse(file.read(), config)
    kept = [each for each in config.embeddings if each.tensor_name != info.tensor_name]
    made = ProjectorConfig(embeddings=[*kept, info])
    with open(path, "w", encoding="utf-8") as file:
        file.write(text_format.MessageToString(made))

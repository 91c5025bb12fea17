"""What plugins of TensorBoard draw: precision and recall, meshes, charts of several tags."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_FLOAT, DT_STRING
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.mesh import metadata as meshes
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

from weft.utils.tensorboard.summaries import array

_MOST = 127  # thresholds that a curve has at most


def _floats(held: Any) -> TensorProto:
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=each) for each in held.shape])
    return TensorProto(dtype=DT_FLOAT, float_val=held.ravel().tolist(), tensor_shape=shape)


def counts(labels: Any, predictions: Any, thresholds: int, weights: Any) -> list[Any]:
    """At each threshold from 0 to 1: true and false positives, true and false negatives,
    precision, recall."""
    truth, scores = array(labels).ravel().astype(np.float64), array(predictions).ravel()
    if truth.size != scores.size:
        raise ValueError(
            f"add_pr_curve: expected a label for each of {scores.size} predictions, got "
            f"{truth.size}"
        )
    number = min(thresholds, _MOST)
    weight = np.broadcast_to(1.0 if weights is None else array(weights).ravel(), truth.shape)
    weight = weight * ((scores >= 0) & (scores <= 1))
    bins = np.floor(scores.clip(0, 1) * (number - 1)).astype(np.int64)

    def at_least(values: Any) -> Any:
        return np.bincount(bins, values * weight, number)[::-1].cumsum()[::-1]

    true, false = at_least(truth), at_least(1 - truth)
    found, all_true = np.maximum(1e-7, true + false), np.maximum(1e-7, true[:1])
    return [true, false, false[0] - false, true[0] - true, true / found, true / all_true]


def curve(tag: str, rows: Sequence[Any], thresholds: int) -> Summary:
    """A curve from the six rows of `counts`."""
    content = PrCurvePluginData(version=0, num_thresholds=min(thresholds, _MOST))
    plugin = SummaryMetadata.PluginData(
        plugin_name="pr_curves", content=content.SerializeToString()
    )
    tensor = _floats(np.stack([np.asarray(each) for each in rows]))
    metadata = SummaryMetadata(plugin_data=plugin)
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=tensor)])


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config: Any) -> Summary:
    """Points [n, count, 3] in space, their colors, and triangles of them."""
    given = (
        (vertices, MeshPluginData.VERTEX),
        (faces, MeshPluginData.FACE),
        (colors, MeshPluginData.COLOR),
    )
    parts = [(array(each), kind) for each, kind in given if each is not None]
    components = meshes.get_components_bitmask([kind for _, kind in parts])
    settings = json.dumps(config or {}, sort_keys=True)
    made = []
    for held, kind in parts:
        if held.ndim != 3 or held.shape[-1] != 3:
            raise ValueError(f"add_mesh: expected the shape [n, count, 3], got {held.shape}")
        described = meshes.create_summary_metadata(
            *(tag, None, kind, components, held.shape, None), json_config=settings
        )
        named = meshes.get_instance_name(tag, kind)
        made.append(Summary.Value(tag=named, tensor=_floats(held), metadata=described))
    return Summary(value=made)


def layout(categories: Mapping[str, Mapping[str, Sequence[Any]]]) -> Summary:
    """Charts that show several tags: {category: {title: [kind, tags]}}. The kind "Margin" takes the
    tags of a value, its lower and its upper bound; others draw lines."""
    made = [
        layout_pb2.Category(
            title=category, chart=[_chart(title, *each) for title, each in charts.items()]
        )
        for category, charts in categories.items()
    ]
    tensor = TensorProto(
        dtype=DT_STRING,
        string_val=[layout_pb2.Layout(category=made).SerializeToString()],
        tensor_shape=TensorShapeProto(),
    )
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="custom_scalars"))
    named = "custom_scalars__config__"
    return Summary(value=[Summary.Value(tag=named, tensor=tensor, metadata=metadata)])


def _chart(title: str, kind: str, tags: Sequence[str]) -> Any:
    if kind != "Margin":
        return layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=tags))
    if len(tags) != 3:
        raise AssertionError(
            f"add_custom_scalars: expected the tags of a value and two bounds, got {len(tags)}"
        )
    content = layout_pb2.MarginChartContent
    series = content.Series(value=tags[0], lower=tags[1], upper=tags[2])
    return layout_pb2.Chart(title=title, margin=content(series=[series]))

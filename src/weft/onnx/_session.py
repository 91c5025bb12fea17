"""Runs models in onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnxruntime
from onnx import ModelProto

from weft._C import Tensor
from weft._runtime.public import weft


def run(model: ModelProto, args: Sequence[Tensor], kwargs: Mapping[str, Tensor]) -> list[Tensor]:
    """A model's outputs for inputs by place and by name."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]
    given = {**dict(zip(names, args)), **kwargs}
    feed = {name: tensor.detach().numpy() for name, tensor in given.items()}
    return [weft.from_numpy(each) for each in session.run(None, feed)]

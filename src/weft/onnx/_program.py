"""What an export gives. Needs the package onnx only where it is used."""

from __future__ import annotations

import os
from typing import Any

from weft._C import Tensor
from weft._runtime import lazy

_model = lazy.module("weft.onnx._model")
_session = lazy.module("weft.onnx._session")


class ONNXProgram:
    """An exported model: `model_proto`, `save(f)`, and a call that runs it in onnxruntime.

    >>> program = weft.onnx.export(weft.nn.ReLU(), (weft.ones(2),))
    >>> program.model_proto.graph.node[0].op_type
    'Relu'
    """

    def __init__(self, model_proto: Any) -> None:
        self.model_proto = model_proto

    def __repr__(self) -> str:
        return str(_model.text_of(self.model_proto))

    def save(self, destination: Any, *, external_data: bool | None = None) -> None:
        """Writes the model to a path or a writable binary file. external_data: the weights go to a
        file beside it; None: only where they are too large for one file."""
        is_path = isinstance(destination, (str, os.PathLike))
        is_large = _model.is_large(self.model_proto)
        if is_large and (external_data is False or not is_path):
            raise ValueError("save: expected a path and external_data for 2 GB and more, got none")
        if not is_path:
            destination.write(self.model_proto.SerializeToString())
            return
        path = os.fspath(destination)
        weights = os.path.basename(path) + ".data" if external_data or is_large else None
        _model.save(self.model_proto, path, weights)

    def __call__(self, *args: Tensor, **kwargs: Tensor) -> list[Tensor]:
        """The model's outputs for its inputs, from onnxruntime."""
        return list(_session.run(self.model_proto, args, kwargs))

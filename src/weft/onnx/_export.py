"""export: a module or program as an ONNX model. Needs the package onnx only when it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft._runtime import lazy
from weft.onnx._program import ONNXProgram
from weft.onnx._state import TrainingMode

_exporter = lazy.module("weft.onnx._exporter")

OPSETS = range(17, 22)


def export(
    model: Any,
    args: Any = (),
    f: Any = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool | None = None,
    dynamic_shapes: Any = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    training: Any = TrainingMode.EVAL,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    custom_translation_table: Any = None,
    operator_export_type: Any = None,
    **ignored: Any,
) -> ONNXProgram | None:
    """Writes `model` as an ONNX model to `f` (a path or a writable binary file), if given.

    - model: a module or function, which is traced, a program of weft.jit, whose branches and loops
      are kept: If and Loop, or one of weft.export, which has example arguments and sizes. args: its
      arguments, one tensor or a tuple, a dict behind which are arguments by name; kwargs: the same.
      What is no tensor is part of the model.
    - input_names, output_names: of the tensors among arguments and results, in order.
    - dynamic_axes: {input or output name: {dimension: name} or [dimensions]}; dynamic_shapes: the
      same by argument. All other sizes are those of the arguments.
    - opset_version: 17 to 21; 18 by default.
    - training: TrainingMode.EVAL, PRESERVE or TRAINING. do_constant_folding: computes what follows
      from parameters now. export_params=False: parameters are inputs.
      keep_initializers_as_inputs: they are both.
    - external_data: the weights go to a file beside the model (`f` is a path, then), as they do
      above 2 GB anyway.
    - dynamo: nothing changes but the result: the ONNXProgram, or None where it is False.

    UnsupportedOperatorError names all operators that have no mapping, and where they stand;
    `register_custom_op_symbolic` gives one. OnnxExporterError for other programs that ONNX cannot
    express; ImportError without the package onnx.

    >>> program = weft.onnx.export(weft.nn.Linear(2, 1), (weft.ones(3, 2),), input_names=["x"])
    >>> [node.op_type for node in program.model_proto.graph.node]
    ['Gemm']
    """
    options = dict(locals())
    if hasattr(model, "graph_signature"):
        args, kwargs = (args, kwargs) if args or kwargs else model.example_inputs
        if all(each is None for each in (dynamic_axes, dynamic_shapes, input_names)):
            options["dynamic_axes"] = _axes_of(model)
        model, options["training"] = model.module(), TrainingMode.PRESERVE
    opset = 18 if opset_version is None else opset_version
    if opset not in OPSETS:
        raise ValueError(f"export: expected an opset from 17 to 21, got {opset_version}")
    if custom_translation_table:
        raise ValueError(
            "export: expected no custom_translation_table, got one; use register_custom_op_symbolic"
        )
    try:
        run = _exporter.run
    except ModuleNotFoundError as error:
        text = "export: expected the package onnx (pip install weft[onnx]), got none"
        raise ImportError(text) from error
    program = ONNXProgram(run(model, args, kwargs, opset, options))
    if verbose:
        print(program)
    if f is not None:
        program.save(f, external_data=external_data)
    return program if dynamo else None


def _axes_of(program: Any) -> dict[str, dict[int, str]]:
    """The sizes of inputs that differ between calls of an exported program."""
    records = {
        node.name: node.meta["tensor_meta"]
        for node in program.graph.nodes
        if node.name in program.graph_signature.user_inputs and "tensor_meta" in node.meta
    }
    return {
        name: {dim: str(size) for dim, size in enumerate(each.sizes) if not isinstance(size, int)}
        for name, each in records.items()
    }

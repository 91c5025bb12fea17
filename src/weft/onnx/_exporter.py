"""Models and their arguments as programs, and programs as ONNX models."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from onnx import ModelProto

from weft._C import Tensor
from weft._runtime.public import weft
from weft.jit import trace
from weft.jit.compiled_function import CompiledFunction
from weft.jit.ir import Function
from weft.jit.module_methods import compiled_method
from weft.jit.script_function import ScriptFunction
from weft.jit.script_module import RecursiveScriptModule
from weft.jit.tracing.trace import argument_names
from weft.onnx import _elements, _indexing, _layers, _numbers, _recurrent, _reductions, _views
from weft.onnx._graph import Graph
from weft.onnx._interpreter import Interpreter
from weft.onnx._memory import Ref
from weft.onnx._model import model_of
from weft.onnx._state import OnnxExporterError, OnnxExporterWarning, TrainingMode, exporting
from weft.onnx._symbols import Symbol, Unsupported
from weft.utils._pytree import tree_leaves

MAPPINGS = (_elements, _indexing, _layers, _numbers, _recurrent, _reductions, _views)


def run(
    model: Any, args: Any, kwargs: Mapping[str, Any] | None, opset: int, options: Mapping[str, Any]
) -> ModelProto:
    """The model of weft.onnx.export, whose arguments the options are."""
    given, named = _arguments(args, kwargs)
    keeps = options["export_params"]
    with exporting(), _in_mode(model, options["training"]), weft.no_grad():
        program, owner, values = _program(model, given, named)
        exporter = _Exporter(model, opset, options["do_constant_folding"] and keeps)
        names = list(options["input_names"] or ())
        axes = _Axes(options["dynamic_axes"], options["dynamic_shapes"], names)
        exporter.run(program, owner, values, axes)
    return model_of(exporter, axes.named, options)


def _arguments(
    args: Any, kwargs: Mapping[str, Any] | None
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by place and by name: a dict at the end of `args` holds some by name."""
    given = args if isinstance(args, tuple) else (args,)
    named = dict(kwargs or {})
    if given and isinstance(given[-1], dict) and not named and isinstance(args, tuple):
        given, named = given[:-1], dict(given[-1])
    return given, named


@contextmanager
def _in_mode(model: Any, training: Any) -> Iterator[None]:
    """Within, the modules are in training or in evaluation mode."""
    if not isinstance(model, weft.nn.Module) or training == TrainingMode.PRESERVE:
        yield
        return
    before = {module: module.training for module in model.modules() if hasattr(module, "training")}
    model.train(training == TrainingMode.TRAINING)
    try:
        yield
    finally:
        for module, mode in before.items():
            if module.training != mode:
                module.train(mode)


class _Bound(weft.nn.Module):
    """A module or function with the arguments that are no tensors; it gives the tensors among its
    results."""

    def __init__(self, model: Any, given: Any, named: dict[str, Any]) -> None:
        super().__init__()
        self.model = model
        self._given, self._named = given, named

    def forward(self, *tensors: Any) -> Any:
        """The tensors stand where there are none among the kept arguments."""
        rest = iter(tensors)
        args = [next(rest) if _has_tensor(each) else each for each in self._given]
        kwargs = {k: next(rest) if _has_tensor(v) else v for k, v in self._named.items()}
        leaves = tree_leaves(self.model(*args, **kwargs))
        return tuple(_as_tensor(each) for each in leaves if each is not None)


def _as_tensor(value: Any) -> Any:
    return weft.tensor(value) if type(value) in (bool, int, float) else value


def _has_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_tensor, value))
    if isinstance(value, dict):
        return any(map(_has_tensor, value.values()))
    return isinstance(value, Tensor)


def _program(
    model: Any, given: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Function, Any, list[tuple[str, Any]]]:
    """The program of a model, the module that is its first argument or None, and the arguments."""
    if isinstance(model, ScriptFunction):
        kept = model if isinstance(model, CompiledFunction) else model.compiled()  # type: ignore[attr-defined]
        return kept.function, None, _bound(kept.function, given, named, 0)
    if isinstance(model, RecursiveScriptModule):
        function = _forward(model)
        return function, model, _bound(function, given, named, 1)
    tensors = tuple(each for each in (*given, *named.values()) if _has_tensor(each))
    traced = trace(_Bound(model, given, named), tensors, check_trace=False)
    target = model.forward if isinstance(model, weft.nn.Module) else model
    names = argument_names(target, len(given))
    kept = [name for name, each in zip(names, given) if _has_tensor(each)]
    kept += [name for name, each in named.items() if _has_tensor(each)]
    return _forward(traced), traced, list(zip(kept, tensors))


def _forward(module: RecursiveScriptModule) -> Function:
    info = module._jit_info
    hooked = bool(info.hooks or info.pre_hooks)
    return compiled_method(info, "__hooked__" if hooked else "forward").function


def _bound(
    function: Function, given: tuple[Any, ...], named: dict[str, Any], skip: int
) -> list[tuple[str, Any]]:
    """The arguments of a program by name, defaults among them."""
    values: list[tuple[str, Any]] = []
    parameters = function.schema.args[skip:] if hasattr(function.schema, "args") else []
    for place, parameter in enumerate(parameters):
        if place < len(given):
            value = given[place]
        elif parameter.name in named:
            value = named[parameter.name]
        elif parameter.has_default:
            value = parameter.default
        else:
            raise TypeError(f"export: expected an argument {parameter.name}, got none")
        values.append((parameter.name, value))
    return values


class _Axes:
    """The names of sizes that differ from call to call, by inputs."""

    def __init__(self, axes: Any, shapes: Any, names: list[str]) -> None:
        self.named = {name: _axes_of(name, each) for name, each in (axes or {}).items()}
        self.shapes, self.names = shapes, names

    def of(self, argument: str, place: int) -> Any:
        """What dynamic_shapes says of an argument."""
        if isinstance(self.shapes, Mapping):
            return self.shapes.get(argument)
        if self.shapes is not None and place < len(self.shapes):
            return self.shapes[place]
        return None


def _axes_of(name: str, axes: Any) -> dict[int, str]:
    if isinstance(axes, Mapping):
        return {int(dim): _dim_name(each, f"{name}_dim_{dim}") for dim, each in axes.items()}
    return {int(dim): f"{name}_dim_{dim}" for dim in axes}


def _dim_name(dim: Any, otherwise: str) -> str:
    """The name of a dimension: a text, or an object that has one, such as torch.export.Dim."""
    return dim if isinstance(dim, str) else str(getattr(dim, "__name__", otherwise))


class _Exporter:
    """One export: inputs and outputs of the graph, and the nodes in between."""

    def __init__(self, model: Any, opset: int, folds: bool) -> None:
        self.graph = Graph(opset)
        self.graph.folds = folds
        self.inputs: list[Symbol] = []
        self.outputs: list[Symbol] = []
        self.names: dict[int, str] = {}
        if isinstance(model, weft.nn.Module):
            held = (*model.named_parameters(), *model.named_buffers())
            self.names = {id(tensor): name for name, tensor in held}

    def run(
        self, program: Function, owner: Any, values: list[tuple[str, Any]], axes: _Axes
    ) -> None:
        """Writes the nodes of a program."""
        it = Interpreter(self.graph, self.names)
        args = [] if owner is None else [owner]
        for place, (name, value) in enumerate(values):
            args.append(self._input(it, name, value, axes, axes.of(name, place)))
        results = it.call(program, args)
        it.check()
        for each in results:
            self._output(it, each)

    def _input(self, it: Interpreter, name: str, value: Any, axes: _Axes, shapes: Any) -> Any:
        """An argument: a new input of the graph for each tensor in it."""
        if isinstance(value, Tensor):
            given = axes.names[len(self.inputs)] if len(self.inputs) < len(axes.names) else name
            unique = self.graph.unique(given)
            sizes: list[Any] = list(value.shape)
            for dim, text in self._dynamic(unique, axes, shapes).items():
                sizes[dim] = text
            self.inputs.append(Symbol(self.graph, unique, value.dtype, sizes))
            return Ref(it.memory, self.inputs[-1])
        if isinstance(value, (list, tuple)):
            parts = shapes if isinstance(shapes, (list, tuple)) else [None] * len(value)
            items = [
                self._input(it, f"{name}_{i}", each, axes, part)
                for i, (each, part) in enumerate(zip(value, parts))
            ]
            return tuple(items) if isinstance(value, tuple) else Ref(it.memory, items)
        if isinstance(value, dict):
            of = shapes.get if isinstance(shapes, dict) else {}.get
            held = {k: self._input(it, str(k), v, axes, of(k)) for k, v in value.items()}
            return Ref(it.memory, held)
        return value

    def _dynamic(self, name: str, axes: _Axes, shapes: Any) -> dict[int, str]:
        if isinstance(shapes, (list, tuple)):
            shapes = {i: each for i, each in enumerate(shapes) if each is not None}
        return {**axes.named.get(name, {}), **(_axes_of(name, shapes) if shapes else {})}

    def _output(self, it: Interpreter, value: Any) -> None:
        """A result: an output of the graph for each tensor in it."""
        held = value.read() if isinstance(value, Ref) else value
        if isinstance(held, (list, tuple)):
            for each in held:
                self._output(it, each)
        elif isinstance(held, dict):
            for each in held.values():
                self._output(it, each)
        elif isinstance(held, Unsupported):
            raise OnnxExporterError("export: expected a result that ONNX has, got none")
        elif isinstance(held, (Symbol, bool, int, float)):
            self.outputs.append(self.graph.symbol(held))
        elif held is not None:
            warnings.warn(
                f"export: the result {type(held).__name__} is no tensor; it is left out",
                OnnxExporterWarning,
                stacklevel=5,
            )

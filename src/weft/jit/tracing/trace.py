"""weft.jit.trace and trace_module."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft._C import Tensor
from weft._runtime.annotations import signature_of
from weft.autograd.grad_mode import no_grad
from weft.jit import schemas
from weft.jit.compiled_function import CompiledFunction
from weft.jit.execution import LOCK
from weft.jit.frontend.types.names import qualified_name
from weft.jit.frontend.types.signatures import Compiled, Parameter
from weft.jit.ir import Graph
from weft.jit.ir import types as ty
from weft.jit.ir.verify import verify
from weft.jit.module_methods import add_method
from weft.jit.script_function import ScriptFunction
from weft.jit.script_module import RecursiveScriptModule
from weft.jit.tracing import calls as _calls  # noqa: F401  (registers its overrides)
from weft.jit.tracing import checks, structures
from weft.jit.tracing import data as _data  # noqa: F401  (registers its overrides)
from weft.jit.tracing import indexing as _indexing  # noqa: F401  (registers its overrides)
from weft.jit.tracing.modules import Attributes, TopLevelTracedModule, traced_info, wrap
from weft.jit.tracing.recorder import Recorder
from weft.jit.tracing.source_locations import TracerWarning
from weft.nn.modules.module import Module


class Call:
    """The arguments of one call that is traced or checked."""

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.args, self.kwargs = args, dict(kwargs)

    @classmethod
    def of(cls, given: Any, is_kwargs: bool = False) -> Call:
        """From what a user writes: one tensor, a tuple or list of arguments, names."""
        if is_kwargs:
            return cls((), given)
        if isinstance(given, (Tensor, dict)):
            return cls((given,), {})
        if not isinstance(given, (tuple, list)):
            given = (given,)
        return cls(tuple(given), {})

    def copy(self) -> Call:
        """The same with copies of the tensors."""

        def duplicate(tensor: Tensor) -> Tensor:
            with no_grad():
                made = tensor.detach().clone()
            return made.requires_grad_(tensor.requires_grad)

        made = structures.map_tensors((self.args, self.kwargs), duplicate)
        return Call(*made)


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """Runs a function or module and returns the program of what ran.

    - example_inputs: a tensor, or a tuple of the arguments: tensors, and tuples, lists and dicts
      of tensors. example_kwarg_inputs: the same by name.
    - check_trace: run the program and the function again, on copies of the inputs and on each
      of check_inputs, and compare: TracingCheckError names the first line that differs. Results
      may differ by check_tolerance.
    - strict: refuse lists and dicts as results; they have as many items in every call.

    The program does what ran for these inputs, on any others. Sizes, and what is computed from
    them, are those of its inputs in every call; where Python decided by a value or by a size, a
    TracerWarning tells the line. A function gives a ScriptFunction, a module a ScriptModule over
    the same parameters. RuntimeError for inputs, results and calls that cannot be recorded.

    >>> import weft
    >>> def f(x):
    ...     return x.reshape(x.size(0), -1).sum(1) * x.size(0)
    >>> weft.jit.trace(f, weft.ones(2, 3, 4))(weft.ones(3, 1, 2))
    tensor([6., 6., 6.])
    """
    if isinstance(func, (ScriptFunction, RecursiveScriptModule)):
        warnings.warn(
            "trace: the argument is a program already; it is returned as it is", stacklevel=2
        )
        return func
    if (example_inputs is None) == (example_kwarg_inputs is None):
        raise RuntimeError(
            "trace: expected example_inputs or example_kwarg_inputs, got "
            + ("none" if example_inputs is None else "both")
        )
    by_name = example_kwarg_inputs is not None
    given = example_kwarg_inputs if by_name else example_inputs
    owner = getattr(func, "__self__", None)
    if isinstance(owner, Module) and getattr(func, "__name__", "") == "forward":
        func = owner
    options = (check_trace, check_inputs, check_tolerance, strict)
    if isinstance(func, Module):
        inputs = None if check_inputs is None else [{"forward": each} for each in check_inputs]
        return _trace_module(func, {"forward": given}, by_name, check_trace, inputs,
                             check_tolerance, strict)  # fmt: skip
    if not callable(func):
        raise TypeError(f"trace: expected a function or a module, got {type(func).__name__}")
    return _trace_function(func, Call.of(given, by_name), by_name, *options)


def trace_module(
    mod: Module,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """Traces methods of a module: `inputs` has the example inputs of each by its name, and each
    of check_inputs likewise. The rest is as for trace."""
    if not isinstance(mod, Module):
        raise AttributeError(f"trace_module: expected a module, got {type(mod).__name__}")
    if not isinstance(inputs, dict):
        raise AttributeError(
            f"trace_module: expected a dict of inputs by method, got {type(inputs).__name__}"
        )
    if isinstance(mod, RecursiveScriptModule):
        return mod
    return _trace_module(mod, inputs, example_inputs_is_kwarg, check_trace, check_inputs,
                         check_tolerance, strict)  # fmt: skip


# One call -------------------------------------------------------------------------------------


class _Traced:
    """A function under way: its graph, and the parameters that Python calls it with."""

    def __init__(self, name: str, owner: ty.Type | None) -> None:
        self.graph = Graph()
        self.parameters: list[Parameter] = []
        self.name = name
        self.owner = None if owner is None else self._parameter("self", owner)

    def _parameter(self, name: str, type: ty.Type) -> Any:
        self.parameters.append(Parameter(name, type))
        return self.graph.add_input(type, name)

    def run(
        self, func: Callable[..., Any], call: Call, names: list[str], strict: bool,
        module: tuple[Module, Any] | None = None, recorder_of: type[Recorder] = Recorder,
    ) -> None:  # fmt: skip
        """Runs the function and writes the graph."""
        recorder = recorder_of(self.graph, _run.__code__)
        if module is not None:
            assert self.owner is not None
            recorder.modules = Attributes(*module, self.owner)
        by_name = sorted(call.kwargs, key=[*names, *call.kwargs].index)  # as the signature has them
        given = (*call.args, *map(call.kwargs.__getitem__, by_name))
        formals = [
            self._parameter(name, structures.type_of_input(item))
            for name, item in zip([*names[: len(call.args)], *by_name], given)
        ]
        given = _fresh(given)
        with recorder.recording():
            bound = [structures.bind(recorder, v, item) for v, item in zip(formals, given)]
            count = len(call.args)
            kwargs = dict(zip(by_name, bound[count:]))
            result = _run(func, tuple(bound[:count]), kwargs)
            value = structures.output(recorder, result, strict)
            if recorder.modules is not None:
                recorder.modules.finish(recorder)
        self.graph.block.set_returns([value])
        recorder.finish()

    def compiled(self) -> Compiled:
        """What programs call."""
        made = Compiled(self.name, self.parameters, None)
        made.function.graph = self.graph
        made.returns = self.graph.returns[0].type
        verify(self.graph, schemas.of)
        return made


def recorded(
    func: Callable[..., Any], module: Module, tensors: Sequence[Any], recorder_of: type[Recorder]
) -> Graph:
    """The graph of a function of tensors, with what it reads of a module: its first input."""
    with LOCK:
        info = traced_info(module, {})
    traced = _Traced("forward", info.type)
    names = [f"input_{i}" for i in range(len(tensors))]
    traced.run(func, Call(tuple(tensors), {}), names, False, (module, info), recorder_of)
    verify(traced.graph, schemas.of)
    return traced.graph


def _run(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The frame that ends the search for the user's line."""
    return func(*args, **kwargs)


def _fresh(given: Any) -> Any:
    """Other tensors over the same elements: one that the function finds elsewhere, or that is given
    twice, is not the same argument."""

    def fresh(tensor: Tensor) -> Tensor:
        return tensor.detach().requires_grad_(tensor.requires_grad)

    return structures.map_tensors(given, fresh)


def argument_names(func: Any, count: int) -> list[str]:
    """The names of positional arguments, numbered where a function does not tell."""
    try:
        parameters = list(signature_of(func).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = []
    for each in parameters:
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            names.append(each.name)
        elif each.kind is each.VAR_POSITIONAL:
            names += [f"{each.name}_{i}" for i in range(count)]
    return [*names, *(f"argument_{i}" for i in range(len(names), count))]


def _trace_function(
    func: Any, call: Call, by_name: bool, check_trace: bool, check_inputs: Any,
    tolerance: float, strict: bool,
) -> ScriptFunction:  # fmt: skip
    inner = inspect.unwrap(func)
    name = qualified_name(inner) if hasattr(inner, "__qualname__") else "__torch__.traced"
    names = argument_names(func, len(call.args))

    def record(given: Call) -> _Traced:
        traced = _Traced(name, None)
        traced.run(func, given, names, strict)
        return traced

    traced = record(call)  # without the lock: it may wait for threads that compile
    with LOCK:
        made = CompiledFunction(traced.compiled(), func)
    if check_trace:
        others = [call, *(Call.of(each, by_name) for each in check_inputs or ())]
        checks.warn_of_randomness(traced.graph)
        checks.check(traced.graph, made, func, record, others, tolerance)
    return made


# Modules --------------------------------------------------------------------------------------


def _trace_module(
    module: Module, inputs: dict[str, Any], by_name: bool, check_trace: bool, check_inputs: Any,
    tolerance: float, strict: bool,
) -> TopLevelTracedModule:  # fmt: skip
    with LOCK:
        info = traced_info(module, {})
    records: dict[str, Any] = {}
    for name, given in inputs.items():
        func = module if name == "forward" else getattr(module, name)
        names = argument_names(getattr(module, name), 0)

        def record(call: Call, func: Any = func, names: Any = names, name: str = name) -> _Traced:
            traced = _Traced(f"{info.type.name}.{name}", info.type)
            enough = [*names, *(f"argument_{i}" for i in range(len(names), len(call.args)))]
            traced.run(func, call, enough, strict, (module, info))
            return traced

        traced = record(Call.of(given, by_name))
        with LOCK:
            add_method(info, name, traced.compiled())
        records[name] = (traced.graph, func, record)
    with LOCK:
        made = wrap(module, info, {}, TopLevelTracedModule)
    for name, (graph, func, record) in records.items() if check_trace else ():
        given = [inputs[name], *(each[name] for each in check_inputs or () if name in each)]
        others = [Call.of(each, by_name) for each in given]
        run = made if name == "forward" else getattr(made, name)
        checks.warn_of_randomness(graph)
        checks.check(graph, run, func, record, others, tolerance, module)
    return made  # type: ignore[return-value]


__all__ = ["TopLevelTracedModule", "TracerWarning", "trace", "trace_module"]

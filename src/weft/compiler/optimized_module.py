"""What `compile` gives: programs of weft.jit in place of Python, wherever they do the same."""

from __future__ import annotations

import copy
import functools
import inspect
import warnings
from typing import Any

from weft._C import Tensor
from weft.jit.execution import LOCK
from weft.jit.script import script
from weft.jit.script_function import ScriptFunction
from weft.nn.modules.module import Module
from weft.nn.parameter import is_spread

_PLAIN = (bool, int, float, str, type(None))
_BY_NAME: dict[str, Any] = {"int": int, "float": (int, float), "bool": bool, "str": str}


def _takes(schema: Any, args: tuple[Any, ...], kwargs: dict[str, Any], skip: int) -> bool:
    """Whether a program takes these arguments: unannotated ones must be tensors there."""
    arguments = schema.args[skip:]
    if len(args) > len(arguments):
        return False
    by_name = {argument.name: argument for argument in arguments}
    given = [*zip(arguments, args), *((by_name.get(name), v) for name, v in kwargs.items())]
    return all(argument is not None and _fits(argument, value) for argument, value in given)


def _fits(argument: Any, value: Any) -> bool:
    name = str(argument.type)
    if name == "Tensor":
        return isinstance(value, Tensor) and not is_spread(value)
    plain = _BY_NAME.get(name)
    return True if plain is None else isinstance(value, plain) and type(value) in _PLAIN


class _Watch:
    """The plain values outside of functions that their programs took in as constants."""

    def __init__(self, *functions: Any) -> None:
        self._bindings: list[tuple[Any, str]] = []  # a dict of globals and a name, or a cell and ""
        self._seen: set[int] = set()
        for function in functions:
            self._add(function)
        self._before = self._now()

    def _add(self, function: Any) -> None:
        function = inspect.unwrap(function)
        code = getattr(function, "__code__", None)
        if code is None or id(code) in self._seen or function.__module__.startswith("weft."):
            return
        self._seen.add(id(code))
        for cell in function.__closure__ or ():
            self._look(cell.cell_contents, cell, "")
        for name in code.co_names:
            if name in function.__globals__:
                self._look(function.__globals__[name], function.__globals__, name)

    def _look(self, value: Any, place: Any, name: str) -> None:
        if inspect.isfunction(value):
            self._add(value)
        elif not inspect.ismodule(value) and not inspect.isclass(value):
            self._bindings.append((place, name))

    def _now(self) -> list[Any]:
        return [p.get(name) if name else p.cell_contents for p, name in self._bindings]

    def changed(self) -> bool:
        """Whether a value is another one now."""
        pairs = zip(self._before, self._now())
        return any(a is not b and not (type(a) is type(b) in _PLAIN and a == b) for a, b in pairs)


class _Runner:
    """Runs a function as its program, or in Python where there is none."""

    def __init__(self, python: Any, what: str, fullgraph: bool) -> None:
        self.python, self.what, self.fullgraph = python, what, fullgraph
        self.refused = False  # whether a warning has told why Python runs

    def in_python(self, reason: str) -> Any:
        """The Python function. With fullgraph=True: RuntimeError with the reason instead."""
        if self.fullgraph:
            raise RuntimeError(f"compile: expected {self.what} to be one program, got {reason}")
        if not self.refused:
            warnings.warn(f"compile: {self.what} runs in Python: {reason}", stacklevel=4)
            self.refused = True
        return self.python


_CHANGED = "a value outside of it that has changed since it was compiled"


def compiled_function(function: Any, fullgraph: bool) -> Any:
    """A function that runs as its program."""
    name = getattr(function, "__qualname__", type(function).__name__)
    runner = _Runner(function, name, fullgraph)
    program: Any = None
    watch: Any = None

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        nonlocal program, watch
        if program is None:
            program, watch = _scripted(function), _Watch(function)
        if isinstance(program, str):
            return runner.in_python(program)(*args, **kwargs)
        if watch.changed():
            return runner.in_python(_CHANGED)(*args, **kwargs)
        if not _takes(program.function.schema, args, kwargs, 0):
            reason = f"arguments that are not those of {program.function.schema}"
            return runner.in_python(reason)(*args, **kwargs)
        return program(*args, **kwargs)

    return run


def _scripted(target: Any) -> Any:
    """The program, or the reason why there is none."""
    try:
        if isinstance(target, Module):
            program: Any = script(target)
            graphs = [program.inlined_graph]
        else:
            program = script(target)
            if not isinstance(program, ScriptFunction):
                return "a function that weft.jit leaves to Python"
            graphs = [program.inlined_graph]
    except (RuntimeError, TypeError) as error:
        return str(error).strip()
    with LOCK:
        if any(node.kind == "prim::SetAttr" for graph in graphs for node in _nodes(graph.block)):
            return "a forward that assigns attributes, which a program would keep to itself"
    return program


def _nodes(block: Any) -> Any:
    for node in block.nodes:
        yield node
        for inner in node.blocks:
            yield from _nodes(inner)


class _Forward:
    """The forward of a module as its program, made again when the module has changed."""

    def __init__(self, mod: Any, fullgraph: bool) -> None:
        python = functools.partial(type(mod).forward, mod)
        self.mod, self.runner = mod, _Runner(python, type(mod).__name__, fullgraph)
        self.program: Any = None
        self.watch: Any = None
        self.made_for: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        runner, state = self.runner, _state_of(self.mod)
        if isinstance(state, str):
            return runner.in_python(state)(*args, **kwargs)
        if self.program is None or self.made_for != state:
            self.watch = self.watch or _Watch(*_methods(self.mod))
            self.program, self.made_for = _scripted(self.mod), state
        program = self.program
        if isinstance(program, str):
            return runner.in_python(program)(*args, **kwargs)
        if self.watch.changed():
            return runner.in_python(_CHANGED)(*args, **kwargs)
        if not _takes(program.forward.function.schema, args, kwargs, 1):
            reason = f"arguments that are not those of {program.forward.function.schema}"
            return runner.in_python(reason)(*args, **kwargs)
        return program(*args, **kwargs)

    def __reduce__(self) -> Any:
        return _Forward, (self.mod, self.runner.fullgraph)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Forward:
        return _Forward(copy.deepcopy(self.mod, memo), self.runner.fullgraph)


class OptimizedModule(Module):
    """A module whose calls run as its program; `_orig_mod` is the module, sharing everything.

    Attributes are the module's. The program is made again when a mode, a parameter or a plain
    attribute of any module below has changed since.
    """

    def __init__(self, mod: Module, fullgraph: bool = False) -> None:
        super().__init__()
        self._orig_mod = mod
        object.__setattr__(self, "_run", _Forward(mod, fullgraph))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's forward, between its hooks if it has any."""
        mod = self._orig_mod
        if not mod._has_hooks():
            return self._run(*args, **kwargs)
        self._run.runner.in_python(_state_of(mod))
        return mod(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":  # not there yet: a copy in the making
            raise AttributeError(name)
        return getattr(self._orig_mod, name)

    def __reduce__(self) -> Any:
        return OptimizedModule, (self._orig_mod, self._run.runner.fullgraph)

    def __deepcopy__(self, memo: dict[int, Any]) -> OptimizedModule:
        return OptimizedModule(copy.deepcopy(self._orig_mod, memo), self._run.runner.fullgraph)


def _state_of(module: Any) -> Any:
    """What the program of a module depends on, or the reason why it cannot be one."""
    state: list[Any] = []
    for part in module.modules():
        if part._has_hooks():
            return f"hooks of {type(part).__name__}, which programs do not call"
        for name, value in part.__dict__.items():
            if isinstance(value, _PLAIN):
                state.append((name, value))
            elif is_spread(value):
                return f"{name} of {type(part).__name__}, which several processes have"
            elif isinstance(value, (Tensor, Module)):
                state.append((name, id(value)))
    return state


def _methods(module: Any) -> list[Any]:
    """The functions of the classes of all modules below."""
    classes = {cls for part in module.modules() for cls in type(part).__mro__}
    return [f for cls in classes for f in vars(cls).values() if inspect.isfunction(f)]


def compiled(model: Any, fullgraph: bool) -> Any:
    """The compiled form of a function or module."""
    if isinstance(model, Module):
        return OptimizedModule(model, fullgraph)
    if not inspect.isroutine(model) and not callable(model):
        raise RuntimeError(f"compile: expected a function or module, got {type(model).__name__}")
    return compiled_function(model, fullgraph)

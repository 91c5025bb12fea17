"""Layers that are declarations: the arguments that they keep, and the function that they call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from weft._C import Tensor
from weft.nn import functional as F
from weft.nn.modules.module import Module

REQUIRED: Any = object()
_RETIRED = ("size_average", "reduce")  # of losses: another way to say the reduction
T = TypeVar("T")

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform() -> Callable[[T], T]:
        """What type checkers are told: classes below have an __init__ of what they annotate."""
        return lambda cls: cls


def _tell(cls: type, sentence: str) -> None:
    """Puts a paragraph behind the first line of a docstring."""
    first, _, rest = (cls.__doc__ or "").partition("\n")
    cls.__doc__ = f"{first}\n\n    {sentence}\n{rest}"


def _annotations(cls: type) -> dict[str, str]:
    return cls.__annotations__ if "__annotations__" in cls.__dict__ else {}


class _Signature:
    """What `inspect.signature` shows of a layer whose __init__ is that of _Layer."""

    def __get__(self, layer: _Layer | None, cls: type[_Layer]) -> Any:
        if layer is not None or cls.__init__ is not _Layer.__init__:
            raise AttributeError("__signature__")
        inspect = sys.modules["inspect"]  # slow to import; who asks for a signature has it
        Parameter = inspect.Parameter
        types = {n: t for c in reversed(cls.__mro__) for n, t in _annotations(c).items()}
        parameters = []
        for name, default in cls._arguments.items():
            kind = Parameter.KEYWORD_ONLY if cls._by_name else Parameter.POSITIONAL_OR_KEYWORD
            shown = Parameter.empty if default is REQUIRED else default
            parameters.append(Parameter(name, kind, default=shown, annotation=types[name]))
        return inspect.Signature(parameters, return_annotation="None")


@dataclass_transform()
class _Layer(Module):
    """Base of the layers of weft that keep the arguments of a function for the calls of it.

    The names that a class annotates are the arguments of its __init__, by name only behind a first
    `_: KW_ONLY`, and become attributes; a class that annotates none has those of its base. `of`
    names the function: `forward` calls it as `_function`, and the docstring refers to it.
    """

    # Without annotations: programs evaluate those of a layer among their own names.
    if TYPE_CHECKING:
        _function: ClassVar[Callable[..., Any]]
    _arguments = dict[str, Any]()  # noqa: RUF012  # and their defaults
    _kept = tuple[str, ...]()  # those that the function gets
    _by_name = False
    __signature__ = _Signature()

    def __init_subclass__(cls, of: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.partition(".")[0] != "weft":
            return  # of a program, whose annotations are its own
        names = [*_annotations(cls)]
        if names and "__init__" not in cls.__dict__:
            cls._by_name = names[0] == "_"
            names = names[cls._by_name :]
            if cls.__init__ is not _Layer.__init__:  # that of a base
                cls.__init__ = _Layer.__init__  # type: ignore[method-assign]
            cls._arguments = {name: cls.__dict__.get(name, REQUIRED) for name in names}
            cls._kept = tuple(name for name in names if name not in _RETIRED)
            for name in cls.__dict__.keys() & names:
                delattr(cls, name)
        if of:
            cls._function = staticmethod(getattr(F, of))
            _tell(cls, f"Shapes, dtypes and errors are those of weft.nn.functional.{of}.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        names = [*self._arguments]
        given = {**self._arguments, **dict(zip(names, args)), **kwargs}
        twice = kwargs.keys() & names[: len(args)]
        too_many = len(args) > len(names) * (not self._by_name)
        missing = any(value is REQUIRED for value in given.values())
        if too_many or twice or missing or len(given) > len(names):
            raise TypeError(
                f"{type(self).__name__}: expected arguments {names}, got {args} and {kwargs}"
            )
        self._keep(given)

    def _keep(self, given: dict[str, Any]) -> None:
        """Sets the attributes; a class that checks or changes arguments does it here."""
        for name, value in given.items():
            setattr(self, name, value)


class _UnaryLayer(_Layer):
    """One that calls its function with an input and its arguments by their names."""

    def forward(self, input: Tensor) -> Any:
        return type(self)._function(input, **{name: getattr(self, name) for name in self._kept})


class _BinaryLayer(_Layer):
    """One that calls its function with an input, a target and its arguments by their names."""

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return type(self)._function(
            input, target, **{name: getattr(self, name) for name in self._kept}
        )

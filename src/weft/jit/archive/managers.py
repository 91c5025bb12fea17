"""Classes of PyTorch for `with`, which are in the code of archives: what they mean stands here, not
in that code, which sets numbers that PyTorch's compiler looks at, or calls its profiler."""

from __future__ import annotations

from collections.abc import Callable

from weft.amp import autocast
from weft.jit.archive.numbers import optional_dtype_of
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.context_managers import AutocastClass, ContextManager
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import Arg, Call, Known, Sugared
from weft.jit.ir.source import SourceRange


class _Manager(ContextManager):
    """An object of such a class, which `__init__` makes what `make` gives for its arguments."""

    def __init__(self, name: str, make: Callable[[Compiler, Call], ContextManager]) -> None:
        super().__init__(name, lambda range: fail(f"{name}: expected a call of __init__", range))
        self._make = make

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        return Known(name, self._init) if name == "__init__" else super().attr(c, range, name)

    def _init(self, c: Compiler, call: Call) -> Sugared:
        made = self._make(c, call)
        self.enter, self.leave = made.enter, made.leave
        return c.none()


class _Class(Sugared):
    def __init__(self, name: str, make: Callable[[Compiler, Call], ContextManager]) -> None:
        self.what, self._make = name, make

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        if name == "__new__":
            return Known(name, lambda c, call: _Manager(self.what, self._make))
        return super().attr(c, range, name)


def _autocast(c: Compiler, call: Call) -> ContextManager:
    """Its second argument is the number of a dtype."""
    args = list(call.args)
    if len(args) > 1:
        dtype = c.call(optional_dtype_of, call.range, args[1].value)
        args[1] = Arg(dtype, args[1].range)
    made = AutocastClass(autocast).call(c, call._replace(args=args))
    assert isinstance(made, ContextManager)
    return made


def _record_function(c: Compiler, call: Call) -> ContextManager:
    """A name for what runs inside, which no profiler shows."""
    return ContextManager("record_function", lambda range: None)


MANAGERS = {
    name: _Class(name.rpartition(".")[2], make)
    for name, make in (
        ("__torch__.torch.amp.autocast_mode.autocast", _autocast),
        ("__torch__.torch.autograd.profiler.record_function", _record_function),
    )
}

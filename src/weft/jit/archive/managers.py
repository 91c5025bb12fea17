"""Classes of PyTorch for `with`, which are in the code of archives: what they mean stands here, not
in that code, which sets numbers that PyTorch's compiler looks at, or calls its profiler."""

from __future__ import annotations

from collections.abc import Callable

from weft.amp import autocast, get_autocast_dtype
from weft.jit.archive.known import base_name
from weft.jit.archive.numbers import NUMBER_OF, optional_dtype_of
from weft.jit.frontend.compiler import Compiler
from weft.jit.frontend.language.context_managers import AutocastClass, ContextManager
from weft.jit.frontend.source.errors import fail
from weft.jit.frontend.values import Arg, Call, Known, Simple, Sugared
from weft.jit.ir.source import SourceRange

# The attributes that make an object, in the order of the arguments of its class.
_PARTS = {"autocast": ("device", "fast_dtype", "_enabled"), "record_function": ("name",)}


class _Manager(ContextManager):
    """An object of such a class, which `__init__` makes what `make` gives for its arguments, or
    attributes do that a frozen program sets one by one."""

    def __init__(self, name: str, make: Callable[[Compiler, Call], ContextManager]) -> None:
        super().__init__(name, lambda range: fail(f"{name}: expected a call of __init__", range))
        self._make = make
        self._parts: dict[str, Sugared] = {}

    def attr(self, c: Compiler, range: SourceRange, name: str) -> Sugared:
        return Known(name, self._init) if name == "__init__" else super().attr(c, range, name)

    def set_attr(self, c: Compiler, range: SourceRange, name: str, value: Sugared) -> None:
        self._parts[name] = c.none() if _is_default(value) else value
        wanted = _PARTS[self.what]
        if name in wanted and all(each in self._parts for each in wanted):
            self._init(c, Call(range, [Arg(self._parts[each], range) for each in wanted]))

    def _init(self, c: Compiler, call: Call) -> Sugared:
        made = self._make(c, call)
        self.enter, self.leave = made.enter, made.leave
        return c.none()


def _is_default(value: Sugared) -> bool:
    """Whether a value is the number of the dtype that autocast takes where none is given."""
    node = value.v.node if isinstance(value, Simple) else None
    if node is None or node.kind != NUMBER_OF or (node := node.inputs[0].node) is None:
        return False
    return node.kind == "prim::CallFunction" and base_name(node.attrs["function"]) == _DEFAULT


_DEFAULT = f"__torch__.{get_autocast_dtype.__module__}.{get_autocast_dtype.__name__}"


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

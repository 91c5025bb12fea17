"""Operators by schema: Library, define and impl."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

from weft._ops.schema import parse
from weft.library._operator import KEYS, OPERATORS, Operator, define, of
from weft.library._overloads import forget

Function = Callable[..., Any]
_RESERVED = ("aten", "prim", "prims")
_QUALNAME = re.compile(r"([A-Za-z_]\w*)::([A-Za-z_]\w*)(?:\.(\w+))?")
_defined: set[str] = set()  # namespaces with a library of kind DEF


def fallthrough_kernel() -> None:
    """Registered for a key: calls pass on to the next one."""
    raise NotImplementedError("fallthrough_kernel: expected to be registered, got a call")


class Library:
    """A namespace of operators that a program defines.

    - kind: "DEF" for a namespace of its own, once; "FRAGMENT" for more operators of one; "IMPL" for
      functions of operators that others defined.
    - dispatch_key: what functions are registered for unless `impl` says it, as "CPU".

    What a library defined and registered is gone with it.

    ValueError for other kinds, RuntimeError for the namespaces of weft's own operators and for a
    second library of kind "DEF".

    >>> library = weft.library.Library("mylib", "FRAGMENT")
    >>> library.define("halved(Tensor x) -> Tensor")
    'halved'
    >>> library.impl("halved", lambda x: x / 2, "CompositeImplicitAutograd")
    >>> weft.ops.mylib.halved(weft.ones(2))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Library: expected kind DEF, FRAGMENT or IMPL, got {kind!r}")
        if ns in _RESERVED:
            raise RuntimeError(f"Library: expected a namespace of the program, got {ns!r}")
        if kind == "DEF" and ns in _defined:
            raise RuntimeError(
                f"Library: expected one library of kind DEF for {ns}, got a second one"
            )
        if dispatch_key:
            _key(dispatch_key)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._made: list[tuple[str, str]] = []
        self._registered: list[tuple[Operator, str, Function]] = []
        if kind == "DEF":
            _defined.add(ns)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Makes an operator of a schema "f(Tensor x) -> Tensor", also behind "ns::"; its name.
        RuntimeError in a library of kind "IMPL", ValueError for no schema."""
        if self.kind == "IMPL":
            raise RuntimeError("define: expected a library of kind DEF or FRAGMENT, got IMPL")
        name = parse(schema := schema.strip().removeprefix(f"{self.ns}::")).name
        operator = define(f"{self.ns}::{name}", schema)
        self._made.append((operator.qualname, operator.schema.overload_name))
        return name

    def impl(
        self,
        op_name: Any,
        fn: Function,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Registers a function of an operator for a dispatch key: that of a device ("CPU", "CUDA",
        "Meta"), "CompositeExplicitAutograd" for all of them, "CompositeImplicitAutograd" for one
        made of operators, whose gradient follows, or "Autograd" for one that records its own.

        op_name: a name, with or without the namespace, or an overload."""
        if with_keyset:
            raise NotImplementedError("impl: expected with_keyset=False, got True")
        if not callable(fn):
            raise TypeError(f"impl: expected a function, got {type(fn).__name__}")
        key = _key(dispatch_key or self.dispatch_key or "CompositeImplicitAutograd")
        name = op_name
        if isinstance(op_name, str) and "::" not in op_name:
            name = f"{self.ns}::{op_name}"
        operator = of(name)
        if operator.qualname.partition("::")[0] != self.ns:
            raise ValueError(
                f"impl: expected an operator of the namespace {self.ns}, got {operator.qualname}"
            )
        if fn is fallthrough_kernel:
            return
        if key in operator.kernels and not allow_override:
            raise RuntimeError(
                f"impl: expected one function of {operator.full_name} for {key}, got a second one"
            )
        operator.kernels[key] = fn
        self._registered.append((operator, key, fn))

    def _destroy(self) -> None:
        """Takes back what it defined and registered."""
        for operator, key, function in self._registered:
            if operator.kernels.get(key) is function:
                del operator.kernels[key]
        for qualname, overload in self._made:
            OPERATORS.get(qualname, {}).pop(overload, None)
            if not OPERATORS.get(qualname, True):
                del OPERATORS[qualname]
            forget(qualname)
        self._registered, self._made = [], []
        if self.kind == "DEF":
            _defined.discard(self.ns)


def _key(name: str) -> str:
    if name not in KEYS:
        raise ValueError(f"impl: expected a dispatch key among {', '.join(KEYS)}, got {name!r}")
    return KEYS[name]


def _define(
    qualname: str | Library, schema: str, *, lib: Library | None = None, tags: Any = ()
) -> Any:
    """Makes an operator of a name "mylib::f" and a schema "(Tensor x) -> Tensor". With a Library
    and a schema "f(Tensor x) -> Tensor" a decorator of what computes it on every device.

    ValueError for another form of name, RuntimeError for an operator that is there already.

    >>> weft.library.define("mylib::negated", "(Tensor x) -> Tensor")
    >>> _ = weft.library.impl("mylib::negated", "cpu", lambda x: -x)
    >>> weft.ops.mylib.negated(weft.ones(1))
    tensor([-1.])
    """
    if isinstance(qualname, Library):
        return functools.partial(_implemented, qualname, qualname.define(schema, tags=tags))
    match = _QUALNAME.fullmatch(qualname) if isinstance(qualname, str) else None
    if match is None:
        raise ValueError(f"define: expected a name as 'mylib::op', got {qualname!r}")
    namespace, name, overload = match.groups()
    if namespace in _RESERVED:
        raise ValueError(f"define: expected a namespace of the program, got {namespace!r}")
    text = f"{name}.{overload}{schema}" if overload else f"{name}{schema}"
    if lib is not None:
        lib.define(text)
    else:
        define(f"{namespace}::{name}", text)
    return None


def _implemented(lib: Library, name: Any, function: Function, key: str = "") -> Function:
    lib.impl(name, function, key)
    return function


def impl(
    qualname: str | Library,
    types: str | Sequence[str],
    func: Function | str | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Registers a function of an operator for types of devices ("cpu", "default" for all) or for
    dispatch keys ("CPU"). Without `func` a decorator. In the form of before PyTorch 2.4,
    `impl(library, "f", "CPU")`, the library comes first and the name is its.

    RuntimeError for an operator that nobody defined."""
    if isinstance(qualname, Library):
        key = func if isinstance(func, str) else ""
        return functools.partial(_implemented, qualname, types, key=key)
    operator = of(qualname)
    kinds = [types] if isinstance(types, str) else list(types)
    keys = [_kind(each) for each in kinds]

    def register(function: Function) -> Function:
        for key in keys:
            operator.kernels[key] = function
            if lib is not None:
                lib._registered.append((operator, key, function))
        return function

    return register(func) if callable(func) else register


def _kind(name: str) -> str:
    if name == "default":
        return "every"
    return KEYS.get(name) or _key({"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}.get(name, name))

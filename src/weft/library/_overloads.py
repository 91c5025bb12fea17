"""Operators as objects: what `weft.ops.aten.add` and `weft.ops.aten.add.Tensor` are."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from weft import _C
from weft._runtime import lazy, torch_function
from weft.jit import schemas
from weft.jit.archive import vision  # noqa: F401, which registers torchvision's operators
from weft.jit.archive.functions import COMPOSED
from weft.library._infer import infer_schema
from weft.library._operator import Operator, define_composed, overloads_of, set_overloads
from weft.library._schema import Schema


class OpOverload:
    """One overload of an operator, which can be called.

    >>> add = weft.ops.aten.add.Tensor
    >>> add.name(), str(add), add(weft.ones(2), weft.ones(2), alpha=3)
    ('aten::add.Tensor', 'aten.add.Tensor', tensor([4., 4.]))
    """

    def __init__(self, packet: OpOverloadPacket, schema: Schema, call: Callable[..., Any]) -> None:
        self._packet = packet
        self._schema = schema
        self._call = call
        self._overloadname = schema.overload_name or "default"
        self._opname = packet.__name__
        self.namespace = packet._namespace
        self.__name__ = f"{packet.__name__}.{self._overloadname}"
        self.__qualname__ = str(self)
        self.__module__ = packet.__module__

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """All overloads of the operator."""
        return self._packet

    def name(self) -> str:
        """ "aten::add.Tensor"; "aten::relu" of an overload without a name."""
        overload = self._schema.overload_name
        return self._schema.name + (f".{overload}" if overload else "")

    @property
    def op(self) -> Callable[..., Any]:
        """The function behind it."""
        return self._call

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self._packet._qualname}', overload='{self._overloadname}')>"

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    def __reduce__(self) -> Any:
        return _by_name, (self.namespace, self._packet.__name__, self._overloadname)


class CustomOverload(OpOverload):
    """One overload of an operator that a program defined."""

    _weft_custom_operator: Any = ()  # which compilers look for

    def __init__(self, packet: OpOverloadPacket, operator: Operator) -> None:
        def call(*args: Any, **kwargs: Any) -> Any:
            return operator.call(args, kwargs)

        super().__init__(packet, operator.schema, call)
        self._weft_custom_operator = operator
        operator.overload = self


class OpOverloadPacket:
    """All overloads of an operator: a call takes the one that the arguments fit.

    >>> weft.ops.aten.mul, weft.ops.aten.exp.overloads()
    (<OpOverloadPacket(op='aten.mul')>, ['default', 'out'])
    """

    def __init__(self, namespace: str, name: str) -> None:
        self._namespace = namespace
        self._qualname = f"{namespace}.{name}"
        self.__name__ = name
        self.__qualname__ = self._qualname
        self.__module__ = f"weft.ops.{namespace}"

    def _overload(self, name: str) -> OpOverload | None:
        raise NotImplementedError

    def overloads(self) -> list[str]:
        """The names of the overloads; that of one without a name is "default"."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._overload("" if name == "default" else name)
        if found is None:
            raise AttributeError(
                f"The underlying op of '{self._qualname}' has no overload name '{name}'; it has "
                f"{', '.join(self.overloads())}"
            )
        setattr(self, name, found)
        return found

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if _C._has_torch_function((*args, *kwargs.values())):
            return torch_function.answer(self, args, kwargs)
        return self._chosen(args, kwargs)

    def _chosen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of the overload that the arguments fit."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __str__(self) -> str:
        return self._qualname

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self._qualname}')>"

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self

    def __reduce__(self) -> Any:
        return _by_name, (self._namespace, self.__name__)


class CustomPacket(OpOverloadPacket):
    """An operator that a program defined."""

    def __init__(self, namespace: str, name: str, operators: dict[str, Operator]) -> None:
        super().__init__(namespace, name)
        self._operators = operators

    @property
    def _weft_custom_operator(self) -> Operator:
        """The overload without a name, or the first."""
        found = self._operators.get("") or next(iter(self._operators.values()))
        getattr(self, found.schema.overload_name or "default")  # which is its overload
        return found

    def _overload(self, name: str) -> OpOverload | None:
        found = self._operators.get(name)
        return None if found is None else CustomOverload(self, found)

    def overloads(self) -> list[str]:
        return [name or "default" for name in self._operators]

    def _chosen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(self._operators) == 1:
            return self._weft_custom_operator.call(args, kwargs)
        reasons: list[str] = []
        for operator in self._operators.values():
            try:
                operator.schema.check(operator.schema.bind(args, kwargs))
            except RuntimeError as error:
                reasons.append(str(error))
            else:
                return operator.call(args, kwargs)
        raise RuntimeError("\n".join(reasons))


class TableOverload(OpOverload):
    """One overload of an operator of weft."""

    @property
    def _weft_kind(self) -> str:
        return self._schema.name


class TablePacket(OpOverloadPacket):
    """An operator of weft."""

    def __init__(self, name: str, operators: list[schemas.Operator]) -> None:
        super().__init__("aten", name)
        self._operators = {operator.overload: operator for operator in operators}
        self._function = getattr(_C._aten, name)

    def _overload(self, name: str) -> OpOverload | None:
        operator = self._operators.get(name)
        if operator is None:
            written = _written("aten", self.__name__)
            return None if written is None else written._overload(name)
        schema = Schema(operator.name, operator.text)
        required = sum(not each.has_default and not each.kwarg_only for each in operator.args)
        made: OpOverload

        def call(*args: Any, **kwargs: Any) -> Any:
            given = (*args, *kwargs.values()) if kwargs else args
            if _C._has_torch_function(given):
                return torch_function.answer(made, args, kwargs)
            if len(args) >= required:  # which tells the overloads apart
                return self._function(*args, **kwargs)
            assert operator.evaluate is not None
            return operator.evaluate(*schema.bind(args, kwargs))

        made = TableOverload(self, schema, call)
        return made

    @property
    def _weft_kind(self) -> str:
        return f"aten::{self.__name__}"

    def overloads(self) -> list[str]:
        return [name or "default" for name in self._operators]

    def _chosen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._function(*args, **kwargs)


class WrittenPacket(OpOverloadPacket):
    """An operator of PyTorch that functions of weft do, as archives call it. Under the name of each
    overload stands the operator, which takes the function that the arguments fit."""

    def __init__(
        self, namespace: str, name: str, functions: list[tuple[Callable[..., Any], str]]
    ) -> None:
        super().__init__(namespace, name)
        kind = f"{namespace}::{name}"
        self._functions = [_Written(each, Schema(kind, text)) for each, text in functions]
        self._weft_kind = kind

    def _overload(self, name: str) -> OpOverload:
        return WrittenOverload(self, name)

    def overloads(self) -> list[str]:
        return ["default"]

    def _chosen(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for written in self._functions[:-1]:
            try:
                written.schema.check(written.schema.bind(args, kwargs))
            except RuntimeError:
                continue
            return written(args, kwargs)
        return self._functions[-1](args, kwargs)


class _Written:
    """A function that does an operator. Its parameters may have other names than the operator's."""

    def __init__(self, function: Callable[..., Any], schema: Schema) -> None:
        self.function, self.schema = function, schema
        parameters = inspect.signature(function).parameters if hasattr(function, "__code__") else ()
        self.own = dict(zip((each.name for each in schema.parsed.args), parameters))
        names = list(self.own.values())
        self.number = names.index("number") if "number" in names else -1  # of a dtype

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if 0 <= self.number < len(args) and isinstance(args[self.number], _C.dtype):
            before, dtype, after = args[: self.number], args[self.number], args[self.number + 1 :]
            args = (*before, dtype._number, *after)
        if kwargs:
            kwargs = {self.own.get(name, name): value for name, value in kwargs.items()}
            if isinstance(kwargs.get("number"), _C.dtype):
                kwargs["number"] = kwargs["number"]._number
        return self.function(*args, **kwargs)


class WrittenOverload(OpOverload):
    """One overload of an operator that functions of weft do."""

    def __init__(self, packet: WrittenPacket, name: str) -> None:
        schema = str(packet._functions[0].schema).partition("::")[2]
        head, bracket, rest = schema.partition("(")
        text = f"{head}.{name}{bracket}{rest}" if name else head + bracket + rest
        super().__init__(packet, Schema(packet._weft_kind, text), packet)

    @property
    def _weft_kind(self) -> str:
        return self._schema.name


_OF_SYNTAX = frozenset(
    f"__{mark}{name}__" for name in ("and", "or", "xor", "lshift", "rshift") for mark in ("", "i")
)


class Namespace(ModuleType):
    """The operators of a namespace: `weft.ops.aten`. Each is made when it is first asked for."""

    def __init__(self, name: str) -> None:
        super().__init__(f"weft.ops.{name}")
        self._namespace = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _OF_SYNTAX:
            raise AttributeError(name)
        found = _packet(self._namespace, name)
        if found is None:
            stand_in = _absent(f"torch.ops.{self._namespace}.{name}")
            if stand_in is not None:
                return stand_in
            raise AttributeError(
                f"'_OpNamespace' '{self._namespace}' object has no attribute '{name}'"
            )
        setattr(self, name, found)
        return found


def _no_stand_in(place: str) -> Any:
    return None


_absent: Callable[[str], Any] = _no_stand_in


def set_absent(stand_in: Callable[[str], Any]) -> None:
    """Lets `stand_in` answer for operators that are not there; None where it has no answer."""
    global _absent
    _absent = stand_in


_namespaces: dict[str, Namespace] = {}


def namespace(name: str) -> Namespace:
    """The operators of a namespace, always the same object."""
    return _namespaces.setdefault(name, Namespace(name))


def forget(qualname: str) -> None:
    """Drops the object of an operator whose overloads have changed: the next use makes it anew."""
    space, _, name = qualname.partition("::")
    if space in _namespaces:
        vars(_namespaces[space]).pop(name, None)


def overload_of(operator: Operator) -> OpOverload:
    """The object by which programs call an operator that a program defined."""
    space, _, name = operator.qualname.partition("::")
    return getattr(getattr(namespace(space), name), operator.schema.overload_name or "default")


def _packet(space: str, name: str) -> OpOverloadPacket | None:
    qualname = f"{space}::{name}"
    if found := overloads_of(qualname):
        return CustomPacket(space, name, found)
    if space == "aten":
        rows = [each for each in schemas.candidates(qualname) if not each.is_builtin]
        if rows and hasattr(_C._aten, name):
            return TablePacket(name, rows)
    if space in ("aten", "quantized_decomposed"):
        return _written(space, name)
    return _composed(space, name)


def _written(space: str, name: str) -> WrittenPacket | None:
    """An operator of PyTorch that archives call by functions of weft."""
    functions = lazy.value("weft.jit.archive.operators", "functions_of")(f"{space}::{name}")
    return WrittenPacket(space, name, functions) if functions else None


def _composed(space: str, name: str) -> OpOverloadPacket | None:
    """An operator that archives call and weft composes in Python, as torchvision's `nms`."""
    functions = COMPOSED.get(f"{space}::{name}")
    if not functions:
        return None
    text = infer_schema(functions[0], mutates_args=(), op_name=name)
    operator = define_composed(f"{space}::{name}", text, functions[0])
    return CustomPacket(space, name, {"": operator})


def _by_name(space: str, name: str, overload: str = "") -> Any:
    packet = getattr(namespace(space), name)
    return getattr(packet, overload) if overload else packet


set_overloads(overload_of)

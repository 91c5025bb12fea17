"""Looking operators up: names, order of overloads, types, tags, and Python's functions."""

from __future__ import annotations

import math
import operator
from typing import Any

import pytest

import weft
from weft._ops.schema import parse_builtin
from weft.jit import schemas
from weft.jit.ir import parse_type
from weft.jit.ir import types as ty
from weft.jit.python_functions import function_kind


def test_every_kind_is_found_and_parses() -> None:
    kinds = list(schemas.all_kinds())
    assert len(kinds) == len(set(kinds)) > 1400
    for kind in kinds:
        found = schemas.of(kind)
        assert found.kind == kind
        assert found.schema.kind == kind


def test_unknown_names() -> None:
    assert schemas.candidates("aten::no_such_operator") == ()
    with pytest.raises(KeyError, match="expected the name of an operator"):
        schemas.of("aten::add.NoSuchOverload")


def test_order_of_overloads() -> None:
    kinds = [found.kind for found in schemas.candidates("aten::add")]
    assert kinds[0] == "aten::add.Tensor"
    kinds = [found.kind for found in schemas.candidates("aten::eq")]
    assert kinds.index("aten::eq.int") < kinds.index("aten::eq") < kinds.index("aten::eq.t")


def test_arguments() -> None:
    add = schemas.of("aten::add.Tensor").schema
    assert [arg.name for arg in add.args] == ["self", "other", "alpha"]
    assert (add.arg("alpha").default, add.arg("alpha").kwarg_only) == (1, True)
    padding = schemas.of("aten::conv2d").schema.arg("padding")
    assert (padding.type, padding.length) == (ty.ListType(ty.INT), 2)
    pop = schemas.of("aten::pop.t").schema
    assert pop.args[0].is_written
    assert pop.arg("idx").default == -1
    assert pop.returns[0].alias == "*"
    items = schemas.of("aten::items.str").returns[0].type
    assert items == parse_type("(str, t)[]")


def test_effects() -> None:
    assert schemas.of("aten::relu").pure
    assert schemas.of("aten::relu_").writes
    assert not schemas.of("aten::append.t").pure
    assert schemas.of("aten::view").aliases
    assert schemas.of("aten::dropout").nondeterministic
    assert schemas.of("aten::manual_seed").has_side_effect
    assert schemas.of("aten::manual_seed").python is None
    assert schemas.of("aten::add.int").commutative
    for kind in schemas.all_kinds():
        found = schemas.of(kind)
        if found.row is not None and "random" in found.row.tags:
            assert found.nondeterministic, kind


def test_folding() -> None:
    assert schemas.of("aten::add.int").python(2, 3) == 5  # type: ignore[misc]
    total = schemas.of("aten::sum").python
    assert total is not None
    assert total(weft.ones(3), None).item() == 3


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (weft.relu, "aten::relu"), (weft.Tensor.add_, "aten::add_"), (math.sqrt, "aten::sqrt"),
        (math.remainder, "aten::mathremainder"), (operator.mod, "aten::remainder"),
        (len, "aten::len"), (max, "prim::max"), (weft.tensor, "aten::tensor"), (weft.save, None),
        (print, "prim::Print"), (weft.nn.functional.gelu, "aten::gelu"),
    ],
)  # fmt: skip
def test_functions(function: Any, kind: str | None) -> None:
    assert function_kind(function) == kind


def test_methods_by_receiver() -> None:
    def kinds(name: str, receiver: str) -> list[str]:
        return [found.kind for found in schemas.method_candidates(name, parse_type(receiver))]

    assert kinds("append", "int[]") == ["aten::append.t"]
    # Those of dicts with keys of any other type stand last.
    assert kinds("keys", "Dict(str, int)") == ["aten::keys.str", "aten::keys.k"]
    pops = ["aten::pop.Dict_int", "aten::pop.Dict_default_int"]
    others = ["aten::pop.Dict_k", "aten::pop.Dict_default_k"]
    assert kinds("pop", "Dict(int, float)") == pops + others
    assert kinds("split", "str") == ["aten::split.str"]
    assert kinds("shape", "Tensor") == ["prim::shape"]
    assert "aten::add.Tensor" in kinds("add", "Tensor")
    assert kinds("append", "Tensor") == []


def test_schemas_of_builtins() -> None:
    text = 'f.x(Dict(str, t)(a!) self, (int, str)[] b=[], *, str c=", ", ...) -> (t(*), int)'
    schema = parse_builtin(text)
    assert (schema.name, schema.overload, schema.varargs) == ("f", "x", True)
    assert [(arg.name, arg.type, arg.alias) for arg in schema.args] == [
        ("self", "Dict(str, t)", "a!"), ("b", "(int, str)[]", ""), ("c", "str", ""),
    ]  # fmt: skip
    assert [arg.default for arg in schema.args[1:]] == [(), ", "]
    assert schema.args[2].kwarg_only and not schema.args[0].has_default
    assert [(part.type, part.alias) for part in schema.returns] == [("t", "*"), ("int", "")]
    (future,) = parse_builtin("prim::g(Future(t) self) -> (int, t)[]").returns
    assert future.type == "(int, t)[]"

"""Local algebra, as rows: pattern, replacement, guard, and whether it is exact.

An exact row changes no bit of any result or gradient and hides no error:

- where the values inside the pattern could be made, its root cannot raise (the nodes inside stay
  until dead code elimination proves that they may go);
- the result has the same dtype, sizes and strides;
- what identity, memory and gradients ask besides is checked for all rows by the pass (peephole.py).

Some that look exact are not: x + 0 turns -0.0 into 0.0, and x * 1 lays out memory anew. They are
fast-math rows, which run only when asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from weft.jit.ir import NONE, OptionalType, Value
from weft.jit.ir import types as ty
from weft.jit.ir.record import record
from weft.jit.passes import guards
from weft.jit.passes.patterns import Call, Match, Pattern, build, kind_of, parse_pattern

Guard = Callable[[Match], bool]
Replacement = Callable[[Match], "Value | None"]


@record(eq=False)
class Rule:
    """One row. `made` is the text of a pattern, or makes the value itself (None: does not apply).
    Texts are parsed when a node of the root's kind is first met."""

    text: str
    made: str | Replacement
    guard: Guard | None
    exact: bool
    identical: bool = False  # the root gives x itself: there is nobody to tell them apart

    @property
    def kind(self) -> str:
        """The kind of the root, as a pattern has it."""
        name = self.text[: self.text.index("(")]
        return kind_of(name)

    @cached_property
    def pattern(self) -> Call:
        """What is replaced."""
        parsed = parse_pattern(self.text)
        if not isinstance(parsed, Call):
            raise ValueError(f"rule: expected a call, got {self.text!r}")
        return parsed

    @cached_property
    def replacement(self) -> Pattern | Replacement:
        """What replaces it."""
        return parse_pattern(self.made) if isinstance(self.made, str) else self.made

    def replace(self, found: Match) -> Value | None:
        """The value that stands for the root, made at the insertion point."""
        if self.guard is not None and not self.guard(found):
            return None
        if callable(self.replacement):
            return self.replacement(found)
        return build(self.replacement, found)


RULES: list[Rule] = []


def _rule(
    pattern: str,
    replacement: str | Replacement,
    guard: Guard | None = None,
    exact: bool = True,
    identical: bool = False,
) -> None:
    RULES.append(Rule(pattern, replacement, guard, exact, identical))


def _fast(pattern: str, replacement: str, guard: Guard | None = None) -> None:
    _rule(pattern, replacement, guard, exact=False)


def _constant(function: Callable[[Match], object]) -> Replacement:
    """The value of a function of the match as a constant, unless it is None."""

    def replace(found: Match) -> Value | None:
        value = function(found)
        return None if value is None else found.graph.constant(value, found.output.type)

    return replace


# ---- bool ----

_rule("__not__(__not__(x))", "x")
_rule("__and__.bool(x, x)", "x")
_rule("__or__.bool(x, x)", "x")
for _and, _or in (("__and__.bool({}, {})", "__or__.bool({}, {})"),):
    for _pair in (("x", "{}"), ("{}", "x")):
        _first, _second = _pair
        _true = [side.format("True") for side in _pair]
        _false = [side.format("False") for side in _pair]
        _rule(_and.format(*_true), "x")
        _rule(_and.format(*_false), "False")
        _rule(_or.format(*_false), "x")
        _rule(_or.format(*_true), "True")
        _rule(f"eq.bool({', '.join(_true)})", "x")
        _rule(f"eq.bool({', '.join(_false)})", "__not__(x)")
        _rule(f"ne.bool({', '.join(_false)})", "x")
        _rule(f"ne.bool({', '.join(_true)})", "__not__(x)")
for _is, _other in (("lt", "ge"), ("gt", "le"), ("eq", "ne")):
    for _type in ("int", "str"):  # not float: NaN is neither less nor greater or equal
        _rule(f"__not__({_is}.{_type}(x, y))", f"{_other}.{_type}(x, y)")
        _rule(f"__not__({_other}.{_type}(x, y))", f"{_is}.{_type}(x, y)")
    _rule(f"{_is}.int(x, x)", str(_is == "eq"))
    _rule(f"{_other}.int(x, x)", str(_is != "eq"))
for _name in ("eq", "ne"):
    for _type in ("bool", "float"):
        _negated = "ne" if _name == "eq" else "eq"
        _rule(f"__not__({_name}.{_type}(x, y))", f"{_negated}.{_type}(x, y)")

# ---- int and float ----

for _text in ("add.int(x, 0)", "add.int(0, x)", "sub.int(x, 0)", "mul.int(x, 1)", "mul.int(1, x)"):
    _rule(_text, "x")
_rule("floordiv.int(x, 1)", "x")
_rule("mul.int(x, 0)", "0")
_rule("mul.int(0, x)", "0")
_rule("sub.int(x, x)", "0")
_rule("neg.int(neg.int(x))", "x")
_rule("neg.float(neg.float(x))", "x")
_rule("sub.float(x, 0.0)", "x")  # but not x + 0.0: -0.0 would stay -0.0
_rule("add.float(x, -0.0)", "x")
_rule("mul.float(x, 1.0)", "x")
_rule("mul.float(1.0, x)", "x")
_rule("div.float(x, 1.0)", "x")
for _name in ("min", "max"):
    for _type in ("int", "float"):
        _rule(f"prim.{_name}.{_type}(x, x)", "x")
_fast("add.float(x, 0.0)", "x")
_fast("add.float(0.0, x)", "x")
_fast("sub.float(x, x)", "0.0")
_fast("mul.float(x, 0.0)", "0.0")


def _same_type(found: Match) -> bool:
    return found.values["x"].type == found.output.type


for _text in ("Int.Scalar(x)", "Float.Scalar(x)", "Int.bool(x)", "Bool.int(x)", "Float.int(x)"):
    _rule(_text, "x", _same_type)

# ---- None ----


def _never_none(found: Match) -> bool:
    type_ = found.values["x"].type
    maybe = (ty.UnionType, OptionalType, ty.TypeVar)
    return not (isinstance(type_, maybe) or type_ in (NONE, ty.ANY))


def _always_none(found: Match) -> bool:
    return found.values["x"].type == NONE


for _is, _when_none in (("__is__", "True"), ("__isnot__", "False")):
    _otherwise = "False" if _when_none == "True" else "True"
    for _text in (f"{_is}(x, None)", f"{_is}(None, x)"):
        _rule(_text, _when_none, _always_none)
        _rule(_text, _otherwise, _never_none)

# ---- what is known of tensors ----

_rule("dim(x)", _constant(lambda found: guards.rank(found.values["x"])))
_rule("prim.ndim(x)", _constant(lambda found: guards.rank(found.values["x"])))
_rule("size.int(x, D)", _constant(lambda found: guards.size(found.values["x"], found.const("D"))))
_rule("numel(x)", _constant(lambda found: guards.numel(found.values["x"])))
_rule("prim.numbered_dtype(prim.dtype_number(x))", "x")
_rule("prim.numbered_dtype(N)", _constant(lambda found: guards.numbered(found.const("N"))))
_rule("prim.dtype(x)", _constant(lambda found: guards.dtype(found.values["x"])))
_rule("is_floating_point(x)", _constant(lambda found: guards.is_floating(found.values["x"])))

# ---- views ----

_rule("t(t(x))", "x")
for _name in ("transpose.int", "swapaxes"):
    _rule(f"{_name}({_name}(x, A, B), A, B)", "x")
    _rule(f"{_name}({_name}(x, A, B), B, A)", "x")
_rule("squeeze.dim(unsqueeze(x, D), D)", "x")
_rule("permute(permute(x, P), Q)", "x", lambda found: guards.is_inverse(found, "P", "Q"))
_rule("permute(x, P)", "x", lambda found: guards.is_identity(found, "P"))
_rule("contiguous(x, M)", "x", guards.is_same_again, identical=True)
_rule("view(x, S)", "x", lambda found: guards.has_sizes(found, "S"))
_rule("reshape(x, S)", "x", lambda found: guards.has_sizes(found, "S"))
_rule("expand(x, S, I)", "x", lambda found: guards.has_sizes(found, "S"))
_rule("view(view(x, S), T)", "view(x, T)", lambda found: guards.same_count(found, "S", "T"))
_rule("alias(x)", "x")

# ---- casts, dropout outside training ----

_rule(
    "to.dtype(x, D, N, False, None)",
    "x",
    lambda found: guards.has_dtype(found, "D"),
    identical=True,
)
_rule("type_as(x, y)", "x", guards.same_dtype, identical=True)
_rule("dropout(x, P, False)", "x", lambda found: 0 <= found.const("P") <= 1, identical=True)

# ---- tensors: last bits, strides and errors may differ ----

for _text in ("add.Scalar(x, 0, A)", "sub.Scalar(x, 0, A)", "mul.Scalar(x, 1)", "div.Scalar(x, 1)"):
    _fast(_text, "x", guards.is_float_tensor)
_fast("mul.Scalar(x, 1.0)", "x", guards.is_float_tensor)
_fast("pow.Tensor_Scalar(x, 1)", "x", guards.is_float_tensor)
_fast("pow.Tensor_Scalar(x, 2)", "mul.Tensor(x, x)", guards.is_float_tensor)
_fast("neg(neg(x))", "x")
_fast("exp(log(x))", "x")
_fast("log(exp(x))", "x")
_fast("relu(x)", "x", guards.is_same_again)

BY_KIND: dict[str, list[Rule]] = {}
for _row in RULES:
    BY_KIND.setdefault(_row.kind, []).append(_row)

"""What each node becomes: LLVM instructions, calls of intrinsics, or other nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from . import convert, lookup, math
from .expr import Expr, components
from .llvm_text import literal, llvm_type
from .target import Target
from .types import BOOL, F32, DType

if TYPE_CHECKING:
    from .scope import Scope

_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER = {"add": "add", "sub": "sub", "mul": "mul"}
_BITS = {"and": "and", "or": "or", "xor": "xor", "shl": "shl"}
_INTRINSICS = {
    "sqrt": "sqrt", "fabs": "fabs", "floor": "floor", "ceil": "ceil", "trunc": "trunc",
    "roundeven": "roundeven", "copysign": "copysign", "fma": "fmuladd",
}  # fmt: skip
_FLOAT_COMPARE = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}

# Scalar functions of our own that a module carries along when a kernel calls them.
HELPERS = {
    # x to the power n by squaring, modulo 2^64; n < 0 gives what rounds toward zero.
    "weft_pow_i64": """define internal i64 @weft_pow_i64(i64 %x, i64 %n) nounwind {
entry:
  %negative = icmp slt i64 %n, 0
  br i1 %negative, label %inverse, label %loop
inverse:
  %one = icmp eq i64 %x, 1
  %minus = icmp eq i64 %x, -1
  %odd = and i64 %n, 1
  %twice = shl i64 %odd, 1
  %sign = sub i64 1, %twice
  %other = select i1 %minus, i64 %sign, i64 0
  %inverted = select i1 %one, i64 1, i64 %other
  ret i64 %inverted
loop:
  %rest = phi i64 [ %n, %entry ], [ %next.rest, %body ]
  %result = phi i64 [ 1, %entry ], [ %next.result, %body ]
  %power = phi i64 [ %x, %entry ], [ %next.power, %body ]
  %done = icmp eq i64 %rest, 0
  br i1 %done, label %end, label %body
body:
  %bit = and i64 %rest, 1
  %taken = icmp ne i64 %bit, 0
  %factor = select i1 %taken, i64 %power, i64 1
  %next.result = mul i64 %result, %factor
  %next.power = mul i64 %power, %power
  %next.rest = lshr i64 %rest, 1
  br label %loop
end:
  ret i64 %result
}""",
}


# Of the nodes that expand to many: about how many.
SIZES = {"exp": 15, "log": 15, "sqrt": 12, "sigmoid": 20, "tanh": 25}


_EXPANDING = {*math.PORTABLE, "sqrt", "scale2", "fmod", "f16_to_f32", "f32_to_f16"}


def expand(e: Expr, target: Target) -> Expr | None:
    """The node in terms of simpler ones, where this target has no instruction for it."""
    if e.op not in _EXPANDING:
        return None
    if e.op in math.PORTABLE:
        forms = lookup.FUNCTIONS if target.lookup else math.PORTABLE
        return components(forms[e.op](e.args[0]))[0]
    if e.op == "sqrt" and e.dtype == F32 and target.lookup:
        return components(lookup.sqrt(e.args[0]))[0]
    if e.op == "scale2" and not target.scale2:
        scale = math.scale2_directly if e.value == "normal" else math.scale2_by_factors
        return components(scale(e.args[0], e.args[1]))[0]
    if e.op == "fmod":
        return components(math.fmod(e.args[0], e.args[1], target.fma))[0]
    if target.f16 or e.op not in ("f16_to_f32", "f32_to_f16"):
        return None
    f = convert.f16_to_f32 if e.op == "f16_to_f32" else convert.f32_to_f16
    return components(f(e.args[0]))[0]


def write(scope: Scope, e: Expr, args: list[str]) -> str:
    """Writes the instructions of one node whose operands have names; returns the result's name."""
    special = _WRITERS.get(e.op)
    if special is not None:
        return special(scope, e, args)
    f, lanes, d = scope.function, scope.lanes, e.dtype
    t = llvm_type(d, lanes)
    if e.op in _INTRINSICS:
        return _intrinsic(scope, _INTRINSICS[e.op], d, args)
    if e.op in _FLOAT_COMPARE:
        return _compare(scope, e, args)
    if e.op in _BITS:
        return f.emit(f"{_BITS[e.op]} {t} {args[0]}, {args[1]}")
    table = _FLOAT if d.kind == "float" else _INTEGER
    return f.emit(f"{table[e.op]} {t} {args[0]}, {args[1]}")


def _intrinsic(scope: Scope, name: str, d: DType, args: list[str]) -> str:
    t = llvm_type(d, scope.lanes)
    suffix = f"f{d.bits}" if scope.lanes == 1 else f"v{scope.lanes}f{d.bits}"
    full = f"llvm.{name}.{suffix}"
    scope.function.declare(t, full, *[t] * len(args))
    return scope.function.emit(f"call {t} @{full}({', '.join(f'{t} {a}' for a in args)})")


def _compare(scope: Scope, e: Expr, args: list[str]) -> str:
    d = e.args[0].dtype
    t = llvm_type(d, scope.lanes)
    if d.kind == "float":
        return scope.function.emit(f"fcmp {_FLOAT_COMPARE[e.op]} {t} {args[0]}, {args[1]}")
    sign = "" if e.op in ("eq", "ne") else "s" if d.kind == "int" else "u"
    return scope.function.emit(f"icmp {sign}{e.op} {t} {args[0]}, {args[1]}")


def _neg(scope: Scope, e: Expr, args: list[str]) -> str:
    t = llvm_type(e.dtype, scope.lanes)
    if e.dtype.kind == "float":
        return scope.function.emit(f"fneg {t} {args[0]}")
    zero = "0" if scope.lanes == 1 else "zeroinitializer"
    return scope.function.emit(f"sub {t} {zero}, {args[0]}")


def _not(scope: Scope, e: Expr, args: list[str]) -> str:
    ones = literal(True if e.dtype == BOOL else -1, e.dtype, scope.lanes)
    return scope.function.emit(f"xor {llvm_type(e.dtype, scope.lanes)} {args[0]}, {ones}")


def _shr(scope: Scope, e: Expr, args: list[str]) -> str:
    op = "ashr" if e.dtype.kind == "int" else "lshr"
    return scope.function.emit(f"{op} {llvm_type(e.dtype, scope.lanes)} {args[0]}, {args[1]}")


def _integer_division(scope: Scope, e: Expr, args: list[str]) -> str:
    sign = "s" if e.dtype.kind == "int" else "u"
    op = sign + ("div" if e.op == "idiv" else "rem")
    return scope.function.emit(f"{op} {llvm_type(e.dtype, scope.lanes)} {args[0]}, {args[1]}")


def _select(scope: Scope, e: Expr, args: list[str]) -> str:
    t, c = llvm_type(e.dtype, scope.lanes), llvm_type(BOOL, scope.lanes)
    return scope.function.emit(f"select {c} {args[0]}, {t} {args[1]}, {t} {args[2]}")


def _cast(scope: Scope, e: Expr, args: list[str]) -> str:
    old, new = e.args[0].dtype, e.dtype
    a, b = llvm_type(old, scope.lanes), llvm_type(new, scope.lanes)
    if a == b:
        return args[0]
    if old.kind == "float":
        op = "fpext" if new.bits > old.bits else "fptrunc"
    elif new.kind == "float":
        op = "sitofp" if old.kind == "int" else "uitofp"
    elif new.bits < old.bits:
        op = "trunc"
    else:
        op = "sext" if old.kind == "int" else "zext"
    return scope.function.emit(f"{op} {a} {args[0]} to {b}")


def _convert(op: str) -> Callable[[Scope, Expr, list[str]], str]:
    def apply(scope: Scope, e: Expr, args: list[str]) -> str:
        a, b = llvm_type(e.args[0].dtype, scope.lanes), llvm_type(e.dtype, scope.lanes)
        return args[0] if a == b else scope.function.emit(f"{op} {a} {args[0]} to {b}")

    return apply


def _half(scope: Scope, e: Expr, args: list[str]) -> str:
    """float16 (as its bits, U16) to and from float32 in hardware."""
    f, n = scope.function, scope.lanes
    bits, half, single = (t if n == 1 else f"<{n} x {t}>" for t in ("i16", "half", "float"))
    if e.op == "f16_to_f32":
        value = f.emit(f"bitcast {bits} {args[0]} to {half}")
        return f.emit(f"fpext {half} {value} to {single}")
    value = f.emit(f"fptrunc {single} {args[0]} to {half}")
    return f.emit(f"bitcast {half} {value} to {bits}")


def _scale2(scope: Scope, e: Expr, args: list[str]) -> str:
    """vscalef: x * 2^n. AVX-512 has it for each number of lanes, as masked intrinsics."""
    f, lanes, d = scope.function, scope.lanes, e.dtype
    per_register = 512 // d.bits
    t = llvm_type(d, lanes)
    if lanes > per_register:
        return _halves(scope, e, args)
    bits = max(128, lanes * d.bits)
    wide = bits // d.bits
    vector = llvm_type(d, wide)
    if lanes == 1:
        args = [f.emit(f"insertelement {vector} poison, {t} {a}, i64 0") for a in args]
    kind = "ps" if d.bits == 32 else "pd"
    name = f"llvm.x86.avx512.mask.scalef.{kind}.{bits}"
    mask = f"i{max(8, wide)}"
    extra = [(vector, "zeroinitializer"), (mask, "-1")] + ([("i32", "4")] if bits == 512 else [])
    operands = [(vector, a) for a in args] + extra
    f.declare(vector, name, *(k for k, _ in operands))
    value = f.emit(f"call {vector} @{name}({', '.join(f'{k} {a}' for k, a in operands)})")
    return f.emit(f"extractelement {vector} {value}, i64 0") if lanes == 1 else value


def _operand_type(operand: str) -> str:
    return operand[: operand.index(">") + 1] if operand[0] == "<" else operand.split()[0]


def _avx512(scope: Scope, e: Expr, args: list[str]) -> str:
    """A node over 16 float32 lanes; fewer ones fill a register that has unused lanes then."""
    f, lanes, old = scope.function, scope.lanes, e.args[0].dtype
    assert lanes <= 16, f"{e.op}: expected at most 16 lanes, got {lanes}"
    given, value = llvm_type(old, lanes), args[0]
    if lanes == 1:
        value = f.emit(f"insertelement {llvm_type(old, 16)} poison, {given} {value}, i64 0")
    elif lanes < 16:
        mask = ", ".join(f"i32 {i % lanes}" for i in range(16))
        value = f.emit(f"shufflevector {given} {value}, {given} poison, <16 x i32> <{mask}>")
    name, operands = _AVX512[e.op](e, value)
    f.declare("<16 x float>", name, *(_operand_type(o) for o in operands))
    result = f.emit(f"call <16 x float> @{name}({', '.join(operands)})")
    if lanes == 1:
        return f.emit(f"extractelement <16 x float> {result}, i64 0")
    if lanes == 16:
        return result
    mask = ", ".join(f"i32 {i}" for i in range(lanes))
    return f.emit(
        f"shufflevector <16 x float> {result}, <16 x float> poison, <{lanes} x i32> <{mask}>"
    )


def _halves(scope: Scope, e: Expr, args: list[str]) -> str:
    """A node of more lanes than a register: the two halves, joined."""
    f, lanes, d = scope.function, scope.lanes, e.dtype
    vector, half = llvm_type(d, lanes), lanes // 2
    parts = []
    for offset in (0, half):
        mask = ", ".join(f"i32 {offset + i}" for i in range(half))
        cut = [
            f.emit(f"shufflevector {vector} {a}, {vector} poison, <{half} x i32> <{mask}>")
            for a in args
        ]
        scope.lanes = half
        parts.append(write(scope, e, cut))
        scope.lanes = lanes
    both = ", ".join(f"i32 {i}" for i in range(lanes))
    small = llvm_type(d, half)
    return f.emit(f"shufflevector {small} {parts[0]}, {small} {parts[1]}, <{lanes} x i32> <{both}>")


def _rare(scope: Scope, e: Expr, args: list[str]) -> str:
    """args: condition, usual value, operands. The scalar function where a lane's condition holds.

    The code for it stands in a block of its own that runs only when some lane needs it.
    """
    f, lanes, t = scope.function, scope.lanes, llvm_type(e.dtype, scope.lanes)
    condition, usual, operands = args[0], args[1], args[2:]
    any_lane = condition
    if lanes > 1:
        reduce = f"llvm.vector.reduce.or.v{lanes}i1"
        f.declare("i1", reduce, f"<{lanes} x i1>")
        any_lane = f.emit(f"call i1 @{reduce}(<{lanes} x i1> {condition})")
    before, slow, after = f.block, f.label("slow"), f.label("joined")
    f.line(f"br i1 {any_lane}, label %{slow}, label %{after}")
    f.open(slow)
    exact = _call(scope, e, operands)
    c = llvm_type(BOOL, lanes)
    patched = f.emit(f"select {c} {condition}, {t} {exact}, {t} {usual}")
    f.line(f"br label %{after}")
    f.open(after)
    return f.emit(f"phi {t} [ {usual}, %{before} ], [ {patched}, %{slow} ]")


def _call(scope: Scope, e: Expr, args: list[str]) -> str:
    """A scalar function, lane by lane."""
    f, t = scope.function, llvm_type(e.dtype, 1)
    if e.value in HELPERS:
        f.helpers.add(e.value)
    else:
        f.declare(t, e.value, *[t] * len(args))
    if scope.lanes == 1:
        return f.emit(f"call {t} @{e.value}({', '.join(f'{t} {a}' for a in args)})")
    vector, result = llvm_type(e.dtype, scope.lanes), "poison"
    for i in range(scope.lanes):
        parts = [f.emit(f"extractelement {vector} {a}, i64 {i}") for a in args]
        one = f.emit(f"call {t} @{e.value}({', '.join(f'{t} {p}' for p in parts)})")
        result = f.emit(f"insertelement {vector} {result}, {t} {one}, i64 {i}")
    return result


def _lookup_call(e: Expr, index: str) -> tuple[str, list[str]]:
    entries = ", ".join(f"float {literal(v, F32)}" for v in e.value)
    return "llvm.x86.avx512.permvar.sf.512", [f"<16 x float> <{entries}>", f"<16 x i32> {index}"]


_UNMASKED = ["<16 x float> zeroinitializer", "i16 -1", "i32 4"]
_NEAR_ONE_OR_NAN = "i32 11"  # significands in [3/4, 3/2); of negative numbers NaN
_AVX512: dict[str, Callable[[Expr, str], tuple[str, list[str]]]] = {
    "lookup": _lookup_call,
    "getexp": lambda e, x: (
        "llvm.x86.avx512.mask.getexp.ps.512", [f"<16 x float> {x}", *_UNMASKED]
    ),
    "getmant": lambda e, x: (
        "llvm.x86.avx512.mask.getmant.ps.512",
        [f"<16 x float> {x}", _NEAR_ONE_OR_NAN, *_UNMASKED],
    ),
    "rsqrt14": lambda e, x: (
        "llvm.x86.avx512.rsqrt14.ps.512", [f"<16 x float> {x}", *_UNMASKED[:2]]
    ),
}  # fmt: skip

_WRITERS: dict[str, Callable[[Scope, Expr, list[str]], str]] = {
    "neg": _neg, "not": _not, "shr": _shr, "idiv": _integer_division, "irem": _integer_division,
    "select": _select, "cast": _cast, "bitcast": _convert("bitcast"), "fptosi": _convert("fptosi"),
    "call": _call, "rare": _rare, "scale2": _scale2, "f16_to_f32": _half, "f32_to_f16": _half,
    "lookup": _avx512, "getexp": _avx512, "getmant": _avx512,
    "rsqrt14": _avx512,
}  # fmt: skip

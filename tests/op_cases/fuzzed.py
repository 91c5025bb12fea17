"""Calls thrown at a row: arguments drawn by the types of its schema, or its case's samples bent.

Arrays come as `Operand`s, which know their values, dtype and memory layout apart, so that one call
can be made on the drawn layout, on contiguous memory, and with PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import reject

from weft._ops.schema import Arg

from .calling import ROWS
from .realise import lay_out, realise_array, rng_for
from .spec import ALL, A, B, Case, F, I, K, S, normal, positive

LAYOUTS = ("contiguous", "transposed", "strided", "reversed", "offset", "broadcast")
SHAPES = ((), (1,), (3,), (4,), (0,), (3, 4), (4, 3), (1, 4), (3, 1), (4, 4), (0, 3), (2, 3, 4), (2, 1, 4), (2, 3, 4, 5), (17,), (1, 2, 6, 6))
DTYPES = (*ALL, "complex64", "complex128", "uint16")
INDICES = ("index", "indices", "batch", "target", "repeats")
MASKS = ("mask", "condition")


@dataclass
class Operand:
    """A tensor argument to be."""

    values: np.ndarray  # bfloat16 as the float32 that carries it
    dtype: str
    layout: str = "contiguous"
    held: list[np.ndarray] = field(default_factory=list, repr=False)

    def array(self, layout: str) -> np.ndarray:
        values = self.values
        if self.dtype == "bfloat16":
            values = np.asarray(np.array(values).view(np.uint32) >> 16, np.uint16).view(np.int16)
        if self.layout == "broadcast" and values.ndim:  # the same values in every layout
            values = np.repeat(values[:1], values.shape[0], 0)
        if layout == "broadcast" and values.size:
            base = np.array(values[:1] if values.ndim else values)
            strides = (0, *base.strides[1:]) if values.ndim else ()
            return np.lib.stride_tricks.as_strided(base, values.shape, strides, writeable=True)
        if layout == "offset":
            room = np.zeros(values.size + 7, values.dtype)
            room[5 : 5 + values.size] = values.ravel()
            return room[5 : 5 + values.size].reshape(values.shape)
        return np.array(values) if layout in ("contiguous", "broadcast") else lay_out(values.copy(), layout)

    def tensor(self, library: Any, plain: bool) -> Any:
        """A fresh tensor; `plain` for contiguous memory. PyTorch has no negative strides."""
        array = self.array("contiguous" if plain else self.layout)
        if library.__name__ == "torch" and any(s < 0 for s in array.strides):
            array = array.copy()
        else:
            self.held.append(array)
        made = library.from_numpy(array)
        return made.view(library.bfloat16) if self.dtype == "bfloat16" else made


@dataclass
class Named:
    """An attribute of the library: a dtype, a memory format."""

    name: str


@dataclass
class Call:
    """Arguments of one call; `faithful`: a sample of the case with nothing changed but memory."""

    args: list[Any]
    kwargs: dict[str, Any]
    faithful: S | None = None

    def build(self, library: Any, plain: bool) -> tuple[list[Any], dict[str, Any]]:
        def make(value: Any) -> Any:
            if isinstance(value, Operand):
                return value.tensor(library, plain)
            if isinstance(value, Named):
                return getattr(library, value.name)
            return [make(v) for v in value] if isinstance(value, list) else value

        return [make(v) for v in self.args], {k: make(v) for k, v in self.kwargs.items()}

    def operands(self) -> list[Operand]:
        flat = [*self.args, *self.kwargs.values()]
        flat += [v for value in flat if isinstance(value, list) for v in value]
        return [v for v in flat if isinstance(v, Operand)]


def _values(domain: Any, dtype: str, shape: tuple[int, ...], rng: np.random.Generator, case: Case) -> np.ndarray:
    """Numbers of the domain; no example where the domain has none of this shape."""
    try:
        with np.errstate(all="ignore"):
            return _drawn(domain, dtype, shape, rng, case)
    except (TypeError, ValueError, IndexError, np.linalg.LinAlgError):
        reject()


def _drawn(domain: Any, dtype: str, shape: tuple[int, ...], rng: np.random.Generator, case: Case) -> np.ndarray:
    if dtype.startswith("complex"):
        parts = [np.asarray(domain(rng, shape), "float64") for _ in range(2)]
        return np.asarray(parts[0] + 1j * parts[1], dtype)
    if dtype == "uint16":
        return np.asarray(np.abs(np.asarray(domain(rng, shape)) * 3), dtype)
    values = realise_array(A(shape, domain), case, dtype, rng)
    if dtype == "bfloat16":  # numbers it has
        values = np.asarray(np.array(values).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return values


class _Thrower:
    def __init__(self, draw: Any, case: Case) -> None:
        self.draw, self.case, self.row = draw, case, ROWS[case.name]
        self.rng = rng_for(case, draw(st.integers(0, 1000)))
        self.bends = 0  # how many arguments may still be changed

    def one(self, choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    # ---- from the schema ----

    def from_schema(self) -> Call:
        self.shape = self.one(SHAPES)
        self.dtype = self.one((*self.case.dtypes, *self.case.dtypes, *DTYPES))
        args, kwargs = [], {}
        for arg in self.row.schema.args:
            if arg.has_default and self.draw(st.booleans()):
                if not arg.kwarg_only:
                    break
                continue
            value = self.of_type(arg)
            if arg.kwarg_only:
                kwargs[arg.name] = value
            else:
                args.append(value)
        for arg in self.row.schema.args:  # what broke off above
            if arg.kwarg_only and arg.name not in kwargs and not arg.has_default:
                kwargs[arg.name] = self.of_type(arg)
        return Call(args, kwargs)

    def of_type(self, arg: Arg) -> Any:
        if arg.type.endswith("?") and self.one((True, False, False)):
            return None
        if arg.is_tensor_list:
            return [self.tensor(arg) for _ in range(self.one((0, 1, 2, 2, 3)))]
        if arg.base == "Tensor":
            return self.tensor(arg)
        if "[" in arg.type:
            return self.draw(st.lists(st.integers(-3, 5), max_size=4))
        return self.scalar(arg)

    def scalar(self, arg: Arg) -> Any:
        if arg.base == "int":
            return self.one((0, 0, 1, 1, 2, 3, 5, -1, -2, -3, -7))
        if arg.base == "bool":
            return self.draw(st.booleans())
        if arg.base in ("float", "Scalar"):
            return self.one((0.0, 0.5, 1.0, 2.0, -1.5, 1e-5) + ((0, 1, 2, -3, True) if arg.base == "Scalar" else ()))
        if arg.base == "ScalarType":
            return Named(self.one(DTYPES))
        if arg.base == "str":
            return self.one(("none", "tanh", "valid", "same", "floor", "trunc", "sum", "prod", "mean", "amax", "left", "right", "L", "reduced", "?"))
        if arg.base == "MemoryFormat":
            return Named(self.one(("contiguous_format", "preserve_format")))
        return None  # Device, Layout, Generator

    def tensor(self, arg: Arg) -> Operand:
        shape = self.near(self.shape)
        if arg.name in INDICES or arg.name in self.row.int_inputs:
            values = self.rng.integers(-2, 4, shape)
            return Operand(np.asarray(values), "int64", self.layout(arg))
        dtype = "bool" if arg.name in MASKS or arg.name in self.row.bool_inputs else self.dtype
        dtype = self.one((dtype,) * 7 + (self.one(DTYPES),))
        return Operand(_values(self.case.domain, dtype, shape, self.rng, self.case), dtype, self.layout(arg))

    def near(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape, one that broadcasts with it, or any other."""
        kind = self.one(("same", "same", "same", "ones", "tail", "any"))
        if kind == "ones":
            return tuple(self.one((n, 1)) for n in shape)
        if kind == "tail":
            return shape[self.draw(st.integers(0, len(shape))) :]
        return self.one(SHAPES) if kind == "any" else shape

    def layout(self, arg: Arg | None) -> str:
        written = arg is not None and arg.is_written
        return self.one(LAYOUTS[:-1] if written else LAYOUTS)

    # ---- from the case ----

    def from_sample(self, bends: int) -> Call:
        index = self.draw(st.integers(0, len(self.case.samples) - 1))
        sample, self.bends = self.case.samples[index], bends
        self.dtype, self.shape = self.one(self.case.dtypes), (3, 4)
        named = {a.name: a for a in self.row.schema.args}
        args = [self.bent(v, a) for v, a in zip(sample.args, self.row.schema.args)]
        kwargs = {k: self.bent(v, named[k]) for k, v in sample.kwargs.items()}
        return Call(args, kwargs, sample if bends == 0 else None)

    def bent(self, value: Any, arg: Arg) -> Any:
        if isinstance(value, (list, tuple)) and any(isinstance(v, (A, B, F, I, K)) for v in value):
            return [self.bent(v, arg) for v in value]
        change = self.bends > 0 and self.one((True, False))
        self.bends -= change
        if isinstance(value, (A, B, F, I, K)):
            return self.operand(value, arg, change)
        if not change or value is None:
            return list(value) if isinstance(value, tuple) else value
        return self.of_type(arg)

    def operand(self, spec: Any, arg: Arg, change: bool) -> Operand:
        shape, dtype = spec.shape, self.dtype
        if change and self.draw(st.booleans()):
            shape = self.one((self.near(shape), tuple(self.one((n, 0, 1, n + 1)) for n in shape)))
        elif change:
            dtype = self.one(DTYPES)
        layout = self.layout(arg)
        # Of a case with conditions on the values as a whole, rows must not repeat.
        if not change and layout == "broadcast" and (isinstance(spec, A) and (spec.domain or self.case.domain) is not normal):
            layout = "offset"
        if isinstance(spec, I):
            return Operand(np.asarray(self.rng.integers(spec.low, spec.high, shape)), "int64", layout)
        if isinstance(spec, B):
            return Operand(np.asarray(self.rng.random(shape) < 0.5), "bool", layout)
        domain = positive if isinstance(spec, K) else normal if isinstance(spec, F) else spec.domain or self.case.domain
        return Operand(_values(domain, dtype, shape, self.rng, self.case), dtype, layout)


@st.composite
def calls(draw: Any, case: Case) -> Call:
    """A call of the case's row, right or wrong."""
    thrower = _Thrower(draw, case)
    kinds = ("faithful", "bent", "bent", "schema", "schema") if case.samples else ("schema",)
    kind = draw(st.sampled_from(kinds))
    if kind == "schema":
        return thrower.from_schema()
    return thrower.from_sample(0 if kind == "faithful" else draw(st.sampled_from((1, 1, 2))))

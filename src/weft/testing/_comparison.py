"""assert_close: equality of tensors, numbers and containers of them within tolerances."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._functions.shapes import unravel_index

# Relative and absolute tolerance by dtype; others must be equal.
_TOLERANCES = {
    _C.float16: (1e-3, 1e-5),
    _C.bfloat16: (1.6e-2, 1e-5),
    _C.float32: (1.3e-6, 1e-5),
    _C.float64: (1e-7, 1e-7),
    _C.complex32: (1e-3, 1e-5),
    _C.complex64: (1.3e-6, 1e-5),
    _C.complex128: (1e-7, 1e-7),
}
Message = str | Callable[[str], str] | None


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Message = None,
) -> None:
    """Raises AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    actual, expected: tensors or what tensor() takes (arrays, numbers), or sequences and mappings of
    these, compared member by member. rtol, atol: both or neither; by default by dtype (float32:
    1.3e-6 and 1e-5). Shapes and layouts must be equal, and the places of sparse tensors; dtypes
    unless check_dtype=False, strides if check_stride. equal_nan: NaN equals NaN. msg: the message,
    or a function of the one made here.

    >>> assert_close(weft.tensor([1.0, 2.0]), weft.tensor([1.0, 2.0000001]))
    >>> assert_close(weft.tensor([1.0, 2.0]), weft.tensor([1.0, 2.5]))
    Traceback (most recent call last):
    AssertionError: Tensor-likes are not close!
    <BLANKLINE>
    Mismatched elements: 1 / 2 (50.0%)
    Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
    Greatest relative difference: 0.2 at index (1,) (up to 1.3e-06 allowed)
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"assert_close: expected rtol and atol or neither, got rtol={rtol} and atol={atol}"
        )
    tolerances = None if rtol is None or atol is None else (rtol, atol)
    pair = _Pair(tolerances, equal_nan, check_device, check_dtype, check_stride, allow_subclasses)
    pair.check_layout = check_layout
    problem = pair.compare(actual, expected, "")
    if problem is None:
        return
    error, text = problem
    if isinstance(msg, str):
        text = msg
    elif msg is not None:
        text = msg(text)
    raise error(text)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """assert_close as it was before: dtypes may differ, and NaN equals NaN."""
    options: dict[str, Any] = {"equal_nan": equal_nan, "msg": msg or None}
    assert_close(
        _C.as_tensor(actual), _C.as_tensor(expected), rtol=rtol, atol=atol, check_dtype=False,
        check_device=True, **options,
    )  # fmt: skip


Problem = tuple[type[Exception], str] | None


class _Pair:
    check_layout = True

    def __init__(
        self,
        tolerances: tuple[float, float] | None,
        equal_nan: bool,
        check_device: bool,
        check_dtype: bool,
        check_stride: bool,
        allow_subclasses: bool,
    ) -> None:
        self.tolerances, self.equal_nan = tolerances, equal_nan
        self.check_device, self.check_dtype = check_device, check_dtype
        self.check_stride, self.allow_subclasses = check_stride, allow_subclasses

    def compare(self, actual: Any, expected: Any, where: str) -> Problem:
        if _is_sequence(actual) and _is_sequence(expected):
            return self._sequences(actual, expected, where)
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            return self._mappings(actual, expected, where)
        if actual is None or expected is None:
            if actual is expected:
                return None
            return AssertionError, f"None mismatch: {actual} is not {expected}{_at(where)}"
        if not self.allow_subclasses and type(actual) is not type(expected):
            return TypeError, _types(actual, expected, where)
        plain = all(isinstance(value, numbers.Number) for value in (actual, expected))
        if not plain and isinstance(actual, Tensor) != isinstance(expected, Tensor):
            return TypeError, _types(actual, expected, where)
        given = [value for value in (actual, expected) if isinstance(value, Tensor)]
        if len(given) == 2 and all(each.is_nested for each in given):
            return self._sequences(actual.unbind(), expected.unbind(), where)
        if any(value.layout is not _C.strided for value in given) and len(given) == 2:
            return self._sparse(actual, expected, where)
        try:
            pair = _tensor(actual, plain), _tensor(expected, plain)
        except (TypeError, ValueError, RuntimeError):
            return TypeError, _types(actual, expected, where)
        return self._tensors(*pair, where, plain)

    def _sparse(self, actual: Tensor, expected: Tensor, where: str) -> Problem:
        """Places are equal, values close; of several entries at a place the sum counts."""
        layouts = (actual.layout, expected.layout)
        if layouts[0] is not layouts[1]:
            if self.check_layout:
                return AssertionError, _attribute("layout", *layouts, where)
            return self.compare(actual.to_dense(), expected.to_dense(), where)
        if actual.shape != expected.shape:
            return AssertionError, _attribute("shape", actual.shape, expected.shape, where)
        parts = {
            _C.sparse_coo: ("_indices", "_values"),
            _C.sparse_csr: ("crow_indices", "col_indices", "values"),
        }.get(layouts[0], ("ccol_indices", "row_indices", "values"))
        if layouts[0] is _C.sparse_coo and actual.is_coalesced() != expected.is_coalesced():
            actual, expected = actual.coalesce(), expected.coalesce()
        for part in parts:
            one, other = getattr(actual, part)(), getattr(expected, part)()
            problem = self._tensors(one, other, f"{where}.{part.lstrip('_')}", False)
            if problem is not None:
                return problem
        return None

    def _sequences(self, actual: Any, expected: Any, where: str) -> Problem:
        if len(actual) != len(expected):
            text = f"{len(actual)} != {len(expected)}"
            return AssertionError, f"The length of the sequences mismatch: {text}{_at(where)}"
        for place, (one, other) in enumerate(zip(actual, expected)):
            problem = self.compare(one, other, f"{where}[{place}]")
            if problem is not None:
                return problem
        return None

    def _mappings(self, actual: Any, expected: Any, where: str) -> Problem:
        if set(actual) != set(expected):
            missing = sorted(map(repr, set(expected) - set(actual)))
            extra = sorted(map(repr, set(actual) - set(expected)))
            text = "The keys of the mappings do not match:"
            text += (
                f"\nMissing keys in the actual mapping: [{', '.join(missing)}]" if missing else ""
            )
            text += (
                f"\nAdditional keys in the actual mapping: [{', '.join(extra)}]" if extra else ""
            )
            return AssertionError, text + _at(where)
        for key in expected:
            problem = self.compare(actual[key], expected[key], f"{where}[{key!r}]")
            if problem is not None:
                return problem
        return None

    def _tensors(self, actual: Tensor, expected: Tensor, where: str, plain: bool) -> Problem:
        checks: list[tuple[str, bool, Any, Any]] = [
            ("shape", True, tuple(actual.shape), tuple(expected.shape))
        ]
        if not plain:
            checks += [
                ("dtype", self.check_dtype, actual.dtype, expected.dtype),
                ("device", self.check_device, actual.device, expected.device),
                ("stride()", self.check_stride, actual.stride(), expected.stride()),
            ]
        for name, wanted, mine, theirs in checks:
            if wanted and mine != theirs:
                return AssertionError, _attribute(name, mine, theirs, where)
        rtol, atol = self._limits(actual.dtype, expected.dtype)
        common = _C.promote_types(actual.dtype, expected.dtype)
        one, other = actual.detach().to(common), expected.detach().to(common)
        if one.dtype in (_C.uint16, _C.uint32, _C.uint64, _C.bool):
            one, other = one.to(_C.int64), other.to(_C.int64)
        close = _C.isclose(one, other, rtol, atol, self.equal_nan)
        if bool(close.all()):
            return None
        return AssertionError, _difference(one, other, close, rtol, atol, where, plain)

    def _limits(self, *dtypes: Any) -> tuple[float, float]:
        if self.tolerances is not None:
            return self.tolerances
        pairs = [_TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in dtypes]
        return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)


def _tensor(value: Any, number: bool) -> Tensor:
    """What is compared: numbers of Python in their own precision."""
    if not number:
        return _C.as_tensor(value)
    kinds = {float: _C.float64, complex: _C.complex128}
    return _C.tensor(value, dtype=kinds.get(type(value)))


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _at(where: str) -> str:
    return f"\n\nThe failure occurred for item {where}" if where else ""


def _attribute(name: str, mine: Any, theirs: Any, where: str) -> str:
    return f"The values for attribute '{name}' do not match: {mine} != {theirs}.{_at(where)}"


def _types(actual: Any, expected: Any, where: str) -> str:
    names = f"{type(actual).__name__} and {type(expected).__name__}"
    return f"assert_close: expected two tensors, or what makes tensors, got {names}{_at(where)}"


def _difference(
    actual: Tensor, expected: Tensor, close: Tensor, rtol: float, atol: float, where: str,
    plain: bool,
) -> str:  # fmt: skip
    """What differs, how much, and where most."""
    kind = "Scalars" if plain else "Tensor-likes"
    exact = rtol == atol == 0
    absolute = (actual - expected).abs().masked_fill(close, 0)
    sizes = absolute.to(_C.float64), expected.abs().to(_C.float64)
    relative = (sizes[0] / sizes[1]).masked_fill(close, 0)
    lines = [f"{kind} are not {'equal' if exact else 'close'}!", ""]
    if plain:
        lines.append(f"Expected {expected.item()} but got {actual.item()}.")
    else:
        wrong, total = int((~close).sum()), close.numel()
        lines.append(f"Mismatched elements: {wrong} / {total} ({100 * wrong / total:.1f}%)")
    for name, values, limit in (("absolute", absolute, atol), ("relative", relative, rtol)):
        flat = values.reshape(-1)
        place = int(flat.argmax())
        index = tuple(int(i) for i in unravel_index(_C.tensor(place), values.shape))
        spot = "" if plain or not index else f" at index {index}"
        allowed = "" if exact else f" (up to {limit} allowed)"
        text = f"Greatest {name} difference" if not plain else f"{name.capitalize()} difference"
        lines.append(f"{text}: {flat[place].item()}{spot}{allowed}")
    return "\n".join(lines) + _at(where)

"""Which sizes of the inputs differ between calls of an exported program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from weft._C import Tensor
from weft.utils._pytree import TreeSpec, tree_flatten_with_path, tree_unflatten


class _DimHint:
    """A size of which the export is to find out whether it can differ."""

    def __init__(self, kind: str, min: int | None = None, max: int | None = None) -> None:
        self.kind, self.min, self.max = kind, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:
        """The same within a range."""
        return _DimHint(self.kind, min, max)

    def __repr__(self) -> str:
        return f"DimHint({self.kind})"


class Dim:
    """A size that differs between calls, by a name: inputs that name the same one have equal sizes.

    `Dim.AUTO` and `Dim.DYNAMIC` are sizes without a name, `Dim.STATIC` is one that stays.

    >>> weft.export.Dim("batch", max=64)
    Dim('batch', min=0, max=64)
    """

    AUTO = _DimHint("AUTO")
    DYNAMIC = _DimHint("DYNAMIC")
    STATIC = _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        low = 0 if min is None else min
        if max is not None and max <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={low}, max={max}")
        self.__name__ = name
        self.min, self.max = low, max

    def __repr__(self) -> str:
        high = "" if self.max is None else f", max={self.max}"
        return f"Dim({self.__name__!r}, min={self.min}{high})"

    def __mul__(self, other: int) -> _Derived:
        return _Derived(self, other, 0)

    __rmul__ = __mul__

    def __add__(self, other: int) -> _Derived:
        return _Derived(self, 1, other)

    def __sub__(self, other: int) -> _Derived:
        return _Derived(self, 1, -other)


class _Derived:
    """factor * root + summand."""

    def __init__(self, root: Dim, factor: int, summand: int) -> None:
        self.root, self.factor, self.summand = root, factor, summand


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several sizes by their names.

    >>> [each.__name__ for each in weft.export.dims("height", "width")]
    ['height', 'width']
    """
    return tuple(Dim(name, min=min, max=max) for name in names)


class Symbols:
    """The symbols of an export: each with its value in the example and its range."""

    def __init__(self) -> None:
        self.hints: dict[str, int] = {}
        self.ranges: dict[str, tuple[int | None, int | None]] = {}
        #: by (input, dimension) the symbol, factor and summand of the size
        self.places: dict[tuple[int, int], tuple[str, int, int]] = {}
        #: those that become fixed where the module needs it
        self.tried: set[str] = set()
        self._names: dict[str, str] = {}

    def drop(self, symbol: str) -> None:
        """Makes the sizes of a symbol those of the example."""
        self.places = {at: told for at, told in self.places.items() if told[0] != symbol}
        del self.hints[symbol], self.ranges[symbol]

    def add(self, place: tuple[int, int], size: int, given: Any) -> None:
        """A size of an input, as the user told it."""
        if given is None or (isinstance(given, _DimHint) and given.kind == "STATIC"):
            return
        if isinstance(given, int):
            if given != size:
                self._refuse(f"Static shape constraint of {given}", size)
            return
        root, factor, summand = given, 1, 0
        if isinstance(given, _Derived):
            root, factor, summand = given.root, given.factor, given.summand
        if not isinstance(root, (Dim, _DimHint)):
            raise ValueError(f"export: expected Dim, int or None as a size, got {root!r}")
        value, rest = divmod(size - summand, factor)
        name = getattr(root, "__name__", f"{place}")
        symbol = self._names.setdefault(name, f"s{len(self._names)}")
        if rest or self.hints.setdefault(symbol, value) != value:
            self._refuse(f"{name} == {self.hints.get(symbol, value)}", size)
        self.ranges[symbol] = (root.min, root.max)
        if getattr(root, "kind", None) == "AUTO":
            self.tried.add(symbol)
        low, high = root.min or 0, root.max
        if value < low or (high is not None and value > high):
            self._refuse(f"{low} <= {name} <= {high}", value)
        self.places[place] = (symbol, factor, summand)

    @staticmethod
    def _refuse(wanted: str, size: int) -> None:
        raise RuntimeError(f"export: expected example inputs with {wanted}, got a size of {size}")

    def sizes(self, values: dict[str, int]) -> dict[tuple[int, int], int]:
        """The sizes of inputs where symbols have these values."""
        return {p: values[s] * factor + more for p, (s, factor, more) in self.places.items()}


def symbols_of(
    forward: Callable[..., Any], leaves: list[Any], in_spec: TreeSpec, shapes: Any
) -> Symbols:
    """The symbols in `dynamic_shapes`: by name or by position of the parameters, nested as the
    arguments."""
    made = Symbols()
    if shapes is None:
        return made
    args, kwargs = tree_unflatten(range(len(leaves)), in_spec)  # with places for the leaves
    given = inspect.signature(forward).bind(*args, **kwargs).arguments
    if isinstance(shapes, dict):
        if shapes.keys() - given.keys():
            raise ValueError(
                f"export: expected dynamic_shapes by the names {list(given)}, got {list(shapes)}"
            )
        told = [shapes.get(name) for name in given]
    else:
        told = list(shapes)
    if len(told) != len(given):
        raise ValueError(
            f"export: expected dynamic_shapes of {len(given)} arguments, got {len(told)}"
        )
    for value, shape in zip(given.values(), told):
        for path, place in tree_flatten_with_path(value)[0]:
            leaf, inner = leaves[place], _at(shape, path)
            if isinstance(leaf, Tensor):
                for dim, size in _dims(leaf, inner):
                    made.add((place, dim), leaf.shape[dim], size)
    return made


def _at(shape: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        if shape is None:
            return None
        shape = shape[getattr(step, "key", getattr(step, "idx", None))]
    return shape


def _dims(tensor: Tensor, told: Any) -> Iterator[tuple[int, Any]]:
    if told is None:
        return
    items = told.items() if isinstance(told, dict) else enumerate(told)
    for dim, size in items:
        if not -tensor.dim() <= dim < tensor.dim():
            raise ValueError(
                f"export: expected sizes of a tensor with {tensor.dim()} dimensions, got one of "
                f"dimension {dim}"
            )
        yield dim % tensor.dim(), size

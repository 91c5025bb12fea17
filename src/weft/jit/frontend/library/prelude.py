"""What Python does in C, written in the language: compiled as it stands, for each type of
arguments."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

from weft import _C
from weft._C import Tensor

# Tensors behind ... in an index ------------------------------------------------------------------


def index_behind_dots(view: Any, before: Any, behind: Any, plain: bool) -> Any:
    """The indices of all dimensions: None for those that ... stands for."""
    taken = 0
    for each in before:
        taken += each.dim() if each is not None and each.dtype == _C.bool else 1
    for each in behind:
        if each is not None and each.dtype == _C.bool:
            taken += each.dim()
            if each.dim() > 1 and not plain:
                raise NotImplementedError(
                    "[]: expected a mask of one dimension between ... and a number, got one of "
                    f"{each.dim()}: index twice"
                )
        else:
            taken += 1
    found = before.copy()
    for _ in range(view.dim() - taken):
        found.append(None)
    found.extend(behind)
    return found


# Tensors in an index ----------------------------------------------------------------------------


def index_of_list(xs: Any) -> Tensor:
    """A list as an index: an empty one has ints, whatever it could have held."""
    return _C.tensor(xs) if len(xs) > 0 else _C.tensor(xs, dtype=_C.int64)


def indices(tensors: list[Tensor]) -> list[Tensor | None]:
    """Tensors as indices, of which one may be None."""
    found: list[Tensor | None] = []
    for each in tensors:
        found.append(each)
    return found


def is_number(index: Tensor) -> bool:
    """Whether a tensor selects, as an int does, where masks and lists of indices gather."""
    return index.dim() == 0 and index.dtype != _C.bool and index.dtype != _C.uint8


def select_numbers(x: Tensor, indices: list[Tensor | None]) -> Any:
    """x where numbers have selected, and the indices that are left."""
    left: list[Tensor | None] = []
    dim = 0
    for index in indices:
        if index is None:
            left.append(index)
            dim += 1
        elif is_number(index):
            x = x.select(dim, int(index))
        else:
            left.append(index)
            dim += index.dim() if index.dtype == _C.bool or index.dtype == _C.uint8 else 1
    return x, left


def gather(x: Tensor, indices: list[Tensor | None]) -> Tensor:
    """x[indices]."""
    x, left = select_numbers(x, indices)
    if any(index is not None for index in left):
        return _C._aten.index(x, left)
    return x


def scatter(x: Tensor, indices: list[Tensor | None], values: Tensor) -> None:
    """x[indices] = values."""
    x, left = select_numbers(x, indices)
    if any(index is not None for index in left):
        _C._aten.index_put_(x, left, values)
    else:
        x.copy_(values)


# Slices of lists ------------------------------------------------------------------------------


def replace_slice(xs: Any, start: Any, stop: Any, items: Any) -> None:
    """xs[start:stop] = items, where `items` is a list that nobody else holds."""
    low = 0 if start is None else len(xs[:start])
    high = len(xs) if stop is None else max(low, len(xs[:stop]))
    items.extend(xs[high:])
    head = xs[:low]
    xs.clear()
    xs.extend(head)
    xs.extend(items)


def replace_steps(xs: Any, start: Any, stop: Any, step: int, items: Any) -> None:
    """xs[start:stop:step] = items."""
    if step == 1:
        replace_slice(xs, start, stop, items)
        return
    indices = list(range(len(xs)))[start:stop:step]
    if len(indices) != len(items):
        raise ValueError(
            f"attempt to assign sequence of size {len(items)} to extended slice of size "
            f"{len(indices)}"
        )
    for place, item in zip(indices, items):
        xs[place] = item


def delete_slice(xs: Any, start: Any, stop: Any, step: int) -> None:
    """del xs[start:stop:step]."""
    stays = [True for _ in xs]
    for place in list(range(len(xs)))[start:stop:step]:
        stays[place] = False
    rest = [x for x, stay in zip(xs, stays) if stay]
    xs.clear()
    xs.extend(rest)


def enough(got: int, wanted: int) -> None:
    """Raises unless the targets before and behind a starred one have a value each."""
    if got < wanted:
        raise ValueError(f"not enough values to unpack (expected at least {wanted}, got {got})")


def list_text(xs: Any) -> str:
    """str() of a list of objects whose class says what they look like."""
    return "[" + ", ".join([repr(x) for x in xs]) + "]"


def from_keys(keys: Any, value: Any) -> Any:
    """dict.fromkeys(keys, value)."""
    return {key: value for key in keys}  # noqa: C420  (this is what it is made of)


def dict_text(xs: Any) -> str:
    """str() of a dict that holds such objects."""
    return "{" + ", ".join([f"{key!r}: {x!r}" for key, x in xs.items()]) + "}"


# Powers ---------------------------------------------------------------------------------------


def power(x: Any, y: Any) -> Number:
    """x ** y of numbers of which one may be an int or a float."""
    if isinstance(x, int) and isinstance(y, int):
        return int(x) ** int(y)
    return float(x) ** float(y)


# Ranges ---------------------------------------------------------------------------------------


def in_range(x: int, start: int, stop: int, step: int) -> bool:
    """x in range(start, stop, step)."""
    inside = start <= x < stop if step > 0 else stop < x <= start
    return inside and (x - start) % step == 0


# Lists of objects whose class says what is equal ----------------------------------------------


def contains(xs: Any, item: Any) -> bool:
    """item in xs."""
    for x in xs:  # noqa: SIM110  (a generator would compare all of them)
        if x is item or x == item:
            return True
    return False


def index(xs: Any, item: Any) -> int:
    """xs.index(item)."""
    for place, x in enumerate(xs):
        if x is item or x == item:
            return place
    raise ValueError("list.index(x): expected an item of the list, got one that is not in it")


def count(xs: Any, item: Any) -> int:
    """xs.count(item)."""
    return sum(1 for x in xs if x is item or x == item)


def remove(xs: Any, item: Any) -> None:
    """xs.remove(item)."""
    del xs[index(xs, item)]


def same_items(xs: Any, ys: Any) -> bool:
    """xs == ys for two lists."""
    if len(xs) != len(ys):
        return False
    for x, y in zip(xs, ys):  # noqa: SIM110
        if not (x is y or x == y):
            return False
    return True


# Walks through several -------------------------------------------------------------------------


def check_lengths(lengths: Any, strict: bool) -> None:
    """The error of zip(..., strict=True)."""
    for place, length in enumerate(lengths):
        if strict and length != lengths[0]:
            longer = "longer" if length > lengths[0] else "shorter"
            raise ValueError(f"zip() argument {place + 1} is {longer} than argument 1")


# Those that pass a test -------------------------------------------------------------------------


def items_that(test: Any, xs: Any) -> Any:
    """filter(test, xs)."""
    return [x for x in xs if test(x)]


def true_items(xs: Any) -> Any:
    """filter(None, xs)."""
    return [x for x in xs if x]


# Members of enums -----------------------------------------------------------------------------


def member(values: Any, members: Any, wanted: Any, name: str) -> Any:
    """E(wanted)."""
    for place, value in enumerate(values):
        if value == wanted:
            return members[place]
    raise ValueError(f"{wanted!r} is not a valid {name}")


def branch(pred: Any, true_fn: Any, false_fn: Any, operands: Any) -> Any:
    """weft.cond(pred, true_fn, false_fn, operands)."""
    if pred:
        return true_fn(*operands)
    return false_fn(*operands)


# Folds and products ---------------------------------------------------------------------------


def fold(function: Any, xs: Any, start: Any) -> Any:
    """functools.reduce(function, xs, start)."""
    for x in xs:
        start = function(start, x)
    return start


def fold_all(function: Any, xs: Any) -> Any:
    """functools.reduce(function, xs)."""
    if len(xs) == 0:
        raise TypeError("reduce(): expected a list with an item, got an empty one")
    made = xs[0]
    for x in xs[1:]:
        made = function(made, x)
    return made


def total(xs: Any, start: Any) -> Any:
    """sum(xs, start)."""
    for x in xs:
        start = start + x
    return start


def product(xs: Any, start: Any) -> Any:
    """math.prod(xs, start=start)."""
    for x in xs:
        start = start * x
    return start


def pairs(xs: Any, ys: Any) -> Any:
    """itertools.product(xs, ys)."""
    return [(x, y) for x in xs for y in ys]


# Mixed precision ------------------------------------------------------------------------------


def autocast_dtype(
    device_type: str,
    dtype: Any = None,
    enabled: bool = True,
    cache_enabled: Any = None,
    *,
    now: Any,
) -> Any:
    """What autocast lowers to within a block: `now` where it is for a device that is not there."""
    if device_type != "cpu":
        if device_type != "cuda":
            raise RuntimeError(
                f"autocast: expected device_type 'cpu' or 'cuda', got {device_type!r}"
            )
        return now
    if not enabled:
        return None
    return _C.bfloat16 if dtype is None else dtype


def autocast_on(device_type: str = "cuda", *, now: Any) -> bool:
    """weft.is_autocast_enabled."""
    return device_type == "cpu" and now is not None


# Limits of dtypes -----------------------------------------------------------------------------


def check_floats(dtype: Any) -> None:
    """Python's error for finfo of another dtype."""
    if not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(f"finfo: expected a floating dtype, got {dtype}")


def check_integers(dtype: Any) -> None:
    """Python's error for iinfo of another dtype."""
    if dtype.is_floating_point or dtype.is_complex or dtype == _C.bool:
        raise TypeError(f"iinfo: expected an integer dtype, got {dtype}")


# The least and the greatest -------------------------------------------------------------------


def check_not_empty(xs: Any, name: str) -> None:
    """Python's error for min([]) and max([])."""
    if len(xs) == 0:
        raise ValueError(f"{name}() arg is an empty sequence: expected a list with an item")


def least(xs: Any, keys: Any) -> Any:
    """The first of xs whose key is not above another."""
    best = 0
    for place in range(1, len(keys)):
        if keys[place] < keys[best]:
            best = place
    return xs[best]


def greatest(xs: Any, keys: Any) -> Any:
    """The first of xs whose key is not below another."""
    best = 0
    for place in range(1, len(keys)):
        if keys[best] < keys[place]:
            best = place
    return xs[best]


# Equations ---------------------------------------------------------------------------------------


def einsum_equation(operands: list[list[int]], result: list[list[int]]) -> str:
    """The equation of einsum whose labels are numbers; `result` holds those of the result, if they
    are given."""
    names = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    text = ",".join(["".join([names[label] for label in labels]) for labels in operands])
    for labels in result:
        text += "->" + "".join([names[label] for label in labels])
    return text


# Methods of numbers and sizes -----------------------------------------------------------------


def numel(sizes: Any) -> int:
    """sizes.numel() of a torch.Size."""
    return product(sizes, 1)


def is_integer(x: Any) -> Any:
    """x.is_integer() of a float."""
    return math.isfinite(x) and math.fmod(x, 1.0) == 0.0


def bit_length(n: Any) -> Any:
    """n.bit_length(): the digits of n without its sign, in base 2."""
    length = 0
    rest = n
    if n < 0:  # half of it, for the largest has no opposite
        length = 1
        rest = n // -2
    while rest > 0:
        rest >>= 1
        length += 1
    return length


def bit_count(n: Any) -> Any:
    """n.bit_count(): the ones among the digits of n without its sign."""
    count = 0
    rest = n
    if n < 0:
        count = n & 1
        rest = n // -2
    while rest > 0:
        count += rest & 1
        rest >>= 1
    return count


# Sorting -------------------------------------------------------------------------------------


def sort_by_order(items: Any, keys: Any, reverse: bool) -> None:
    """items.sort(key=..., reverse=reverse), by keys that the runtime orders."""
    pairs = [(key, -i if reverse else i) for i, key in enumerate(keys)]  # equal keys keep order
    pairs.sort(reverse=reverse)
    before = list(items)
    for place, pair in enumerate(pairs):
        items[place] = before[abs(pair[1])]


def sort_by_lt(items: Any, keys: Any, reverse: bool) -> None:
    """Binary insertion: few comparisons, as each runs a program; keys may be the items."""
    order = [0 for _ in keys]
    for count in range(len(keys)):
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            other = keys[order[middle]]
            before = other < keys[count] if reverse else keys[count] < other
            if before:
                high = middle
            else:
                low = middle + 1
        order.insert(low, count)
        order.pop()
    before_sort = list(items)
    for place, index in enumerate(order):
        items[place] = before_sort[index]

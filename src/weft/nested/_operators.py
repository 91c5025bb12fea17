"""Operators on nested tensors, by kind: on elements, along dimensions, over them, products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.public import weft
from weft.nested._forms import Jagged, Pieces
from weft.nested._tensor import (
    RULES,
    NestedTensor,
    is_nested,
    join,
    make,
    packed,
    parts_of,
    pointwise,
    rule,
    values_of,
)
from weft.nested._views import inner, spread, wrap

# ---- on elements ----


def _flat(args: tuple[Any, ...], options: dict[str, Any]) -> Iterator[Any]:
    for value in (*args, *options.values()):
        yield from value if isinstance(value, (tuple, list)) else (value,)


@pointwise("any")
def on_elements(func: Any, *args: Any, **options: Any) -> Any:
    """An operator on elements. Dense operands broadcast: they have the dims behind the ragged one,
    or all, with 1 in place of the ragged one. RuntimeError where sizes do not fit."""
    name = func.__name__
    nested = [one for one in _flat(args, options) if is_nested(one)]
    first = nested[0]
    writes = name[-1] == "_" and (name[0] != "_" or name.startswith("__i"))
    if (writes and not is_nested(args[0])) or options.get("out") is not None:
        raise RuntimeError(f"{name}: expected a nested tensor to write to, got a dense one")
    if any(one.dim() != first.dim() or one._form.batch != first._form.batch for one in nested):
        raise RuntimeError(f"{name}: expected nested tensors of one size, got {_sizes_of(nested)}")
    dense = [one for one in _flat(args, options) if _is_dense(one)]
    alike = all(one._form.packs_as(first._form) for one in nested)
    if alike and (isinstance(first._form, Jagged) or not dense):
        made = _on_values(func, first, args, options)
    elif writes:
        raise RuntimeError(f"{name}: expected operands that lie alike, got {_sizes_of(nested)}")
    else:
        _check_sizes(name, nested)
        made = join(first._form, rows_of(func, first, args, options))
    return args[0] if writes else made


def _is_dense(value: Any) -> bool:
    return isinstance(value, Tensor) and not is_nested(value) and value.dim() > 0


def _sizes_of(nested: list[NestedTensor]) -> str:
    return " and ".join(str([tuple(part.shape) for part in parts_of(one)]) for one in nested)


def _check_sizes(name: str, nested: list[NestedTensor]) -> None:
    """Parts of several nested tensors may not broadcast along the ragged dimension."""
    sizes = {tuple(one._form.ragged.sizes) for one in nested if isinstance(one._form, Jagged)}
    if len(sizes) > 1 or len({type(one._form) for one in nested}) > 1:
        raise RuntimeError(f"{name}: expected nested tensors of one size, got {_sizes_of(nested)}")


def _map(change: Callable[[Tensor], Any], args: Any, options: Any) -> tuple[Any, Any]:
    """Arguments with their tensors changed."""

    def changed(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return type(value)(map(changed, value))
        return change(value) if isinstance(value, Tensor) else value

    return tuple(map(changed, args)), {name: changed(value) for name, value in options.items()}


def _on_values(func: Any, first: NestedTensor, args: Any, options: Any) -> Any:
    form = first._form

    def change(value: Tensor) -> Tensor:
        if is_nested(value):
            return values_of(value)
        return value if value.dim() == 0 else _lined_up(func.__name__, first, value)

    inside, options = _map(change, args, options)
    made = func(*inside, **options)
    if made is inside[0]:
        return args[0]
    if isinstance(made, Tensor):
        return make(form, made)
    return type(made)([make(form, one) for one in made])


def _lined_up(name: str, first: NestedTensor, dense: Tensor) -> Tensor:
    """A dense operand as one of the values."""
    form, rank = first._form, first.dim()
    assert isinstance(form, Jagged)
    missing, place = rank - dense.dim(), form.place
    if place < missing or (0 < missing <= place and dense.shape[place - missing] == 1):
        return dense
    ragged, sizes = form.ragged, dense.shape
    longest = (1, max(ragged.sizes, default=1))
    if missing or sizes[0] not in (1, form.batch) or sizes[place] not in longest:
        shapes = f"{tuple(first.shape)} and {tuple(sizes)}"
        raise RuntimeError(f"{name}: expected 1 in place of the ragged dim, got {shapes}")
    if ragged.lengths is not None:
        raise RuntimeError(f"{name}: expected a nested tensor without holes; use contiguous()")
    rows, within = ragged.places()
    rows, within = rows * (sizes[0] > 1), within * (sizes[place] > 1)
    return dense.movedim(place, 1)[rows, within].movedim(0, place - 1)


def rows_of(func: Any, first: NestedTensor, args: Any, options: Any) -> list[Any]:
    """The results for each tensor of the batch. A dense operand with as many dimensions as the
    nested one is a batch, too."""
    rank = first.dim()
    rows = []
    for index in range(first._form.batch):

        def change(value: Tensor, index: int = index) -> Tensor:
            if is_nested(value):
                return value._form.part(values_of(value), index)
            if value.dim() < rank:
                return value
            return value[index if value.shape[0] > 1 else 0]

        part_args, part_options = _map(change, args, options)
        rows.append(func(*part_args, **part_options))
    return rows


#: operators on elements whose rows do not tell, and copies; those in place too
_ELEMENTS = (
    "alpha_dropout bernoulli bool byte bfloat16 cdouble celu cfloat chalf char clamp clip clone "
    "conj copy cpu cuda detach digamma double dropout empty_like fill float float_power frexp "
    "full_like gelu half i0 igamma igammac int isclose ldexp lgamma logit long masked_fill mish "
    "mvlgamma nan_to_num nextafter normal ones_like pin_memory polygamma positive prelu "
    "rand_like randint_like randn_like real selu short softsign special_entr special_erfcx "
    "special_i0e special_i1 special_i1e special_log_ndtr special_ndtr special_ndtri special_zeta "
    "_special_bessel _special_polynomial square threshold to type_as uniform where zero "
    "zeros_like __iadd__ __pow__ __rpow__ __rsub__ __rdiv__ __truediv__ __rtruediv__ __rmul__ "
    "__radd__ __neg__ __invert__ __abs__ __floordiv__ __rfloordiv__ __and__ __or__ __xor__ "
    "__rmod__ __mod__"
)
for _name in _ELEMENTS.split():
    RULES[_name] = pointwise[_name] = on_elements


rule("data")(lambda func, self: make(self._form, values_of(self).detach()))


@rule("equal")
def _equal(func: Any, self: NestedTensor, other: NestedTensor) -> bool:
    if not (is_nested(self) and is_nested(other)) or self._form.batch != other._form.batch:
        return False
    return all(func(a, b) for a, b in zip(parts_of(self), parts_of(other)))


# ---- what leaves the dimensions before the last ones alone ----


@rule("linear", "layer_norm", "rms_norm", "one_hot", "_layer_norm", "_layer_norm_affine")
def _on_trailing(func: Any, self: NestedTensor, *args: Any, **options: Any) -> NestedTensor:
    """The operator on the values. RuntimeError where it would see the ragged dimension."""
    form, name = self._form, func.__name__
    sizes = args[0] if args else options.get("normalized_shape")
    count = 1 if isinstance(sizes, (Tensor, int)) or sizes is None else len(sizes)
    if isinstance(form, Jagged) and form.place > self.dim() - 1 - count + (name == "one_hot"):
        raise RuntimeError(f"{name}: expected the last dim not to be ragged, got {self.shape}")
    return spread(lambda x: func(x, *args, **options), self, form.place)


@rule("embedding")
def _embedding(func: Any, self: Any, weight: Any, *args: Any, **options: Any) -> NestedTensor:
    if not is_nested(self):
        self, weight = weight, self  # the operator of the table has the weight first
        return spread(lambda x: func(weight, x, *args, **options), self, self._form.place)
    return spread(lambda x: func(x, weight, *args, **options), self, self._form.place)


# ---- along a dimension ----


@rule("softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp", "sort", "argsort", "glu")
def _along(
    func: Any, self: NestedTensor, dim: int = -1, *args: Any, **options: Any
) -> NestedTensor:
    """What keeps sizes, or halves one; along the ragged dimension each tensor for itself."""
    at, place = inner(func.__name__, self, dim, ragged=True), self._form.place
    return spread(lambda x: func(x, *args, dim=at, **options), self, place, at == place - 1)


@rule(
    *("sum", "mean", "prod", "amax", "amin", "argmax", "argmin", "all", "any", "max", "min"),
    *("logsumexp", "median", "nansum", "std", "var", "count_nonzero"),
)
def _reduce(func: Any, self: NestedTensor, *args: Any, **options: Any) -> Any:
    """Over all elements, over dimensions of each tensor, or over the batch with its ragged
    dimension. RuntimeError for the batch without it."""
    if any(isinstance(one, Tensor) for one in (*args[:1], options.get("other"))):
        return on_elements(func, self, *args, **options)
    given = options.pop("dim", args[0] if args else None)
    if given is None or given == ():
        return func(values_of(packed(self)), **options)
    if len(args) > 1:
        options["keepdim"] = args[1]
    place, keeps = self._form.place, options.get("keepdim", False)
    dims = sorted({wrap(self, dim) for dim in ([given] if isinstance(given, int) else given)})
    if dims[0] == 0:
        return _over_batch(func, self, dims[1:], options)
    inside: Any = dims[0] - 1 if isinstance(given, int) else [dim - 1 for dim in dims]

    def run(x: Tensor) -> Any:
        return func(x, dim=inside, **options)

    if place in dims or (isinstance(self._form, Pieces) and self.dim() == len(dims) + 1):
        rows = [run(part) for part in parts_of(self)]
        return _stacked(rows)
    return spread(run, self, place if keeps else place - sum(dim < place for dim in dims))


def _stacked(rows: list[Any]) -> Any:
    if isinstance(rows[0], Tensor):
        return _C.stack(rows)
    return type(rows[0])([_C.stack(list(column)) for column in zip(*rows)])


def _over_batch(func: Any, self: NestedTensor, dims: list[int], options: Any) -> Tensor:
    place = self._form.place
    if place not in dims or not place:
        raise RuntimeError(f"{func.__name__}: expected the ragged dim beside dim 0, got {dims}")
    made = func(values_of(packed(self)), dim=[dim - 1 for dim in dims], **options)
    return made.unsqueeze(0) if options.get("keepdim") else made


# ---- products ----


@rule("matmul", "bmm", "__matmul__", "__rmatmul__")
def _matmul(func: Any, a: Any, b: Any) -> Tensor:
    """Each tensor of the batch by its own matrix, or all by one. Dense where the ragged dimension
    is the one that is summed over."""
    first = a if is_nested(a) else b
    rank = first.dim()
    places = [one._form.place - rank if is_nested(one) else 0 for one in (a, b)]  # from the end
    if any(one.dim() < 2 or one.dim() > rank for one in (a, b)):
        raise RuntimeError(f"matmul: expected matrices, got {a.dim()} and {b.dim()} dims")
    if isinstance(first._form, Jagged) and _is_whole(places, a, b):
        inside = [values_of(one) if is_nested(one) else one for one in (a, b)]
        return make(first._form, _C.matmul(*inside))
    if func.__name__ != "bmm" or rank == 3:
        rows = rows_of(_C.matmul, first, (a, b), {})
        if places == [-1, -2]:
            return _C.stack(rows)
        if places in ([-2, 0], [0, -1]) or isinstance(first._form, Pieces):
            return join(first._form, rows)
    raise RuntimeError(f"matmul: expected one ragged dim to be left, got {_sizes(a)}, {_sizes(b)}")


def _sizes(value: Tensor) -> str:
    return f"{value.dim()} dims" if is_nested(value) else str(tuple(value.shape))


def _is_whole(places: list[int], a: Tensor, b: Tensor) -> bool:
    """Whether the product of the values is that of all tensors."""
    if is_nested(a) and is_nested(b):
        ragged = places[0] == places[1] and a.dim() == b.dim()
        return ragged and places[0] < -2 and a._form.packs_as(b._form)
    if is_nested(a):
        return b.dim() == 2 and places[0] != -1
    return a.dim() == 2 and places[1] != -2


@rule("scaled_dot_product_attention")
def _attention(
    func: Any, query: Any, key: Any, value: Any, attn_mask: Any = None, **options: Any
) -> Tensor:
    """Each sequence of [batch, heads, j, width] for itself, so that none needs a mask."""
    first = next(filter(is_nested, (query, key, value)))
    if attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention: expected no mask for nested tensors")
    if not is_nested(query):
        return _C.stack(rows_of(func, first, (query, key, value), options))
    return join(query._form, rows_of(func, query, (query, key, value), options))


# ---- padding ----


@rule("to_padded_tensor")
def pad(
    func: Any, self: NestedTensor, padding: float, output_size: Any = None, out: Any = None
) -> Tensor:
    """The rule of to_padded_tensor: a dense tensor, padded at the ends."""
    shapes = [part.shape for part in parts_of(self)]
    needed = [len(shapes), *(max(sizes) for sizes in zip(*shapes))]
    wanted = needed if output_size is None else list(output_size)
    if len(wanted) != len(needed) or any(a < b for a, b in zip(wanted, needed)):
        raise RuntimeError(f"to_padded_tensor: expected at least sizes {needed}, got {wanted}")
    if isinstance(self._form, Jagged):
        made = _gathered(values_of(self), self._form, padding)
    else:
        made = _C.stack([_extended(part, needed[1:], padding) for part in parts_of(self)])
    made = _extended(made, wanted, padding)
    return made if out is None else out.copy_(made)


def _extended(x: Tensor, sizes: Any, padding: float) -> Tensor:
    """A tensor with more elements at the end of dimensions."""
    more = [want - got for want, got in zip(reversed(sizes), reversed(x.shape))]
    ends = [end for each in more for end in (0, each)]
    return weft.nn.functional.pad(x, ends, value=padding) if any(ends) else x


def _gathered(values: Tensor, form: Jagged, padding: float) -> Tensor:
    """All rows at once: what stands before the next tensor's begin, and padding for the rest."""
    at, ragged = form.place - 1, form.ragged
    rows, longest = values.movedim(at, 0), max(ragged.sizes, default=0)
    starts, sizes = _C.tensor(ragged.starts[: form.batch]), _C.tensor(ragged.sizes)
    within = _C.arange(longest)
    inside = (within < sizes[:, None]).to(values.device)
    index = (starts[:, None] + within).where(inside, 0).to(values.device)
    if rows.shape[0] == 0:
        shape = (form.batch, longest, *rows.shape[1:])
        return values.new_full(shape, padding).movedim(1, form.place)
    taken = rows.index_select(0, index.flatten()).unflatten(0, index.shape)
    mask = inside.view(*inside.shape, *(1,) * (rows.dim() - 1))
    return taken.masked_fill(~mask, padding).movedim(1, form.place)

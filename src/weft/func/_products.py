"""Rules of products of matrices, convolutions and pools, and of the layers around them."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft.func._layouts import leading
from weft.func._operators import Operator
from weft.func._rules import Unbatchable, inserted, rule

if TYPE_CHECKING:
    from weft.func._level import Level

_aten = _C._aten

# Products ---------------------------------------------------------------------------------------


@rule("matmul", "mm", "bmm", "mv", "dot")
def _matmul(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """A product of matrices over leading dimensions; vectors are matrices of one row or column."""
    a, b = given
    _check_product(op, a, b)
    rank = max(a.dim(), b.dim(), 2)
    with level.outside():
        left, right = _factor(level, a, rank, -2), _factor(level, b, rank, -1)
        result = _aten.matmul(left, right)
        if a.dim() == 1:
            result = _aten.squeeze(result, -1 if b.dim() == 1 else -2)
        if b.dim() == 1:
            result = _aten.squeeze(result, -1)
        return level.wrap(result)


_RANKS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1)}


def _check_product(op: Operator, a: Tensor, b: Tensor) -> None:
    ranks = (a.dim(), b.dim())
    if 0 in ranks or a.dtype != b.dtype or _RANKS.get(op.name, ranks) != ranks:
        raise Unbatchable
    inner = b.shape[-2] if b.dim() > 1 else b.shape[0]
    if a.shape[-1] != inner or (op.name == "bmm" and a.shape[0] != b.shape[0]):
        raise Unbatchable


def _factor(level: Level, tensor: Tensor, rank: int, vector_dim: int) -> Tensor:
    """The samples with `rank` dimensions each; a tensor that all share stays as it is."""
    samples = level.samples(tensor)
    made = tensor if samples is None else samples
    if tensor.dim() == 1:
        made = _aten.unsqueeze(made, vector_dim)
    return made if samples is None else inserted(made, rank - max(tensor.dim(), 2))


@rule("_distances", "_difference_sums")
def _pairs_of_rows(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    *tensors, kind = given
    rank = max(each.dim() for each in tensors)
    with level.outside():
        return level.wrap(op.call([*(_factor(level, x, rank, -1) for x in tensors), kind]))


@rule("linear")
def _linear(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    x, weight, bias = given[0], given[1], op.value(given, "bias")
    shared = level.samples(weight) is None and level.samples(bias) is None
    if shared and x.dim():
        with level.outside():
            return level.wrap(op.call([level.samples(x), weight, bias]))
    if weight.dim() != 2 or not x.dim():
        raise Unbatchable
    product = _aten.matmul(x, _aten.transpose(weight, 0, 1))
    return product if bias is None else _aten.add(product, bias)


@rule("addmm", "baddbmm")
def _addmm(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    beta, alpha = op.value(given, "beta"), op.value(given, "alpha")
    product = (_aten.mm if op.name == "addmm" else _aten.bmm)(given[1], given[2])
    product = product if alpha == 1 else _aten.mul(product, alpha)
    if beta == 0:
        return product
    return _aten.add(product, given[0] if beta == 1 else _aten.mul(given[0], beta))


@rule("einsum")
def _einsum(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """One more letter, in front of the operands of the batch and of the result."""
    equation, operands = given[0].replace(" ", ""), given[1]
    letter = next(each for each in string.ascii_letters if each not in equation)
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if not arrow:
        once = sorted(each for each in set(left) if each.isalpha() and left.count(each) == 1)
        right = ("..." if "..." in left else "") + "".join(once)
    if len(terms) != len(operands) or (len(given) > 2 and given[2] not in (None, Ellipsis)):
        raise Unbatchable
    samples = [level.samples(each) for each in operands]
    changed = ",".join(t if s is None else letter + t for t, s in zip(terms, samples))
    with level.outside():
        items = [o if s is None else s for o, s in zip(operands, samples)]
        return level.wrap(_aten.einsum(f"{changed}->{letter}{right}", items))


@rule("embedding")
def _embedding(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    weight, indices = given[0], given[1]
    shared = level.samples(weight) is None
    if not shared and len(given) > 2 and given[2] is not Ellipsis and given[2] >= 0:
        raise Unbatchable
    with level.outside():
        table, positions = _one_table(level, weight, indices)
        return level.wrap(op.call([table, positions, *given[2:]]))


@rule("_bag_sum")
def _bag_sum(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The bags of all samples are more bags."""
    weight, indices, offsets = given[:3]
    factors, by_freq = op.value(given, "per_sample_weights"), op.value(given, "scale_grad_by_freq")
    if by_freq or level.size == 0:
        raise Unbatchable
    with level.outside():
        table, positions = _one_table(level, weight, indices)
        first = _aten.arange(level.size).unsqueeze(1) * indices.shape[0]
        bags = [positions, level.expanded(offsets) + first]
        bags += [] if factors is None else [level.expanded(factors)]
        flat = [each.reshape(-1) for each in bags] + [None] * (3 - len(bags))
        made = op.call([table, *flat, op.value(given, "mean")])
        return level.wrap(_aten.unflatten(made, 0, (level.size, offsets.shape[0])))


def _one_table(level: Level, weight: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Tables of the batch are one table, each with rows of its own; the positions in it."""
    positions = level.expanded(indices)
    if level.samples(weight) is None:
        return weight, positions
    count = weight.shape[0]
    first = _aten.arange(level.size, dtype=positions.dtype) * count
    table = _aten.flatten(level.expanded(weight), 0, 1)
    return table, positions + first.view(level.size, *(1,) * indices.dim())


# Images -----------------------------------------------------------------------------------------


@rule("conv2d", "conv1d")
def _convolution(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Images of all samples are more images; kernels of all samples are more groups."""
    x, weight, bias = given[0], given[1], op.value(given, "bias")
    rank = 4 if op.name == "conv2d" else 3
    if x.dim() not in (rank - 1, rank):
        raise Unbatchable
    if x.dim() == rank - 1:
        return _aten.squeeze(op.call([_aten.unsqueeze(x, 0), *given[1:]]), 0)
    if level.samples(weight) is None and level.samples(bias) is None:
        return folded(level, op, given)
    groups = op.value(given, "groups")
    with level.outside():
        images = _aten.flatten(_aten.transpose(level.expanded(x), 0, 1), 1, 2)
        kernels = _aten.flatten(level.expanded(weight), 0, 1)
        offsets = None if bias is None else _aten.flatten(level.expanded(bias), 0, 1)
        rest = [*given[3:6], groups * level.size]
        made = _aten.unflatten(op.call([images, kernels, offsets, *rest]), 1, (level.size, -1))
        return level.wrap(_aten.transpose(made, 0, 1))


@rule("max_pool2d_with_indices", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "_resample")
def _pool(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    if given[0].dim() == 4:
        return folded(level, op, given)
    if given[0].dim() == 3 and op.name != "_resample":
        return leading(level, op, given)
    raise Unbatchable


@rule("_sample_grid", "_spread_on_grid")
def _grids(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The images of all samples are more images."""
    values, grid, *rest = given
    if level.size == 0 or grid.shape[0] == 0:
        raise Unbatchable
    if op.name == "_spread_on_grid":
        rest[0] = [level.size * grid.shape[0], *rest[0][1:]]
    with level.outside():
        flat = [_aten.flatten(level.expanded(each), 0, 1) for each in (values, grid)]
        return level.wrap(_aten.unflatten(op.call([*flat, *rest]), 0, (level.size, -1)))


def folded(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """With the samples as more entries of the first dimension of each."""
    count = given[0].shape[0]
    if count == 0 or level.size == 0:
        raise Unbatchable
    with level.outside():
        result = op.call([_aten.flatten(level.expanded(given[0]), 0, 1), *given[1:]])
        if isinstance(result, Tensor):
            return level.wrap(_aten.unflatten(result, 0, (level.size, count)))
        parts = [_aten.unflatten(each, 0, (level.size, count)) for each in result]
        return type(result)([level.wrap(each) for each in parts])


@rule("batch_norm")
def _batch_norm(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The channels of all samples are more channels."""
    x, weight, bias, mean, variance = given[:5]
    statistics = [each for each in (mean, variance) if isinstance(each, Tensor)]
    if op.value(given, "training") and any(level.samples(s) is None for s in statistics):
        level.unsupported(
            "running statistics of batch_norm that all samples share: see "
            "weft.func.replace_all_batch_norm_modules_"
        )
    if x.dim() < 2:
        raise Unbatchable
    return _by_channels(level, op, x, [weight, bias, mean, variance, *given[5:]])


@rule("group_norm")
def _group_norm(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The groups of all samples are more groups."""
    x, groups, *rest = given
    if x.dim() < 2:
        raise Unbatchable
    return _by_channels(level, op, x, [groups * level.size, *rest])


def _by_channels(level: Level, op: Operator, x: Tensor, rest: Sequence[Any]) -> Any:
    """With the channels of all samples as channels, which all tensors of `rest` go by."""
    with level.outside():
        channels = _aten.flatten(_aten.movedim(level.expanded(x), 0, 1), 1, 2)
        flat = [
            each if not isinstance(each, Tensor) else _aten.reshape(level.expanded(each), (-1,))
            for each in rest
        ]
        made = op.call([channels, *flat])
        made = _aten.unflatten(made, 1, (level.size, x.shape[1]))
        return level.wrap(_aten.movedim(made, 1, 0))


@rule("_layer_norm_affine")
def _layer_norm_affine(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The weight and the bias, which are of the batch, after the norm."""
    x, shape, weight, bias, *rest = given
    made, *statistics = _aten._layer_norm(x, shape, *rest)
    return (_aten.add(_aten.mul(made, weight), bias), *statistics)


@rule("_layer_norm_affine_backward")
def _layer_norm_affine_backward(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The gradients one by one."""
    grad, x, weight, *statistics, shape, eps = given
    along = _aten.mul(grad, _aten._layer_norm(x, shape, eps)[0])
    dims = list(range(grad.dim() - len(shape)))
    sums = [_aten.sum(each, dims) if dims else each for each in (along, grad)]
    scaled = _aten.mul(grad, weight)
    return (_aten._layer_norm_backward(scaled, x, *statistics, shape, eps), *sums)


@rule("_recurrent_layer")
def _recurrent_layer(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The sequences of all samples are more sequences, where the weights are those of all."""
    inputs, sizes, hidden, memory, *rest = given
    own = any(level.samples(each) is not None for each in rest)
    if own or sizes is not None or level.size == 0 or hidden.shape[0] == 0:
        raise Unbatchable
    count = (level.size, hidden.shape[0])
    with level.outside():
        steps = _aten.flatten(_aten.movedim(level.expanded(inputs), 0, 1), 1, 2)
        states = [
            None if each is None else _aten.flatten(level.expanded(each), 0, 1)
            for each in (hidden, memory)
        ]
        output, *last = op.call([steps, None, *states, *rest])
        output = _aten.movedim(_aten.unflatten(output, 1, count), 1, 0)
        last = [
            _aten.unflatten(each, 0, count) if each.dim() == 2 else each.new_zeros(level.size, 0)
            for each in last
        ]
        return tuple(level.wrap(each) for each in (output, *last))


@rule("_attention")
def _attention(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """Samples are one more of the dimensions in front."""
    tensors = [each for each in given[:4] if each is not None]
    rank = max(each.dim() for each in tensors)
    with level.outside():
        made = [None if each is None else _factor(level, each, rank, -2) for each in given[:4]]
        return level.wrap(op.call([*made, *given[4:]]))


@rule("nll_loss")
def _nll_loss(level: Level, op: Operator, given: Sequence[Any]) -> Any:
    """The losses of all rows, and for each sample their sum or mean."""
    x, target = given[0], given[1]
    weight, reduction = op.value(given, "weight"), op.value(given, "reduction")
    if x.dim() != 2 or target.dim() != 1 or level.samples(weight) is not None:
        raise Unbatchable
    ignored = op.value(given, "ignore_index")
    with level.outside():
        rows = _aten.flatten(level.expanded(x), 0, 1)
        targets = _aten.flatten(level.expanded(target), 0, 1)

        def losses(rows: Tensor) -> Tensor:
            made = _aten.nll_loss(rows, targets, weight, 0, ignored)
            return _aten.unflatten(made, 0, (level.size, x.shape[0]))

        found = losses(rows)
        if reduction == 1:
            counts = _aten.neg(losses(_aten.ones_like(rows.detach())))
            found = _aten.div(_aten.sum(found, [1]), _aten.sum(counts, [1]))
        elif reduction == 2:
            found = _aten.sum(found, [1])
        return level.wrap(found)

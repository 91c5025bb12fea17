"""weft.vmap: every operator on a batch against a loop over its samples, and beside PyTorch's."""

from __future__ import annotations

import copy
import importlib
import pickle
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from drawing import examples
from hypothesis import example, given
from hypothesis import strategies as st
from libraries import both
from op_cases import CASES
from op_cases.calling import ROWS, function_of
from op_cases.realise import realise, to_library, to_numpy

import weft
from weft import Tensor
from weft.func import _level
from weft.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

BATCH = 3
DRAWS = {key for key, row in ROWS.items() if "random" in row.tags}
# Operators that vmap refuses, whatever the arguments: sizes or decisions by elements, storages.
REFUSED = {
    "argwhere", "bincount", "masked_select", "nonzero", "equal",
    "allclose", "item", "unique_dim", "unique_consecutive", "where",
}  # fmt: skip


class Batch:
    """A call of an operator for each of BATCH samples, some of whose tensors differ."""

    def __init__(
        self, key: str, leaves: list[list[Any]], spec: Any, which: tuple[int, ...]
    ) -> None:
        self.function = function_of(key)
        self.spec, self.which = spec, which
        self.samples = [
            [own if i in which else first for i, (own, first) in enumerate(zip(each, leaves[0]))]
            for each in leaves
        ]

    def one(self, leaves: list[Any]) -> Any:
        args, kwargs = tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)

    def of(self, *tensors: Any) -> Any:
        """The call with these for the tensors that differ."""
        leaves = list(self.samples[0])
        for place, tensor in zip(self.which, tensors):
            leaves[place] = tensor
        return self.one(leaves)

    def tensors(self) -> list[Any]:
        return [weft.stack([each[i] for each in self.samples]) for i in self.which]


def batches(key: str) -> Iterator[Batch]:
    """The samples of a case, with the first tensor, the last one, and all of the batch."""
    case = CASES[key]
    dtype = "float64" if "float64" in case.dtypes else case.dtypes[0]
    for index, sample in enumerate(case.samples):
        made = [
            to_library(realise(sample, case, dtype, index + 100 * i), weft, dtype)
            for i in range(BATCH)
        ]
        flat = [tree_flatten((list(each.args), each.kwargs)) for each in made]
        leaves = [each for each, _ in flat]
        places = [i for i, value in enumerate(leaves[0]) if isinstance(value, weft.Tensor)]
        if places:
            for which in dict.fromkeys(((places[0],), (places[-1],), tuple(places))):
                yield Batch(key, leaves, flat[0][1], which)


def stacked(results: list[Any]) -> Any:
    if isinstance(results[0], (list, tuple)):
        return [stacked(list(each)) for each in zip(*results)]
    return weft.stack(results)


def assert_close(ours: Any, expected: Any, tolerance: float = 1e-8) -> None:
    if isinstance(expected, (list, tuple)):
        assert len(ours) == len(expected)
        for one, other in zip(ours, expected):
            assert_close(one, other, tolerance)
        return
    assert ours.dtype == expected.dtype
    assert ours.shape == expected.shape
    np.testing.assert_allclose(to_numpy(ours), to_numpy(expected), tolerance, tolerance)


KEYS = [key for key in CASES if key in ROWS and key not in DRAWS | REFUSED]


@pytest.mark.parametrize("key", KEYS)
def test_a_batch_is_its_samples(key: str) -> None:
    for batch in batches(key):
        try:
            expected = stacked([batch.one(each) for each in batch.samples])
        except (RuntimeError, IndexError, TypeError):
            continue  # samples of other sizes, or arguments that are refused
        assert_close(weft.vmap(batch.of)(*batch.tensors()), expected)


def floats(value: Any) -> list[Any]:
    return [
        each
        for each in tree_leaves(value)
        if isinstance(each, weft.Tensor) and each.is_floating_point()
    ]


def weighted(result: Any) -> Any:
    """A number that depends on each element of a result differently."""
    total = weft.zeros((), dtype=weft.float64)
    for each in floats(result):
        weights = (weft.arange(each.numel(), dtype=each.dtype) + 1).sin().reshape(each.shape)
        total = total + (each * weights).sum()
    return total


HAS_GRADIENT = [key for key in KEYS if CASES[key].grad and "float64" in CASES[key].dtypes]


@pytest.mark.parametrize("key", HAS_GRADIENT)
def test_gradients_of_samples(key: str) -> None:
    """vmap(grad(f)) is grad(f) of each sample, and grad of vmap the gradients of the loop."""
    for batch in list(batches(key))[:6]:
        tensors = batch.tensors()
        if not all(each.dtype == weft.float64 for each in tensors):
            continue
        places = tuple(range(len(tensors)))
        gradient = weft.func.grad(lambda *own, batch=batch: weighted(batch.of(*own)), places)
        try:
            rows = [gradient(*(each[i].clone() for each in tensors)) for i in range(BATCH)]
        except RuntimeError:
            continue  # no gradient, or not for these arguments
        expected = stacked(rows)
        assert_close(list(weft.vmap(gradient)(*tensors)), expected)
        whole = weft.func.grad(
            lambda *own, batch=batch: weft.vmap(lambda *one: weighted(batch.of(*one)))(*own).sum(),
            places,
        )
        assert_close(list(whole(*tensors)), expected)


def way(key: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """How an operator runs: by rule, sample by sample, or both, by the arguments."""
    looped: list[str] = []
    whole = _level.Level.one_by_one

    def one_by_one(self: Any, name: str, *rest: Any) -> Any:
        looped.append(name)
        return whole(self, name, *rest)

    monkeypatch.setattr(_level.Level, "one_by_one", one_by_one)
    ways = set()
    for batch in batches(key):
        looped.clear()
        try:
            weft.vmap(batch.of)(*batch.tensors())
        except (RuntimeError, IndexError, TypeError, ValueError):
            continue
        ways.add("loop" if looped else "rule")
    return "both" if len(ways) == 2 else "".join(ways)


def test_most_operators_have_a_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a program uses most must not be a loop."""
    found = {key: way(key, monkeypatch) for key in KEYS}
    looped = sorted(key for key, each in found.items() if each == "loop")
    ruled = sum(each in ("rule", "both") for each in found.values())
    print(f"{ruled} of {ruled + len(looped)} by rule; sample by sample: {', '.join(looped)}")
    assert len(looped) <= MOST_LOOPED
    common = ("add.Tensor", "sum", "matmul", "linear", "conv2d", "softmax.int", "embedding", "cat",
              "view", "index.Tensor", "layer_norm", "batch_norm", "gather", "sort")  # fmt: skip
    assert not {key for key in common if found[key] not in ("rule", "both")}


MOST_LOOPED = 49  # lower it when a rule is added


# Programs, beside PyTorch's ----------------------------------------------------------------------


def data(lib: Any, *sizes: int) -> Any:
    count = int(np.prod(sizes))
    return (lib.arange(count, dtype=lib.float64) * 0.7).sin().reshape(sizes)


def changed(x: Any) -> Any:
    made = x.clone()
    made.add_(1).mul_(x)
    made[0] = 7
    made[1:].view(-1)[0] *= 3
    made.masked_fill_(made > 2, 0)
    return made


def norm(x: Any) -> Any:
    return (x * x).sum().sqrt()


def per_sample_gradients(lib: Any) -> Any:
    model = lib.nn.Sequential(
        lib.nn.Conv2d(1, 2, 3), lib.nn.GroupNorm(1, 2), lib.nn.ReLU(), lib.nn.MaxPool2d(2),
        lib.nn.Flatten(), lib.nn.Linear(8, 3),
    ).to(lib.float64)  # fmt: skip
    state = {name: data(lib, *each.shape) for name, each in model.named_parameters()}

    def loss(state: Any, image: Any, label: Any) -> Any:
        output = lib.func.functional_call(model, state, (image.unsqueeze(0),))
        return lib.nn.functional.cross_entropy(output, label.unsqueeze(0))

    gradient = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))
    return gradient(state, data(lib, 5, 1, 6, 6), lib.tensor([0, 1, 2, 1, 0]))


def ensemble(lib: Any) -> Any:
    models = [lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.LayerNorm(4)) for _ in range(3)]
    for i, model in enumerate(models):
        for each in model.parameters():
            each.data = data(lib, *each.shape) + i
    parameters, buffers = lib.func.stack_module_state([m.to(lib.float64) for m in models])

    def run(parameters: Any, buffers: Any, x: Any) -> Any:
        return lib.func.functional_call(models[0], (parameters, buffers), (x,))

    return lib.func.vmap(run, in_dims=(0, 0, None))(parameters, buffers, data(lib, 2, 3)).detach()


def meta_gradient(lib: Any) -> Any:
    """A step of gradient descent for each task, and the gradient of what it led to."""

    def task(weight: Any, x: Any, y: Any) -> Any:
        def loss(w: Any) -> Any:
            return ((x @ w - y) ** 2).mean()

        return loss(weight - 0.1 * lib.func.grad(loss)(weight))

    def total(weight: Any) -> Any:
        return lib.func.vmap(task, in_dims=(None, 0, 0))(
            weight, data(lib, 4, 5, 3), data(lib, 4, 5)
        )

    return lib.func.jacrev(total)(data(lib, 3))


def batched_vectors(lib: Any) -> Any:
    x = data(lib, 4).requires_grad_()
    y = x**3
    vectors = lib.eye(4, dtype=lib.float64)
    inside = lib.vmap(lambda v: lib.autograd.grad(y, x, v, retain_graph=True)[0])(vectors)
    return inside, lib.autograd.grad(y, x, vectors, is_grads_batched=True)[0]


def chances(lib: Any, *sizes: int) -> Any:
    return data(lib, *sizes).sigmoid()


def entropy(lib: Any) -> Any:
    return lib.nn.functional.binary_cross_entropy


Program = Callable[[Any], Any]
PROGRAMS: dict[str, Program] = {
    "in_dims": lambda t: t.vmap(lambda x, y: x * y, (1, 0))(data(t, 3, 4), data(t, 4, 3)),
    "negative_in_dim": lambda t: t.vmap(lambda x: x.sum(0), -1)(data(t, 2, 3, 4)),
    "shared": lambda t: t.vmap(lambda x, y, n: x @ y * n, (0, None, None))(
        data(t, 2, 3, 4), data(t, 4, 5), 3
    ),
    "nested_dims": lambda t: t.vmap(lambda d, n: d["a"] + d["b"][0] + n, ({"a": 0, "b": [1]}, None))(
        {"a": data(t, 2, 3), "b": [data(t, 3, 2)]}, 1
    ),
    "out_dims": lambda t: t.vmap(lambda x: (x, {"s": x.sum()}), out_dims=(1, {"s": 0}))(
        data(t, 2, 3)
    ),
    "shared_output": lambda t: t.vmap(lambda x: (x, t.ones(2)), out_dims=(0, None))(data(t, 2, 3)),
    "constant_output": lambda t: t.vmap(lambda x: t.ones(2))(data(t, 2, 3)),
    "keywords": lambda t: t.vmap(lambda x, *, y: x + y)(data(t, 2, 3), y=data(t, 4, 3)),
    "chunks": lambda t: t.vmap(lambda x: (x * 2, x.sum()), out_dims=(1, 0), chunk_size=2)(
        data(t, 5, 3)
    ),
    "nested": lambda t: t.vmap(t.vmap(lambda x, y: x * y.sum(), (0, None)), (None, 0))(
        data(t, 3), data(t, 4, 2)
    ),
    "outer_captured": lambda t: t.vmap(lambda x: t.vmap(lambda y: (x * y).sum())(data(t, 3, 4)))(
        data(t, 2, 4)
    ),
    "in_place": lambda t: t.vmap(changed)(data(t, 3, 4)),
    "new_zeros": lambda t: t.vmap(lambda x: x.new_zeros(5).index_add_(0, t.tensor([1, 3]), x))(
        data(t, 3, 2)
    ),
    "index": lambda t: t.vmap(lambda x, i: (x[i], x[:, i], x[None, 1], t.arange(9)[i]))(
        data(t, 2, 3, 3), t.tensor([[0, 2], [1, 1]])
    ),
    "index_by_one": lambda t: t.vmap(lambda i: data(t, 5, 2)[i])(t.tensor([1, 3])),
    "gather": lambda t: t.vmap(lambda x, i: x.gather(0, i))(
        data(t, 2, 4), t.tensor([[0, 3], [1, 1]])
    ),
    "where": lambda t: t.vmap(lambda x: t.where(x > 0, x, -x * 2))(data(t, 3, 4)),
    "einsum": lambda t: t.vmap(lambda x, y: t.einsum("ij,kj->ik", x, y), (0, None))(
        data(t, 2, 3, 4), data(t, 5, 4)
    ),
    "reductions": lambda t: t.vmap(
        lambda x: (x.max(), x.argmax(), x.mean(0), x.var(), x.norm(), x.logsumexp(-1), x.prod())
    )(data(t, 2, 3, 4)),
    "layers": lambda t: t.vmap(
        lambda x: t.nn.functional.layer_norm(t.nn.functional.gelu(x).softmax(-1), (4,))
    )(data(t, 2, 3, 4)),
    "fft": lambda t: t.vmap(lambda x: t.fft.irfft(t.fft.rfft(x)))(data(t, 2, 4)),
    "linalg": lambda t: t.vmap(lambda x: t.linalg.inv(x @ x.T + t.eye(3)))(data(t, 2, 3, 3)),
    "grad": lambda t: t.vmap(t.func.grad(norm))(data(t, 3, 4)),
    "grad_of_shared": lambda t: t.vmap(t.func.grad(lambda w, x: norm(w * x)), (None, 0))(
        data(t, 4), data(t, 3, 4)
    ),
    "grad_and_value": lambda t: t.vmap(t.func.grad_and_value(norm))(data(t, 3, 4)),
    "grad_of_vmap": lambda t: t.func.grad(lambda w: t.vmap(lambda x: norm(w * x))(data(t, 3, 4)).sum())(
        data(t, 4)
    ),
    "jvp": lambda t: t.vmap(lambda x, v: t.func.jvp(norm, (x,), (v,)))(data(t, 3, 4), data(t, 3, 4)),
    "jvp_of_vmap": lambda t: t.func.jvp(t.vmap(norm), (data(t, 3, 4),), (data(t, 3, 4),)),
    "vjp_outside": lambda t: t.vmap(t.func.vjp(t.sin, data(t, 4))[1])(t.eye(4, dtype=t.float64)),
    "jacobians": lambda t: t.vmap(t.func.jacrev(lambda x: x.cumsum(0) ** 2))(data(t, 3, 4)),
    "columns": lambda t: t.vmap(t.func.jacfwd(lambda x: x.cumsum(0) ** 2))(data(t, 3, 4)),
    "hessians": lambda t: t.vmap(t.func.hessian(norm))(data(t, 3, 4)),
    "jacobian_of_vmap": lambda t: t.func.jacfwd(t.vmap(lambda x: x.prod()))(data(t, 2, 3)),
    "grad_of_scaled_rows": lambda t: t.vmap(
        t.func.grad(lambda w, b, x: norm(t.nn.functional.layer_norm(x, (4,), w, b)), (0, 1, 2)),
        (None, None, 0),
    )(data(t, 4), data(t, 4), data(t, 3, 5, 4)),
    "grad_of_groups": lambda t: t.vmap(
        t.func.grad(lambda w, b, x: norm(t.nn.functional.group_norm(x, 2, w, b)), (0, 1, 2)),
        (None, 0, 0),
    )(data(t, 4), data(t, 3, 4), data(t, 3, 5, 4, 2)),
    "grad_of_own_scaled_rows": lambda t: t.vmap(
        t.func.grad(lambda w, x: norm(t.nn.functional.layer_norm(x, (4,), w, w)), (0, 1))
    )(data(t, 3, 4), data(t, 3, 4)),
    "grad_of_parts": lambda t: t.vmap(
        t.func.grad(lambda x: sum(norm(each * (i + 1)) for i, each in enumerate((x[0], x[1:], x[1]))))
    )(data(t, 3, 4, 2)),
    "batched_vectors_of_parts": lambda t: t.vmap(
        t.func.vjp(lambda x: x[0] * x[1] + x[1:3].sum(0), data(t, 4, 2))[1]
    )(data(t, 3, 2)),
    "per_sample_gradients": per_sample_gradients,
    "ensemble": ensemble,
    "meta_gradient": meta_gradient,
    "batched_vectors": batched_vectors,
    "cross_entropy_of_chances": lambda t: t.vmap(entropy(t), (0, None))(chances(t, 2, 3), chances(t, 3)),
    "cross_entropy_of_chances_weighted": lambda t: t.vmap(
        lambda x, y: t.nn.functional.binary_cross_entropy(x, y, y * 2, reduction="sum"), (None, 0)
    )(chances(t, 3), chances(t, 2, 3)),
    "cross_entropy_of_chances_nested": lambda t: t.vmap(
        t.vmap(entropy(t), (0, None)), (0, None)
    )(chances(t, 2, 2, 3), chances(t, 3)),
    "cross_entropy_of_chances_gradient": lambda t: t.vmap(t.func.grad(entropy(t)))(
        t.tensor([[0.0, 1.0], [0.25, 0.5]]), t.tensor([[0.0, 0.5], [1.0, 0.5]])
    ),
    "cross_entropy_of_chances_hessian": lambda t: t.vmap(
        t.func.hessian(lambda x: entropy(t)(x.sigmoid(), x.detach().sigmoid()))
    )(data(t, 2, 3)),
    "matrix_exp": lambda t: t.vmap(t.linalg.matrix_exp)(data(t, 3, 2, 2) * t.tensor([[[9.0]], [[1]], [[0]]])),
    "matrix_exp_gradient": lambda t: t.vmap(t.func.grad(lambda x: t.matrix_exp(x).sin().sum()))(
        data(t, 3, 2, 2)
    ),
    "matrix_exp_jacobian": lambda t: t.func.jacrev(t.vmap(t.vmap(t.matrix_exp)))(data(t, 2, 1, 2, 2)),
    "least_squares": lambda t: t.vmap(lambda a, b: t.linalg.lstsq(a, b).solution)(
        data(t, 2, 4, 2), data(t, 2, 4, 1)
    ),
}  # fmt: skip


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_pytorch_does(name: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    importlib.import_module("torch.func")
    ours, theirs = leaves(PROGRAMS[name](weft)), leaves(PROGRAMS[name](torch))
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        assert str(one.dtype) == str(other.dtype)
        np.testing.assert_allclose(to_numpy(one), to_numpy(other), 1e-6, 1e-7)


# Dtypes ------------------------------------------------------------------------------------------

DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64")
BINARY = (
    "add", "mul", "true_divide", "pow", "maximum", "lt", "eq", "ge", "fmod", "remainder", "atan2",
    "xlogy", "logical_and", "where", "copysign", "lerp",
)  # fmt: skip
tensors = st.tuples(st.sampled_from(DTYPES), st.sampled_from([(), (2,), (3, 2)]), st.booleans())


def test_a_mask_does_not_decide_what_a_0_d_tensor_counts() -> None:
    half, scalars = weft.ones(2, dtype=weft.float16), weft.ones(BATCH)
    call = weft.vmap(lambda a, b: weft.where(a == a, a, b), (None, 0))
    assert call(half, scalars).dtype == weft.float16
    assert weft.vmap(weft.where, (None, None, 0))(half == 1, half, scalars).dtype == weft.float16


@given(st.sampled_from(BINARY), tensors, tensors)
@example("lt", ("float32", (), True), ("float16", (2,), False))
@example("where", ("int32", (), True), ("uint8", (2,), False))
@examples(150)
def test_promotion_is_that_of_samples(name: str, first: Any, second: Any) -> None:
    """A 0-d tensor of the batch counts as a 0-d one, though all samples have a dimension."""

    def make(dtype: str, sizes: tuple[int, ...], batched: bool) -> Any:
        values = data(weft, *((BATCH, *sizes) if batched else sizes)).abs() * 3 + 1
        return values.to(getattr(weft, dtype))

    x, y = make(*first), make(*second)
    dims = tuple(0 if batched else None for _, _, batched in (first, second))
    if not any(dim == 0 for dim in dims):
        return
    function: Any = getattr(weft, name)
    call = {
        "where": lambda a, b: weft.where(a == a, a, b),
        "lerp": lambda a, b: weft.lerp(a, b, 0.5),
    }.get(name, function)
    pick: Any = lambda tensor, dim, i: tensor if dim is None else tensor[i]  # noqa: E731
    try:
        rows = [call(pick(x, dims[0], i), pick(y, dims[1], i)) for i in range(BATCH)]
    except (RuntimeError, TypeError, NotImplementedError) as error:
        with pytest.raises(type(error)):
            weft.vmap(call, dims)(x, y)
        return
    # An exponent rounded to 16 bits, up to 10, moves the power of a base up to 10 by 10 ln(10) 2^-11.
    tolerance = 2e-2 if name == "pow" else 1e-3
    assert_close(weft.vmap(call, dims)(x, y), stacked(rows), tolerance)


# Random numbers -----------------------------------------------------------------------------------

DRAWING: dict[str, Callable[[Any], Any]] = {
    "rand": lambda x: x + weft.rand(4),
    "randint": lambda x: x + weft.randint(0, 1000, (4,)),
    "randn_like": lambda x: weft.randn_like(x),
    "dropout": lambda x: weft.nn.functional.dropout(x + 1, 0.5),
    "bernoulli": lambda x: weft.bernoulli(x + 0.5),
    "normal_": lambda x: x.clone().normal_(),
    "randperm": lambda x: x + weft.randperm(4),
    "multinomial": lambda x: weft.multinomial(x + 1, 3),
    "normal": lambda x: weft.normal(x, x + 1),
}


@pytest.mark.parametrize("name", DRAWING)
def test_randomness(name: str) -> None:
    x = weft.zeros(8, 4)
    with pytest.raises(RuntimeError, match="vmap: expected randomness='different' or 'same'"):
        weft.vmap(DRAWING[name])(x)
    weft.manual_seed(0)
    same = weft.vmap(DRAWING[name], randomness="same")(x)
    assert all(bool((row == same[0]).all()) for row in same)
    weft.manual_seed(0)
    assert bool((same[0] == DRAWING[name](x[0])).all())  # and what one call would draw
    different = weft.vmap(DRAWING[name], randomness="different")(x)
    assert len({tuple(row.tolist()) for row in different}) > 1


def test_one_tensor_cannot_hold_what_samples_draw() -> None:
    with pytest.raises(RuntimeError, match="vmap: expected normal_ in place on a tensor of the"):
        weft.vmap(lambda x: x + weft.zeros(4).normal_(), randomness="different")(weft.zeros(2, 4))


IN_PLACE: dict[str, Callable[[Tensor], Tensor]] = {
    **{
        name: lambda x, name=name: getattr(x, f"{name}_")()
        for name in ("digamma", "i0", "square", "nan_to_num", "logit", "sin", "t", "squeeze")
    },
    "clamp": lambda x: x.clamp_(0.3),
    "index_add": lambda x: x.index_add_(0, weft.tensor([1, 0]), x + 1),
    "index_fill": lambda x: x.index_fill_(1, weft.tensor([1]), 7.0),
    "masked_scatter": lambda x: x.masked_scatter_(x > 0.5, -x),
    "put": lambda x: x.put_(weft.tensor([1, 0]), weft.ones(2)),
    "scatter": lambda x: x.scatter_(1, weft.tensor([[1], [0]]), x[:, :1] + 2),
    "squeeze.dims": lambda x: x.unsqueeze_(1).squeeze_((1,)),
    "swapaxes": lambda x: x.swapaxes_(-1, 0),
    "transpose": lambda x: x.transpose_(0, 1),
    "unsqueeze": lambda x: x.unsqueeze_(-1),
}


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", IN_PLACE)
def test_operators_in_place_give_the_tensor_itself(name: str, requires_grad: bool) -> None:
    def changes(x: Tensor) -> tuple[Tensor, ...]:
        own = x.clone()
        view = own.view_as(own)
        result = IN_PLACE[name](own)
        assert result is own
        view.mul_(2)
        result.add_(1)
        return own, view, own * 3

    x = (weft.arange(12.0).reshape(3, 2, 2) / 13 + 0.02).requires_grad_(requires_grad)
    at_once, rows = weft.vmap(changes)(x), [changes(each) for each in x]
    for ours, each in zip(at_once, map(weft.stack, zip(*rows))):
        weft.testing.assert_close(ours, each)
        if requires_grad:
            found = [weft.autograd.grad(y.sum(), x, retain_graph=True) for y in (ours, each)]
            weft.testing.assert_close(*found)


DECIDES: dict[str, Callable[[Tensor], Tensor]] = {
    "max_unpool1d": lambda x: weft.nn.functional.max_unpool1d(
        *weft.nn.functional.max_pool1d(x, 2, return_indices=True), 2
    ),
    "ctc_loss": lambda x: weft.nn.functional.ctc_loss(
        x.log_softmax(-1), (x[0, :, :1] > 2).int() + 1, [2, 1], [1, 1], reduction="none"
    ),
    "ldl_factor": lambda x: weft.linalg.ldl_factor(x.mT @ x + weft.eye(2)).LD,
    "unravel_index": lambda x: weft.stack(weft.unravel_index((x > 0).int(), (2, 2))),
    "histogram": lambda x: weft.histogram(x, 3, range=(-1.0, 1.0), weight=x**2).hist,
    "istft": lambda x: weft.istft(
        x.flatten().expand(4, 3, 8)[..., :5].mT * 1j, 8, window=weft.ones(8) + x.sum() ** 2
    ),
    "as_strided": lambda x: x.as_strided((3, 2), (2, 3)).as_strided((2,), (1,)),
}


FACTORS: dict[str, Callable[[Tensor], Tensor]] = {
    "pinv": weft.linalg.pinv,
    "pinv of symmetric": lambda x: weft.linalg.pinv(x.mT @ x, hermitian=True),
    "lstsq": lambda x: weft.linalg.lstsq(x, weft.ones(*x.shape[:-1], 2, dtype=x.dtype))[0],
    "cholesky_solve": lambda x: weft.cholesky_solve(x.mT, weft.linalg.cholesky(x.mT @ x)),
    "svd": lambda x: weft.linalg.svd(x, full_matrices=False)[1],
    "square": weft.square,
}


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("name", FACTORS)
def test_gradients_of_factors_of_a_batch(name: str, inside: bool) -> None:
    """Within the function and around vmap, as for each sample."""
    x = weft.randn(3, 2, 4, 3, dtype=weft.float64)

    def loss(x: Tensor) -> Tensor:
        return FACTORS[name](x).sin().sum()

    gradient = weft.func.grad(loss)
    if inside:
        made = weft.vmap(gradient)(x)
    else:
        made = weft.func.grad(lambda x: weft.vmap(loss)(x).sum())(x)
    weft.testing.assert_close(made, weft.stack([gradient(each) for each in x]))
    assert made.count_nonzero() > 0


@pytest.mark.parametrize("in_dims", [(0,), (-1,)])
@pytest.mark.parametrize("name", DECIDES)
def test_functions_that_look_at_elements_and_storages(name: str, in_dims: Any) -> None:
    x = weft.randn(2, 2, 2, 2)
    rows = weft.stack([DECIDES[name](each) for each in x.unbind(in_dims[0])])
    weft.testing.assert_close(weft.vmap(DECIDES[name], in_dims)(x), rows)


# What is refused ----------------------------------------------------------------------------------

ASKS = "vmap: expected a function that asks no tensor of the batch for its elements, got "
X = weft.arange(6.0).reshape(3, 2)
REFUSALS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "if": (lambda: weft.vmap(lambda x: x if x.sum() > 0 else -x)(X), RuntimeError, ASKS),
    "item": (lambda: weft.vmap(lambda x: x[0].item())(X), RuntimeError, ASKS + r"item\(\) of one"),
    "float": (lambda: weft.vmap(lambda x: float(x[0]))(X), RuntimeError, ASKS),
    "tolist": (lambda: weft.vmap(lambda x: x.tolist())(X), RuntimeError, ASKS),
    "numpy": (lambda: weft.vmap(lambda x: x.numpy())(X), RuntimeError, ASKS),
    "asarray": (lambda: weft.vmap(lambda x: weft.from_numpy(np.asarray(x)))(X), RuntimeError, ASKS),
    "memoryview": (lambda: weft.vmap(lambda x: list(memoryview(x)))(X), RuntimeError, ASKS),
    "constructor": (lambda: weft.vmap(lambda x: weft.Tensor(x))(X), RuntimeError, ASKS),
    "new": (lambda: weft.vmap(lambda x: x.new(x.tolist()))(X), RuntimeError, ASKS),
    "parameter": (lambda: weft.vmap(lambda x: weft.nn.Parameter(x))(X), RuntimeError, ASKS),
    "tensor": (lambda: weft.vmap(lambda x: weft.tensor([x[0], 1.0]))(X), RuntimeError, ASKS),
    "equal": (lambda: weft.vmap(lambda x: weft.equal(x, x))(X), RuntimeError, ASKS),
    "size": (lambda: weft.vmap(lambda n: weft.zeros(n))(weft.tensor([1, 2])), RuntimeError, ASKS),
    "nonzero": (
        lambda: weft.vmap(weft.nonzero)(X),
        RuntimeError, "vmap: expected operators whose sizes do not depend on elements",
    ),
    "mask": (
        lambda: weft.vmap(lambda x: x[x > 1])(X),
        RuntimeError, "vmap: expected operators whose sizes do not depend on elements",
    ),
    "pickle": (
        lambda: weft.vmap(lambda x: pickle.dumps(x))(X),
        RuntimeError, "vmap: expected what works on a batch",
    ),
    "in_place": (
        lambda: weft.vmap(lambda x: weft.zeros(2).add_(x))(X),
        RuntimeError, "vmap: expected add_ in place on a tensor of the batch",
    ),
    "assignment": (
        lambda: weft.vmap(lambda x, i: weft.zeros(2).__setitem__(i, x))(X[:, 0], X[:, 0].long()),
        RuntimeError, "vmap: expected what works on a batch, got an assignment",
    ),
    "out": (
        lambda: weft.vmap(lambda x: weft.add(x, x, out=weft.zeros(2)))(X),
        RuntimeError, r"vmap: expected operators without out=, got add",
    ),
    "backward": (
        lambda: weft.vmap(lambda x: x.sum().backward())(X),
        RuntimeError, r"vmap: expected what works on a batch, got backward\(\)",
    ),
    "requires_grad": (
        lambda: weft.vmap(lambda x: x.requires_grad_())(X),
        RuntimeError, r"vmap: expected what works on a batch, got requires_grad_\(\)",
    ),
    "statistics": (
        lambda: weft.vmap(weft.nn.BatchNorm1d(2))(weft.ones(3, 4, 2)),
        RuntimeError, "vmap: expected what works on a batch, got running statistics",
    ),
    "no_inputs": (lambda: weft.vmap(lambda: X)(), ValueError, "vmap: expected at least one Tensor"),
    "number": (lambda: weft.vmap(lambda x: x)(3), ValueError, "vmap: expected a Tensor where in_dims"),
    "sizes": (
        lambda: weft.vmap(lambda x, y: x)(X, X[:2]),
        ValueError, r"vmap: expected equal sizes of the mapped dimension, got \[3, 2\]",
    ),
    "in_dims_range": (
        lambda: weft.vmap(lambda x: x, in_dims=2)(X),
        ValueError, "vmap: expected in_dims within the 2 dimensions of a Tensor, got 2",
    ),
    "in_dims_none": (
        lambda: weft.vmap(lambda x: x, in_dims=None)(X),
        ValueError, "vmap: expected in_dims as an int or a tuple, got NoneType",
    ),
    "chances": (
        lambda: weft.vmap(entropy(weft))(weft.tensor([[0.5], [2.0]]), weft.zeros(2, 1)),
        RuntimeError, r"binary_cross_entropy: expected input in \[0, 1\], got values outside",
    ),
    "in_dims_structure": (
        lambda: weft.vmap(lambda x, y: x, in_dims=(0,))(X, X),
        ValueError, "vmap: expected in_dims in the structure of the arguments",
    ),
    "out_dims_structure": (
        lambda: weft.vmap(lambda x: x, out_dims=(0, 0))(X),
        ValueError, "vmap: expected out_dims in the structure of the output",
    ),
    "out_dims_range": (
        lambda: weft.vmap(lambda x: x, out_dims=3)(X),
        IndexError, "vmap: expected out_dims within the 2 dimensions of a result, got 3",
    ),
    "out_dims_none": (
        lambda: weft.vmap(lambda x: x, out_dims=None)(X),
        ValueError, "vmap: expected an int in out_dims for a Tensor of the batch, got None",
    ),
    "output": (
        lambda: weft.vmap(lambda x: 3)(X),
        ValueError, "vmap: expected a function that returns Tensors, got int",
    ),
    "randomness": (
        lambda: weft.vmap(lambda x: x, randomness="some"),
        RuntimeError, "vmap: expected randomness as one of",
    ),
    "chunk_size": (
        lambda: weft.vmap(lambda x: x, chunk_size=0),
        ValueError, "vmap: expected chunk_size above 0 or None, got 0",
    ),
}  # fmt: skip


def test_quantiles_of_samples() -> None:
    """Each sample has its own q, checked for all of them at once."""
    x, q = data(weft, 2, 5), weft.tensor([0.25, 0.75], dtype=weft.float64)
    assert_close(weft.vmap(weft.quantile)(x, q), stacked(list(map(weft.quantile, x, q))))
    with pytest.raises(RuntimeError, match=r"quantile: expected q in \[0, 1\]"):
        weft.vmap(weft.quantile)(x, q * 2)


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_say_why(name: str) -> None:
    call, error, text = REFUSALS[name]
    with pytest.raises(error, match=text):
        call()
    assert weft._C._recorder() is None


# Beside the rest of the library -------------------------------------------------------------------


class Square(weft.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 3 * grad * ctx.saved_tensors[0]  # not the derivative, to tell it apart


def scripted(x):
    return x.sin() + x.sum()


def test_custom_functions_and_programs() -> None:
    assert_close(weft.vmap(Square.apply)(X), X * X)
    assert_close(weft.vmap(weft.func.grad(lambda x: Square.apply(x).sum()))(X), 3 * X)
    expected = X.sin() + X.sum(1, keepdim=True)
    for made in (weft.jit.script(scripted), weft.compile(scripted)):
        assert_close(weft.vmap(made)(X), expected, 1e-6)
    traced = weft.jit.trace(weft.vmap(scripted), (X + 1,))
    assert_close(traced(X), expected, 1e-6)


@pytest.mark.parametrize(
    ("layer", "sizes"),
    [
        (lambda: weft.nn.LSTM(4, 3), (3, 5, 2, 4)),
        (lambda: weft.nn.MultiheadAttention(4, 2), (3, 5, 2, 4)),
        (lambda: weft.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), (3, 5, 2, 4)),
        (lambda: weft.nn.ConvTranspose2d(2, 3, 2), (3, 2, 2, 4, 4)),
        (lambda: weft.nn.Conv3d(1, 2, 2), (3, 1, 1, 3, 3, 3)),
        (lambda: weft.nn.InstanceNorm2d(2), (3, 2, 2, 4, 4)),
        (lambda: weft.nn.BatchNorm2d(2).eval(), (3, 2, 2, 4, 4)),
        (lambda: weft.nn.Upsample(scale_factor=2), (3, 2, 2, 4, 4)),
    ],
)
def test_layers(layer: Callable[[], Any], sizes: tuple[int, ...]) -> None:
    made, x = layer(), weft.rand(*sizes)

    def call(one: Any) -> Any:
        result = made(one, one, one) if isinstance(made, weft.nn.MultiheadAttention) else made(one)
        return result[0] if isinstance(result, tuple) else result

    expected = weft.stack([call(one) for one in x])
    assert_close(weft.vmap(call)(x), expected, 1e-5)


def test_copies_are_of_the_batch() -> None:
    assert_close(weft.vmap(lambda x: copy.deepcopy(x) + x)(X), X + X)
    shown = []
    weft.vmap(lambda x: shown.append(repr(x)) or x)(X)
    assert shown == [f"Batched({X!r})"]


def test_no_samples() -> None:
    empty = weft.zeros(0, 3)
    assert weft.vmap(lambda x: x.sin())(empty).shape == (0, 3)
    assert weft.vmap(lambda x: x.sum())(empty).shape == (0,)


def written(x: Any) -> Any:
    """Of elements that are written one by one into a tensor that had no history."""
    made = x.new_zeros(3)
    made[0] = x[0] ** 2
    made[1:] = x.sin()
    assert made.requires_grad == x.requires_grad
    return made


@pytest.mark.parametrize("transform", ["jacrev", "jacfwd"])
def test_histories_that_begin_late(transform: str) -> None:
    x = data(weft, 3, 2)
    jacobian = getattr(weft.func, transform)(written)
    assert_close(weft.vmap(jacobian)(x), weft.stack([jacobian(row) for row in x]))
    assert float(jacobian(x[1])[0, 0]) == pytest.approx(2 * float(x[1, 0]))


def test_traces_of_transforms() -> None:
    cube = weft.func.grad(lambda x: (x**3).sum())
    traced = weft.jit.trace(weft.vmap(cube), (X,))
    assert_close(traced(X + 1), 3 * (X + 1) ** 2, 1e-6)
    assert not traced(X + 1).requires_grad


def test_chunks_draw_the_same() -> None:
    made = weft.vmap(lambda x: x * 0 + weft.rand(2), randomness="same", chunk_size=2)(X)
    assert all(bool((row == made[0]).all()) for row in made)


def test_threads_have_batches_of_their_own() -> None:
    inside, done = threading.Event(), threading.Event()

    def wait(x: Any) -> Any:
        inside.set()
        assert done.wait(60)
        return x * 2

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(weft.vmap(wait), X)
        assert inside.wait(60)
        assert float(X.sum()) == 15.0  # this thread is in no batch
        assert not weft.jit.is_tracing()
        done.set()
        assert_close(waiting.result(60), X * 2)


def test_an_error_leaves_the_batch() -> None:
    with pytest.raises(ZeroDivisionError):
        weft.vmap(lambda x: 1 / 0)(X)
    assert float(X.sum()) == 15.0


class Box:
    """A dict of tensors that takes part in vmap by itself, as libraries define them."""

    def __init__(self, **tensors: Any) -> None:
        self.tensors = tensors

    def dim(self) -> int:
        return 1

    def size(self, dim: int) -> int:
        return next(iter(self.tensors.values())).size(dim)

    def _add_batch_dim(self, *, in_dim: int, vmap_level: Any) -> Box:
        from weft.compat.overlay._C._functorch import _add_batch_dim as add

        return Box(**{k: add(v, in_dim, vmap_level) for k, v in self.tensors.items()})

    def _maybe_remove_batch_dim(
        self, funcname: str, *, vmap_level: Any, batch_size: int, out_dim: int
    ) -> Box:
        from weft.compat.overlay._functorch.vmap import _maybe_remove_batch_dim as remove

        made = {k: remove("", v, vmap_level, 0, out_dim) for k, v in self.tensors.items()}
        return Box(**made)


def test_dicts_of_tensors_that_libraries_define() -> None:
    box, x = Box(w=weft.arange(6.0).view(3, 2), b=weft.ones(3)), weft.tensor([1.0, 2.0])

    def f(box: Box, x: Tensor) -> tuple[Tensor, Box]:
        assert box.tensors["b"].shape == ()
        return box.tensors["w"] @ x + box.tensors["b"], Box(twice=box.tensors["w"] * 2)

    result, made = weft.vmap(f, (0, None), (0, 1))(box, x)
    assert result.tolist() == [3, 9, 15]
    assert made.tensors["twice"].tolist() == [[0, 4, 8], [2, 6, 10]]
    with pytest.raises(ValueError, match="expected equal sizes of the mapped dimension"):
        weft.vmap(f)(box, x)


@pytest.mark.parametrize(
    "name", ["alpha_dropout", "feature_alpha_dropout", "dropout2d", "dropout3d"]
)
def test_dropouts_draw_for_each_sample_or_for_all(name):
    x, drop = weft.ones(8, 6, 4, 1, 1), getattr(weft.nn.functional, name)
    for randomness, rows in (("same", 1), ("different", 2)):
        weft.manual_seed(3)
        y = weft.vmap(lambda x: drop(x, 0.5, True), randomness=randomness)(x)
        assert min(len(y.flatten(1).unique(dim=0)), 2) == rows


@pytest.mark.parametrize(
    ("in_dims", "args"),
    [
        ([0, 0], 2),
        ("lol", 2),
        ({0}, 1),
        (([0, 0],), (1, 1)),
        (((0, 0),), [1, 1]),
    ],
)
def test_in_dims_have_the_structure_of_the_arguments(in_dims, args):
    x = weft.ones(3)
    given = (x,) * args if isinstance(args, int) else (type(args)(x for _ in args),)
    with pytest.raises(ValueError, match="vmap: expected in_dims"):
        weft.vmap(lambda *args: x, in_dims)(*given)


@pytest.mark.parametrize("out_dims", ["lol", ("lol",), [0, 0]])
def test_out_dims_are_ints_in_the_structure_of_the_output(out_dims):
    with pytest.raises(ValueError, match="vmap: expected out_dims"):
        weft.vmap(lambda x: (x, x) if isinstance(out_dims, list) else x, 0, out_dims)(weft.ones(3))


@pytest.mark.parametrize("name", ["gather", "scatter", "scatter_add", "scatter_reduce"])
@pytest.mark.parametrize("shapes", [((), (2,)), ((3,), ()), ((), ()), ((3,), (2,))])
@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
def test_numbers_beside_vectors_of_indices(name, shapes, in_dims):
    more = {"gather": (), "scatter": (1.0,), "scatter_add": (), "scatter_reduce": ()}[name]

    def call(x, index):
        source = () if name in ("gather", "scatter") else (weft.ones(index.shape),)
        reduce = ("amax",) if name == "scatter_reduce" else ()
        return getattr(x, name)(0, index, *more, *source, *reduce)

    x = weft.arange(6.0).reshape(2, 3)[:, : 3 if shapes[0] else 1].reshape(2, *shapes[0])
    index = weft.zeros(2, *shapes[1], dtype=weft.int64)
    given = [each if dim == 0 else each[0] for each, dim in zip((x, index), in_dims)]
    expected = [
        call(*(each[i] if dim == 0 else each for each, dim in zip(given, in_dims)))
        for i in range(2)
    ]
    assert weft.vmap(call, in_dims)(*given).equal(weft.stack(expected))


#: indices that are no tensors and no ints of Python
NUMPY_INDICES: tuple[Any, ...] = (
    np.int64(1),
    np.array(1),
    np.array([2, 0]),
    np.array([1, 0], dtype=np.int32),
    np.array([True, False, True]),
    (slice(0, 2), np.array([0, 1])),
    (np.int32(-1), slice(None)),
)


@both
@pytest.mark.parametrize("index", NUMPY_INDICES, ids=repr)
def test_indices_of_numpy_in_transforms(lib: Any, index: Any) -> None:
    x = lib.arange(24.0).reshape(2, 3, 4)

    def written(sample: Any) -> Any:
        sample = sample.clone()
        sample[index] = 7
        return sample

    for function in (lambda sample: sample[index], written):
        wanted = [function(sample) for sample in x]
        assert lib.equal(lib.func.vmap(function)(x), lib.stack(wanted))
        loss = lib.func.grad(lambda sample: function(sample).square().sum())  # noqa: B023
        leaf = x.clone().requires_grad_()
        sum(function(sample).square().sum() for sample in leaf).backward()
        assert lib.equal(lib.func.vmap(loss)(x), leaf.grad)

"""Sparse tensors: layouts, operators, gradients, errors, files."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft
from weft import nn
from weft.autograd import gradcheck, gradgradcheck
from weft.sparse._pattern import Coo
from weft.sparse._tensor import make

#: PyTorch's, once in a process
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

DENSE = [[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [4.0, 5.0, 0.0], [0.0, 0.0, -1.0]]
SQUARE = [[0.0, 1.5, 0.0], [2.0, 0.0, -3.0], [0.5, 0.0, 1.0]]


def made(lib: Any, layout: str = "coo", data: Any = DENSE) -> Any:
    """DENSE in a layout; "uncoalesced" has its places in another order, some twice."""
    dense = lib.tensor(data, dtype=lib.float64)
    if layout == "uncoalesced":
        half = dense.to_sparse()
        twice = lib.cat([half.indices().flip(1), half.indices()], 1)
        values = lib.cat([half.values().flip(0) * 0.25, half.values() * 0.75])
        return lib.sparse_coo_tensor(twice, values, dense.shape)
    return dense.to_sparse() if layout == "coo" else getattr(dense, f"to_sparse_{layout}")()


LAYOUTS = ("coo", "uncoalesced", "csr", "csc")


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def dense_of(value: Any) -> np.ndarray:
    return np.asarray(value.to_dense().detach().numpy())


# ---- operators: of the sparse tensor as of the dense one ----

RIGHT = [[1.0, -2.0], [0.5, 3.0], [2.0, 1.0]]

#: functions of (library, a [4, 3] tensor in a layout, the dense one); by the layouts that have it
CASES: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "to_dense": ("coo uncoalesced csr csc", lambda lib, x: x.to_dense()),
    "to_sparse": ("coo uncoalesced csr csc", lambda lib, x: x.to_sparse()),
    "to_sparse_csr": ("coo uncoalesced csr csc", lambda lib, x: x.to_sparse_csr()),
    "to_sparse_csc": ("coo uncoalesced csr csc", lambda lib, x: x.to_sparse_csc()),
    "coalesce": ("coo uncoalesced", lambda lib, x: x.coalesce()),
    "clone": ("coo uncoalesced csr csc", lambda lib, x: x.clone()),
    "float": ("coo uncoalesced csr csc", lambda lib, x: x.to(lib.float32)),
    "t": ("coo uncoalesced csr csc", lambda lib, x: x.t()),
    "transpose": ("coo uncoalesced csr csc", lambda lib, x: x.transpose(0, -1)),
    "permute": ("coo uncoalesced", lambda lib, x: x.permute(1, 0)),
    "permute by name": ("coo", lambda lib, x: x.permute(dims=(1, 0))),
    "unsqueeze": ("coo uncoalesced", lambda lib, x: x.unsqueeze(1)),
    "cat": ("coo uncoalesced", lambda lib, x: lib.cat([x, x * 2], 1)),
    "stack": ("coo uncoalesced", lambda lib, x: lib.stack([x, x * 2])),
    "stack behind": ("coo uncoalesced", lambda lib, x: lib.stack([x, x * 2], -1)),
    "select": ("coo uncoalesced csr", lambda lib, x: x.select(1, 1)),
    "getitem": ("coo uncoalesced csr", lambda lib, x: x[2]),
    "getitem of whole dims": ("coo uncoalesced csr", lambda lib, x: x[:, 1]),
    "getitem of None": ("coo uncoalesced", lambda lib, x: x[None, :, 1]),
    "iteration": ("coo uncoalesced csr", lambda lib, x: [*x][2]),
    "unbind": ("coo uncoalesced csr", lambda lib, x: x.unbind(1)[0]),
    "narrow_copy": ("coo uncoalesced", lambda lib, x: x.narrow_copy(0, 1, 3)),
    "copy_": ("coo uncoalesced csr csc", lambda lib, x: (x * 3).copy_(x)),
    "index_select": ("coo uncoalesced", lambda lib, x: x.index_select(0, lib.tensor([2, 0, 2]))),
    "index_select columns": ("coo", lambda lib, x: x.index_select(1, lib.tensor([1, 1]))),
    "neg": ("coo uncoalesced csr csc", lambda lib, x: -x),
    "mul number": ("coo uncoalesced csr csc", lambda lib, x: x * 3),
    "number mul": ("coo uncoalesced csr", lambda lib, x: 0.5 * x),
    "mul 0-d": ("coo uncoalesced", lambda lib, x: x * lib.tensor(2.0, dtype=lib.float64)),
    "div": ("coo uncoalesced", lambda lib, x: x / 4),
    "floor_divide": ("coo", lambda lib, x: x // 2),
    "add": ("coo uncoalesced csr", lambda lib, x: x + x),
    "add alpha": ("coo uncoalesced csr", lambda lib, x: lib.add(x, x, alpha=0.5)),
    "add other places": ("coo uncoalesced", lambda lib, x: x + x.index_select(0, lib.tensor([1, 2, 3, 0]))),
    "sub": ("coo uncoalesced", lambda lib, x: x - x * 2),
    "mul": ("coo uncoalesced csr", lambda lib, x: x * x),
    "mul other places": ("coo uncoalesced", lambda lib, x: x * x.index_select(0, lib.tensor([2, 2, 2, 2]))),
    "mul dense": ("coo uncoalesced csr", lambda lib, x: x * lib.full((4, 3), 2.5, dtype=lib.float64)),
    "dense mul": ("coo uncoalesced", lambda lib, x: lib.full((4, 3), 2.5, dtype=lib.float64) * x),
    "dense add": ("coo uncoalesced csr", lambda lib, x: lib.ones(4, 3, dtype=lib.float64) + x),
    "dense add_": ("coo uncoalesced", lambda lib, x: lib.ones(4, 3, dtype=lib.float64).add_(x, alpha=-2)),
    "square": ("coo uncoalesced", lambda lib, x: x.square()),
    "pow": ("coo uncoalesced", lambda lib, x: x**3),
    "sin": ("coo uncoalesced csr", lambda lib, x: lib.sin(x)),
    "relu": ("coo uncoalesced csr", lambda lib, x: lib.relu(x)),
    "abs": ("coo uncoalesced csr", lambda lib, x: x.abs()),
    "sum": ("coo uncoalesced csr", lambda lib, x: lib.sum(x)),
    "sparse.sum": ("coo uncoalesced", lambda lib, x: lib.sparse.sum(x)),
    "sparse.sum 0": ("coo uncoalesced", lambda lib, x: lib.sparse.sum(x, 0)),
    "sparse.sum -1": ("coo uncoalesced", lambda lib, x: lib.sparse.sum(x, dim=-1)),
    "sparse.sum both": ("coo uncoalesced", lambda lib, x: lib.sparse.sum(x, (0, 1))),
    "norm": ("coo uncoalesced", lambda lib, x: x.norm()),
    "zeros_like": ("coo uncoalesced csr csc", lambda lib, x: lib.zeros_like(x)),
    "mm": ("coo uncoalesced csr", lambda lib, x: lib.mm(x, _right(lib))),
    "sparse.mm": ("coo uncoalesced csr", lambda lib, x: lib.sparse.mm(x, _right(lib))),
    "sparse.mm mean": ("csr", lambda lib, x: lib.sparse.mm(x, _right(lib), "mean")),
    "sparse.mm amax": ("csr", lambda lib, x: lib.sparse.mm(x, _right(lib), "amax")),
    "sparse.mm amin": ("csr", lambda lib, x: lib.sparse.mm(x, _right(lib), reduce="amin")),
    "linear": ("coo uncoalesced csr", lambda lib, x: lib.nn.functional.linear(_right(lib).t(), x)),
    "linear with bias": ("csr", lambda lib, x: lib.nn.functional.linear(
        _right(lib).t(), x, lib.ones(4, dtype=lib.float64))),
    "linear of several rows": ("coo", lambda lib, x: lib.nn.functional.linear(
        lib.ones(2, 2, 3, dtype=lib.float64), x)),
    "addmv": ("csr", lambda lib, x: lib.addmv(
        lib.ones(4, dtype=lib.float64), x, _right(lib)[:, 0], beta=2, alpha=0.5)),
    "matmul": ("coo uncoalesced csr csc", lambda lib, x: x @ _right(lib)),
    "mv": ("coo uncoalesced csr", lambda lib, x: x.mv(_right(lib)[:, 0])),
    "matmul of a vector": ("coo uncoalesced csr", lambda lib, x: x @ _right(lib)[:, 0]),
    "dense matmul": ("coo uncoalesced csr", lambda lib, x: lib.ones(2, 4, dtype=lib.float64) @ x),
    "sparse by sparse": ("coo uncoalesced", lambda lib, x: lib.sparse.mm(x, x.t())),
    "sparse_csr by sparse_csr": ("csr", lambda lib, x: x @ x.to_dense().t().to_sparse_csr()),
    "addmm": ("coo uncoalesced", lambda lib, x: lib.sparse.addmm(
        lib.ones(4, 2, dtype=lib.float64), x, _right(lib), beta=2, alpha=0.5)),
    "weft.addmm": ("coo csr", lambda lib, x: lib.addmm(lib.ones(4, 2, dtype=lib.float64), x, _right(lib))),
    "sparse_mask": ("coo", lambda lib, x: (lib.ones(4, 3, dtype=lib.float64) * 2).sparse_mask(x)),
    "spmm": ("coo", lambda lib, x: lib.spmm(x, _right(lib))),
    "dsmm": ("coo", lambda lib, x: lib.dsmm(x, _right(lib))),
}  # fmt: skip

#: of specified elements only: no dense tensor has these
OWN: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "softmax 0": ("coo uncoalesced", lambda lib, x: lib.sparse.softmax(x, 0)),
    "softmax 1": ("coo uncoalesced", lambda lib, x: lib.sparse.softmax(x, 1)),
    "softmax dtype": ("coo", lambda lib, x: lib.sparse.softmax(x, 1, dtype=lib.float32)),
    "log_softmax 1": ("coo uncoalesced", lambda lib, x: lib.sparse.log_softmax(x, -1)),
    "log_softmax 0": ("coo uncoalesced", lambda lib, x: lib.sparse.log_softmax(x, 0)),
    "sampled_addmm": ("csr", lambda lib, x: lib.sparse.sampled_addmm(
        x, lib.ones(4, 2, dtype=lib.float64), _right(lib).t(), beta=0.5, alpha=2.0)),
}  # fmt: skip


#: where PyTorch keeps zeros, or orders columns otherwise
OTHER_PLACES = ("mul other places", "sparse_csr by sparse_csr")


def _right(lib: Any) -> Any:
    return lib.tensor(RIGHT, dtype=lib.float64)


def _extreme_products(x: weft.Tensor, sign: int) -> weft.Tensor:
    """The largest (sign 1) or least products at the places that are kept, 0 in rows without."""
    products = (x.unsqueeze(2) * _right(weft)).masked_fill((x == 0).unsqueeze(2), -sign * np.inf)
    found = products.amax(1) if sign > 0 else products.amin(1)
    return found.masked_fill(found.isinf(), 0)


DENSE_MEANING: dict[str, Callable[[Any], Any]] = {
    "zeros_like": weft.zeros_like,
    "sparse_mask": lambda x: (x != 0).to(weft.float64) * 2,
    "sparse.mm": lambda x: x @ _right(weft),
    "sparse.mm mean": lambda x: (x @ _right(weft)) / (x != 0).sum(1, keepdim=True).clamp(min=1),
    "sparse.mm amax": lambda x: _extreme_products(x, 1),
    "sparse.mm amin": lambda x: _extreme_products(x, -1),
    "spmm": lambda x: x @ _right(weft),
    "dsmm": lambda x: x @ _right(weft),
    "sparse.sum": lambda x: x.sum(),
    "sparse.sum 0": lambda x: x.sum(0),
    "sparse.sum -1": lambda x: x.sum(-1),
    "sparse.sum both": lambda x: x.sum(),
    "sparse by sparse": lambda x: x @ x.t(),
    "sparse_csr by sparse_csr": lambda x: x @ x.t(),
    "addmm": lambda x: 2 + 0.5 * (x @ _right(weft)),
    "coalesce": lambda x: x,
}


@pytest.mark.parametrize("name", CASES)
def test_as_dense(name: str) -> None:
    layouts, function = CASES[name]
    dense = weft.tensor(DENSE, dtype=weft.float64)
    meaning = DENSE_MEANING.get(name)
    expected = meaning(dense) if meaning else function(weft, dense)
    for layout in layouts.split():
        got = function(weft, made(weft, layout))
        np.testing.assert_allclose(dense_of(got), dense_of(expected), err_msg=layout)
        assert got.shape == expected.shape and got.dtype == expected.dtype
        assert isinstance(got, weft.Tensor)


@pytest.mark.parity
@pytest.mark.parametrize(
    ("name", "layout"),
    [(name, layout) for name, case in {**CASES, **OWN}.items() for layout in case[0].split()],
)
def test_parity(torch: Any, name: str, layout: str) -> None:
    """Values, layout, and the elements that are kept are PyTorch's."""
    function = {**CASES, **OWN}[name][1]
    got, expected = function(weft, made(weft, layout)), function(torch, made(torch, layout))
    np.testing.assert_allclose(dense_of(got), dense_of(expected))
    assert str(got.layout) == str(expected.layout)
    assert tuple(got.shape) == tuple(expected.shape) and str(got.dtype) == str(expected.dtype)
    if got.layout is weft.sparse_coo:
        got, expected = got.coalesce(), expected.coalesce()
    if got.layout is not weft.strided and name not in OTHER_PLACES:
        assert got._nnz() == expected._nnz()
        np.testing.assert_allclose(got.values().numpy(), expected.values().numpy())


# ---- gradients ----

GRADIENTS = (
    "to_dense", "to_sparse", "coalesce", "t", "cat", "select", "index_select", "mul number", "add",
    "add other places", "mul", "mul other places", "mul dense", "dense add", "square", "sin",
    "sum", "sparse.sum 0", "sparse.sum -1", "mm", "dense matmul", "mv", "sparse by sparse",
    "addmm", "softmax 0", "softmax 1", "log_softmax 1", "to_sparse_csr", "sampled_addmm", "stack",
    "iteration", "getitem of None", "linear", "addmv", "sparse.mm mean", "sparse.mm amax",
    "sparse_csr by sparse_csr",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        (name, layout)
        for name in GRADIENTS
        for layout in ("coo", "uncoalesced", "csr")
        if layout in {**CASES, **OWN}[name][0].split()
    ],
)
def test_gradients(name: str, layout: str) -> None:
    """Of the values, through the layout: first and second ones."""
    function = {**CASES, **OWN}[name][1]
    pattern = made(weft, layout)
    values = pattern._values().clone().requires_grad_()

    def of_values(entries: weft.Tensor) -> weft.Tensor:
        if layout in ("coo", "uncoalesced"):
            x = weft.sparse_coo_tensor(pattern._indices(), entries, pattern.shape)
            x = x if layout == "uncoalesced" else x.coalesce()
        else:
            parts = pattern.crow_indices(), pattern.col_indices()
            x = weft.sparse_csr_tensor(*parts, entries, pattern.shape)
        return function(weft, x).to_dense()

    assert gradcheck(of_values, (values,))
    assert gradgradcheck(of_values, (values,))


def _leaf_gradient(lib: Any, layout: str) -> Any:
    x = made(lib, layout).requires_grad_()
    right = _right(lib).requires_grad_()
    (lib.sparse.mm(x, right) ** 2).sum().backward()
    return x.grad, right.grad


@pytest.mark.parity
@pytest.mark.parametrize("layout", ["coo", "uncoalesced", "csr"])
def test_gradient_of_a_sparse_leaf(torch: Any, layout: str) -> None:
    got, expected = _leaf_gradient(weft, layout), _leaf_gradient(torch, layout)
    assert str(got[0].layout) == str(expected[0].layout)
    np.testing.assert_allclose(dense_of(got[0]), dense_of(expected[0]))
    np.testing.assert_allclose(got[1].numpy(), expected[1].numpy())


def test_sparse_leaves() -> None:
    x = made(weft).requires_grad_()
    assert x.is_leaf and x.requires_grad and x.grad is None
    (x * 2).sum().backward()
    (x.to_dense() * 3).sum().backward()
    assert x.grad.is_sparse and x.grad.indices().equal(x.indices())
    assert x.grad.values().equal(weft.full((4,), 5.0, dtype=weft.float64))
    (again,) = weft.autograd.grad((x * x).sum(), x)
    assert again.is_sparse and again.values().equal(x.detach().values() * 2)
    x.grad = x.detach() * 7
    assert x.grad.values().equal(x.detach().values() * 7)
    y = x * 2
    assert not y.is_leaf and y.requires_grad and not y.detach().requires_grad
    y.backward(made(weft))
    assert x.grad.values().equal(x.detach().values() * 9)
    seen: list[Any] = []
    x.register_hook(lambda grad: seen.append(grad))
    x.sum().backward()
    assert seen[0].is_sparse


# ---- sparse gradients of dense tensors ----


def _embedded(lib: Any, **options: Any) -> Any:
    layer = lib.nn.Embedding(5, 2, sparse=True, **options)
    with lib.no_grad():
        layer.weight.copy_(lib.arange(10.0).reshape(5, 2))
    rows = lib.tensor([[1, 3], [1, 4]])
    (layer(rows) ** 2).sum().backward()
    layer(rows[0]).sum().backward()
    return layer


@pytest.mark.parity
@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}, {"max_norm": 1.0}], ids=str)
def test_embedding(torch: Any, options: dict[str, Any]) -> None:
    got, expected = _embedded(weft, **options), _embedded(torch, **options)
    assert got.weight.grad.is_sparse and not got.weight.grad.is_coalesced()
    assert got.weight.grad.shape == got.weight.shape
    np.testing.assert_allclose(dense_of(got.weight.grad), dense_of(expected.weight.grad), rtol=1e-6)
    assert repr(got) == repr(expected)


def test_embedding_scales_by_frequency() -> None:  # PyTorch only for dense gradients
    rows, table = weft.tensor([1, 3, 1]), weft.ones(5, 2)
    sparse, dense = table.clone().requires_grad_(), table.clone().requires_grad_()
    for weight, kind in ((sparse, True), (dense, False)):
        found = nn.functional.embedding(rows, weight, scale_grad_by_freq=True, sparse=kind)
        found.sum().backward()
    assert sparse.grad.is_sparse and sparse.grad.to_dense().equal(dense.grad)


def test_embedding_gradients_meet_dense_ones() -> None:
    rows = weft.tensor([0, 2, 0])
    for order in (0, 1, 2):
        table = weft.arange(6.0).reshape(3, 2).requires_grad_()
        sparse = nn.functional.embedding(rows, table, sparse=True)
        if order == 2:  # the same backward
            (sparse.sum() + table.sum()).backward()
        else:
            for which in (order, 1 - order):
                (sparse.sum() if which else (table * 1).sum()).backward(retain_graph=True)
        assert not table.grad.is_sparse
        assert table.grad.tolist() == [[3.0, 3.0], [1.0, 1.0], [2.0, 2.0]]


def test_embedding_of_a_result_has_a_dense_gradient() -> None:
    table = weft.arange(6.0).reshape(3, 2).requires_grad_()
    nn.functional.embedding(weft.tensor([2, 2]), table * 2, sparse=True).sum().backward()
    assert not table.grad.is_sparse
    assert table.grad.tolist() == [[0.0, 0.0], [0.0, 0.0], [4.0, 4.0]]


def test_gradient_of_an_embedding_by_grad() -> None:
    table = weft.arange(6.0).reshape(3, 2).requires_grad_()
    out = nn.functional.embedding(weft.tensor([2, 2]), table, sparse=True)
    (grad,) = weft.autograd.grad(out.sum(), table)
    assert grad.is_sparse and grad.shape == (3, 2) and grad._nnz() == 2 and table.grad is None
    with pytest.raises(RuntimeError, match=r"grad: expected a gradient of shape \(3, 2\), got"):
        table.grad = weft.eye(3).to_sparse()
    table.grad = grad
    assert table.grad.is_sparse


@pytest.mark.parity
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_embedding_bag(torch: Any, mode: str) -> None:
    def run(lib: Any) -> Any:
        layer = lib.nn.EmbeddingBag(5, 2, mode=mode, sparse=True)
        with lib.no_grad():
            layer.weight.copy_(lib.arange(10.0).reshape(5, 2))
        (layer(lib.tensor([1, 3, 1, 4]), lib.tensor([0, 3])) ** 2).sum().backward()
        return layer.weight.grad

    got, expected = run(weft), run(torch)
    assert got.is_sparse
    np.testing.assert_allclose(dense_of(got), dense_of(expected), rtol=1e-6)


OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "SGD": lambda lib, p: lib.optim.SGD(p, lr=0.1),
    "SGD momentum": lambda lib, p: lib.optim.SGD(p, lr=0.1, momentum=0.9),
    "SparseAdam": lambda lib, p: lib.optim.SparseAdam(p, lr=0.1),
    "SparseAdam up": lambda lib, p: lib.optim.SparseAdam(p, lr=0.1, maximize=True),
    "Adagrad": lambda lib, p: lib.optim.Adagrad(p, lr=0.1),
}


@pytest.mark.parity
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(torch: Any, name: str) -> None:
    def run(lib: Any) -> Any:
        layer = lib.nn.Embedding(5, 2, sparse=True)
        with lib.no_grad():
            layer.weight.copy_(lib.arange(10.0).reshape(5, 2) / 10)
        optimizer = OPTIMIZERS[name](lib, layer.parameters())
        for rows in ([1, 1, 2], [0, 2], [4, 1]):
            optimizer.zero_grad()
            (layer(lib.tensor(rows)) ** 2).sum().backward()
            optimizer.step()
        return layer.weight.detach().numpy()

    np.testing.assert_allclose(run(weft), run(torch), rtol=1e-5)


def test_optimizers_that_want_another_gradient() -> None:
    layer = nn.Embedding(3, 2, sparse=True)
    layer(weft.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="add: expected add"):
        weft.optim.SGD(layer.parameters(), lr=0.1, weight_decay=0.1).step()
    with pytest.raises((RuntimeError, NotImplementedError), match="expected"):
        weft.optim.Adam(layer.parameters()).step()
    layer.weight.grad = weft.ones(3, 2)
    with pytest.raises(RuntimeError, match="SparseAdam: expected sparse gradients"):
        weft.optim.SparseAdam(layer.parameters()).step()


# ---- attributes, printing, files ----


def test_attributes() -> None:
    x, y = made(weft), made(weft, "csr")
    assert x.layout is weft.sparse_coo and y.layout is weft.sparse_csr
    assert x.is_sparse and not y.is_sparse and y.is_sparse_csr and not x.is_sparse_csr
    assert not weft.ones(1).is_sparse and weft.ones(1).layout is weft.strided
    assert x.shape == (4, 3) and x.size(-1) == 3 and x.dim() == 2 and x.numel() == 12
    assert len(x) == 4 and x.sparse_dim() == 2 and x.dense_dim() == 0 and x._nnz() == 4
    assert x.dtype is weft.float64 and x.device.type == "cpu" and hash(x) == hash(x)
    assert repr(weft.sparse_coo) == "torch.sparse_coo"
    assert pickle.loads(pickle.dumps(weft.sparse_csr)) is weft.sparse_csr
    hybrid = weft.sparse_coo_tensor([[2, 0]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))
    assert hybrid.sparse_dim() == 1 and hybrid.dense_dim() == 1
    assert hybrid.to_dense().tolist() == [[3.0, 4.0], [0.0, 0.0], [1.0, 2.0]]
    assert weft.sparse.sum(hybrid, 1).to_dense().tolist() == [7.0, 0.0, 3.0]
    assert weft.sparse.softmax(hybrid, 1).shape == (3, 2)
    assert x.to_dense().to_sparse(1).dense_dim() == 1
    batch = weft.stack([x.to_dense(), x.to_dense() * 2]).to_sparse()
    right = weft.arange(12.0, dtype=weft.float64).reshape(2, 3, 2)
    assert weft.allclose(weft.bmm(batch, right), batch.to_dense() @ right)
    assert not weft.sparse_coo_tensor((2, 3)).to_dense().any()
    assert isinstance(weft.sparse.FloatTensor(2, 3), weft.sparse.FloatTensor)
    assert weft.sparse.LongTensor([[0], [1]], [2], (2, 2)).dtype is weft.int64


@pytest.mark.parity
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["plain", "wide", "leaf", "result", "empty", "int", "hybrid"])
def test_printing(torch: Any, layout: str, kind: str) -> None:
    def shown(lib: Any) -> str:
        x = made(lib, layout).to(lib.float64 if kind == "wide" else lib.float32)
        if kind == "leaf":
            return repr(x.requires_grad_())
        if kind == "result":
            return repr(x.requires_grad_() * 2)
        if kind == "empty":
            return repr(lib.sparse_coo_tensor((2, 3)))
        if kind == "hybrid":
            return repr(lib.sparse_coo_tensor([[0, 2]], lib.ones(2, 3), (4, 3)))
        return str(x.to(lib.int64) if kind == "int" else x)

    assert shown(weft) == shown(torch)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_and_files(layout: str) -> None:
    x = made(weft, layout)
    stream = io.BytesIO()
    weft.save({"x": x}, stream)
    stream.seek(0)
    for other in (
        pickle.loads(pickle.dumps(x)),
        copy.deepcopy(x),
        weft.load(stream)["x"],
    ):
        assert other.layout is x.layout and other._values().equal(x._values())
        assert other._values().data_ptr() != x._values().data_ptr()
        assert other.to_dense().equal(x.to_dense())
    module = nn.Module()
    module.register_buffer("adjacency", x)
    assert module.to(weft.float32).adjacency.layout is x.layout
    assert module.state_dict()["adjacency"].dtype is weft.float32


@pytest.mark.parity
@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_of_pytorch(torch: Any, layout: str) -> None:
    for here, there in ((weft, torch), (torch, weft)):
        stream = io.BytesIO()
        here.save(made(here, layout), stream)
        stream.seek(0)
        found = there.load(stream, weights_only=True)
        assert str(found.layout) == str(made(here, layout).layout)
        np.testing.assert_allclose(dense_of(found), DENSE)


def test_a_file_with_wrong_indices() -> None:
    wrong = make(Coo(weft.tensor([[7]]), (2,), False), weft.ones(1))
    stream = io.BytesIO()
    weft.save(wrong, stream)
    stream.seek(0)
    with pytest.raises(weft.serialization.LoadError, match=r"indices of dim 0 in \[0, 2\), got 7"):
        weft.load(stream)


# ---- errors ----

COO = weft.sparse_coo_tensor
CSR = weft.sparse_csr_tensor
WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "exp": (lambda x: x.exp(), "exp: expected a strided tensor, got layout torch.sparse_coo"),
    "cumsum": (lambda x: weft.cumsum(x, 0), "cumsum: expected a strided tensor, got layout"),
    "norm of linalg": (lambda x: weft.linalg.svd(x), "svd: expected a strided tensor, got layout"),
    "numpy": (lambda x: x.numpy(), "numpy: expected a strided tensor"),
    "data_ptr": (lambda x: x.data_ptr(), "data_ptr: expected a strided tensor"),
    "tensor": (lambda x: weft.tensor(x), "tensor: expected a strided tensor, got a sparse one"),
    "Tensor": (lambda x: weft.Tensor(x), "Tensor: expected a strided tensor, got a sparse one"),
    "as_tensor": (lambda x: weft.as_tensor(x), "as_tensor: expected a strided tensor"),
    "slice": (lambda x: x[1:], "__getitem__: expected ints, None and whole dims for layout"),
    "dense of a factory": (
        lambda x: weft.zeros(2, layout=weft.sparse_coo),
        "layout: expected torch.strided, got torch.sparse_coo",
    ),
    "add number": (lambda x: x + 1, "add: expected two tensors"),
    "add dense": (lambda x: x + weft.ones(4, 3), "add: expected add(dense, sparse)"),
    "sizes": (lambda x: x + x.t(), "add: expected equal sizes, got (4, 3) and (3, 4)"),
    "div": (lambda x: 1 / x, "expected"),
    "mm": (lambda x: x @ x, "mm: expected matrices [n, k] and [k, m]"),
    "dtypes": (lambda x: x @ weft.ones(3, 1), "mm: expected tensors of one dtype"),
    "values": (
        lambda x: made(weft, "uncoalesced").values(),
        "values: expected a coalesced tensor",
    ),
    "crow": (lambda x: x.crow_indices(), "crow_indices: expected layout torch.sparse_csr"),
    "indices": (lambda x: weft.ones(2).indices(), "indices: expected layout torch.sparse_coo"),
    "coalesce": (lambda x: x.to_sparse_csr().coalesce(), "coalesce: expected layout"),
    "dim": (lambda x: weft.sparse.sum(x, 2), "sparse.sum: expected dims in [-2, 2), got [2]"),
    "dim twice": (lambda x: weft.sparse.sum(x, (0, -2)), "sparse.sum: expected each dim once"),
    "softmax": (lambda x: weft.sparse.softmax(x, 5), "sparse.softmax: expected a dim in [-2, 2)"),
    "bsr": (lambda x: x.to_sparse(layout=weft.sparse_bsr), "to_sparse: expected layout"),
    "above": (lambda x: COO([[2]], [1.0], (2,)), "expected indices of dim 0 in [0, 2), got 2"),
    "below": (lambda x: COO([[-1]], [1.0], (2,)), "expected indices of dim 0 in [0, 2), got -1"),
    "counts": (lambda x: COO([[0, 1]], [1.0], (2,)), "expected indices [k, n] and values [n, *]"),
    "dims": (lambda x: COO([[0]], [1.0], (2, 2)), "expected a size of 1 dimensions and then ()"),
    "negative size": (lambda x: COO([[0]], [1.0], (-2,)), "expected sizes of at least 0"),
    "huge": (lambda x: COO((1 << 40, 1 << 40)), "expected sizes of fewer than 2^63 places"),
    "coalesced": (
        lambda x: COO([[1, 0]], [1.0, 2.0], (2,), is_coalesced=True, check_invariants=True),
        "expected coalesced indices",
    ),
    "falling": (lambda x: CSR([0, 2, 1], [0], [1.0], (2, 2)), "expected compressed indices that"),
    "beyond": (lambda x: CSR([0, 1, 5], [0, 1], [1.0, 2.0]), "expected compressed indices that"),
    "column": (lambda x: CSR([0, 1], [3], [1.0], (1, 2)), "expected plain indices in [0, 2), got 3"),
    "rows": (lambda x: CSR([0, 1], [0], [1.0], (2, 2)), "expected indices for a matrix"),
    "no matrix": (lambda x: weft.ones(2, 2, 2).to_sparse_csr(), "to_sparse_csr: expected a matrix"),
    "mask": (lambda x: weft.ones(2).sparse_mask(x), "sparse_mask: expected a sparse mask"),
    "boolean indices": (lambda x: COO(weft.tensor([[True]]), [1.0]), "expected indices of integers"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:tensor. expected numbers")
@pytest.mark.parametrize("name", WRONG)
def test_errors(name: str) -> None:
    call, text = WRONG[name]
    with pytest.raises((RuntimeError, IndexError, TypeError)) as caught:
        call(made(weft))
    assert text in str(caught.value)


def test_numpy_refuses() -> None:
    with pytest.raises(TypeError, match="numpy: expected a strided tensor, got a sparse one"):
        np.asarray(made(weft))
    with pytest.raises(BufferError, match="buffer: expected a strided tensor, got a sparse one"):
        memoryview(made(weft))


def test_a_function_of_a_program() -> None:
    """As programs for graphs multiply: the gradient of the values by hand."""

    class Multiply(weft.autograd.Function):
        @staticmethod
        def forward(ctx: Any, indices: Any, values: Any, shape: Any, other: Any) -> Any:
            matrix = weft.sparse_coo_tensor(indices, values, shape)
            ctx.save_for_backward(matrix, other)
            ctx.count = shape[0]
            return weft.matmul(matrix, other)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            matrix, other = ctx.saved_tensors
            places = matrix._indices()[0] * ctx.count + matrix._indices()[1]
            dense = grad.matmul(other.t())
            return None, dense.view(-1)[places], None, matrix.t().matmul(grad)

    square = made(weft, "coo", SQUARE)
    values = square.values().clone().requires_grad_()
    other = _right(weft).requires_grad_()
    assert gradcheck(
        lambda v, o: Multiply.apply(square.indices(), v, square.shape, o), (values, other)
    )


def test_a_size_alone_makes_an_empty_tensor() -> None:
    x = weft.sparse_coo_tensor(size=(2, 3))
    assert (x.shape, x._nnz(), x.dtype) == ((2, 3), 0, weft.float32)
    with pytest.raises(
        TypeError, match="sparse_coo_tensor: expected indices and values, or a size"
    ):
        weft.sparse_coo_tensor()


@both
def test_spdiags(lib: Any) -> None:
    rows, offsets = lib.arange(9).reshape(3, 3), lib.tensor([0, -1, 2])
    expected = [[0, 0, 8], [3, 1, 0], [0, 4, 2]]
    for layout in (None, lib.sparse_coo, lib.sparse_csr, lib.sparse_csc):
        x = lib.sparse.spdiags(rows, offsets, (3, 3), layout=layout)
        assert x.layout is (layout or lib.sparse_coo) and x.to_dense().tolist() == expected
    wide = lib.sparse.spdiags(lib.arange(4.0), lib.tensor(1), (2, 6))
    assert wide.to_dense().tolist() == [[0, 1, 0, 0, 0, 0], [0, 0, 2, 0, 0, 0]]
    for arguments in (
        (rows, lib.tensor([0, 0, 1]), (3, 3)),
        (rows, lib.tensor([0, 1]), (3, 3)),
        (rows, offsets.int(), (3, 3)),
        (rows, offsets, (3, 3, 3)),
    ):
        with pytest.raises(RuntimeError):
            lib.sparse.spdiags(*arguments)


@both
def test_smm(lib: Any) -> None:
    x, other = lib.eye(2).to_sparse(), lib.tensor([[0.0, 1.0], [2.0, 0.0]])
    for product in (lib.smm(x, other), x.smm(other)):
        assert product.layout is lib.sparse_coo and product.to_dense().tolist() == other.tolist()
    with pytest.raises(RuntimeError):
        lib.smm(lib.eye(2), other)


@both
@pytest.mark.parametrize(("sizes", "count"), [((2, 3), 0), ((2, 3), -1), ((2, 3), 3), ((), 1)])
def test_sparse_dimensions_are_counted(lib: Any, sizes: tuple[int, ...], count: int) -> None:
    with pytest.raises(RuntimeError, match="to_sparse"):
        lib.ones(sizes).to_sparse(count)
    assert lib.ones(()).to_sparse(0).sparse_dim() == 0
    assert lib.ones(2, 3).to_sparse(1).dense_dim() == 1


@both
def test_sparse_operands_by_keyword(lib: Any) -> None:
    sparse = lib.eye(2).to_sparse()
    assert lib.add(lib.ones(2, 2), other=sparse).tolist() == [[2, 1], [1, 2]]
    assert lib.mul(input=sparse, other=2).to_dense().tolist() == [[2, 0], [0, 2]]


@pytest.mark.parametrize("layout", [weft.sparse_csr, weft.sparse_csc, weft.sparse_coo])
def test_sums_of_other_patterns(layout: Any) -> None:
    a = weft.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]]).to_sparse(layout=layout)
    b = weft.tensor([[3.0, 0.0, 0.0], [4.0, 0.0, 0.0]]).to_sparse(layout=layout)
    assert (a + b).to_dense().tolist() == [[3, 1, 0], [6, 0, 0]]
    assert (a + a).to_dense().tolist() == [[0, 2, 0], [4, 0, 0]]
    assert (a - b).layout == layout


@pytest.mark.parametrize("layout", LAYOUTS)
def test_empty_copies_keep_the_layout(layout: str) -> None:
    x = made(weft, layout)
    assert weft.zeros_like(x).layout is x.layout


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.resize_(9, 9),
        lambda x: x.resize_as_(weft.eye(9)),
        lambda x: weft.resize_as_(x, weft.eye(9)),
        lambda x: x.set_(weft.eye(9, dtype=weft.float64)),
        lambda x: x.untyped_storage(),
    ],
)
def test_sparse_tensors_have_no_storage_to_change(layout: str, call: Callable[[Any], Any]) -> None:
    x = made(weft, layout)
    with pytest.raises(NotImplementedError, match="expected a strided tensor"):
        call(x)
    np.testing.assert_allclose(dense_of(x), DENSE)


IN_PLACE = (
    "abs_ asin_ asinh_ atan_ atanh_ ceil_ deg2rad_ erf_ expm1_ floor_ frac_ log1p_ rad2deg_ relu_ "
    "round_ sgn_ sign_ sin_ sinh_ sqrt_ square_ tan_ tanh_ trunc_ neg_ nan_to_num_"
)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [*IN_PLACE.split(), "angle", "nan_to_num", "isposinf", "isneginf"])
def test_functions_that_are_zero_at_zero(layout: str, name: str) -> None:
    x = made(weft, layout)
    expected = getattr(weft.tensor(DENSE, dtype=weft.float64), name)()
    got = getattr(x, name)()
    np.testing.assert_allclose(dense_of(got), dense_of(expected))
    assert (
        got.dtype == expected.dtype and got.layout is x.layout and (got is x) is (name[-1] == "_")
    )


def test_no_sparse_result_of_a_dense_argument() -> None:
    with pytest.raises(NotImplementedError, match="abs: expected a sparse tensor, got layout"):
        weft.abs(weft.eye(2), out=weft.eye(2).to_sparse())


@pytest.mark.parametrize("size", [(0, 3), (3, 0), (0, 0)])
def test_matrices_of_no_elements(size: tuple[int, int]) -> None:
    x = weft.zeros(size)
    for convert in ("to_sparse", "to_sparse_csr", "to_sparse_csc"):
        assert getattr(x, convert)().to_dense().shape == size


@both
@pytest.mark.parametrize("kind", ("int8", "int32", "float32"))
def test_differences_of_bytes_are_taken_in_the_dtype_of_both(lib: Any, kind: str) -> None:
    dense = lib.tensor([[0, 3], [5, 0]], dtype=getattr(lib, kind))
    taken = lib.tensor([[200, 4], [0, 100]], dtype=lib.uint8)
    for x in (dense, dense.to_sparse()):
        found = x - taken.to_sparse()
        assert lib.equal(found if x is dense else found.to_dense(), dense - taken)
    wide = dense.to(lib.int32)
    assert lib.equal(wide.clone().sub_(taken.to_sparse()), wide - taken)
    assert lib.equal(wide.to_sparse().sub_(taken.to_sparse()).to_dense(), wide - taken)


@both
def test_dense_tensors_take_sparse_ones_in_place(lib: Any) -> None:
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.mul_(lib.tensor([[0.0, 2.0], [1.0, 0.0]]).to_sparse()).tolist() == [[0, 4], [3, 0]]
    mask = lib.tensor([[True, False], [False, False]])
    assert lib.equal(mask.clone().add_((~mask).to_sparse()), lib.ones_like(mask))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_zeroed_tensors_keep_no_places(layout: str) -> None:
    x = made(weft, layout)
    assert x.zero_() is x and x._nnz() == 0 and x.layout is made(weft, layout).layout
    np.testing.assert_array_equal(dense_of(x), np.zeros_like(DENSE))


@both
@pytest.mark.parametrize(
    "product",
    [
        lambda lib, x, y: lib.addmv(y[:, 0], x, _right(lib)[:, 0], beta=0, alpha=0.5),
        lambda lib, x, y: lib.addmm(y, x, _right(lib), beta=0, alpha=0.5),
    ],
)
def test_a_beta_of_zero_leaves_the_summand_out(lib: Any, product: Any) -> None:
    x = made(lib, "csr")
    nan, zero = (lib.full((4, 2), n, dtype=lib.float64, requires_grad=True) for n in (np.nan, 0))
    assert lib.equal(product(lib, x, nan), product(lib, x, zero))
    product(lib, x, nan).sum().backward()
    assert not nan.grad.any()

"""weft.utils.flop_counter: operations of products, for each module and each operator."""

import importlib
from typing import Any

import pytest

import weft
from weft.utils import flop_counter
from weft.utils.flop_counter import FlopCounterMode


def w(torch: Any, *size: int) -> Any:
    return torch.ones(*size, requires_grad=True)


def network(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10))


def encoder(torch: Any) -> Any:
    return torch.nn.TransformerEncoderLayer(8, 2, 16)


CASES: dict[str, Any] = {
    "network": lambda t: network(t)(t.ones(2, 3, 8, 8)).sum().backward(),
    "without gradients": lambda t: network(t).requires_grad_(False)(t.ones(2, 3, 8, 8)),
    "encoder": lambda t: encoder(t)(t.rand(3, 2, 8)).sum().backward(),
    "attention": lambda t: t.nn.MultiheadAttention(8, 2)(*[t.rand(3, 2, 8)] * 3)[0].sum().backward(),
    "recurrent": lambda t: t.nn.GRU(8, 8, 2, bidirectional=True)(t.rand(3, 2, 8)),
    "cell": lambda t: t.nn.LSTMCell(8, 8)(t.rand(3, 8)),
    "matmul": lambda t: (w(t, 4, 4) @ w(t, 4, 4) @ t.ones(4)).sum().backward(),
    "batches": lambda t: (t.ones(2, 1, 4, 4) @ w(t, 3, 4, 4)).sum().backward(),
    "added": lambda t: (t.addmm(*[w(t, 3, 3)] * 3), t.baddbmm(*[t.ones(2, 3, 3)] * 3)),
    "transposed": lambda t: t.conv_transpose2d(w(t, 2, 3, 4, 4), w(t, 3, 5, 3, 3)).sum().backward(),
    "tensordot": lambda t: t.tensordot(t.ones(2, 3, 4), t.ones(3, 4, 5), 2),
    "einsum": lambda t: t.einsum("b...j,bjk,kl->...bl", t.ones(2, 3, 4), t.ones(2, 4, 5), w(t, 5, 6)),
    "without a right side": lambda t: t.einsum("ij,jk", t.ones(2, 3), w(t, 3, 4)).sum().backward(),
    "linear": lambda t: t.nn.functional.linear(t.ones(4), w(t, 4, 4)).sum().backward(),
    "a chain": lambda t: t.linalg.multi_dot([t.ones(4, 4)] * 3),
    "an operator by name": lambda t: t.ops.aten.mm(t.ones(2, 2), t.ones(2, 2)),
}  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("name", CASES)
def test_counts_are_pytorchs(name):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    theirs = importlib.import_module("torch.utils.flop_counter").FlopCounterMode(display=False)
    with FlopCounterMode(display=False) as ours:
        CASES[name](weft)
    with theirs:
        CASES[name](torch)
    found, wanted = (
        {module: {str(op): n for op, n in ops.items()} for module, ops in c.get_flop_counts().items()}
        for c in (ours, theirs)
    )  # fmt: skip
    assert found == wanted and ours.get_total_flops() == theirs.get_total_flops()


def test_what_only_weft_counts():
    q = w(weft, 1, 2, 16, 8)
    with FlopCounterMode(display=False) as counter:
        weft.nn.functional.scaled_dot_product_attention(q, q, q).sum().backward()
        weft.nn.LSTM(8, 4)(weft.rand(3, 2, 8))
    assert counter.get_flop_counts()["Global"] == {
        weft.ops.aten.bmm: 3 * 2 * 2 * 16 * 16 * (8 + 8),
        weft.ops.aten.addmm: 2 * 6 * 16 * (8 + 4),
    }


def test_only_the_block_counts():
    x = w(weft, 3, 3)
    with FlopCounterMode(display=False) as counter:
        y = x @ x
    y.sum().backward()
    assert counter.get_total_flops() == 54
    with counter:
        pass
    assert counter.get_total_flops() == 0 and counter.get_table().endswith("Global  0.000       0%")


def test_tables(capsys):
    model = network(weft)
    with FlopCounterMode(depth=1):
        model(weft.ones(2, 3, 8, 8))
    assert capsys.readouterr().out.splitlines() == [
        "Module                  FLOP  % Total",
        "-------------------  -------  -------",
        "Sequential           42.624K  100.00%",
        " - aten.convolution  31.104K   72.97%",
        " - aten.addmm        11.520K   27.03%",
    ]
    with FlopCounterMode(display=False) as counter:
        model(weft.ones(2, 3, 8, 8))
        weft.ones(9, 9) @ weft.ones(9, 9)
    names = [line.split("  ")[0] for line in counter.get_table().splitlines() if "aten" not in line]
    assert names[2:] == ["Global", " Sequential", "", ""]


def test_formulas_of_programs(monkeypatch):
    monkeypatch.setattr(flop_counter, "flop_registry", {})
    dot = weft.ops.aten.dot

    @flop_counter.register_flop_formula(dot)
    def of_shapes(a_shape, b_shape, *, out_shape=None, **kwargs):
        return 2 * a_shape[0] + len(out_shape)

    @flop_counter.register_flop_formula([dot], get_raw=True)
    def of_values(a, b, *, out_val=None):
        return 7 * int(out_val)

    x = weft.ones(3)
    counts = []
    for custom in ({dot: of_shapes}, {}, {dot: lambda *shapes, out_shape: 1}):
        with FlopCounterMode(display=False, custom_mapping=custom) as counter:
            weft.ops.aten.dot(x, x)
        counts.append(counter.get_flop_counts())
    assert counts == [{"Global": {dot: n}} for n in (6, 21, 1)]
    with pytest.raises(ValueError, match="register_flop_formula: expected operators"):
        flop_counter.register_flop_formula(weft.mm)
    with pytest.warns(UserWarning, match="mods argument is not needed"):
        FlopCounterMode(weft.nn.ReLU())


class Product(weft.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad @ b.t(), a.t() @ grad


def test_products_in_the_backward_of_functions_and_into_given_tensors():
    a, b = (weft.ones(5, 5, requires_grad=True) for _ in range(2))
    with FlopCounterMode(display=False) as counter:
        assert sum(counter.flop_counts["Global"].values()) == 0
        Product.apply(a, b).sum().backward()
        weft.mm(a.detach(), b.detach(), out=weft.empty(5, 5))
    assert counter.get_total_flops() == 1000

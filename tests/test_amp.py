"""Mixed precision: which operators autocast concerns, and GradScaler."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft
from weft.nn import functional as F

Make = Callable[..., Any]


def of(lib: Any, dtype: str) -> Make:
    return lambda *shape: lib.full(shape, 0.5, dtype=getattr(lib, dtype))


def recurrent(lib: Any, kind: str, x: Any, state: Any = None, **options: Any) -> list[Any]:
    """The output and the last states of a layer of 2 features, all of whose weights are 0.1."""
    layer = getattr(lib.nn, kind)(2, 2, **options)
    for parameter in layer.parameters():
        lib.nn.init.constant_(parameter, 0.1)
    output, last = layer(x, state)
    return [output, *(last if isinstance(last, tuple) else (last,))]


def packed(lib: Any, kind: str, x: Any) -> Any:
    """The output of a layer whose input is packed."""
    sequences = lib.nn.utils.rnn.pack_padded_sequence(x, [3, 2])
    return recurrent(lib, kind, sequences)[0].data


# What each call gives under autocast for float32 and for bfloat16 tensors, in both libraries.
CALLS: dict[str, Callable[[Any, Make], Any]] = {
    "linear": lambda lib, m: lib.nn.functional.linear(m(2, 3), m(4, 3), m(4)),
    "mm": lambda lib, m: m(2, 2) @ m(2, 2),
    "bmm": lambda lib, m: lib.bmm(m(1, 2, 2), m(1, 2, 2)),
    "addmm": lambda lib, m: lib.addmm(m(2, 2), m(2, 2), m(2, 2)),
    "baddbmm": lambda lib, m: lib.baddbmm(m(1, 2, 2), m(1, 2, 2), m(1, 2, 2)),
    "matmul of vectors": lambda lib, m: lib.matmul(m(2), m(2)),
    "tensordot": lambda lib, m: lib.tensordot(m(2, 2), m(2, 2), 1),
    "einsum": lambda lib, m: lib.einsum("ij,jk->ik", m(2, 2), m(2, 2)),
    "conv1d": lambda lib, m: lib.conv1d(m(1, 1, 3), m(1, 1, 2), m(1)),
    "conv2d": lambda lib, m: lib.conv2d(m(1, 1, 3, 3), m(1, 1, 2, 2)),
    "conv_transpose2d": lambda lib, m: lib.nn.functional.conv_transpose2d(
        m(1, 1, 3, 3), m(1, 1, 2, 2)
    ),
    "attention": lambda lib, m: lib.nn.functional.scaled_dot_product_attention(
        m(1, 1, 2, 2), m(1, 1, 2, 2), m(1, 1, 2, 2)
    ),
    "mv": lambda lib, m: lib.mv(m(2, 2), m(2)),
    "dot": lambda lib, m: lib.dot(m(2), m(2)),
    "add": lambda lib, m: m(2) + m(2),
    "softmax": lambda lib, m: m(2).softmax(0),
    "layer_norm": lambda lib, m: lib.nn.functional.layer_norm(m(2, 2), (2,)),
    "exp": lambda lib, m: m(2).exp(),
    "sum": lambda lib, m: m(2).sum(),
    "mse_loss": lambda lib, m: lib.nn.functional.mse_loss(m(2), m(2)),
    "l1_loss": lambda lib, m: lib.nn.functional.l1_loss(m(2), m(2)),
    "cross_entropy": lambda lib, m: lib.nn.functional.cross_entropy(m(2, 2), lib.tensor([0, 1])),
    "nll_loss": lambda lib, m: lib.nn.functional.nll_loss(m(2, 2), lib.tensor([0, 1])),
    "bce_with_logits": lambda lib, m: lib.nn.functional.binary_cross_entropy_with_logits(
        m(2), m(2)
    ),
    "smooth_l1_loss": lambda lib, m: lib.nn.functional.smooth_l1_loss(m(2), m(2)),
    "huber_loss": lambda lib, m: lib.nn.functional.huber_loss(m(2), target=m(2)),
    "kl_div": lambda lib, m: lib.nn.functional.kl_div(m(2), m(2), reduction="sum"),
    "poisson_nll_loss": lambda lib, m: lib.nn.functional.poisson_nll_loss(m(2), m(2)),
    "soft_margin_loss": lambda lib, m: lib.nn.functional.soft_margin_loss(m(2), m(2)),
    "hinge_embedding_loss": lambda lib, m: lib.nn.functional.hinge_embedding_loss(m(2), m(2)),
    "margin_ranking_loss": lambda lib, m: lib.nn.functional.margin_ranking_loss(m(2), m(2), m(2)),
    "cosine_embedding_loss": lambda lib, m: lib.nn.functional.cosine_embedding_loss(
        m(2, 2), m(2, 2), lib.ones(2)
    ),
    "triplet_margin_loss": lambda lib, m: lib.nn.TripletMarginLoss()(m(2, 2), m(2, 2), m(2, 2)),
    "multi_margin_loss": lambda lib, m: lib.nn.MultiMarginLoss()(m(2, 2), lib.tensor([0, 1])),
    "ctc_loss": lambda lib, m: lib.nn.functional.ctc_loss(
        m(3, 1, 2).log(), lib.tensor([[1]]), lib.tensor([3]), lib.tensor([1])
    ),
    "grid_sample": lambda lib, m: lib.nn.functional.grid_sample(
        m(1, 1, 2, 2), m(1, 2, 2, 2), align_corners=False
    ),
    "adaptive_avg_pool3d": lambda lib, m: lib.nn.functional.adaptive_avg_pool3d(m(1, 2, 2, 2), 1),
    "prelu": lambda lib, m: lib.nn.functional.prelu(m(2), m(1)),
    "conv_transpose3d": lambda lib, m: lib.nn.functional.conv_transpose3d(
        m(1, 1, 2, 2, 2), m(1, 1, 2, 2, 2), m(1)
    ),
    "bilinear": lambda lib, m: lib.nn.functional.bilinear(m(2, 3), m(2, 2), m(4, 3, 2), m(4)),
    "vecdot": lambda lib, m: lib.linalg.vecdot(m(2), m(2)),
    "svdvals of a product": lambda lib, m: lib.linalg.svdvals(m(2, 2) @ m(2, 2)),
    "qr of a product": lambda lib, m: lib.linalg.qr(m(2, 2) @ m(2, 2))[1].abs(),
    "solve with a product": lambda lib, m: lib.linalg.solve(lib.eye(2), m(2, 2) @ m(2, 2)),
    "prod": lambda lib, m: m(2).prod(),
    "prod of a dim": lambda lib, m: m(2, 2).prod(0),
    "trace": lambda lib, m: m(2, 2).trace(),
    "cat": lambda lib, m: lib.cat([m(2), m(2)]),
    "cat of both": lambda lib, m: lib.cat([m(2), m(2).float()]),
    "stack of both": lambda lib, m: lib.stack([m(2), m(2).float()]),
    "inner of vectors": lambda lib, m: lib.inner(m(2), m(2)),
    "inner of matrices": lambda lib, m: lib.inner(m(2, 2), m(2, 2)),
    "tensordot of all": lambda lib, m: lib.tensordot(m(2, 2), m(2, 2), 2),
    "tensordot of nothing": lambda lib, m: lib.tensordot(m(2), m(2), 0),
    "addmv": lambda lib, m: lib.addmv(m(2), m(2, 2), m(2)),
    "addmv_": lambda lib, m: m(2).addmv_(m(2, 2), m(2)),
    "addr": lambda lib, m: lib.addr(m(2, 2), m(2), m(2)),
    "addr_": lambda lib, m: m(2, 2).addr_(m(2), m(2)),
    "addbmm": lambda lib, m: lib.addbmm(m(2, 2), m(1, 2, 2), m(1, 2, 2)),
    "lstsq": lambda lib, m: lib.linalg.lstsq(m(2, 2) + m(2, 2).tril(), m(2, 2)).solution,
    "einsum of a dot": lambda lib, m: lib.einsum("i,i->", m(2), m(2)),
    "einsum outer": lambda lib, m: lib.einsum("i,j->ij", m(2), m(2)),
    "einsum outer by groups": lambda lib, m: lib.einsum("bi,bj->bij", m(2, 2), m(2, 3)),
    "einsum by elements": lambda lib, m: lib.einsum("ij,ij->ij", m(2, 2), m(2, 2)),
    "einsum spread": lambda lib, m: lib.einsum("ij,j->ij", m(2, 2), m(2)),
    "einsum over one": lambda lib, m: lib.einsum("ij,jk->ik", m(2, 1), m(1, 2)),
    "einsum summed first": lambda lib, m: lib.einsum("ij,k->i", m(2, 2), m(2)),
    "einsum of three": lambda lib, m: lib.einsum("i,j,k->ijk", m(2), m(2), m(2)),
    "mm to out": lambda lib, m: lib.mm(m(2, 2), m(2, 2), out=m(2, 2)),
    "bmm to out": lambda lib, m: lib.bmm(m(1, 2, 2), m(1, 2, 2), out=m(1, 2, 2)),
    "matmul to out": lambda lib, m: lib.matmul(m(2, 2), m(2, 2), out=m(2, 2)),
    "addmm to out": lambda lib, m: lib.addmm(m(2, 2), m(2, 2), m(2, 2), out=m(2, 2)),
    "addbmm to out": lambda lib, m: lib.addbmm(m(2, 2), m(1, 2, 2), m(1, 2, 2), out=m(2, 2)),
    **{
        f"pad {mode} of {dims}": lambda lib, m, mode=mode, dims=dims: lib.nn.functional.pad(
            m(1, 1, *[2] * dims), [1, 1] * dims, mode
        )
        for mode in ("constant", "reflect", "replicate", "circular")
        for dims in (1, 2, 3)
    },
    **{
        f"{name} of a product": lambda lib, m, name=name: getattr(lib.fft, name)(
            m(2, 2) @ m(2, 2)
        ).abs()
        for name in (
            "hfft",
            "ihfft",
            *(f"{i}{r}fft{n}" for i in ("", "i") for r in ("", "r") for n in ("", "2", "n")),
        )
    },
    "rnn": lambda lib, m: recurrent(lib, "RNN", m(3, 2, 2))[0],
    "rnn's state": lambda lib, m: recurrent(lib, "RNN", m(3, 2, 2))[1],
    "gru": lambda lib, m: recurrent(lib, "GRU", m(3, 2, 2))[0],
    "gru's state": lambda lib, m: recurrent(lib, "GRU", m(3, 2, 2), num_layers=2)[1],
    "gru, packed": lambda lib, m: packed(lib, "GRU", m(3, 2, 2)),
    "gru from float32": lambda lib, m: recurrent(lib, "GRU", m(3, 2, 2), lib.ones(1, 2, 2))[0],
    "gru from bfloat16": lambda lib, m: recurrent(
        lib, "GRU", m(3, 2, 2), lib.ones(1, 2, 2, dtype=lib.bfloat16)
    )[0],
    "lstm": lambda lib, m: recurrent(lib, "LSTM", m(3, 2, 2), bidirectional=True)[0],
    "lstm's state": lambda lib, m: recurrent(lib, "LSTM", m(3, 2, 2))[1],
    "lstm's memory": lambda lib, m: recurrent(lib, "LSTM", m(3, 2, 2))[2],
    "lstm, packed": lambda lib, m: packed(lib, "LSTM", m(3, 2, 2)),
    "lstm with a projection": lambda lib, m: recurrent(lib, "LSTM", m(3, 2, 2), proj_size=1)[0],
    "projected state": lambda lib, m: recurrent(lib, "LSTM", m(3, 2, 2), proj_size=1)[1],
    "projected lstm's memory": lambda lib, m: recurrent(lib, "LSTM", m(3, 2, 2), proj_size=1)[2],
    "gru cell": lambda lib, m: lib.nn.GRUCell(2, 2)(m(2, 2)) * 0,
    "double": lambda lib, m: m(2, 2).double() @ m(2, 2).double(),
    "half": lambda lib, m: m(2, 2).half() @ m(2, 2).half(),
}


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN:UserWarning")
@pytest.mark.parametrize("name", CALLS)
def test_dtypes_under_autocast_equal_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    for dtype in ("float32", "bfloat16"):
        results = []
        for lib in (weft, torch):
            with lib.autocast("cpu"):
                try:
                    results.append(CALLS[name](lib, of(lib, dtype)))
                except RuntimeError as error:
                    # Without AVX-512 oneDNN has no LSTM of bfloat16: nothing to compare with.
                    if lib is weft or "primitive descriptor" not in str(error):
                        raise
                    return
        ours, theirs = results
        assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        np.testing.assert_allclose(
            ours.detach().double().numpy(), theirs.detach().double().numpy(), rtol=1e-2, atol=1e-2
        )


@pytest.mark.parametrize("dtype", [weft.bfloat16, weft.float16])
def test_layers_keep_the_precision_of_their_state(dtype: Any) -> None:
    x = weft.ones(2, 3, 2, requires_grad=True)
    for kind, shown in (("RNN", dtype), ("GRU", weft.float32), ("LSTM", dtype)):
        weft.manual_seed(0)
        layer = getattr(weft.nn, kind)(2, 4)
        for program in (layer, weft.jit.script(layer)):
            with weft.autocast("cpu", dtype=dtype):
                output, last = program(x)
            states = last if isinstance(last, tuple) else (last,)
            assert [t.dtype for t in (output, *states)] == [shown] * (1 + len(states))
            (gradient,) = weft.autograd.grad(output.sum(), x)
            assert gradient.dtype == weft.float32
            (exact,) = weft.autograd.grad(layer(x)[0].sum(), x)
            np.testing.assert_allclose(gradient.numpy(), exact.numpy(), rtol=0.05, atol=0.02)


@pytest.mark.parametrize("dtype", [weft.bfloat16, weft.float16])
def test_training_in_lower_precision(dtype: Any) -> None:
    weft.manual_seed(0)
    model = weft.nn.Sequential(weft.nn.Linear(4, 8), weft.nn.ReLU(), weft.nn.Linear(8, 1))
    optimizer = weft.optim.SGD(model.parameters(), lr=0.1)
    scaler = weft.amp.GradScaler("cpu", init_scale=1024.0)
    x = weft.randn(32, 4)
    y = x.sum(1, keepdim=True)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        with weft.autocast("cpu", dtype=dtype):
            output = model(x)
            loss = F.mse_loss(output, y)
        assert output.dtype == dtype and loss.dtype == weft.float32
        scaler.scale(loss).backward()
        assert all(p.grad.dtype == weft.float32 for p in model.parameters())
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_autocast_is_of_a_block_and_a_thread() -> None:
    x = weft.ones(2, 2)
    seen: list[Any] = []
    with weft.autocast("cpu"):
        assert weft.is_autocast_enabled("cpu") and not weft.is_autocast_enabled()
        worker = threading.Thread(target=lambda: seen.append((x @ x).dtype))
        worker.start()
        worker.join()
        with weft.autocast("cpu", enabled=False):
            assert (x @ x).dtype == weft.float32
        with weft.autocast("cpu", dtype=weft.float16):
            assert (x @ x).dtype == weft.float16
        assert (x @ x).dtype == weft.bfloat16
        with pytest.raises(ZeroDivisionError), weft.autocast("cpu", dtype=weft.float16):
            1 / 0  # noqa: B018
        assert (x @ x).dtype == weft.bfloat16
    assert seen == [weft.float32]
    assert not weft.is_autocast_enabled("cpu") and (x @ x).dtype == weft.float32
    assert weft.autocast("cpu")(lambda: (x @ x).dtype)() == weft.bfloat16
    program = weft.jit.script(_product)
    with weft.autocast("cpu"):
        assert program(x).dtype == weft.bfloat16
    assert program(x).dtype == weft.float32


def _product(x: weft.Tensor) -> weft.Tensor:
    return (x @ x).relu() + 1


def test_autocast_refuses() -> None:
    with pytest.warns(UserWarning, match="expected a GPU for device_type 'cuda'"):
        off = weft.autocast("cuda")
    with off:
        assert (weft.ones(2, 2) @ weft.ones(2, 2)).dtype == weft.float32
    with pytest.raises(RuntimeError, match="autocast: expected device_type 'cpu' or 'cuda'"):
        weft.autocast("tpu")
    for dtype in (weft.float32, weft.float64, weft.int64):
        with pytest.warns(UserWarning, match="expected dtype bfloat16 or float16"):
            off = weft.autocast("cpu", dtype=dtype)
        with off:
            assert not weft.is_autocast_enabled("cpu")
            assert (weft.ones(2, 2) @ weft.ones(2, 2)).dtype == weft.float32


def test_autocast_leaves_calls_with_out() -> None:
    x, low = weft.ones(2, 2), weft.empty(2, 2, dtype=weft.bfloat16)
    with weft.autocast("cpu"):
        assert (x @ x).dtype == weft.bfloat16
        with pytest.raises(RuntimeError, match="mm: expected out of dtype float32, got bfloat16"):
            weft.mm(x, x, out=low)
        assert weft.mm(x, x, out=weft.empty(2, 2)).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_functions_that_choose_their_precision() -> None:
    class Product(weft.autograd.Function):
        @staticmethod
        @weft.amp.custom_fwd(device_type="cpu", cast_inputs=weft.float32)
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @weft.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, grad: Any) -> Any:
            a, b = ctx.saved_tensors
            assert not weft.is_autocast_enabled("cpu")
            return grad @ b.t(), a.t() @ grad

    x = weft.ones(2, 2, dtype=weft.bfloat16, requires_grad=True)
    with weft.autocast("cpu"):
        y = Product.apply(x, x)
    assert y.dtype == weft.float32
    y.sum().backward()
    assert x.grad.dtype == weft.bfloat16 and x.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]


@pytest.mark.parity
def test_scalers_equal_torch() -> None:
    torch = pytest.importorskip("torch")
    histories = []
    for lib in (weft, torch):
        p = lib.nn.Parameter(lib.ones(1))
        optimizer = lib.optim.SGD([p], lr=0.1)
        scaler = lib.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
        history = []
        for factor in (1.0, 2.0, float("inf"), 1.0, 1.0, float("nan"), 1.0):
            optimizer.zero_grad()
            scaler.scale((p * factor).sum()).backward()
            if factor == 2.0:
                scaler.unscale_(optimizer)
                with pytest.raises(RuntimeError):
                    scaler.unscale_(optimizer)
            scaler.step(optimizer)
            with pytest.raises(RuntimeError):
                scaler.step(optimizer)
            scaler.update()
            history += [scaler.get_scale(), p.item(), *scaler.state_dict().values()]
        scaler.update(3.0)
        histories.append([*history, scaler.get_scale()])
        histories.append(list(scaler.state_dict()))
    assert histories[0] == pytest.approx(histories[2], nan_ok=True)
    assert histories[1] == histories[3]


def test_scalers_without_a_device_stay_off() -> None:
    with pytest.warns(UserWarning, match="expected a GPU"):
        scaler = weft.cuda.amp.GradScaler()
    x = weft.ones(1)
    assert scaler.scale(x) is x and scaler.get_scale() == 1.0 and scaler.state_dict() == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weft.amp.GradScaler(enabled=False)


def settings(lib: Any) -> list[Any]:
    """What the setters of autocast give, one after the other."""
    x, found = lib.ones(2, 2), []

    def note() -> None:
        on, dtype = lib.is_autocast_enabled("cpu"), lib.get_autocast_dtype("cpu")
        found.append((on, str(dtype), str((x @ x).dtype)))

    lib.set_autocast_enabled("cpu", True)
    note()
    lib.set_autocast_dtype("cpu", lib.float16)
    note()
    with lib.autocast("cpu"):
        note()
    with lib.autocast("cpu", dtype=lib.bfloat16, enabled=False):
        note()
    lib.set_autocast_cpu_enabled(False)
    note()
    lib.set_autocast_cpu_dtype(lib.bfloat16)
    with lib.autocast("cpu", dtype=lib.float16):
        note()
    note()
    lib.set_autocast_enabled("cuda", True)
    found.append(lib.is_autocast_enabled())
    lib.set_autocast_enabled("cuda", False)
    found += [lib.is_autocast_enabled(), lib.autocast_increment_nesting()]
    found += [lib.autocast_decrement_nesting(), lib.clear_autocast_cache()]
    for wrong in (("cpu", 1), ("cpu",), ("nowhere", True)):
        try:
            lib.set_autocast_enabled(*wrong)
        except (TypeError, RuntimeError) as error:
            found.append(type(error).__name__)
    return found


def test_setters_of_autocast() -> None:
    low, half, full = "torch.bfloat16", "torch.float16", "torch.float32"
    assert settings(weft) == [
        (True, low, low), (True, half, half), (True, half, half), (False, low, full),
        (False, half, full), (True, half, half), (False, low, full), True, False, 1, 0, None,
        "TypeError", "TypeError", "RuntimeError",
    ]  # fmt: skip


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_setters_of_autocast_equal_torch() -> None:
    assert settings(weft) == settings(pytest.importorskip("torch"))


@both
def test_a_step_needs_gradients(lib: Any) -> None:
    idle = lib.optim.SGD([lib.ones(1, requires_grad=True)], lr=0.1)
    scaler = lib.amp.GradScaler("cpu", init_scale=4.0)
    with pytest.raises(AssertionError):
        scaler.step(idle)


@both
def test_state_at_the_start(lib: Any) -> None:
    assert lib.is_autocast_cache_enabled() and not lib.is_autocast_enabled("cpu")
    assert str(lib.get_autocast_dtype("cpu")) == "torch.bfloat16"
    with pytest.raises(RuntimeError, match="abacus"):
        lib.get_autocast_dtype("abacus")

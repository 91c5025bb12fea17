"""Rare layers: fractional pools, adaptive softmax, modules that are replaced."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from libraries import both

import weft
import weft.nn


def _starts(u: float, size: int, kernel: int, out: int) -> list[int]:
    """Where windows begin: int((i + u) a) - int(u a) in float32, the last at the end."""
    if out == 1:
        return [size - kernel]
    a, u = np.float32((size - kernel) / (out - 1)), np.float32(u)
    return [int((np.float32(i) + u) * a) - int(u * a) for i in range(out - 1)] + [size - kernel]


@both
def test_fractional_pools_by_their_windows(lib: Any) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 3, 9, 7)).astype(np.float32)
    samples = random.uniform(size=(2, 3, 2)).astype(np.float32)
    values, places = lib.nn.functional.fractional_max_pool2d(
        lib.from_numpy(x),
        (2, 3),
        (5, 3),
        return_indices=True,
        _random_samples=lib.from_numpy(samples),
    )
    for n in range(2):
        for c in range(3):
            rows = _starts(samples[n, c, 1], 9, 2, 5)
            columns = _starts(samples[n, c, 0], 7, 3, 3)
            wanted = [[x[n, c, i : i + 2, j : j + 3].max() for j in columns] for i in rows]
            np.testing.assert_array_equal(values[n, c].numpy(), wanted)
    assert lib.equal(lib.from_numpy(x).flatten(2).gather(2, places.flatten(2)), values.flatten(2))


@both
def test_fractional_pools_take_the_first_of_more_samples(lib: Any) -> None:
    x, samples = lib.arange(250.0).reshape(2, 5, 5, 5), lib.rand(3, 5, 2)
    pool = lib.nn.functional.fractional_max_pool2d
    assert lib.equal(pool(x, 2, 2, _random_samples=samples),
                     pool(x, 2, 2, _random_samples=samples[:2]))  # fmt: skip


@pytest.mark.parity
def test_fractional_pools_of_torch() -> None:
    torch = pytest.importorskip("torch")
    made = []
    data = np.random.default_rng(0).standard_normal((1, 2, 6, 5, 7)).astype(np.float32)
    for t in (weft, torch):
        t.manual_seed(1)
        pool = t.nn.FractionalMaxPool3d(
            (2, 1, 3), output_ratio=(0.5, 0.8, 0.4), return_indices=True
        )
        x = t.from_numpy(data.copy()).requires_grad_()
        values, places = pool(x)
        values.square().sum().backward()
        flat = t.nn.FractionalMaxPool2d(2, output_size=3)(x[0, 0])
        made.append([values.tolist(), places.tolist(), x.grad.tolist(), flat.tolist()])
    assert made[0] == made[1]


def test_fractional_pools_have_gradients_and_programs() -> None:
    x = weft.rand(1, 2, 5, 6, dtype=weft.float64, requires_grad=True)
    samples = weft.rand(1, 2, 2, dtype=weft.float64)
    pool = weft.nn.FractionalMaxPool2d(2, output_size=(3, 2), _random_samples=samples)
    assert weft.autograd.gradcheck(pool, [x])


@both
def test_fractional_pools_refuse(lib: Any) -> None:
    f, x = lib.nn.functional, lib.ones(1, 4, 4)
    with pytest.raises(ValueError):
        lib.nn.FractionalMaxPool2d(2)
    with pytest.raises(ValueError):
        lib.nn.FractionalMaxPool2d(2, output_ratio=1.5)
    for call in (
        lambda: f.fractional_max_pool2d(x, 2, 5),
        lambda: f.fractional_max_pool2d(x, 2, 1, _random_samples=lib.ones(1, 1, 3)),
    ):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(ValueError):
        f.fractional_max_pool2d(x, 2)


@both
def test_pools_that_give_nothing(lib: Any) -> None:
    f = lib.nn.functional
    assert f.fractional_max_pool2d(lib.ones(2, 3, 4, 4), 2, (0, 1)).shape == (2, 3, 0, 1)
    assert f.fractional_max_pool3d(lib.ones(0, 3, 4, 4, 4), 2, (1, 0, 1)).shape == (0, 3, 1, 0, 1)
    for dims in (1, 2, 3):
        x = lib.ones(0, 3, *[4] * dims, requires_grad=True)
        back = getattr(f, f"max_unpool{dims}d")(x, lib.zeros(x.shape, dtype=lib.int64), 2)
        back.sum().backward()
        assert back.shape == (0, 3, *[8] * dims) and x.grad.shape == x.shape


@both
@pytest.mark.parametrize(
    ("size", "taken"),
    [((5,), True), ((1, 1, 5), True), ((3,), True), ((6,), False), ((2,), False), ((1, 5), False)],
)
def test_sizes_that_maxima_go_back_to(lib: Any, size: tuple[int, ...], taken: bool) -> None:
    layer, places = lib.nn.MaxUnpool1d(2), lib.tensor([[[0, 2]]])
    if taken:
        assert layer(lib.ones(1, 1, 2), places, output_size=size).shape == (1, 1, size[-1])
        return
    with pytest.raises(ValueError):
        layer(lib.ones(1, 1, 2), places, output_size=size)


@both
def test_adaptive_softmax(lib: Any) -> None:
    lib.manual_seed(0)
    layer = lib.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0, head_bias=True)
    assert [tuple(p.shape) for p in layer.parameters()] == [
        (5, 8), (5,), (4, 8), (4, 4), (2, 8), (5, 2)
    ]  # fmt: skip
    x = lib.arange(40.0).reshape(5, 8).sin().requires_grad_()
    target = lib.tensor([0, 4, 11, 2, 7])
    logs = layer.log_prob(x)
    np.testing.assert_allclose(logs.exp().sum(1).detach().numpy(), np.ones(5), rtol=1e-5)
    output, loss = layer(x, target)
    picked = logs.gather(1, target.unsqueeze(1)).squeeze(1)
    np.testing.assert_allclose(output.detach().numpy(), picked.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(loss.item(), -picked.mean().item(), rtol=1e-5)
    assert layer.predict(x).tolist() == logs.argmax(1).tolist()
    assert layer(x[0], target[0]).output.shape == ()
    loss.backward()
    assert bool(x.grad.abs().sum() > 0)
    for cutoffs in ([], [0, 3], [5, 3], [3, 12]):
        with pytest.raises(ValueError):
            lib.nn.AdaptiveLogSoftmaxWithLoss(8, 12, cutoffs)
    for wrong in (target[:3], target + 4):
        with pytest.raises(RuntimeError):
            layer(x, wrong)


@pytest.mark.parity
def test_adaptive_softmax_of_torch() -> None:
    torch = pytest.importorskip("torch")
    made = []
    for t in (weft, torch):
        t.manual_seed(0)
        layer = t.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], div_value=2.0)
        x = t.arange(40.0).reshape(5, 8).sin().requires_grad_()
        output, loss = layer(x, t.tensor([0, 4, 11, 2, 7]))
        loss.backward()
        made.append([v.detach().numpy() for v in (output, loss, x.grad, layer.head.weight.grad)])
    for one, other in zip(*made):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@both
def test_modules_are_replaced(lib: Any) -> None:
    net = lib.nn.Sequential(lib.nn.Sequential(lib.nn.Linear(1, 1)), lib.nn.ReLU())
    new = lib.nn.Tanh()
    net.set_submodule("0.0", new)
    assert net[0][0] is new and list(net.state_dict()) == []
    net.set_submodule("extra", new)
    assert net.extra is new
    for target, module, error in (
        ("", new, ValueError), ("0", 3, ValueError), ("9.1", new, AttributeError),
        ("training", new, AttributeError),
    ):  # fmt: skip
        with pytest.raises(error):
            net.set_submodule(target, module)
    with pytest.raises(AttributeError):
        net.set_submodule("other", new, strict=True)


@both
def test_gradients_clipped_by_a_norm_that_is_known(lib: Any) -> None:
    p = lib.ones(2, requires_grad=True)
    p.grad = lib.tensor([3.0, 4.0])
    lib.nn.utils.clip_grads_with_norm_([p], 2.5, lib.tensor(5.0))
    np.testing.assert_allclose(p.grad.numpy(), [1.5, 2.0], rtol=1e-5)


@both
@pytest.mark.parametrize("foreach", [None, False])
@pytest.mark.parametrize("shapes", [[(0, 3), (2,)], [(2,), (0,)], [(0,)]])
@pytest.mark.parametrize("order", ["inf", -1.0, float("-inf"), 0.0, 0.5, 1.0, 2])
def test_norms_of_gradients_without_elements(
    lib: Any, order: Any, shapes: list[tuple[int, ...]], foreach: bool | None
) -> None:
    parameters = [lib.ones(shape, requires_grad=True) for shape in shapes]
    for each in parameters:
        each.grad = lib.full(each.shape, 3.0)
    if order == "inf" or order < 0:  # no element has such a norm
        with pytest.raises(RuntimeError):
            lib.nn.utils.clip_grad_norm_(parameters, 1.0, order, foreach=foreach)
        return
    total = lib.nn.utils.clip_grad_norm_(parameters, 1.0, order, foreach=foreach)
    of_two = {0.0: 1, 0.5: 12, 1.0: 6, 2: 18**0.5}[order]  # order 0 counts norms that are not 0
    np.testing.assert_allclose(total, of_two if (2,) in shapes else 0, rtol=1e-5)


def test_skipped_initialisation_draws_nothing() -> None:
    weft.manual_seed(0)
    state = weft.get_rng_state()
    layer = weft.nn.utils.skip_init(weft.nn.Linear, 3, 2, dtype=weft.float64)
    assert weft.equal(weft.get_rng_state(), state)
    assert layer.weight.shape == (2, 3) and layer.weight.dtype is weft.float64
    assert layer.weight.device.type == "cpu" and layer.weight.requires_grad
    with pytest.raises(
        RuntimeError, match="skip_init: expected a module that takes a device, got ReLU"
    ):
        weft.nn.utils.skip_init(weft.nn.ReLU)
    with pytest.raises(
        RuntimeError, match="skip_init: expected a class of modules, got <class 'int"
    ):
        weft.nn.utils.skip_init(int, 3)


@both
def test_cross_map_lrn(lib: Any) -> None:
    x = lib.arange(1.0, 25.0).reshape(1, 6, 2, 2).cos()
    layer = lib.nn.CrossMapLRN2d(3, alpha=0.3, beta=0.5, k=2)
    assert repr(layer) == "CrossMapLRN2d(3, alpha=0.3, beta=0.5, k=2)"
    squares = (x * x)[0]
    for channel in range(6):  # the first channel counts for all, as in Torch 7
        counted = {0, *range(max(channel - 1, 0), min(channel + 2, 6))}
        scale = 2 + 0.1 * sum(squares[i] for i in counted)
        expected = x[0, channel] * scale**-0.5
        np.testing.assert_allclose(layer(x)[0, channel], expected, rtol=1e-5)
    with pytest.raises(ValueError):
        layer(x[0])


def test_gradient_of_cross_map_lrn() -> None:
    x = weft.arange(1.0, 25.0, dtype=weft.float64).reshape(1, 6, 2, 2).cos().requires_grad_()
    assert weft.autograd.gradcheck(weft.nn.CrossMapLRN2d(3, alpha=0.3), (x,))


@both
@pytest.mark.parametrize(
    ("name", "shape", "warned"),
    [
        ("dropout2d", (2, 2), True),
        ("dropout2d", (1, 2, 3), True),
        ("dropout2d", (1, 2, 3, 4), False),
        ("dropout2d", (1, 2, 3, 4, 5), True),
        ("dropout3d", (2, 2), True),
        ("dropout3d", (2, 3, 4, 5), False),
        ("dropout3d", (1, 2, 2, 2, 2, 2), True),
    ],
)
def test_channels_that_are_dropped_from_odd_shapes(
    lib: Any, name: str, shape: tuple[int, ...], warned: bool
) -> None:
    drop = getattr(lib.nn.functional, name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = drop(lib.ones(shape), 0.5, True)
    assert result.shape == shape and bool(caught) == warned
    assert set(result.unique().tolist()) <= {0.0, 2.0}


@both
def test_nothing_is_initialized_with_a_warning(lib: Any) -> None:
    for init in (lib.nn.init.kaiming_normal_, lib.nn.init.kaiming_uniform_):
        with pytest.warns(UserWarning, match="zero-element"):
            init(lib.empty(0, 2))


@both
@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature")
def test_lazy_transposed_convolutions_take_sizes(lib: Any) -> None:
    layer = lib.nn.LazyConvTranspose2d(2, 3, 2)
    assert layer(lib.ones(1, 2, 4, 4), output_size=[10, 9]).shape == (1, 2, 10, 9)


@both
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_pads_of_nothing_are_copies(lib: Any, mode: str) -> None:
    x = lib.ones(1, 3, 4, 4, requires_grad=True)
    padded = lib.nn.functional.pad(x, (0, 0, 0, 0), mode=mode)
    padded.sum().backward()
    padded.data.fill_(4)
    assert x.max().item() == 1 and x.grad.min().item() == 1


@both
def test_the_last_buffer_says_whether_it_is_saved(lib: Any) -> None:
    module = lib.nn.Module()
    for persistent in (False, True, False):
        module.b = lib.nn.Buffer(lib.rand(2), persistent=persistent)
        assert len(list(module.buffers())) == 1 and len(module.state_dict()) == persistent


@both
def test_the_last_of_many_pixels(lib: Any) -> None:
    x = lib.ones(1, 1, (1 << 24) + 4)  # float32 counts in twos here
    x[..., -1] = 0.5
    for mode, expected in (("linear", 0.5), ("nearest", 1.0)):
        align = {"align_corners": True} if mode == "linear" else {}
        found = lib.nn.functional.interpolate(x, 2, mode=mode, **align)
        assert found[0, 0, -1].item() == expected


@both
def test_packed_sequences_of_all_dtypes(lib: Any) -> None:
    packed = lib.nn.utils.rnn.pack_sequence([lib.ones(3)])
    names = {"short": "int16", "char": "int8", "byte": "uint8", "int": "int32", "half": "float16"}
    for name, dtype in names.items():
        assert getattr(packed, name)().data.dtype == getattr(lib, dtype)

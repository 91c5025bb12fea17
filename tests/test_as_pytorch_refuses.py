"""Calls that PyTorch refuses, and odd ones that it takes: bools, empty and 0-d tensors, numbers."""

import math

import numpy as np
import pytest
from libraries import both

import weft
from weft.nn import functional as F

BOOL, LONG = weft.tensor([True, False]), weft.tensor([1, 2])
HALF = weft.tensor([0.5, 0.5])
REFUSED = {
    "argmax": (lambda: BOOL.argmax(), "argmax: expected dtype uint8"),
    "argmin": (lambda: weft.argmin(BOOL, dim=0), "argmin: expected dtype uint8"),
    "median": (lambda: BOOL.median(), "median: expected a numeric dtype, got bool"),
    "nanmedian": (lambda: BOOL.nanmedian(0), "nanmedian: expected a numeric dtype"),
    "kthvalue": (lambda: BOOL.kthvalue(1), "kthvalue: expected a numeric dtype, got bool"),
    "topk": (lambda: BOOL.topk(1), "topk: expected a numeric dtype, got bool"),
    "pow": (lambda: BOOL**BOOL, "pow: expected dtype"),
    "plus": (lambda: +BOOL, "positive: expected a numeric dtype, got bool"),
    "nanmean": (lambda: LONG.nanmean(), "nanmean: expected a floating dtype, got int64"),
    "mse_loss": (lambda: F.mse_loss(LONG, LONG, reduction="sum"), "mse_loss: expected floating"),
    "huber_loss": (lambda: F.huber_loss(LONG, LONG), "huber_loss: expected floating dtypes"),
    "smooth_l1": (lambda: F.smooth_l1_loss(LONG, LONG), "smooth_l1_loss: expected floating"),
    "kl_div": (lambda: F.kl_div(LONG, LONG), "kl_div: expected floating dtypes, got torch.int64"),
    "complex": (lambda: F.mse_loss(HALF + 0j, HALF), "mse_loss: expected floating dtypes, got torch.complex64"),
    "targets": (lambda: F.binary_cross_entropy(HALF, LONG + 0.0), "expected target in"),
    "glu": (lambda: F.glu(LONG), "glu: expected a floating dtype"),
    "glu 0-d": (lambda: F.glu(weft.tensor(1.0)), "glu: expected at least 1 dim"),
    "cholesky_inverse": (lambda: weft.cholesky_inverse(weft.ones(2, 3)), "expected square matrices"),
}  # fmt: skip


def test_classes_of_errors():
    for call in (lambda: F.mse_loss(LONG, LONG), lambda: F.glu(LONG)):
        with pytest.raises(NotImplementedError):
            call()
    for call in (lambda: BOOL.median(1), lambda: BOOL.kthvalue(1, 1), lambda: BOOL.topk(1, 1)):
        with pytest.raises(IndexError):
            call()
    with pytest.raises(TypeError, match="is_same_size: expected argument 'other'"):
        weft.is_same_size(LONG, 2)
    with pytest.raises(RuntimeError, match="matrix_norm: expected at least 2 dims"):
        weft.linalg.matrix_norm(weft.tensor(1.0))


ONE_IMAGE, ONE_VOLUME = weft.ones(1, 1, 4, 4), weft.ones(1, 1, 4, 4, 4)
#: operators that are written in Python take arguments of the types that PyTorch's operators take
TYPES = {
    "float for int": lambda: weft.fft.fft(HALF, n=1.5),
    "bool for int": lambda: weft.fft.fft(HALF, dim=True),
    "float in sizes": lambda: weft.fft.fft2(ONE_IMAGE, s=(2.5, 2)),
    "bool in dims": lambda: weft.fft.fftshift(HALF, dim=[False]),
    "None for Tensor": lambda: weft.alpha_dropout(None, 0.5, True),
    "list for Tensor": lambda: weft.trapezoid([1.0, 2.0]),
    "number for Tensor": lambda: F.bilinear(ONE_IMAGE, ONE_IMAGE, ONE_VOLUME, 1),
    "int for bool": lambda: weft.linalg.lu_factor(weft.eye(2), pivot=1),
    "None for bool": lambda: weft.quantile(HALF, 0.5, keepdim=None),
    "str for float": lambda: F.cosine_similarity(HALF, HALF, 0, "x"),
    "Tensor for tensors": lambda: weft.hstack(3),
    "number for a margin's target": lambda: F.soft_margin_loss(HALF, 1.0),
    "number for counts": lambda: F.poisson_nll_loss(HALF, 1.0),
    "number for chances": lambda: F.kl_div(HALF, 1.0, reduction="sum"),
    "list for logarithms": lambda: F.kl_div([0.5], HALF, reduction="sum"),
    "Tensor for a pair": lambda: weft.nn.LSTMCell(1, 1)(HALF[:, None], weft.ones(2, 2, 1)),
    "float for a window": lambda: F.avg_pool3d(ONE_VOLUME, (1.5, 2, 2)),
    "float for a stride": lambda: F.conv_transpose3d(ONE_VOLUME, ONE_VOLUME, stride=1.5),
    "float for a window of maxima": lambda: F.max_pool3d(ONE_VOLUME, 2.5),
    # a number has no gradient: these would lose one
    "gradient of a slope": lambda: F.leaky_relu(HALF, weft.ones((), requires_grad=True)),
    "gradient of a factor": lambda: weft.add(HALF, HALF, alpha=weft.ones((), requires_grad=True)),
    "gradient of alpha": lambda: F.elu(HALF, weft.ones((), requires_grad=True)),
    "gradient of a chance": lambda: F.dropout(HALF, weft.zeros((), requires_grad=True)),
    "gradient of an order": lambda: weft.norm(HALF, weft.ones((), requires_grad=True)),
}
TAKEN = {
    "ints for floats": lambda: F.cosine_similarity(HALF, HALF, 0, 1),
    "arrays' numbers": lambda: weft.fft.fft(HALF, n=np.int64(2)),
    "a name for padding": lambda: F.conv3d(ONE_VOLUME, ONE_VOLUME[..., :1, :1, :1], padding="same"),
    "None for sizes": lambda: weft.fft.fftn(HALF, None, None),
    "an end with a gradient": lambda: weft.linspace(0, weft.ones((), requires_grad=True), 3),
    "None for a tensor": lambda: F.bilinear(HALF, HALF, weft.ones(1, 2, 2), None),
}


@pytest.mark.parametrize("name", TYPES)
def test_types_of_arguments(name):
    with pytest.raises(TypeError, match="expected"):
        TYPES[name]()


@pytest.mark.parametrize("name", TAKEN)
def test_types_that_fit(name):
    assert TAKEN[name]().numel()


#: arguments that belong together, and dims that are there
TOGETHER = {
    "eps": (ValueError, lambda: F.batch_norm(ONE_IMAGE, weft.ones(1), weft.ones(1), eps=-1.0)),
    "one statistic": (ValueError, lambda: F.batch_norm(ONE_IMAGE, weft.ones(1), None, training=True)),
    "weight of classes": (RuntimeError, lambda: F.multi_margin_loss(HALF, LONG[0], weight=weft.ones(3))),
    "bias of outputs": (RuntimeError, lambda: F.bilinear(HALF, HALF, weft.ones(1, 2, 2), HALF)),
    "dims of inputs": (RuntimeError, lambda: F.bilinear(HALF, HALF[None], weft.ones(1, 2, 2))),
    "weight of channels": (RuntimeError, lambda: F.group_norm(ONE_IMAGE, 1, weft.ones(1, 1))),
    "weight, no vector": (RuntimeError, lambda: F.instance_norm(ONE_IMAGE, weight=weft.tensor(1.0))),
    "bias of dtype": (RuntimeError, lambda: F.conv_transpose2d(ONE_IMAGE, ONE_IMAGE, LONG[:1])),
    "bias of volumes": (RuntimeError, lambda: F.conv_transpose3d(ONE_VOLUME, ONE_VOLUME, LONG[:1])),
    "no stride": (RuntimeError, lambda: F.conv_transpose3d(ONE_VOLUME, ONE_VOLUME, stride=0)),
    "batch of chances": (ValueError, lambda: F.cross_entropy(weft.ones(4, 3), weft.ones(5))),
    "states of a cell": (RuntimeError, lambda: weft.nn.LSTMCell(2, 1)(HALF, (HALF[:1],) * 3)),
    "one state of a cell": (RuntimeError, lambda: weft.nn.LSTMCell(2, 1)(HALF, (HALF[:1],))),
    "eps of cosine": (RuntimeError, lambda: F.cosine_similarity(HALF, HALF, 0, -1.0)),
    "trapezoid's dim": (IndexError, lambda: weft.trapezoid(HALF, dim=1)),
    "cumulative dim": (IndexError, lambda: weft.cumulative_trapezoid(HALF, HALF, dim=-2)),
    "segments' axis": (IndexError, lambda: weft.segment_reduce(HALF, "sum", lengths=LONG, axis=-2)),
    "matrix's dims": (IndexError, lambda: weft.linalg.matrix_norm(ONE_IMAGE, dim=(4, 0))),
    "matrix's dim twice": (RuntimeError, lambda: weft.linalg.matrix_norm(ONE_IMAGE, dim=(1, -3))),
    "dim of a number": (IndexError, lambda: weft.index_reduce(HALF[0], 1, LONG[:1], HALF[0], "amax")),
    "source's dims": (RuntimeError, lambda: weft.index_reduce(HALF, 0, LONG[:1], HALF[0], "amax")),
    "order of a volume": (RuntimeError, lambda: weft.linalg.norm(ONE_VOLUME, 3)),
    "order of three dims": (RuntimeError, lambda: weft.linalg.norm(ONE_VOLUME, 1, (0, 1, 2))),
    "norm of three dims": (RuntimeError, lambda: weft.linalg.norm(ONE_VOLUME, dim=(0, 1, 2))),
    "chain of vectors": (RuntimeError, lambda: weft.chain_matmul(HALF, HALF)),
    "label below 0": (ValueError, lambda: weft.einsum(HALF, [-1])),
    "label beyond the letters": (ValueError, lambda: weft.einsum(HALF, [52])),
    "order of a number": (RuntimeError, lambda: weft.linalg.norm(HALF[0], 3)),
    "loss's weight": (RuntimeError, lambda: weft.nn.LinearCrossEntropyLoss(2, 2, weight=weft.ones(3))),
    "smoothing": (RuntimeError, lambda: weft.nn.LinearCrossEntropyLoss(2, 2, label_smoothing=2.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", TOGETHER)
def test_arguments_together(name):
    error, call = TOGETHER[name]
    with pytest.raises(error, match="expected"):
        call()


MASKS = {
    "integers": (AssertionError, {"attn_mask": weft.zeros(2, 2, dtype=weft.int64)}),
    "integers for keys": (AssertionError, {"key_padding_mask": weft.zeros(1, 2, dtype=weft.uint8)}),
    "too few": (RuntimeError, {"attn_mask": weft.zeros(2, 1)}),
    "four dims": (RuntimeError, {"attn_mask": weft.zeros(1, 1, 2, 2)}),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_of_attention(name):
    error, mask = MASKS[name]
    x = weft.ones(2, 1, 2)
    with pytest.raises(error, match="multi_head_attention_forward: expected"):
        weft.nn.MultiheadAttention(2, 1)(x, x, x, **mask)


def test_a_key_has_as_many_vectors_as_its_value():
    x = weft.ones(2, 1, 2)
    with pytest.raises(AssertionError, match="as many vectors"):
        weft.nn.MultiheadAttention(2, 1, add_bias_kv=True)(x, x[:1], x)


def test_covariances_without_degrees_of_freedom_are_infinite():
    x, weights = weft.tensor([[1.0, 2.0, 4.0]]), weft.tensor([0.5, 0.25, 0.25])
    assert weft.cov(x, aweights=weights, correction=9).item() == math.inf
    assert weft.cov(x + 0j, aweights=weights, correction=0).item().real > 0


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, text = REFUSED[name]
    with pytest.raises(RuntimeError, match=text):
        call()


def test_numbers_are_copied():
    x = weft.zeros(2, dtype=weft.int32)
    assert x.copy_(1.7).tolist() == [1, 1] and x.copy_(True).tolist() == [1, 1]
    assert weft.zeros(1, dtype=weft.int64).copy_(other=2**60 + 1).item() == 2**60 + 1
    assert weft.zeros(1, dtype=weft.float64).copy_(0.1).item() == 0.1
    assert weft.zeros(2, 1).copy_(3).tolist() == [[3], [3]]
    leaf = weft.ones(2, requires_grad=True)
    y = leaf * 2
    y.copy_(5).sum().backward()
    assert y.tolist() == [5, 5] and leaf.grad.tolist() == [0, 0]
    with pytest.raises(TypeError):
        x.copy_([1, 2])


def test_single_numbers_are_their_own_matrices():
    z = weft.tensor(1 + 2j)
    assert z.mT.item() == 1 + 2j and z.H.item() == z.mH.item() == 1 - 2j
    assert weft.tensor(3.0).mT.item() == 3
    for name in ("mT", "mH"):
        with pytest.raises(RuntimeError, match="expected a tensor with at least 2 dims"):
            getattr(weft.ones(2), name)


def test_a_tensor_of_a_tensor_is_no_size():
    assert weft.Tensor(weft.tensor(3)).item() == 3


@pytest.mark.parametrize("upper", [False, True])
def test_the_other_triangle_is_not_read(upper):
    half = weft.tensor([[2.0, 0.0], [1.0, 3.0]])
    spoiled = half.clone()
    spoiled[0, 1] = math.nan if upper else math.inf
    half, spoiled = (x.T if upper else x for x in (half, spoiled))
    expected = weft.cholesky_inverse(half, upper)
    assert weft.equal(weft.cholesky_inverse(spoiled, upper), expected)
    spoiled[0, 0] = math.nan
    assert weft.cholesky_inverse(spoiled, upper).isnan().any()


def test_transposed_convolutions_share_a_class():
    shared = weft.nn.modules.conv._ConvTransposeNd
    assert isinstance(weft.nn.ConvTranspose2d(1, 1, 1), shared)
    assert not isinstance(weft.nn.Conv2d(1, 1, 1), shared)


MATRIX, BYTES = weft.eye(2).long(), weft.tensor([1, 2], dtype=weft.uint8)
NUMBERS = {
    "fraction beside integers": lambda: weft.addr(MATRIX, LONG, LONG, beta=0.5),
    "whole float beside integers": lambda: weft.addr(MATRIX, LONG, LONG, alpha=2.0),
    "fraction beside bools": lambda: weft.addr(MATRIX > 0, BOOL, BOOL, alpha=0.5),
    "complex value": lambda: weft.addcmul(LONG, LONG, LONG, value=1j),
    "above the last byte": lambda: BYTES.masked_fill(BOOL, 255.5),
    "below zero": lambda: weft.full((2,), -0.5, dtype=weft.uint8),
    "element": lambda: BYTES.clone().__setitem__(0, -0.5),
    "threshold": lambda: F.threshold(BYTES, 300, 1),
    "negative threshold": lambda: F.threshold(BYTES, -1.5, 1),
    "infinite threshold": lambda: F.threshold(LONG, math.inf, 1),
    "mean of integers": lambda: F.hinge_embedding_loss(LONG, LONG),
    "softshrink": lambda: F.softshrink(LONG),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_no_dtype_takes(name):
    with pytest.raises(RuntimeError, match="expected"):
        NUMBERS[name]()


def test_numbers_lose_their_fractions():
    assert weft.addcmul(LONG, LONG, LONG, value=2.7).tolist() == [3, 10]
    added = weft.zeros(2, dtype=weft.int64).index_add(0, weft.tensor([0, 0]), LONG, alpha=1.5)
    assert added.tolist() == [3, 0]
    assert BOOL.index_add(0, weft.tensor([1]), BOOL[:1], alpha=2).tolist() == [True, True]
    loss = F.hinge_embedding_loss(LONG, weft.tensor([1, -1]), margin=3.5, reduction="none")
    assert loss.dtype == weft.int64 and loss.tolist() == [1, 1]
    assert F.hinge_embedding_loss(LONG, LONG, reduction="sum").item() == 3
    vectors = weft.addr(MATRIX > 0, LONG, BOOL)
    assert vectors.dtype == weft.int64 and vectors.tolist() == [[2, 0], [2, 1]]


@pytest.mark.parametrize("value", [BOOL[0], weft.tensor(1 + 2j), weft.tensor(3)])
def test_a_number_is_its_own_choice(value):
    for found in (value.kthvalue(1), value.mode()):
        assert weft.equal(found.values, value) and found.indices.item() == 0


def test_losses_of_other_dtypes():
    assert F.smooth_l1_loss(LONG, LONG + 2, beta=0, reduction="none").tolist() == [2, 2]
    assert F.smooth_l1_loss(COMPLEX, COMPLEX + 3j, beta=0).item() == 3
    assert F.soft_margin_loss(COMPLEX * 0, COMPLEX).item() == pytest.approx(math.log(2))
    assert F.pdist(weft.ones(1, 3, dtype=weft.float16)).dtype == weft.float16


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (0, 0)])
def test_norms_of_empty_matrices(sizes):
    x = weft.zeros(*sizes)
    for order in (2, "fro", "nuc"):
        assert weft.linalg.norm(x, order).item() == 0
    assert weft.linalg.norm(weft.zeros(3, 0), 1, keepdim=True).tolist() == [[0]]
    assert weft.linalg.norm(weft.zeros(0, 3), math.inf).item() == 0
    with pytest.raises(RuntimeError, match="matrix_norm: expected ord"):
        weft.linalg.norm(x, 0)
    with pytest.raises(IndexError):
        weft.linalg.norm(weft.zeros(0, 0), -1)


def test_everything_is_dropped_without_draws():
    for x in (BOOL.reshape(1, 2, 1), COMPLEX.reshape(1, 3, 1)):
        before = weft.get_rng_state()
        for drop in (F.dropout1d, F.alpha_dropout, F.feature_alpha_dropout):
            found = drop(x, 1.0, True)
            assert found.dtype == x.dtype and not found.any()
        assert weft.equal(weft.get_rng_state(), before)


def test_sums_of_trapezoids_do_not_wrap():
    y = weft.tensor([100, 200, 150], dtype=weft.uint8)
    assert weft.trapezoid(y).item() == 325 and weft.trapezoid(y, dx=2).item() == 650


def test_short_ranges_of_bools():
    assert weft.linspace(0, 2, 1, dtype=weft.bool).tolist() == [False]
    assert weft.logspace(0, 2, 1, dtype=weft.bool).tolist() == [True]


def test_medians_leave_nan_out_without_a_mask():
    assert weft.masked.median(weft.tensor([1.0, math.nan, 3.0])).item() == 1
    assert weft.masked.median(LONG).item() == 1 and weft.masked.median(BOOL).item() is False


INTS, TRUE = weft.arange(16).reshape(1, 1, 4, 4), weft.ones(1, 1, 4, 4) > 0
VOLUME = weft.arange(64).reshape(1, 1, 4, 4, 4)
COMPLEX = weft.ones(3, dtype=weft.complex64)
DTYPES = {
    "hardshrink": lambda: F.hardshrink(LONG),
    "hardshrink of bools": lambda: F.hardshrink(BOOL),
    "unfold": lambda: F.unfold(INTS, 2),
    "fold": lambda: F.fold(INTS.reshape(4, 4), (3, 3), 2),
    "nearest": lambda: F.interpolate(INTS, scale_factor=2),
    "nearest-exact of bools": lambda: F.interpolate(TRUE, scale_factor=2, mode="nearest-exact"),
    "nearest of complex": lambda: F.interpolate(INTS + 0j, size=2),
    "max_pool1d": lambda: F.max_pool1d(INTS[0], 2),
    "adaptive_max_pool1d": lambda: F.adaptive_max_pool1d(INTS[0], 2),
    "adaptive_max_pool2d": lambda: F.adaptive_max_pool2d(INTS, 3),
    "adaptive_max_pool3d": lambda: F.adaptive_max_pool3d(VOLUME, 2),
    "avg_pool3d": lambda: F.avg_pool3d(VOLUME.int(), 2),
    "prelu": lambda: F.prelu(LONG, LONG[:1]),
    "searchsorted": lambda: weft.searchsorted(BOOL.sort()[0], BOOL),
    "bucketize": lambda: weft.bucketize(BOOL, BOOL.sort()[0]),
    "isin": lambda: weft.isin(BOOL, BOOL),
    "isin a number": lambda: weft.isin(COMPLEX, 2),
    "isin of bools": lambda: weft.isin(LONG, BOOL),
    "a number isin": lambda: weft.isin(1, BOOL),
    "bernoulli_": lambda: COMPLEX.clone().bernoulli_(0.5),
    "bernoulli_ by a tensor": lambda: COMPLEX.clone().bernoulli_(weft.ones(3)),
    "geometric_": lambda: BOOL.clone().geometric_(0.5),
    "arange": lambda: weft.arange(2, dtype=weft.bool),
    "complex arange": lambda: weft.arange(2, dtype=weft.complex64),
    "linspace": lambda: weft.linspace(0, 1, 2, dtype=weft.bool),
    "randperm": lambda: weft.randperm(2, dtype=weft.bool),
    "trace": lambda: weft.trace(weft.eye(2) > 0),
    "clamp_min": lambda: BOOL.clamp_min(False),
    "mm": lambda: weft.mm(weft.eye(2) > 0, weft.eye(2) > 0),
    "gcd": lambda: weft.gcd(HALF, HALF),
    "normal_": lambda: LONG.clone().normal_(),
    "bincount": lambda: weft.bincount(HALF),
    "sort": lambda: COMPLEX.sort(),
    "dilated": lambda: F.conv2d(INTS.int(), INTS[..., :2, :2].int(), dilation=2),
    "dilated line": lambda: F.conv1d(INTS[0].byte(), INTS[0, :, :, :1].byte(), dilation=2),
    "dilated volume": lambda: F.conv3d(VOLUME.int(), VOLUME[..., :2].int(), dilation=(2, 1, 1)),
    "transposed": lambda: F.conv_transpose2d(INTS.int(), INTS.int()),
    "transposed line": lambda: F.conv_transpose1d(INTS[0, :, :1].byte(), INTS[0, :, :1].byte()),
    "transposed volume": lambda: F.conv_transpose3d(VOLUME.int(), VOLUME.int()),
    "threshold": lambda: F.threshold(BOOL, 0, 1),
    "cumprod": lambda: BOOL.cumprod(0, dtype=weft.bool),
    "masked.cumprod": lambda: weft.masked.cumprod(BOOL, 0),
    "logspace": lambda: weft.logspace(0, 2, 2, dtype=weft.bool),
    "tril_indices": lambda: weft.tril_indices(2, 2, dtype=weft.uint8),
    "triu_indices": lambda: weft.triu_indices(2, 2, dtype=weft.int16),
    "dropout": lambda: F.dropout(COMPLEX),
    "segment_reduce": lambda: weft.segment_reduce(HALF, "sum", lengths=weft.tensor([2]).byte()),
    "svd": lambda: weft.linalg.svd(MATRIX),
    "cummax": lambda: COMPLEX.cummax(0),
    "unique": lambda: COMPLEX.unique(),
    "avg_pool2d": lambda: F.avg_pool2d(TRUE, 2),
    "histogram": lambda: weft.histogram(LONG, 2),
    "mvlgamma": lambda: BOOL.mvlgamma(1),
    "rms_norm": lambda: F.rms_norm(LONG, [2]),
}


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_that_are_not_there(name):
    with pytest.raises(NotImplementedError, match="expected"):
        DTYPES[name]()


def test_numbers_that_do_not_fit():
    for n, dtype in ((257, weft.uint8), (129, weft.int8), (2050, weft.float16)):
        with pytest.raises(
            RuntimeError, match=f"randperm: expected n that .* can count to, got {n}"
        ):
            weft.randperm(n, dtype=dtype)
        assert weft.randperm(n - 1, dtype=dtype).shape == (n - 1,)
    with pytest.raises(RuntimeError, match="cdist: expected p >= 0"):
        weft.cdist(weft.ones(2, 2), weft.ones(2, 2), p=-1)
    with pytest.raises(RuntimeError, match="prelu: expected one dtype"):
        F.prelu(weft.ones(2), weft.ones(1, dtype=weft.float64))
    with pytest.raises(RuntimeError, match="positive: expected a numeric dtype"):
        weft.positive(BOOL)
    with pytest.raises(ValueError, match="instance_norm: expected more than 1 value per channel"):
        F.instance_norm(weft.ones(2, 3, 1))
    for write in (False, True):
        with pytest.raises(IndexError, match="expected broadcastable shapes"):
            x, index = weft.ones(3, 3), (weft.tensor([0, 1]), weft.tensor([0, 1, 2]))
            x.index_put_(index, weft.ones(())) if write else x[index]


IN_BOTH = {
    "abs_": lambda lib, F, x: (x + 0j).abs_(),
    "lerp": lambda lib, F, x: lib.lerp(x, x.double(), 0.5),
    "lerp_": lambda lib, F, x: x.clone().lerp_(x.double(), 0.5),
    "lerp by weights": lambda lib, F, x: lib.lerp(x, x, x.double()),
    "lerp of integers": lambda lib, F, x: lib.lerp(x, x.long(), 0.5),
    "addcdiv": lambda lib, F, x: lib.addcdiv(x, x.long(), x.long()),
    "addcdiv of bools": lambda lib, F, x: lib.addcdiv(x, x > 0, x > 0),
    "addcdiv_": lambda lib, F, x: x.clone().addcdiv_(x.int(), x.long()),
    "heaviside": lambda lib, F, x: lib.heaviside(x, x.double()),
    "masked_fill": lambda lib, F, x: x.masked_fill(x.byte(), 0),
    "masked_fill_": lambda lib, F, x: x.clone().masked_fill_(x.byte(), 0),
    "masked_fill by a tensor": lambda lib, F, x: x.masked_fill(x.byte(), lib.tensor(0.0)),
    "neg of bools": lambda lib, F, x: -(x > 0),
    "cross": lambda lib, F, x: lib.cross(lib.ones(3), lib.ones(3).double(), 0),
    "cdist of two dtypes": lambda lib, F, x: lib.cdist(lib.eye(2), lib.eye(2).double()),
    "cdist of complex": lambda lib, F, x: lib.cdist(lib.eye(2) + 0j, lib.eye(2) + 0j),
    "pdist of complex": lambda lib, F, x: F.pdist(lib.eye(2) + 0j),
    "bce": lambda lib, F, x: F.binary_cross_entropy(x, x.double()),
    "bce of doubles": lambda lib, F, x: F.binary_cross_entropy(x.double(), x),
    "bce of classes": lambda lib, F, x: F.binary_cross_entropy(x, x.long()),
    "bce of a mask": lambda lib, F, x: F.binary_cross_entropy(x, x > 0),
    "bce with logits": lambda lib, F, x: F.binary_cross_entropy_with_logits(x, x.long()),
    "soft margins": lambda lib, F, x: F.soft_margin_loss(x.long(), x),
    "multi margins": lambda lib, F, x: F.multi_margin_loss(lib.eye(2), lib.tensor([0, 1]).int()),
    "weights of margins": lambda lib, F, x: F.multi_margin_loss(
        lib.eye(2), lib.tensor([0, 1]), weight=x.double()
    ),
    "multilabel margins": lambda lib, F, x: F.multilabel_margin_loss(x, x.int()),
    "classes": lambda lib, F, x: F.cross_entropy(lib.eye(2), lib.tensor([0, 1]).int()),
    "short classes": lambda lib, F, x: F.nll_loss(lib.eye(2), lib.tensor([0, 1]).short()),
    "weights of classes": lambda lib, F, x: F.cross_entropy(
        lib.eye(2), lib.tensor([0, 1]), weight=x.double()
    ),
    "embedding_bag": lambda lib, F, x: F.embedding_bag(lib.tensor([[0]]), lib.eye(2).long()),
    "weights of samples": lambda lib, F, x: F.embedding_bag(
        lib.tensor([[0]]), lib.eye(2), per_sample_weights=lib.ones(1, 1).double(), mode="sum"
    ),
    "offsets": lambda lib, F, x: F.embedding_bag(lib.tensor([0]), lib.eye(2), lib.tensor([0.0])),
    "lengths": lambda lib, F, x: F.ctc_loss(
        lib.zeros(3, 1, 2), lib.tensor([[1]]), lib.tensor([3.0]), lib.tensor([1])
    ),
    "layer_norm": lambda lib, F, x: F.layer_norm(x, (2,), x.double()),
    "layer_norm of doubles": lambda lib, F, x: F.layer_norm(x.double(), (2,), x),
    "layer_norm by two dtypes": lambda lib, F, x: F.layer_norm(x.half(), (2,), x, x.half()),
    "batch_norm": lambda lib, F, x: F.batch_norm(lib.eye(2).double(), x, x),
    "batch_norm by doubles": lambda lib, F, x: F.batch_norm(lib.eye(2), x, x, x.double(), x),
    "grid_sample": lambda lib, F, x: F.grid_sample(
        lib.ones(1, 1, 2, 2), lib.zeros(1, 1, 1, 2).double(), align_corners=False
    ),
    "index_copy": lambda lib, F, x: x.index_copy(0, lib.tensor([0]).int(), lib.ones(1)),
    "take": lambda lib, F, x: x.take(lib.tensor([0]).int()),
    "take_along_dim": lambda lib, F, x: lib.take_along_dim(x, lib.tensor([0]).int(), 0),
    "trapezoid": lambda lib, F, x: lib.trapezoid(x > 0),
    "cumulative_trapezoid": lambda lib, F, x: lib.cumulative_trapezoid(x, x > 0),
    "pinv": lambda lib, F, x: lib.linalg.pinv(lib.eye(2).half()),
    "pinv of integers": lambda lib, F, x: lib.pinverse(lib.eye(2).long()),
    "vander": lambda lib, F, x: lib.linalg.vander(x > 0),
    "stft": lambda lib, F, x: lib.stft(
        lib.ones(8).long(), 4, window=lib.ones(4), return_complex=True
    ),
    "alpha_dropout": lambda lib, F, x: F.alpha_dropout(x.long(), training=True),
    "gaussian_nll_loss": lambda lib, F, x: F.gaussian_nll_loss(x.long(), x.long(), x.long()),
    "cosine_similarity": lambda lib, F, x: F.cosine_similarity(x + 0j, x + 0j, 0),
    "index_reduce": lambda lib, F, x: x.index_reduce(
        0, lib.tensor([0]).short(), lib.ones(1), "prod"
    ),
    "put_": lambda lib, F, x: x.clone().put_(lib.tensor([0]).int(), lib.ones(1)),
}
for _name in ("group_norm", "instance_norm"):
    for _kind, _other in (
        ("float", "double"),
        ("double", "float"),
        ("half", "bfloat16"),
        ("float", "half"),
    ):
        IN_BOTH[f"{_name} of {_kind} by {_other}"] = (
            lambda lib, F, x, name=_name, kind=_kind, other=_other: getattr(F, name)(
                getattr(lib.eye(4).reshape(1, 2, 8), kind)(), *((2,) if name == "group_norm" else ()),
                weight=getattr(x, other)(),
            )
        )  # fmt: skip
IN_BOTH |= {
    "unpooled with a stride of 0": lambda lib, F, x: F.max_unpool3d(
        lib.ones(1, 1, 1, 1), lib.zeros(1, 1, 1, 1).long(), 1, stride=(0, 1, 1)
    ),
    "fractional pool of one size": lambda lib, F, x: F.fractional_max_pool2d(
        lib.ones(1, 4, 4), [2], 1
    ),
    "fractional pool of other samples": lambda lib, F, x: F.fractional_max_pool2d(
        lib.ones(1, 4, 4), 2, 1, _random_samples=lib.ones(1, 1, 2).double()
    ),
    "group_norm by two dtypes": lambda lib, F, x: F.group_norm(
        lib.ones(1, 2, 2).half(), 2, x, x.half()
    ),
    "gradient": lambda lib, F, x: lib.gradient(lib.ones(4).byte()),
    "matrix_norm": lambda lib, F, x: lib.linalg.matrix_norm(lib.eye(2).long()),
    "normal": lambda lib, F, x: lib.normal(x, x + 0j),
    "nansum": lambda lib, F, x: (x + 0j).nansum(),
    "nansum as floats": lambda lib, F, x: lib.nansum(x + 0j, 0, dtype=lib.float32),
    "nanmean of complex": lambda lib, F, x: (x + 0j).nanmean(),
}
NOT_THERE = {
    "local_response_norm": lambda lib, F, x: F.local_response_norm(lib.ones(1, 2, 3).int(), 2),
    "rrelu": lambda lib, F, x: F.rrelu(x.half(), training=True),
    "igamma": lambda lib, F, x: lib.igamma(x.long(), x.long()),
    "igammac of bools": lambda lib, F, x: lib.igammac(x > 0, x > 0),
    "gammainc": lambda lib, F, x: lib.special.gammainc(x.int(), x.short()),
    **{
        f"avg_pool3d of {kind}": lambda lib, F, x, kind=kind: F.avg_pool3d(
            getattr(lib.ones(1, 2, 2, 2), kind)(), 2
        )
        for kind in ("half", "bfloat16", "cfloat")
    },
    "scatter_reduce": lambda lib, F, x: (x > 0).scatter_reduce(
        0, lib.tensor([0]), lib.ones(1) > 0, "mean"
    ),
    "scatter_reduce of complex": lambda lib, F, x: (x + 0j).scatter_reduce(
        0, lib.tensor([0]), lib.ones(1) + 0j, "amax"
    ),
    **{
        f"{name} of {kind}": lambda lib, F, x, name=name, kind=kind: getattr(lib.special, name)(
            getattr(x, kind)()
        )
        for kind in ("half", "bfloat16")
        for name in (
            *(
                "airy_ai",
                "bessel_j0",
                "bessel_j1",
                "bessel_y0",
                "bessel_y1",
                "erfcx",
                "log_ndtr",
                "ndtri",
            ),
            *("modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0"),
            *("modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1"),
            "spherical_bessel_j0",
        )
    },
    **{
        f"{name} of halves": lambda lib, F, x, name=name: getattr(lib.special, name)(
            x.half(), x.half()
        )
        for name in (
            *(f"chebyshev_polynomial_{kind}" for kind in "tuvw"),
            *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l"),
            *("legendre_polynomial_p", "shifted_chebyshev_polynomial_t", "zeta"),
        )
    },
    "clamp": lambda lib, F, x: lib.clamp(x > 0, x > 0, x > 0),
    "clamp_": lambda lib, F, x: (x > 0).clamp_(x > 0, x > 0),
    "cdist": lambda lib, F, x: lib.cdist(lib.eye(2).half(), lib.eye(2).half()),
    "batch_norm": lambda lib, F, x: F.batch_norm(lib.eye(2).long(), x, x),
    "batch_norm in training": lambda lib, F, x: F.batch_norm(
        lib.eye(2).long(), None, None, training=True
    ),
    "max_unpool1d": lambda lib, F, x: F.max_unpool1d(lib.tensor([[3]]), lib.tensor([[1]]), 2),
    "max_unpool2d": lambda lib, F, x: F.max_unpool2d(lib.ones(1, 1, 1) > 0, lib.tensor([[[1]]]), 2),
    "adaptive_max_pool1d": lambda lib, F, x: F.adaptive_max_pool1d(lib.ones(1, 2) > 0, 1),
    "index_reduce": lambda lib, F, x: (x + 0j).index_reduce(
        0, lib.tensor([0]), lib.ones(1) + 0j, "prod"
    ),
    "householder_product": lambda lib, F, x: lib.linalg.householder_product(
        lib.eye(2).half(), x.half()
    ),
    "ormqr": lambda lib, F, x: lib.ormqr(lib.eye(2).long(), x.long(), lib.eye(2).long()),
    "pad": lambda lib, F, x: F.pad(lib.ones(1, 2) > 0, (1, 1), mode="reflect"),
    "replicated": lambda lib, F, x: F.pad(lib.ones(1, 2) > 0, (1, 1), mode="replicate"),
    "pdist": lambda lib, F, x: F.pdist(lib.eye(2).bfloat16()),
    "multi margins": lambda lib, F, x: F.multi_margin_loss(lib.eye(2).half(), lib.tensor([0, 1])),
    "multilabel margins": lambda lib, F, x: F.multilabel_margin_loss(x.long(), x.long()),
    "ctc_loss": lambda lib, F, x: F.ctc_loss(
        lib.zeros(3, 1, 2).long(), lib.tensor([[1]]), [3], [1]
    ),
    "ctc_loss of halves": lambda lib, F, x: F.ctc_loss(
        lib.zeros(3, 1, 2).half(), lib.tensor([[1]]), [3], [1]
    ),
}


@both
@pytest.mark.parametrize("name", IN_BOTH)
def test_dtypes_that_both_refuse(lib, name):
    with pytest.raises(RuntimeError):
        IN_BOTH[name](lib, lib.nn.functional, lib.ones(2))


@both
@pytest.mark.parametrize("name", NOT_THERE)
def test_dtypes_that_neither_has(lib, name):
    with pytest.raises(NotImplementedError):
        NOT_THERE[name](lib, lib.nn.functional, lib.ones(2))


WRONG_TYPES = {
    "~ of floats": lambda lib: ~lib.ones(2),
    "~ of complex": lambda lib: ~(lib.ones(2) + 0j),
    "kaiser_window": lambda lib: lib.kaiser_window(5, beta=2.0),
    "hamming_window": lambda lib: lib.hamming_window(5, alpha=0.5),
    "hamming_window, beta": lambda lib: lib.hamming_window(5, beta=0.5),
}


@both
@pytest.mark.parametrize("name", WRONG_TYPES)
def test_types_that_both_refuse(lib, name):
    with pytest.raises(TypeError):
        WRONG_TYPES[name](lib)


@both
def test_vectors_of_norms_may_be_float32_beside_16_bits(lib):
    for x in (lib.ones(1, 2, 2).half(), lib.ones(1, 2, 2).bfloat16()):
        weights = lib.ones(2), lib.zeros(2)
        assert lib.nn.functional.group_norm(x, 2, *weights).dtype == x.dtype
        assert (
            lib.nn.functional.instance_norm(x, weight=weights[0], bias=weights[1]).dtype == x.dtype
        )


@both
def test_indices_to_fill_are_int64(lib):
    with pytest.raises(IndexError):
        lib.ones(2).index_fill(0, lib.tensor([0]).int(), 1)


WIDER = {
    "huber_loss": lambda lib, F, x: F.huber_loss(x, x.double()),
    "soft_margin_loss": lambda lib, F, x: F.soft_margin_loss(x, x.double()),
    "weights": lambda lib, F, x: F.binary_cross_entropy(x, x, x.double()),
    "weights of logits": lambda lib, F, x: F.binary_cross_entropy_with_logits(x, x, x.double()),
    "weights of labels": lambda lib, F, x: F.binary_cross_entropy_with_logits(
        x, x, pos_weight=x.double()
    ),
    "a weight of no dims": lambda lib, F, x: lib.lerp(x, x, lib.tensor(1.0).double()),
}


@both
@pytest.mark.parametrize("name", WIDER)
def test_results_have_the_dtype_of_the_input(lib, name):
    assert WIDER[name](lib, lib.nn.functional, lib.ones(2)).dtype == lib.float32


@both
@pytest.mark.parametrize("bias", [False, True])
def test_layer_norm_of_16_bits_by_float32(lib, bias):
    layer = lib.nn.LayerNorm(4, bias=bias)
    with lib.no_grad():
        layer.weight.copy_(lib.tensor([1.0, 2.0, 0.5, 3.0]))
    x = lib.tensor([[1.0, 2.0, 3.0, 5.0]]).bfloat16().requires_grad_()
    y = layer(x)
    y.float().square().sum().backward()
    assert y.dtype == x.grad.dtype == lib.bfloat16 and layer.weight.grad.dtype == lib.float32
    exact = layer(x.detach().float()).bfloat16()
    assert y.tolist() == exact.tolist()


def scheduled(lib):
    optimizer = lib.optim.SGD([lib.ones(1)], 0.1)
    optimizer.step()
    return lib.optim.lr_scheduler.StepLR(optimizer, 1)


WARNED = {
    "gradient of a result": lambda lib: (lib.ones(1, requires_grad=True) * 2).grad,
    "tensor of a tensor": lambda lib: lib.tensor(lib.ones(1)),
    "step to an epoch": lambda lib: scheduled(lib).step(3),
}


@both
@pytest.mark.parametrize("name", WARNED)
def test_warnings(lib, name):
    with pytest.warns(UserWarning):
        WARNED[name](lib)


@both
def test_gradients_that_are_there_are_read_without_a_warning(lib):
    leaf = lib.ones(1, requires_grad=True)
    kept = leaf * 2
    kept.retain_grad()
    assert leaf.grad is None and kept.grad is None and lib.ones(1).grad is None

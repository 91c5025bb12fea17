"""Every function of weft.nn.functional can be called in a program, in the forms that are usual, and gives what it
gives in Python, gradients included; a test compares the table with what the module has."""

from __future__ import annotations

import inspect
import io
from typing import Any

import pytest

import weft
import weft.nn.functional as F
from weft import jit

TENSORS = {
    "v": (6,), "m": (4, 6), "s": (2, 4, 6), "p": (2, 4, 6, 6), "q": (1, 2, 4, 6, 6), "w": (3, 6), "k1": (4, 4, 3),
    "k2": (4, 4, 3, 3), "k3": (2, 2, 3, 3, 3), "c": (4,), "b2": (5, 6, 6), "g": (2, 5, 3, 2), "g3": (1, 2, 3, 3, 3),
}  # fmt: skip
LABELS = {
    "n": lambda: weft.tensor([0, 5, 2, 2]), "t": lambda: weft.tensor([1, -1, 1, -1]), "z": lambda: weft.tensor([0, 3]),
    "h": lambda: (weft.arange(24).reshape(4, 6) % 3 == 0).float(), "ml": lambda: weft.tensor([[0, 2, -1, 1, 1, 1]] * 4),
    "th": lambda: weft.eye(2, 3).expand(2, 2, 3).clone(), "lens": lambda: weft.tensor([6, 5]),
    "targets": lambda: weft.tensor([[1, 2], [3, 1]]), "th3": lambda: weft.eye(3, 4).reshape(1, 3, 4),
}  # fmt: skip
NAMES = [*TENSORS, *LABELS]
CALLS = """
F.adaptive_avg_pool1d(s, 2)
F.adaptive_avg_pool2d(p, (2, None))
F.adaptive_avg_pool2d(p, 3)
F.adaptive_avg_pool3d(q, [2, 2, 3])
F.adaptive_max_pool1d(s, 2)
F.adaptive_max_pool1d(s, 2, return_indices=True)
F.adaptive_max_pool2d(p, (2, 3))
F.adaptive_max_pool3d(q, 2)
F.adaptive_max_pool1d_with_indices(s, 2)
F.adaptive_max_pool2d_with_indices(p, 2)
F.adaptive_max_pool3d_with_indices(q, 2)
F.affine_grid(th, [2, 4, 3, 3], align_corners=False)
F.affine_grid(th3, (1, 2, 3, 3, 3), True)
F.alpha_dropout(m, 0.5, False)
F.alpha_dropout(m, 0.0, True)
F.avg_pool1d(s, 2)
F.avg_pool1d(s, [3], [2], 1, True, False)
F.avg_pool2d(p, 2)
F.avg_pool2d(p, (3, 2), stride=(2, 1), padding=(1, 0), ceil_mode=True, count_include_pad=False, divisor_override=3)
F.avg_pool3d(q, 2)
F.batch_norm(p, None, None, training=True)
F.batch_norm(p, c * 0, c * 0 + 1, c, c, False, 0.1, 1e-3)
F.bilinear(m, m, b2)
F.bilinear(m, m, b2, bias=v[:5])
F.binary_cross_entropy(m.sigmoid(), h)
F.binary_cross_entropy(m.sigmoid(), h, weight=h + 1, reduction="sum")
F.binary_cross_entropy_with_logits(m, h)
F.binary_cross_entropy_with_logits(m, h, pos_weight=v.abs(), reduction="none")
F.celu(m, 0.5)
F.celu_(m.clone(), 0.5)
F.channel_shuffle(p, 2)
F.native_channel_shuffle(p, 2)
F.conv_tbc(s.permute(2, 0, 1), k1.permute(2, 1, 0), c)
F.conv1d(s, k1)
F.conv1d(s, k1, c, stride=2, padding=1)
F.conv1d(s, k1, c, padding="same")
F.conv2d(p, k2, c, 1, (1, 0))
F.conv2d(p, k2[:, :2], None, stride=[2, 1], padding=1, dilation=1, groups=2)
F.conv2d(p, k2, padding="valid")
F.conv3d(q, k3, padding=1)
F.conv_transpose1d(s, k1, stride=2, output_padding=1)
F.conv_transpose2d(p, k2, c, 2, 1)
F.conv_transpose3d(q, k3)
F.cosine_embedding_loss(m, m * 2 + 1, t)
F.cosine_similarity(m, m + 1)
F.cosine_similarity(m, m + 1, dim=0, eps=1e-5)
F.linear_cross_entropy(m, p[0, 0], n)
F.cross_entropy(m, n)
F.cross_entropy(m, n, weight=v.detach().abs(), ignore_index=2, label_smoothing=0.1)
F.cross_entropy(m, m.softmax(-1), reduction="sum")
F.ctc_loss(s.permute(2, 0, 1).log_softmax(-1), targets, lens, lens * 0 + 2)
F.ctc_loss(s.permute(2, 0, 1).log_softmax(-1), targets, [6, 5], [2, 1], blank=0, reduction="sum", zero_infinity=True)
F.dropout(m, 0.5, False)
F.dropout(m, p=0.0, training=True)
F.dropout1d(s, 0.5, False)
F.dropout2d(p, 0.5, False)
F.dropout3d(q, 0.5, False)
F.elu(m)
F.elu(m, 0.5, inplace=False)
F.embedding(n, w.t())
F.embedding(n, w.t(), padding_idx=2)
F.embedding(n, w.t().clone(), max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True)
F.embedding_bag(n, w.t(), z, mode="sum")
F.embedding_bag(n.reshape(2, 2), w.t().clone(), max_norm=1.0, scale_grad_by_freq=True)
F.embedding_bag(n.reshape(2, 2), w.t())
F.feature_alpha_dropout(s, 0.5, False)
F.fold(s.reshape(1, 8, 6)[:, :, :4], 4, 2, stride=2)
F.fold(s.reshape(1, 12, 4), (4, 6), (2, 3), stride=(2, 3))
F.gaussian_nll_loss(m, m + 1, m.abs())
F.gaussian_nll_loss(m, m + 1, 0.5, full=True, reduction="none")
F.gelu(m)
F.gelu(m, approximate="tanh")
F.glu(m)
F.glu(m, dim=0)
F.grid_sample(p, g.tanh(), align_corners=False)
F.grid_sample(p, g.tanh(), "nearest", "border", True)
F.grid_sample(q, g3.tanh().repeat(1, 1, 1, 1, 1), padding_mode="reflection", align_corners=True)
F.group_norm(p, 2)
F.group_norm(p, 2, c, c, 1e-3)
F.gumbel_softmax(m)
F.gumbel_softmax(m, tau=0.5, hard=True).sum(-1)
F.hardshrink(m, 0.3)
F.hardsigmoid(m)
F.hardswish(m)
F.hardtanh(m, -0.5, 0.5)
F.hinge_embedding_loss(m, h * 2 - 1, 0.5)
F.huber_loss(m, h, delta=0.5)
F.instance_norm(p)
F.instance_norm(p, weight=c, bias=c, eps=1e-3)
F.interpolate(s, 4)
F.interpolate(s, scale_factor=1.5, mode="linear", align_corners=True)
F.interpolate(p, size=(3, 8), mode="bilinear")
F.interpolate(p, scale_factor=[2.0, 0.5], mode="nearest")
F.interpolate(p, size=[3, 3], mode="area")
F.interpolate(p, scale_factor=2.0, mode="bicubic", align_corners=False, recompute_scale_factor=True)
F.interpolate(p, size=3, mode="bilinear", antialias=True)
F.interpolate(q, size=[3, 3, 2], mode="trilinear")
F.kl_div(m.log_softmax(-1), h.softmax(-1), reduction="batchmean")
F.kl_div(m.log_softmax(-1), h.log_softmax(-1), log_target=True)
F.l1_loss(m, h)
F.l1_loss(m, h, reduction="none")
F.layer_norm(m, (6,))
F.layer_norm(m, [6], v, v, eps=1e-3)
F.layer_norm(s, s.shape[1:])
F.leaky_relu(m, 0.1)
F.linear(m, w)
F.linear(m, w, v[:3])
F.local_response_norm(p, 2)
F.log_softmax(m, dim=-1)
F.log_softmax(m, 0, dtype=torch.float64)
F.logsigmoid(m)
F.lp_pool1d(s.abs(), 2.0, 2)
F.lp_pool2d(p.abs(), 2, (2, 3), stride=2)
F.lp_pool3d(q.abs(), 1.5, 2, ceil_mode=True)
F.lp_pool1d(s, float("inf"), 2)
F.lp_pool2d(p, -float("inf"), 2, 1)
F.lp_pool3d(q, float("inf"), 2, ceil_mode=True)
F.margin_ranking_loss(m[:, 0], m[:, 1], t, margin=0.5)
F.max_pool1d(s, 2)
F.max_pool1d(s, kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=True)
F.max_pool1d_with_indices(s, 2)
F.max_pool2d(p, 2)
F.max_pool2d(p, (2, 3), stride=(1, 2))
F.max_pool2d(p, [2, 2], return_indices=True)
F.max_pool2d_with_indices(p, 2)
F.max_pool3d(q, 2)
F.max_pool3d_with_indices(q, 2)
F.max_unpool1d(s[:, :, :3], torch.tensor([0, 2, 4]).expand(2, 4, 3), 2)
F.max_unpool2d(p[:, :, :1, :1], n[:1].reshape(1, 1, 1, 1).expand(2, 4, 1, 1), (2, 2), output_size=[2, 3])
F.max_unpool3d(q[:, :, :1, :1, :1], n[:1].reshape(1, 1, 1, 1, 1).expand(1, 2, 1, 1, 1), 2)
F.mish(m)
F.mse_loss(m, h)
F.mse_loss(m, h, reduction="sum")
F.multi_head_attention_forward(s, s, s, 6, 2, torch.cat([w, w, w, w, w, w]), None, None, None, False, 0.0, w.t() @ w, None, need_weights=True)
F.multi_margin_loss(m, n, p=2, margin=0.5)
F.multilabel_margin_loss(m, ml)
F.multilabel_soft_margin_loss(m, h)
F.nll_loss(m.log_softmax(-1), n)
F.nll_loss(m.log_softmax(-1), n, weight=v.detach().abs(), ignore_index=0, reduction="none")
F.normalize(m)
F.normalize(m, p=1.0, dim=0, eps=1e-3)
F.one_hot(n)
F.one_hot(n, 8)
F.pad(m, (1, 2))
F.pad(m, [1, 2, 0, 1], value=0.5)
F.pad(s, (1, 2), mode="reflect")
F.pad(p, (1, 1, 2, 0), "circular")
F.pad(p, [1, 1, 2, 0], "replicate")
F.pairwise_distance(m, h)
F.pairwise_distance(m, h, p=1.0, keepdim=True)
F.pdist(m)
F.pixel_shuffle(p, 2)
F.pixel_unshuffle(p, 3)
F.poisson_nll_loss(m, h)
F.poisson_nll_loss(m.abs(), h, log_input=False, full=True)
F.prelu(m, v[:1])
F.relu(m)
F.relu(m, inplace=False)
F.relu6(m)
F.relu_(m.clone())
F.elu_(m.clone(), 0.5)
F.hardtanh_(m.clone(), -0.5, 0.5)
F.leaky_relu_(m.clone(), 0.1)
F.rms_norm(m, [6])
F.rms_norm(m, (6,), weight=v, eps=1e-3)
F.rms_norm(s, s.shape[1:])
F.rrelu(m, 0.2, 0.4)
F.rrelu_(m.clone(), 0.2, 0.4)
F.scaled_dot_product_attention(p, p, p)
F.scaled_dot_product_attention(p, p, p, is_causal=True, scale=0.3)
F.scaled_dot_product_attention(p, p, p, attn_mask=p[0, 0] > 0)
F.selu(m)
F.selu_(m.clone())
F.sigmoid(m)
F.silu(m)
F.smooth_l1_loss(m, h, beta=0.5)
F.soft_margin_loss(m, h * 2 - 1)
F.softmax(m, dim=1)
F.softmax(m, -1, dtype=torch.float64)
F.softmin(m, dim=1)
F.softplus(m, beta=2, threshold=1)
F.softshrink(m, 0.3)
F.softsign(m)
F.tanh(m)
F.tanhshrink(m)
F.threshold(m, 0.1, 20.0)
F.threshold_(m.clone(), 0.1, 20.0)
F.triplet_margin_loss(m, m + 1, m * 2, margin=0.5, swap=True)
F.triplet_margin_with_distance_loss(m, m + 1, m * 2)
F.triplet_margin_with_distance_loss(m, m + 1, m * 2, distance_function=F.pairwise_distance, margin=0.5)
F.unfold(p, 2)
F.unfold(p, kernel_size=(2, 3), padding=1, stride=(2, 1))
F.upsample(p, scale_factor=2.0)
F.upsample_bilinear(p, scale_factor=2)
F.upsample_nearest(p, size=(3, 3))
""".strip().split("\n")  # fmt: skip


def leaves(value):
    """The tensors of a result."""
    if isinstance(value, weft.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return []


def observe(function):
    """What a call gives, and the gradients of its arguments."""
    weft.manual_seed(0)
    args = [weft.randn(*shape).requires_grad_() for shape in TENSORS.values()]
    weft.manual_seed(1)
    result = function(*args, *(make() for make in LABELS.values()))
    floats = [t for t in leaves(result) if t.requires_grad]
    if floats:
        sum((t * t).sum() for t in floats).backward()
    shown = result if not leaves(result) else [(t.dtype, t.tolist()) for t in leaves(result)]
    return repr(shown), [repr(None if a.grad is None else a.grad.tolist()) for a in args]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", CALLS)
def test_function_in_a_program(call):
    names = ", ".join(f"{name}: Tensor" for name in NAMES)
    names = names.replace(": Tensor", "")
    eager = eval(f"lambda {names}: {call}", {"F": F, "torch": weft})
    unit = jit.CompilationUnit(f"def f({names}):\n    return {call}\n")
    assert observe(unit.f) == observe(eager)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", CALLS)
def test_function_in_an_archive(call):
    names = ", ".join(NAMES)
    unit = jit.CompilationUnit(f"def f({names}):\n    return {call}\n")
    loaded = jit.load(io.BytesIO(unit.f.save_to_buffer()))
    given = [weft.randn(*shape) for shape in TENSORS.values()]
    given += [make() for make in LABELS.values()]
    results = []
    for function in (unit.f, loaded):
        weft.manual_seed(1)
        results.append(leaves(function(*(t.clone() for t in given))))
    for one, other in zip(*results, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        assert weft.allclose(one, other, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_the_table_has_every_function():
    functions = {
        name
        for name in dir(F)
        if not name.startswith("_")
        and callable(getattr(F, name))
        and not inspect.isclass(getattr(F, name))
        and getattr(F, name) is not Any  # no class in Python 3.10
        and not name.startswith("fractional_max_pool")  # tests/test_nn_rare.py
        and name != "grouped_mm"  # programs do not compile it; tests/test_small_names.py
    }
    called = {call.partition("(")[0].removeprefix("F.") for call in CALLS}
    assert functions - called == set()

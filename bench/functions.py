"""A sweep over functions that programs call, each once at a middling size: it shows what is slow
beside PyTorch where no other group looks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from bench.case import Group

group = Group("functions")

_STATEMENTS = """
F.interpolate(x4, scale_factor=2)
F.interpolate(x4, scale_factor=2, mode="bilinear")
F.interpolate(x4, scale_factor=2, mode="bicubic")
F.interpolate(x4, size=(24, 24), mode="area")
F.interpolate(image, size=(64, 64), mode="bilinear", antialias=True)
F.interpolate(x5, scale_factor=2, mode="trilinear")
F.interpolate(x3, scale_factor=2, mode="linear")
F.grid_sample(x4, grid, align_corners=False)
F.grid_sample(x4, grid, "bicubic", "reflection", align_corners=False)
F.unfold(x4, 3, padding=1)
F.fold(F.unfold(x4, 3, padding=1), (48, 48), 3, padding=1)
F.pixel_shuffle(x4, 2)
F.pad(x4, (3, 3, 3, 3), mode="reflect")
F.pad(x4, (3, 3, 3, 3), mode="circular")
F.max_pool2d(x4, 2)
F.max_pool2d(x4, 3, 2, 1, return_indices=True)
F.avg_pool2d(x4, 3, 2, 1)
F.max_pool3d(x5, 2)
F.avg_pool3d(x5, 2)
F.max_pool1d(x3, 2)
F.lp_pool2d(x4, 2, 3)
F.adaptive_avg_pool2d(x4, 7)
F.adaptive_max_pool2d(x4, 7)
F.max_unpool2d(*F.max_pool2d(x4, 2, return_indices=True), 2)
F.conv1d(x3, w3, padding=1)
F.conv3d(x5, w5, padding=1)
F.conv_transpose2d(x4, turned, stride=2)
F.conv2d(x4, w4, padding=2, dilation=2)
F.conv2d(x4, deep, padding=2, groups=32)
F.conv2d(image, patches, stride=16)
F.batch_norm(x4, None, None, training=True)
F.instance_norm(x4)
F.group_norm(x4, 8)
F.layer_norm(m, (256,))
F.rms_norm(m, (256,))
F.local_response_norm(x4, 5)
m.softmax(0)
m.log_softmax(1)
F.gelu(m, approximate="tanh")
F.silu(m)
F.mish(m)
F.softplus(m)
F.glu(m)
F.prelu(x4, slope)
F.cross_entropy(m, labels)
F.cross_entropy(x4, pixels)
F.binary_cross_entropy_with_logits(m, p)
F.kl_div(m.log_softmax(1), m.softmax(1), reduction="batchmean")
F.smooth_l1_loss(m, m2)
F.cosine_similarity(m, m2)
F.triplet_margin_loss(m, m2, p)
F.ctc_loss(logs, targets, lengths, target_lengths)
F.embedding(ids, table)
F.embedding_bag(ids, table)
F.one_hot(labels, 256)
torch.cdist(m, m2)
torch.cdist(m[:256], m2[:256], p=1.0)
F.pdist(m[:256])
m.topk(5, 1)
m.kthvalue(5, 1)
m.median(1)
m.quantile(0.3, 1)
m.sort(1)
torch.unique(ids)
torch.unique_consecutive(ids.flatten())
torch.bincount(ids.flatten())
torch.histc(m, 50)
torch.searchsorted(edges, m)
torch.zeros(1024, 256).scatter_add(1, columns, m)
torch.zeros(1024, 256).scatter_reduce(1, columns, m, "amax")
torch.zeros(128, 256).index_add(0, rows, m)
m.gather(1, columns)
m.index_select(0, rows)
m[rows, columns[:, 0]]
m[m > 0]
m.masked_fill(m > 0, 0.0)
m.masked_scatter(m > 0, m2)
(m > 0).nonzero()
torch.where(m > 0, m, m2)
m.cumsum(1)
m.cumprod(1)
m.cummax(1)
m.logcumsumexp(1)
m.logsumexp(1)
m.diff()
x4.flip(-1)
x4.roll(3, -1)
m.tril()
m.repeat(2, 2)
m.repeat_interleave(3, 0)
torch.stack([m, m2, m])
torch.cat([m, m2], 1)
torch.einsum("bhqd,bhkd->bhqk", q, k)
torch.einsum("ij,kj->ik", m, m2)
torch.bmm(q[0], k[0].transpose(1, 2))
F.scaled_dot_product_attention(q, k, k)
F.scaled_dot_product_attention(q, k, k, is_causal=True)
torch.kron(m[:16, :16], m2[:16, :16])
torch.linalg.svd(square)
torch.linalg.eigh(spd)
torch.linalg.qr(square)
torch.linalg.inv(spd)
torch.linalg.solve(spd, square)
torch.linalg.cholesky(spd)
torch.linalg.inv(many)
torch.linalg.eigh(many)
torch.linalg.svd(many)
torch.linalg.pinv(square)
torch.linalg.lstsq(square, square)
torch.linalg.matrix_exp(square * 0.01)
torch.fft.fft(m)
torch.fft.rfft2(x4)
torch.fft.fft(m[:, :251])
torch.stft(wave, 512, 128, window=window, return_complex=True)
torch.istft(torch.stft(wave, 512, 128, window=window, return_complex=True), 512, 128, window=window)
z * z
z.abs()
z.angle()
z[:256] @ z[256:].mT
torch.polar(p, m)
p.lgamma()
p.digamma()
(p * 0.9).erfinv()
m.i0()
torch.atan2(m, m2)
p.pow(2.3)
torch.fmod(m, m2)
torch.remainder(m, 0.7)
m.round(decimals=2)
torch.lerp(m, m2, 0.3)
torch.addcdiv(m, m, p)
m.clamp(m2 - 1, m2 + 1)
m.nan_to_num()
m.argmax(0)
torch.aminmax(m)
m.std(1)
torch.var_mean(m, 0)
m.prod(1)
x4.sum((0, 2, 3))
torch.count_nonzero(m > 0)
ids // 7
ids % 7
m.to(torch.int64)
m.half()
m.bfloat16()
b * b
b.sum(1)
b @ b.t()
h @ h.t()
h.softmax(1)
torch.randn(1024, 256)
torch.randint(0, 1000, (1024, 256))
torch.randperm(10000)
torch.multinomial(p, 5)
torch.bernoulli(p)
F.dropout(m, 0.5)
torch.arange(100000)
torch.linspace(0, 1, 100000)
x4.permute(0, 2, 3, 1).contiguous()
x3.unfold(2, 16, 8).contiguous()
lstm(steps)
gru(steps)
attention(sentences, sentences, sentences)
encoder(sentences)
F.conv2d(x4g, w4, padding=1).sum().backward()
F.batch_norm(x4g, None, None, training=True).sum().backward()
F.layer_norm(mg, (256,)).sum().backward()
(mg.softmax(1) * m2).sum().backward()
F.embedding(ids, tableg).sum().backward()
mg[rows].sum().backward()
F.max_pool2d(x4g, 2).sum().backward()
F.interpolate(x4g, scale_factor=2, mode="bilinear").sum().backward()
F.grid_sample(x4g, gridg, align_corners=False).sum().backward()
mg.gather(1, columns).sum().backward()
(mg.sort(1)[0] * m2).sum().backward()
(mg.cumsum(1) * m2).sum().backward()
mg.std(1).sum().backward()
mg.norm(dim=1).sum().backward()
torch.cdist(mg, m2).sum().backward()
F.cross_entropy(mg, labels).backward()
F.unfold(x4g, 3).sum().backward()
F.conv_transpose2d(x4g, turned, stride=2).sum().backward()
torch.fft.rfft(mg).abs().sum().backward()
torch.linalg.inv(spdg).sum().backward()
torch.linalg.eigh(spdg)[0].sum().backward()
"""


@cache
def _values(torch: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)

    def normal(*sizes: int) -> Any:
        return torch.tensor(rng.standard_normal(sizes).astype(np.float32))

    def whole(high: int, *sizes: int) -> Any:
        return torch.tensor(rng.integers(0, high, sizes))

    factor, factors = normal(128, 128), normal(256, 8, 8)
    nn = torch.nn
    values = {
        "F": nn.functional,
        "x3": normal(8, 32, 256), "x4": normal(4, 32, 48, 48), "x5": normal(1, 16, 16, 24, 24),
        "image": normal(2, 3, 224, 224), "w3": normal(32, 32, 3), "w4": normal(32, 32, 3, 3),
        "w5": normal(16, 16, 3, 3, 3), "turned": normal(32, 16, 3, 3), "deep": normal(32, 1, 5, 5),
        "patches": normal(64, 3, 16, 16), "slope": normal(32), "grid": normal(4, 48, 48, 2).tanh(),
        "m": normal(1024, 256), "m2": normal(1024, 256), "p": normal(1024, 256).sigmoid(),
        "labels": whole(256, 1024), "pixels": whole(32, 4, 48, 48), "ids": whole(5000, 256, 64),
        "table": normal(5000, 64), "columns": whole(256, 1024, 256), "rows": whole(128, 1024),
        "edges": normal(300).sort()[0], "logs": normal(60, 8, 40).log_softmax(2),
        "targets": whole(39, 8, 15) + 1, "lengths": torch.full((8,), 60),
        "target_lengths": torch.full((8,), 15), "q": normal(2, 8, 128, 64),
        "k": normal(2, 8, 128, 64), "square": factor, "wave": normal(64512),
        "spd": factor @ factor.mT + 128 * torch.eye(128),
        "many": factors @ factors.mT + 8 * torch.eye(8), "window": torch.hann_window(512),
        "z": torch.complex(normal(512, 512), normal(512, 512)), "h": normal(512, 256).half(),
        "b": normal(512, 256).bfloat16(), "steps": normal(50, 8, 64), "lstm": nn.LSTM(64, 64),
        "gru": nn.GRU(64, 64), "sentences": normal(8, 64, 64),
        "attention": nn.MultiheadAttention(64, 4, batch_first=True).eval(),
        "encoder": nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval(),
    }  # fmt: skip
    for name in ("x4", "m", "spd", "table", "grid"):
        values[name + "g"] = values[name].clone().requires_grad_()
    return values


for _statement in _STATEMENTS.split("\n"):
    if _statement:
        group.add(_statement, _statement, _values, seconds=0.05)

"""Archives that PyTorch wrote, exported to ONNX: what ONNX Runtime gives is what PyTorch gives."""

from __future__ import annotations

import io

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")
nn = torch.nn
pytestmark = pytest.mark.parity


class First(nn.Module):
    """The first result of a layer that gives several."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x)[0]


class Sentences(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.layer = nn.GRU(16, 24, bidirectional=True)

    def forward(self, x):
        outputs, last = self.layer(self.embedding(x).transpose(0, 1))
        return outputs[-1] + last.flatten(0, 1)[:1].sum()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x)[0]


class Causal(nn.Module):
    def forward(self, x):
        heads = x.unflatten(-1, [4, 8]).transpose(1, 2)
        seen = nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        return seen.transpose(1, 2).flatten(2)


class Branches(nn.Module):
    def forward(self, x):
        if torch.is_grad_enabled() and x.requires_grad:
            return x
        y = x * 2 if x.size(0) > 2 else x - 1
        for i in range(3):
            y = y + i
        z = torch.zeros_like(y)
        z[:, 0] = y[:, 1]
        kind = torch.promote_types(x.dtype, torch.float64)
        return torch.cat([y, z], 1).to(kind)


IMAGES = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding="same"), nn.BatchNorm2d(8), nn.SiLU(), nn.MaxPool2d(2),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4), nn.Softmax(-1),
)  # fmt: skip
LARGER = nn.Sequential(
    nn.ConvTranspose2d(3, 4, 2, 2), nn.GroupNorm(2, 4), nn.PixelShuffle(2), nn.Hardswish(),
    nn.Upsample(scale_factor=2, mode="bilinear"),
)  # fmt: skip
NORMALIZED = nn.Sequential(
    nn.LayerNorm(7), nn.GELU(), nn.PReLU(), nn.InstanceNorm1d(5), nn.Dropout(), nn.LogSoftmax(1)
)
CASES = {
    "LSTM": (First(nn.LSTM(16, 24, 2, batch_first=True)), (3, 5, 16)),
    "LSTM both ways": (First(nn.LSTM(16, 24, bidirectional=True)), (3, 5, 16)),
    "RNN": (First(nn.RNN(16, 24, nonlinearity="relu")), (3, 5, 16)),
    "sentences": (Sentences(), None),
    "attention": (Attention(), (2, 6, 32)),
    "causal attention": (Causal(), (2, 6, 32)),
    "encoder": (nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), (2, 6, 32)),
    "decoder's norm first": (nn.TransformerEncoderLayer(32, 4, 64, norm_first=True), (2, 6, 32)),
    "branches": (Branches(), (3, 5)),
    "images": (IMAGES, (2, 3, 9, 9)),
    "larger images": (LARGER, (2, 3, 5, 5)),
    "normalized": (NORMALIZED, (2, 5, 7)),
}


ALL = [(name, how) for name in CASES for how in ("script", "trace", "freeze")]
ALL.remove(("branches", "trace"))  # a trace has none


@pytest.mark.filterwarnings("ignore")  # PyTorch warns while it traces its own layers
@pytest.mark.parametrize("name, how", ALL)
def test_archives(name, how):
    module, sizes = CASES[name]
    module = module.eval()
    x = torch.randn(sizes) if sizes else torch.randint(0, 50, (3, 7))
    if how == "trace":
        program = torch.jit.trace(module, x, check_trace=False)
    else:
        program = torch.jit.script(module)
    if how == "freeze":
        program = torch.jit.freeze(program)
    archive, model = io.BytesIO(), io.BytesIO()
    torch.jit.save(program, archive)
    archive.seek(0)
    example = weft.from_numpy(x.numpy())
    weft.onnx.export(weft.jit.load(archive), (example,), model, input_names=["x"])
    session = onnxruntime.InferenceSession(model.getvalue(), providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {"x": x.numpy()})
    want = program(x).detach().numpy()
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)

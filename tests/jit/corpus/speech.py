"""Speech: spectra, filter banks, subsampling with lengths, streams of frames."""

import math

import weft as torch
from weft import Tensor, nn
from weft.nn import functional as F


def hertz_to_mel(frequency: float, kind: str = "htk") -> float:
    if kind not in ["htk", "slaney"]:
        raise ValueError('kind must be "htk" or "slaney"')
    if kind == "htk":
        return 2595.0 * math.log10(1.0 + frequency / 700.0)
    mel = frequency / (200.0 / 3)
    if frequency >= 1000.0:
        mel = 15.0 + math.log(frequency / 1000.0) / (math.log(6.4) / 27.0)
    return mel


def filter_bank(bins: int, low: float, high: float, filters: int, rate: int) -> Tensor:
    all_frequencies = torch.linspace(0, rate // 2, bins)
    start, end = hertz_to_mel(low), hertz_to_mel(high)
    mel = torch.linspace(start, end, filters + 2)
    points = 700.0 * (10.0 ** (mel / 2595.0) - 1.0)
    widths = points[1:] - points[:-1]
    slopes = points.unsqueeze(0) - all_frequencies.unsqueeze(1)
    down = (-1.0 * slopes[:, :-2]) / widths[:-1]
    up = slopes[:, 2:] / widths[1:]
    return torch.max(torch.zeros(1), torch.min(down, up))


class LogMel(nn.Module):
    """Frames, window, Fourier matrix, filter bank, logarithm."""

    def __init__(self, size: int = 16, hop: int = 8, filters: int = 5):
        super().__init__()
        self.size, self.hop = size, hop
        angles = 2 * math.pi / size * torch.outer(torch.arange(size), torch.arange(size // 2 + 1))
        self.register_buffer("cos", torch.cos(angles))
        self.register_buffer("sin", torch.sin(angles))
        self.register_buffer(
            "window", 0.5 - 0.5 * torch.cos(2 * math.pi * torch.arange(size) / size)
        )
        self.register_buffer("bank", filter_bank(size // 2 + 1, 0.0, 4000.0, filters, 8000))
        self.preemphasis: float | None = 0.97

    def forward(self, wave: Tensor) -> Tensor:
        preemphasis = self.preemphasis
        if preemphasis is not None:
            wave = torch.cat([wave[:, :1], wave[:, 1:] - preemphasis * wave[:, :-1]], dim=1)
        frames: list[Tensor] = []
        for start in range(0, wave.size(-1) - self.size + 1, self.hop):
            frames.append(wave[:, start : start + self.size] * self.window)
        framed = torch.stack(frames, 1)
        power = (framed @ self.cos).square() + (framed @ self.sin).square()
        mel = torch.log(power @ self.bank + 1e-6)
        return mel - mel.mean(1, keepdim=True)


class Subsample(nn.Module):
    """Two strided convolutions; the lengths of the rows shrink with them."""

    def __init__(self, features: int = 8, size: int = 6):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 3, 3, 2, 1), nn.ReLU(), nn.Conv2d(3, 3, 3, 2, 1), nn.ReLU()
        )
        self.out = nn.Linear(3 * (features // 4), size)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        y = self.conv(x.unsqueeze(1))
        b, c, t, f = y.size()
        y = self.out(y.transpose(1, 2).contiguous().view(b, t, c * f))
        if lengths is None:
            return y, None
        for _ in range(2):
            lengths = (lengths + 1) // 2
        mask = torch.arange(t)[None, :] < lengths[:, None]
        return y * mask.unsqueeze(-1), lengths


class Deltas(nn.Module):
    def __init__(self, reach: int = 2):
        super().__init__()
        self.reach = reach

    def forward(self, x: Tensor) -> Tensor:
        n = self.reach
        edges = [x[:, :1].expand(-1, n, -1), x, x[:, -1:].expand(-1, n, -1)]
        padded = torch.cat(edges, 1)
        total = torch.zeros_like(x)
        for k in range(1, n + 1):
            later = padded[:, n + k : n + k + x.size(1)]
            total = total + k * (later - padded[:, n - k : n - k + x.size(1)])
        return total / (2.0 * sum([k * k for k in range(1, n + 1)]))


class GatedWaves(nn.Module):
    """Dilated causal convolutions with gates and skips."""

    def __init__(self, channels: int = 3, depth: int = 3):
        super().__init__()
        self.convs = nn.ModuleList(
            [nn.Conv1d(channels, 2 * channels, 2, dilation=2**i) for i in range(depth)]
        )
        self.skips = nn.ModuleList([nn.Conv1d(channels, 2, 1) for _ in range(depth)])

    def forward(self, x: Tensor) -> Tensor:
        total = torch.zeros(1)
        for i, (conv, skip) in enumerate(zip(self.convs, self.skips)):
            pad = torch.zeros(x.size(0), x.size(1), 2**i)
            a, b = conv(torch.cat([pad, x], dim=2)).chunk(2, dim=1)
            y = torch.tanh(a) * torch.sigmoid(b)
            total = total + skip(y)
            x = (x + y) * math.sqrt(0.5)
        return F.relu(total)


class VoiceActivity(nn.Module):
    """A small network per frame, then a state machine over the frames: (start, end) of the speech."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        self.hang: int = 2

    def segments(self, active: list[bool]) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        start, silent = -1, 0
        for i, on in enumerate(active):
            if on:
                if start < 0:
                    start = i
                silent = 0
            elif start >= 0:
                silent += 1
                if silent >= self.hang:
                    found.append((start, i - silent + 1))
                    start, silent = -1, 0
        if start >= 0:
            found.append((start, len(active)))
        return found

    def forward(self, x: Tensor) -> tuple[Tensor, list[tuple[int, int]]]:
        p = torch.sigmoid(self.net(x)).squeeze(-1)
        active = [bool(v > 0.5) for v in p]
        return p, self.segments(active)


class StreamingConv(nn.Module):
    """Keeps the last frames from call to call."""

    history: Tensor

    def __init__(self, channels: int = 2):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3)
        self.register_buffer("history", torch.zeros(1, channels, 2))
        self.calls = 0

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        joined = torch.cat([self.history, x], dim=-1)
        self.history = joined[:, :, -2:].detach()
        self.calls += 1
        return self.conv(joined), self.calls


CASES = {
    "filter bank": (lambda: filter_bank, lambda: (9, 100.0, 3500.0, 4, 8000)),
    "log mel": (LogMel, lambda: (torch.randn(2, 40),)),
    "subsample": (Subsample, lambda: (torch.randn(2, 9, 8), torch.tensor([9, 4]))),
    "subsample without lengths": (Subsample, lambda: (torch.randn(2, 9, 8),)),
    "deltas": (Deltas, lambda: (torch.randn(1, 5, 3),)),
    "gated waves": (GatedWaves, lambda: (torch.randn(1, 3, 6),)),
    "voice activity": (VoiceActivity, lambda: (torch.randn(12, 3) * 3,)),
    "streaming conv": (StreamingConv, lambda: (torch.randn(1, 2, 4),)),
}  # fmt: skip

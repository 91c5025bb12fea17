"""Transformers: encoders, decoders with a cache, other kinds of attention, experts."""

import math
from typing import NamedTuple

import weft as torch
from weft import Tensor, nn
from weft.nn import functional as F


class SelfAttention(nn.Module):
    def __init__(self, size: int, heads: int):
        super().__init__()
        self.heads = heads
        self.scale = 1.0 / math.sqrt(size // heads)
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        b, t, c = x.shape
        qkv = self.qkv(x).reshape(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        scores = torch.matmul(q, k.transpose(-2, -1)) * self.scale
        if mask is not None:
            scores = scores.masked_fill(mask, float("-inf"))
        weights = F.softmax(scores, dim=-1)
        y = (weights @ v).transpose(1, 2).reshape(b, t, c)
        return self.out(y), weights


class EncoderLayer(nn.Module):
    def __init__(self, size: int, heads: int, norm_first: bool):
        super().__init__()
        self.attention = SelfAttention(size, heads)
        self.norm1 = nn.LayerNorm(size)
        self.norm2 = nn.LayerNorm(size)
        self.mlp = nn.Sequential(nn.Linear(size, 2 * size), nn.GELU(), nn.Linear(2 * size, size))
        self.norm_first = norm_first

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if self.norm_first:
            x = x + self.attention(self.norm1(x), mask)[0]
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask)[0])
        return self.norm2(x + self.mlp(x))


class Encoder(nn.Module):
    def __init__(self, norm_first: bool = False):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.positions = nn.Parameter(torch.randn(1, 6, 8) * 0.02)
        self.layers = nn.ModuleList([EncoderLayer(8, 2, norm_first) for _ in range(2)])
        self.dropout = nn.Dropout(0.2)

    def forward(self, tokens: Tensor, causal: bool = False) -> Tensor:
        length = tokens.size(1)
        mask: Tensor | None = None
        if causal:
            mask = torch.ones(length, length).triu(1) > 0
        x = self.dropout(self.embed(tokens) + self.positions[:, :length])
        for layer in self.layers:
            x = layer(x, mask)
        return x


class CachedDecoder(nn.Module):
    """Greedy generation with the keys and values of earlier steps in a dict."""

    def __init__(self, size: int = 6, words: int = 9):
        super().__init__()
        self.embed = nn.Embedding(words, size)
        self.q = nn.ModuleList([nn.Linear(size, size) for _ in range(2)])
        self.kv = nn.ModuleList([nn.Linear(size, 2 * size) for _ in range(2)])
        self.norm = nn.LayerNorm(size)

    def step(self, token: Tensor, cache: dict[str, Tensor]) -> Tensor:
        x = self.embed(token)
        for i, (q, kv) in enumerate(zip(self.q, self.kv)):
            name = f"layer{i}"
            new = kv(self.norm(x)).unsqueeze(0)
            if name in cache:
                new = torch.cat([cache[name], new])
            cache[name] = new
            k, v = new.chunk(2, dim=-1)
            weights = torch.softmax((k @ q(x)) / math.sqrt(k.size(-1)), 0)
            x = x + (weights.unsqueeze(-1) * v).sum(0)
        return self.embed.weight @ x

    def forward(self, prompt: list[int], most: int = 4) -> tuple[list[int], Tensor]:
        cache: dict[str, Tensor] = {}
        logits = torch.zeros(1)
        for word in prompt:
            logits = self.step(torch.tensor(word), cache)
        words = prompt.copy()
        while len(words) < len(prompt) + most:
            words.append(int(logits.argmax()))
            logits = self.step(torch.tensor(words[-1]), cache)
            if words[-1] == 0:
                break
        return words, logits


def rotate_half(x: Tensor) -> Tensor:
    left, right = x.chunk(2, dim=-1)
    return torch.cat((-right, left), dim=-1)


class RotaryAttention(nn.Module):
    """Rotary positions, grouped keys, and RMS norms."""

    def __init__(self, size: int = 8, heads: int = 4, groups: int = 2):
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, size // heads
        self.q = nn.Linear(size, size, bias=False)
        self.k = nn.Linear(size, groups * self.head, bias=False)
        self.v = nn.Linear(size, groups * self.head, bias=False)
        self.norm_weight = nn.Parameter(torch.ones(size))
        frequencies = 1.0 / (10000 ** (torch.arange(0, self.head, 2).float() / self.head))
        self.register_buffer("frequencies", frequencies, persistent=False)

    def norm(self, x: Tensor, eps: float = 1e-5) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * self.norm_weight

    def split_heads(self, x: Tensor, n: int) -> Tensor:
        return x.view(x.size(0), x.size(1), n, self.head).transpose(1, 2)

    def forward(self, x: Tensor, offset: int = 0) -> Tensor:
        b, t, c = x.size()
        y = self.norm(x)
        positions = torch.arange(offset, offset + t, dtype=torch.float32)
        angles = torch.outer(positions, self.frequencies)
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos(), angles.sin()
        q = self.split_heads(self.q(y), self.heads)
        k = self.split_heads(self.k(y), self.groups)
        v = self.split_heads(self.v(y), self.groups)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        k = k.repeat_interleave(self.heads // self.groups, dim=1)
        v = v.repeat_interleave(self.heads // self.groups, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + y.transpose(1, 2).reshape(b, t, c)


class RelativeBias(nn.Module):
    """Distances put into buckets, as biases of the scores."""

    def __init__(self, buckets: int = 6, heads: int = 2):
        super().__init__()
        self.buckets = buckets
        self.table = nn.Embedding(buckets, heads)

    def bucket(self, distance: int) -> int:
        exact = self.buckets // 2
        distance = abs(distance)
        if distance < exact:
            return distance
        far = exact + int(math.log(distance / exact) / math.log(4.0) * exact)
        return min(far, self.buckets - 1)

    def forward(self, queries: int, keys: int) -> Tensor:
        rows = [[self.bucket(j - i) for j in range(keys)] for i in range(queries)]
        return self.table(torch.tensor(rows)).permute(2, 0, 1)


class Routing(NamedTuple):
    output: Tensor
    load: Tensor
    dropped: int


class Experts(nn.Module):
    """Each row goes to its best experts, as far as these have room."""

    def __init__(self, size: int = 4, experts: int = 3, capacity: int = 3):
        super().__init__()
        self.router = nn.Linear(size, experts)
        self.experts = nn.ModuleList([nn.Linear(size, size) for _ in range(experts)])
        self.capacity = capacity

    def forward(self, x: Tensor) -> Routing:
        weights, choices = torch.softmax(self.router(x), -1).topk(2, dim=-1)
        output = torch.zeros_like(x)
        load: list[int] = []
        dropped = 0
        for index, expert in enumerate(self.experts):
            rows, slots = torch.where(choices == index)
            if rows.numel() > self.capacity:
                dropped += rows.numel() - self.capacity
                rows, slots = rows[: self.capacity], slots[: self.capacity]
            load.append(rows.numel())
            if rows.numel() == 0:
                continue
            picked = expert(x[rows]) * weights[rows, slots].unsqueeze(-1)
            output = output.index_add(0, rows, picked)
        return Routing(output, torch.tensor(load), dropped)


class LinearAttention(nn.Module):
    """Causal attention as a running sum."""

    def __init__(self, size: int = 4):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1, self.v(x)
        memory = torch.zeros(x.size(-1), x.size(-1))
        total = torch.zeros(x.size(-1))
        out: list[Tensor] = []
        for t in range(x.size(0)):
            memory = memory + torch.outer(k[t], v[t])
            total = total + k[t]
            out.append((q[t] @ memory) / (q[t].dot(total) + 1e-6))
        return torch.stack(out)


class PatchTransformer(nn.Module):
    """A picture cut into patches, with a class token."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 2, 2)
        self.token = nn.Parameter(torch.zeros(1, 1, 8))
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", norm_first=True, batch_first=True),
            1,
            enable_nested_tensor=False,
        )
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.size(0), -1, -1), x], dim=1)
        return self.head(self.encoder(x)[:, 0])


TOKENS = [[1, 2, 3, 4], [5, 6, 7, 10]]
CASES = {
    "encoder": (Encoder, lambda: (torch.tensor(TOKENS),)),
    "causal encoder, norms first": (lambda: Encoder(True), lambda: (torch.tensor(TOKENS), True)),
    "cached decoder": (CachedDecoder, lambda: ([3, 5], 4)),
    "rotary attention": (RotaryAttention, lambda: (torch.randn(2, 3, 8), 2)),
    "relative bias": (RelativeBias, lambda: (4, 6)),
    "experts": (Experts, lambda: (torch.randn(6, 4),)),
    "linear attention": (LinearAttention, lambda: (torch.randn(5, 4),)),
    "patch transformer": (PatchTransformer, lambda: (torch.randn(2, 3, 4, 4),)),
}  # fmt: skip

"""Operators on DTensors of all placements: values and gradients are those of the plain tensors."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

from tensors import ME, MESH, N, close, made, placed

import weft
from weft import nn
from weft.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

F = nn.functional
Case = tuple[str, Callable[..., Any], list[tuple[int, ...]]]


def ints(like: Any, *values: int, size: tuple[int, ...] = (-1,), cut: int | None = None) -> Any:
    """Numbers beside a tensor: a DTensor beside one."""
    made = weft.tensor(values).view(size)
    if not isinstance(like, DTensor):
        return made
    return distribute_tensor(made, MESH, [Replicate() if cut is None else Shard(cut)])


def seeded(x: Any) -> Any:
    weft.manual_seed(7)
    return x


def entropy(x: Any, target: Any, **options: Any) -> Any:
    return F.cross_entropy(x, target, **options) * 2


ONE = [(6, 12)]
TWO = [(6, 12), (6, 12)]
CASES: list[Case] = [
    ("add", lambda a, b: a + b, TWO),
    ("sub", lambda a, b: a - b * 2, [(6, 12), (12,)]),
    ("mul", lambda a, b: a * b, [(6, 12), (6, 1)]),
    ("div", lambda a, b: a / (b + 3), [(5, 3), (5, 3)]),
    ("scalar", lambda a: (2 - a) * 3 / 4, [(5, 3)]),
    ("tanh", lambda a: a.tanh().exp(), [(5, 3)]),
    ("where", lambda a, b: weft.where(a > 0, a, b), TWO),
    ("masked_fill", lambda a: a.masked_fill(a > 0, -1.0), ONE),
    ("gelu", lambda a: F.gelu(a) + F.silu(a) + F.relu(a), ONE),
    ("clamp", lambda a: a.clamp(-0.5, 0.5), ONE),
    ("pow", lambda a: a.pow(2) + a.square() + a**3, ONE),
    ("matmul", lambda a, b: a @ b, [(6, 12), (12, 5)]),
    ("mm", weft.mm, [(5, 3), (3, 7)]),
    ("addmm", weft.addmm, [(4,), (5, 3), (3, 4)]),
    ("linear", F.linear, [(6, 12), (5, 12), (5,)]),
    ("linear 3", F.linear, [(2, 3, 12), (6, 12), (6,)]),
    ("bmm", weft.bmm, [(3, 6, 4), (3, 4, 5)]),
    ("batched", lambda a, b: a @ b, [(2, 3, 6, 4), (3, 4, 5)]),
    ("vectors", lambda a, b: (a @ b) * 2, [(6,), (6,)]),
    ("mv", lambda a, b: a @ b, [(6, 4), (4,)]),
    ("einsum", lambda a, b: weft.einsum("bij,bkj->bik", a, b), [(3, 6, 4), (3, 5, 4)]),
    ("sum", lambda a: a.sum(), ONE),
    ("sum 0", lambda a: a.sum(0) * a.sum(1, keepdim=True), [(5, 3)]),
    ("mean", lambda a: a.mean(), [(5, 3)]),
    ("mean 1", lambda a: a.mean(-1) + a.mean((0, 1)), [(5, 3)]),
    ("max", lambda a: a.max() * 2, ONE),
    ("amax", lambda a: a.amax(0), [(6, 12)]),
    ("max 1", lambda a: a.max(1).values, [(5, 3)]),
    ("var", lambda a: a.var(0) + a.std(1).sum(), [(5, 3)]),
    ("norm", lambda a: a.norm() + a.norm(dim=1).sum(), ONE),
    ("prod", lambda a: a.prod(1), [(5, 3)]),
    ("cumsum", lambda a: a.cumsum(1), ONE),
    ("softmax", lambda a: a.softmax(-1), ONE),
    ("softmax 0", lambda a: F.log_softmax(a, 0), ONE),
    ("logsumexp", lambda a: a.logsumexp(1), ONE),
    ("layer_norm", lambda a, w, b: F.layer_norm(a, (12,), w, b), [(6, 12), (12,), (12,)]),
    ("rms_norm", lambda a, w: F.rms_norm(a, (12,), w), [(6, 12), (12,)]),
    ("t", lambda a: a.t() @ a, ONE),
    ("transpose", lambda a: a.transpose(1, 2).contiguous(), [(2, 3, 12)]),
    ("permute", lambda a: a.permute(2, 0, 1), [(2, 3, 12)]),
    ("movedim", lambda a: a.movedim(0, 2), [(2, 3, 12)]),
    ("view", lambda a: a.view(6, 3, 4).view(6, 12).view(2, 3, 12), ONE),
    ("flatten", lambda a: a.flatten() * 2, [(2, 3, 12)]),
    ("unflatten", lambda a: a.unflatten(1, (4, -1)), [(6, 12)]),
    ("reshape", lambda a: a.reshape(-1, 12), [(2, 3, 12)]),
    ("squeeze", lambda a: a.unsqueeze(1).squeeze(1).unsqueeze(-1), [(5, 3)]),
    ("squeeze all", lambda a: a.squeeze() + a.squeeze(1) .squeeze(-1), [(6, 1, 12)]),
    ("roll", lambda a: a.roll(2) + a.roll((1, 1), (0, 1)) + a.flip(1), ONE),
    ("cummax", lambda a: a.cummax(0).values + a.cumprod(1), ONE),
    ("image", lambda a, w: F.conv2d(a, w) * F.max_pool2d(a, 2)[:1, :1, :1], [(2, 6, 5), (3, 2, 2, 2)]),
    ("group_norm", lambda a: F.group_norm(a, 2), [(6, 4, 3)]),
    ("median", lambda a: a.median(1).values + a.median(), [(5, 3)]),
    ("argmax", lambda a: weft.where(a.argmax(1, keepdim=True) > a.argmax() % 3, a, -a), [(5, 3)]),
    ("loss", lambda a, b: F.l1_loss(a, b) + F.huber_loss(a, b), TWO),
    ("glu", lambda a: F.glu(a) * F.normalize(a[:, :6], dim=1), ONE),
    ("pad", lambda a: F.pad(a, (1, 1)), ONE),
    ("expand", lambda a: a.expand(2, 5, 3), [(5, 3)]),
    ("select", lambda a: a[1] + a[0, :], [(5, 3)]),
    ("slice", lambda a: a[:, 1:3] * a[..., :2], [(5, 3)]),
    ("index", lambda a: a[[0, 2, 2]], [(5, 3)]),
    ("cat", lambda a, b: weft.cat([a, b]), TWO),
    ("cat of sizes", lambda a, b: weft.cat([a, b], -1), [(6, 12), (6, 4)]),
    ("index of two", lambda a: a[[0, 1], [2, 0]] + a[a > 5].sum(), [(5, 3)]),
    ("scatter", lambda a: a.scatter(1, ints(a, *[0, 11, 4] * 6, size=(6, 3)), 2.0), ONE),
    ("stack", lambda a, b: weft.stack([a, b], 1), TWO),
    ("chunk", lambda a: sum(a.chunk(3, 1)), ONE),
    ("split", lambda a: a.split([2, 4])[1], ONE),
    ("unbind", lambda a: a.unbind(1)[2], ONE),
    ("tril", lambda a: a.tril(), ONE),
    ("sort", lambda a: a.sort(1).values + a.topk(12, 1).values, ONE),
    ("to", lambda a: a.to(weft.float32).double() + a.clone(), ONE),
    ("zeros", lambda a: a + weft.zeros_like(a) + weft.ones_like(a) + a.new_ones(12), ONE),
    (
        "attention",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, 4, 3, 5)] * 3,
    ),
    ("mse_loss", F.mse_loss, TWO),
    ("embedding", lambda w: F.embedding(ints(w, 0, 4, 5, 3, size=(2, 2)), w), ONE),
    ("embedding 0", lambda w: F.embedding(ints(w, 5, 0, 4, 1, 3, cut=0), w, padding_idx=4), ONE),
    ("embedding_bag", lambda w: F.embedding_bag(ints(w, 0, 4, 5, 3, size=(2, 2)), w), ONE),
    ("gather", lambda a: a.gather(1, ints(a, *[0, 11, 4] * 6, size=(6, 3))), ONE),
    ("gather 0", lambda a: a.gather(0, ints(a, *[1, 0, 4] * 2, size=(2, 3), cut=0)), [(5, 3)]),
    ("index 0", lambda a: a[:, ints(a, 0, 2, 2, cut=0)], [(5, 3)]),
    ("index_select", lambda a: a.index_select(1, ints(a, 0, 2, 2, cut=0)), [(5, 3)]),
    ("cross_entropy", lambda a: entropy(a, ints(a, 0, 2, 2, 11, 7, 1)), ONE),
    ("cross_entropy 0", lambda a: entropy(a, ints(a, 0, 2, -100, 11, 7, 1, cut=0)), ONE),
    ("smooth", lambda a: entropy(a, ints(a, 0, 2, 1, 0, 1), label_smoothing=0.2), [(5, 3)]),
    ("weighted", lambda a, w: entropy(a, ints(a, 0, 2, 1, 0, 1), weight=w.detach().abs()),
     [(5, 3), (3,)]),
    ("entropy of places", lambda a: entropy(a, ints(a, 1, 0, 1, 1, size=(2, 2)), reduction="sum"),
     [(2, 3, 2)]),
    ("probabilities", lambda a, b: entropy(a, b.detach().softmax(1)), TWO),
    ("nll_loss", lambda a: F.nll_loss(a, ints(a, 0, 2, 1, 0, 1), reduction="none"), [(5, 3)]),
    ("bce", lambda a, b: F.binary_cross_entropy_with_logits(a, b.detach().sigmoid()), TWO),
    ("dropout", lambda a: F.dropout(seeded(a), 0.4), ONE),
    ("rand_like", lambda a: weft.rand_like(seeded(a)) * a, ONE),
    ("conv2d", F.conv2d, [(6, 2, 5, 5), (3, 2, 2, 2), (3,)]),
    ("repeat_interleave", lambda a: a.repeat_interleave(2, 0), ONE),
]  # fmt: skip


def check(case: Case, placements: tuple[Any, ...]) -> None:
    name, function, sizes = case
    what = f"{name} of {placements} on {N}"
    plain = [made(*size, seed=float(i)).requires_grad_() for i, size in enumerate(sizes)]
    expected = function(*plain)
    weight = made(*expected.shape, seed=5.0)
    (expected * weight).sum().backward()
    here = [placed(x.detach(), each) for x, each in zip(plain, placements)]
    got = function(*here)
    assert got.shape == expected.shape, f"{what}: {got.shape} is not {expected.shape}"
    local = got.to_local().shape
    assert tuple(local) == got._layout.local_shape(), f"{what}: {local} of {got.placements}"
    close(what, got.full_tensor(), expected)
    (got * placed(weight, Replicate())).sum().backward()
    for x, other in zip(here, plain):
        if other.grad is not None:
            close(f"{what}: gradient", x.grad.full_tensor(), other.grad)


def placements_of(size: tuple[int, ...]) -> list[Any]:
    return [Replicate(), Partial(), *map(Shard, range(len(size)))]


def check_cases() -> None:
    for case in CASES:
        for placements in itertools.product(*map(placements_of, case[2])):
            try:
                check(case, placements)
            except Exception as error:
                error.add_note(f"{case[0]} {placements}")
                raise


if __name__ == "__main__":
    if len(sys.argv) > 1:
        CASES[:] = [case for case in CASES if case[0] in sys.argv[1:]]
    check_cases()
    assert MESH.size() > ME

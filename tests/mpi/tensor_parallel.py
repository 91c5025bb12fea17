"""Modules that are cut over processes train as the plain modules do."""

from __future__ import annotations

import copy
import shutil
import tempfile
import warnings
from typing import Any

from tensors import MESH, N, close, fails, made

import weft
import weft.distributed as dist
from weft import nn
from weft.distributed.tensor import (
    DTensor,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
)
from weft.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleInputOutput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

F = nn.functional
WORDS, WIDTH, HEADS, LENGTH = 24, 24, 12, 12


def mlp(hidden: int) -> Any:
    weft.manual_seed(3)
    return nn.Sequential(nn.Linear(6, hidden), nn.GELU(), nn.Linear(hidden, 5)).double()


def grads_equal(what: str, module: Any, plain: Any) -> None:
    for (name, one), (_, other) in zip(module.named_parameters(), plain.named_parameters()):
        grad = one.grad.full_tensor() if isinstance(one, DTensor) else one.grad
        close(f"{what}: gradient of {name}", grad, other.grad)


def check_mlp() -> None:
    train_mlp(12, use_local_output=True)
    train_mlp(10, use_local_output=False)  # parts of several sizes


def train_mlp(hidden: int, use_local_output: bool) -> None:
    plain = mlp(hidden)
    first = ColwiseParallel(use_local_output=use_local_output)
    module = parallelize_module(copy.deepcopy(plain), MESH, {"0": first, "2": RowwiseParallel()})
    assert [p.placements for p in module.parameters()] == [
        *((Shard(0),), (Shard(0),), (Shard(1),), (Replicate(),))
    ]
    optimizers = [weft.optim.AdamW(each.parameters(), 0.1) for each in (plain, module)]
    for step in range(3):
        x = made(4, 6, seed=float(step)).requires_grad_()
        other = x.detach().clone().requires_grad_()
        expected, got = plain(x), module(other)
        close("mlp", got, expected)
        expected.pow(3).sum().backward()
        got.pow(3).sum().backward()
        close("mlp: gradient of the input", other.grad, x.grad)
        grads_equal("mlp", module, plain)
        for each in optimizers:
            each.step()
            each.zero_grad()


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Any) -> Any:
        batch, length, _ = x.shape
        q, k, v = (
            each(x).view(batch, length, -1, WIDTH // HEADS).transpose(1, 2)
            for each in (self.q, self.k, self.v)
        )
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(found.transpose(1, 2).reshape(batch, length, -1))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)
        self.scores = nn.Linear(WIDTH, WORDS)

    def forward(self, x: Any) -> Any:
        x = self.words(x)
        for layer in self.layers:
            x = layer(x)
        return self.scores(self.norm(x))


COLUMNS, ROWS = ColwiseParallel, RowwiseParallel
TENSOR_PLAN = {
    "words": ROWS(input_layouts=Replicate()),
    **{f"layers.*.attention.{name}": COLUMNS() for name in "qkv"},
    "layers.*.attention.out": ROWS(),
    "layers.*.up": COLUMNS(),
    "layers.*.down": ROWS(),
    "scores": COLUMNS(output_layouts=Replicate()),
}
# Between the layers each process has some places of the sequences.
SEQUENCE_PLAN = {
    "words": ROWS(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False),
    "layers.*.norm1": SequenceParallel(),
    "layers.*.norm2": SequenceParallel(),
    "layers.*.attention": PrepareModuleInput(
        input_layouts=Shard(1), desired_input_layouts=Replicate()
    ),
    **{f"layers.*.attention.{name}": COLUMNS(use_local_output=False) for name in "qkv"},
    "layers.*.attention.out": ROWS(output_layouts=Shard(1), use_local_output=False),
    "layers.*.up": COLUMNS(input_layouts=Shard(1), use_local_output=False),
    "layers.*.down": ROWS(output_layouts=Shard(1), use_local_output=False),
    "norm": SequenceParallel(),
    "scores": COLUMNS(input_layouts=Shard(1), use_local_output=False),
}


def check_transformer() -> None:
    weft.manual_seed(1)
    plain = Model().double()
    words = weft.arange(2 * LENGTH).mul(7).remainder(WORDS).view(2, LENGTH)
    targets = words.roll(1, 1)
    for plan in (TENSOR_PLAN, SEQUENCE_PLAN):
        reference = copy.deepcopy(plain)
        module = parallelize_module(copy.deepcopy(plain), MESH, plan)
        optimizers = [weft.optim.AdamW(m.parameters(), 0.01) for m in (reference, module)]
        for _ in range(2):
            expected = F.cross_entropy(reference(words).flatten(0, 1), targets.flatten())
            with loss_parallel():
                scores = module(words)
                loss = F.cross_entropy(scores.flatten(0, 1), targets.flatten())
                loss.backward()
            expected.backward()
            close("loss", loss.full_tensor() if isinstance(loss, DTensor) else loss, expected)
            grads_equal("transformer", module, reference)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()


def check_modules() -> None:
    plain = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6)).double()
    module = distribute_module(copy.deepcopy(plain), MESH)
    assert all(isinstance(each, DTensor) for each in module.state_dict().values())
    assert all(isinstance(each, nn.Parameter) for each in module.parameters())

    def cut(name: str, each: Any, mesh: Any) -> None:
        if isinstance(each, nn.Linear):
            each.weight = nn.Parameter(distribute_tensor(each.weight.detach(), mesh, [Shard(0)]))

    linear = distribute_module(
        copy.deepcopy(plain[0]),
        MESH,
        cut,
        lambda _, inputs, mesh: (distribute_tensor(inputs[0], mesh, [Shard(0)]),),
        lambda _, output, mesh: output.full_tensor(),
    )
    assert [p.placements for p in linear.parameters()] == [(Shard(0),), (Replicate(),)]
    close("distribute_module", linear(made(5, 4)), plain[0](made(5, 4)))
    linear.float()
    assert linear.weight.dtype == weft.float32 and isinstance(linear.weight, DTensor)
    again = copy.deepcopy(linear)
    again.load_state_dict(linear.state_dict())
    nn.utils.clip_grad_norm_(linear.parameters(), 1.0)


def check_checkpoints() -> None:
    """What one way of cutting wrote, another reads, and a plain module; at most one row a process."""
    plans: list[Any] = [
        {"0": ColwiseParallel(), "2": RowwiseParallel()},
        {"0": RowwiseParallel(), "2": ColwiseParallel()},
    ]
    modules = [parallelize_module(mlp(12), MESH, plan) for plan in plans]
    for p in modules[0].parameters():
        p.detach().mul_(2).add_(1)
    saved: dict[str, Any] = {"step": 3, "model": modules[0].state_dict()}
    folder = [tempfile.mkdtemp()]
    dist.broadcast_object_list(folder)
    dist.checkpoint.save(saved, checkpoint_id=folder[0])
    plain = mlp(12)
    for module in (modules[1], plain):
        state: dict[str, Any] = {"step": 0, "model": module.state_dict()}
        dist.checkpoint.load(state, checkpoint_id=folder[0])
        assert state["step"] == 3
        for one, other in zip(module.parameters(), modules[0].parameters()):
            whole = one.full_tensor() if isinstance(one, DTensor) else one
            close("checkpoint", whole, other.full_tensor())
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(folder[0])


def check_two_dimensions() -> None:
    """Features cut along one dimension of a mesh, batches along the other."""
    if N != 4:
        return
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("batches", "features"))
    plain, x, place = mlp(12), made(4, 6), mesh.get_local_rank("batches")
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    module = parallelize_module(copy.deepcopy(plain), mesh["features"], plan)
    module(x[2 * place : 2 * place + 2]).pow(2).sum().backward()
    plain(x).pow(2).sum().backward()
    for one, other in zip(module.parameters(), plain.parameters()):
        grad = one.grad.full_tensor()
        dist.all_reduce(grad, group=mesh.get_group("batches"))
        close("two dimensions", grad, other.grad)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).double()
    whole = distribute_module(copy.deepcopy(layer), mesh)
    batch = distribute_tensor(made(4, 3, 8), mesh, [Shard(0), Replicate()])
    result = whole(batch)
    assert result.placements == (Shard(0), Replicate())
    close("encoder layer", result.full_tensor(), layer_of(whole)(made(4, 3, 8)))


def layer_of(module: Any) -> Any:
    """The plain module of one with DTensors."""
    plain = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).double()
    plain.load_state_dict({name: x.full_tensor() for name, x in module.state_dict().items()})
    return plain


class Named(nn.Module):
    def forward(self, x: Any, *, mask: Any = None) -> Any:
        assert (x.placements, mask.placements) == ((Replicate(),), (Shard(0),))
        return x.redistribute(placements=[Shard(0)]) * mask, x


def check_styles() -> None:
    layouts: Any = {
        "input_layouts": Shard(0),
        "desired_input_layouts": Replicate(),
        "input_kwarg_layouts": {"mask": Replicate()},
        "desired_input_kwarg_layouts": {"mask": Shard(0)},
    }
    results: Any = {
        "output_layouts": (Shard(0), Replicate()),
        "desired_output_layouts": (Replicate(), Replicate()),
    }
    module = parallelize_module(Named(), MESH, PrepareModuleInputOutput(**layouts, **results))
    rows, mask = made(2, 3), made(2 * N, 3)
    product, whole = module(rows, mask=mask)
    close("prepared", product, weft.cat([rows] * N) * mask)
    close("prepared", whole, weft.cat([rows] * N))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parallelize_module(Named(), MESH)
        parallelize_module(Named(), MESH, {"nothing": ColwiseParallel()})
    assert len(caught) == 2
    fails(
        NotImplementedError,
        "ColwiseParallel: expected one of ['Linear', 'Embedding'], got Named",
        lambda: parallelize_module(Named(), MESH, ColwiseParallel()),
    )
    fails(
        ValueError,
        "PrepareModuleOutput: expected as many layouts",
        lambda: PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=()),
    )
    columns = parallelize_module(nn.Embedding(6, 12).double(), MESH, ColwiseParallel())
    whole = columns.weight.full_tensor()
    words = weft.tensor([[5, 0], [1, 1]])
    got = DTensor.from_local(columns(words), MESH, [Shard(-1)])
    close("columns of an embedding", got.full_tensor(), whole[words])


if __name__ == "__main__":
    check_mlp()
    check_transformer()
    check_modules()
    check_checkpoints()
    check_two_dimensions()
    check_styles()

"""Layers, functions, and programs that were traced, frozen or optimised."""

from typing import Any

import torch
from tests.jit.archives import X, case, image
from tests.jit.archives.language import Exits
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

# Layers -----------------------------------------------------------------------------------------


@case("gradients inside forward", [X])
class Force(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.detach().requires_grad_(True)
        energy = self.net(x).sum()
        ones: list[Tensor | None] = [torch.ones_like(energy)]
        grad = torch.autograd.grad([energy], [x], grad_outputs=ones, create_graph=True)[0]
        assert grad is not None
        return energy, -grad


@case("second gradients inside forward", [X])
class Curvature(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        x = x.detach().requires_grad_(True)
        (slope,) = torch.autograd.grad([(x**3).sum()], [x], retain_graph=True, create_graph=True)
        assert slope is not None
        rows: list[Tensor] = []
        for i in range(2):
            (row,) = torch.autograd.grad(
                [slope.reshape(-1)[i]], [x], retain_graph=True, allow_unused=True
            )
            if row is not None:
                rows.append(row)
        return rows


class Tagger(nn.Module):
    def __init__(self, cell: Any):
        super().__init__()
        self.rnn = cell

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.rnn(packed)
        padded, sizes = pad_packed_sequence(out, batch_first=True)
        return padded * sizes.view(-1, 1, 1)


LENGTHS = torch.tensor([3, 5, 1])


@case("packed sequences in an LSTM", [image(3, 5, 4), LENGTHS])
def make_packed_lstm():
    return Tagger(nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True))


@case("packed sequences in a GRU", [image(3, 5, 4), LENGTHS])
def make_packed_gru():
    return Tagger(nn.GRU(4, 3, batch_first=True))


class Unrolls(nn.Module):
    def __init__(self, cell: Any):
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> Tensor:
        out, state = self.cell(x)
        again, _ = self.cell(x, state)
        return out + again


@case("LSTM", [image(3, 5, 4)])
def make_lstm():
    return Unrolls(nn.LSTM(4, 3, 2, batch_first=True))


@case("GRU", [image(5, 2, 4)])
def make_gru():
    return Unrolls(nn.GRU(4, 3, bidirectional=True, bias=False))


class Overloaded(nn.Module):
    @torch.jit._overload_method
    def forward(self, x: int) -> int:
        pass

    @torch.jit._overload_method
    def forward(self, x: Tensor) -> Tensor:  # noqa: F811
        pass

    def forward(self, x):  # noqa: F811
        return x + 1


@case("overloaded methods", [X, 3])
class Overloads(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Overloaded()

    def forward(self, x: Tensor, n: int) -> tuple[Tensor, int]:
        return self.inner(x), self.inner(n)


@case("attention", [image(2, 5, 8)])
def make_attention():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


@case("several exported methods", [X])
class Exports(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    @torch.jit.export
    def encode(self, x: Tensor, twice: bool = False) -> Tensor:
        return self.linear(self.linear(x) if twice else x)

    def forward(self, x: Tensor) -> Tensor:
        return self.encode(x, twice=True)


@case("functions that call functions", [X, 2])
class Calls(nn.Module):
    def forward(self, x: Tensor, n: int) -> tuple[Tensor, int]:
        return outer(x, n), fibonacci(n + 5)


def inner(x: Tensor, n: int = 3) -> Tensor:
    return x * n


def outer(x: Tensor, n: int) -> Tensor:
    return inner(x) + inner(x, n)


def fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


# Programs of other origin -----------------------------------------------------------------------


@case("a function", [X, 2, 0.5], [X, 3, 2.0])
@torch.jit.script
def saved_function(x: Tensor, n: int, scale: float = 0.5) -> Tensor:
    for _ in range(n):
        x = x * scale + 1
    return x


def devices(x: Tensor) -> Tensor:
    table = torch.arange(4, dtype=torch.float32, device="cpu").to(x.device)
    mask = torch.ones(4, device=torch.device("cpu"), dtype=torch.bool)
    return (x + table + torch.tensor([1.0, 2.0, 3.0, 4.0])).masked_fill(~mask, 0.0)


@case("traced", [X])
def make_traced():
    net = nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.LayerNorm(6), nn.Softmax(-1))
    return torch.jit.trace(net, (X,))


@case("traced function with device literals", [X])
def make_traced_devices():
    return torch.jit.trace(devices, (X,))


@case("traced views, indices and sizes", [image(2, 3, 4)])
def make_traced_views():
    def views(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.reshape(x.shape[0], -1)[:, 1:]
        z = torch.cat([y, y.flip(1)], 1).chunk(2, 1)[0]
        a, b = torch.split(x, [1, 2], dim=1)
        x = x.clone()
        x[:, 0] = a.mean() + b.std()
        return torch.einsum("bij,bkj->bik", x, x), z.unsqueeze(0).expand(2, -1, -1).contiguous()

    return torch.jit.trace(views, (image(2, 3, 4),))


@case(
    "traced around scripted",
    [
        X,
    ],
)
def make_mixed():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.jit.script(Exits())
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(self.inner(x, torch.tensor(2)))

    return torch.jit.trace(Mixed(), (X,), check_trace=False)


@case("traced recurrent layer", [image(3, 5, 4)])
def make_traced_lstm():
    return torch.jit.trace(nn.LSTM(4, 3), (image(3, 5, 4),))


@case("traced in half precision", [X.to(torch.bfloat16)])
def make_traced_half():
    return torch.jit.trace(nn.Linear(4, 2).to(torch.bfloat16), (X.to(torch.bfloat16),))


def convnet():
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()).eval()


@case("frozen", [image(2, 3, 5, 5)])
def make_frozen():
    return torch.jit.freeze(torch.jit.script(convnet()))


@case("optimized for inference", [X])
def make_optimized():
    net = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU()).eval()
    return torch.jit.optimize_for_inference(torch.jit.script(net))


@case("a packed sequence as an argument", [image(3, 5, 4), LENGTHS])
class TakesPacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRU(4, 3)

    def run(self, x: PackedSequence) -> tuple[PackedSequence, Tensor]:
        return self.cell(x)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = pack_padded_sequence(x, lengths, True, False)
        out, last = self.run(packed)
        return out.data.sum() + last.sum()

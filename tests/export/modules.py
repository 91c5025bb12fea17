"""Modules that are exported, under weft and under PyTorch: each with its arguments and the sizes
that may differ."""

from __future__ import annotations

from collections import OrderedDict
from types import ModuleType
from typing import Any, NamedTuple


class Case(NamedTuple):
    """`shapes` names a size in the place of a Dim; others: arguments of other sizes."""

    module: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = {}  # noqa: RUF012 (nobody changes it)
    shapes: Any = None
    others: tuple[Any, ...] = ()


def cases(torch: ModuleType) -> dict[str, Case]:
    """All of them, over tensors of one library."""
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)

    class Convolutions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bn = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
            self.linear = nn.Linear(4, 5)
            self.register_buffer("kept", torch.ones(5))
            self.register_buffer("lost", torch.full((5,), 2.0), persistent=False)
            self.plain = torch.arange(5.0)

        def forward(self, x: Any, scale: Any = 2, *, flag: Any = True) -> Any:
            y = functional.max_pool2d(self.bn(self.conv(x)).relu(), 2).mean((2, 3))
            y = self.linear(y.view(x.shape[0], -1)) * self.kept + self.lost + self.plain
            y = functional.dropout(y, 0.1, self.training)
            a, b = torch.cat([y, y * scale], 1).split([4, 6], 1)
            return {"a": a if flag else b, "b": [b, torch.zeros(x.shape[0], 2)]}

    class Nested(nn.Module):
        def forward(self, pair: Any, by_name: Any, scale: Any) -> Any:
            return (pair[0] + by_name["x"] * scale, (pair[1].long(), scale, None))

    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x: Any) -> Any:
            self.count.add_(x.sum(0))
            y = x.clone()
            y[:, 0] = 7.0
            y[x.argmax(1)] *= 2
            return y.relu_(), self.count * 1

    class Functions(nn.Module):
        def forward(self, x: Any) -> Any:
            values, indices = x.topk(2, -1)
            return (
                values,
                torch.where(x > 0, x, 0.5),
                torch.einsum("ij,kj->ik", x, x),
                functional.pad(x, (1, 2), value=3.0),
                functional.interpolate(x[None, None], scale_factor=2, mode="bilinear"),
                functional.interpolate(x[None], size=9, mode="nearest"),
                x.to(torch.float64).quantile(0.3, dim=1),
                x.gather(1, indices).cumsum(0),
                torch.linalg.norm(x, dim=1),
                x.max(1)[0] * float("inf"),
                x.unbind(1)[0].reshape(-1, 1).expand(-1, 3),
                functional.layer_norm(x, (4,)),
                torch.arange(5, dtype=torch.int32),
            )

    class WithoutGradients(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: Any) -> Any:
            with torch.no_grad():
                y = self.linear(x)
            return y * self.linear(x)

    class Sizes(nn.Module):
        def forward(self, x: Any, y: Any) -> Any:
            n = x.shape[0]
            tail = torch.cat([y, torch.zeros(2 * n + 1, 3)])
            return x.reshape(n, 2, -1) * n, tail, n, x.new_ones(x.size(1)).sum()

    class Several(nn.Module):
        def forward(self, *rows: Any) -> Any:
            return rows[0] + rows[1]

    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 3)
            self.second = nn.Linear(3, 3)
            self.second.weight = self.first.weight

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x).tanh())

    class Defaults(nn.Module):
        """Arguments behind others that have their defaults, and sizes among the results."""

        def forward(self, x: Any) -> Any:
            inverse = torch.linalg.pinv(x.mT @ x + torch.eye(4), hermitian=True)
            return inverse, x.argsort(descending=True), torch.arange(3, device=x.device), x.shape

    image, rows = torch.randn(2, 3, 8, 8), torch.randn(3, 4)
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    dim = "batch"
    return {
        "convolutions": Case(Convolutions(), (image,)),
        "by batch": Case(
            Convolutions(), (image,), {"flag": False}, {"x": {0: dim}, "flag": None},
            (torch.randn(5, 3, 8, 8),),
        ),
        "nested": Case(Nested(), ((rows, rows[0]), {"x": rows}, 3)),
        "in place": Case(InPlace(), (torch.tensor([[1.0, -2.0], [-3.0, 4.0]]),)),
        "functions": Case(Functions(), (rows,)),
        "without gradients": Case(WithoutGradients(), (torch.randn(2, 3),)),
        "sizes": Case(
            Sizes(), (torch.randn(4, 6), torch.randn(3, 3)), {}, ({0: dim}, {0: "rows"}),
            (torch.randn(7, 6), torch.randn(2, 3)),
        ),
        "names": Case(nn.Sequential(OrderedDict({"a-b": nn.Linear(3, 2)})), (torch.randn(2, 3),)),
        "any arguments": Case(
            Several(), (rows, rows), {}, {"rows": ({0: dim}, {0: dim})},
            (torch.cat([rows, rows]), torch.cat([rows, rows])),
        ),
        "shared": Case(Shared(), (torch.randn(2, 3),)),
        "LSTM": Case(nn.LSTM(4, 5, 2, bidirectional=True), (torch.randn(3, 2, 4),)),
        "GRU": Case(nn.GRU(4, 5, batch_first=True), (torch.randn(3, 2, 4),)),
        "encoder": Case(
            encoder, (torch.randn(2, 5, 8),), {}, ({0: dim, 1: "length"},),
            (torch.randn(3, 7, 8),),
        ),
        "defaults": Case(Defaults(), (rows,)),
        "embedding": Case(
            nn.Sequential(nn.Embedding(7, 3), nn.Flatten(), nn.GELU()),
            (torch.tensor([[1, 2], [0, 6]]),),
        ),
    }  # fmt: skip


def dims(torch: ModuleType, shapes: Any) -> Any:
    """The same with a Dim for each name."""
    made: dict[str, Any] = {}

    def dim(name: str) -> Any:
        return made.setdefault(name, torch.export.Dim(name, min=2, max=64))

    def of(told: Any) -> Any:
        if isinstance(told, str):
            return dim(told)
        if isinstance(told, dict):
            return {key: of(each) for key, each in told.items()}
        return tuple(map(of, told)) if isinstance(told, tuple) else told

    return of(shapes)

"""Message passing on a graph: convolution, attention over edges, means of neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

NODES = 40


def community_graph() -> tuple[Any, Any, Any]:
    """Features [40, 6], edges [2, E] mostly inside of three groups, and the groups [40]."""
    rng = np.random.default_rng(2)
    group = rng.integers(0, 3, NODES)
    chance = np.where(group[:, None] == group[None, :], 0.3, 0.03)
    edges = np.argwhere(np.triu(rng.random((NODES, NODES)) < chance, 1)).T
    features = rng.standard_normal((NODES, 6)).astype(np.float32) + 0.5 * np.eye(6)[group]
    return features.astype(np.float32), edges, group


def scatter(torch: Any, source: Any, index: Any, size: int, reduce: str) -> Any:
    """The sums, means or maxima of the rows of `source` that have the same index."""
    out = source.new_zeros((size, *source.shape[1:]))
    if reduce == "max":
        index = index.view(-1, *(1,) * (source.dim() - 1)).expand_as(source)
        return out.scatter_reduce_(0, index, source, reduce="amax", include_self=False)
    out = out.index_add_(0, index, source)
    if reduce == "mean":
        count = torch.bincount(index, minlength=size).clamp_(min=1)
        out = out / count.view(-1, *(1,) * (source.dim() - 1))
    return out


def train(torch: Any, steps: int = 50) -> list[float]:
    nn, F = torch.nn, torch.nn.functional

    class GCNConv(nn.Module):
        """Neighbours' features, each divided by the roots of both degrees."""

        def __init__(self, inner: int, outer: int) -> None:
            super().__init__()
            self.lin = nn.Linear(inner, outer, bias=False)
            self.bias = nn.Parameter(torch.empty(outer))
            self.reset_parameters()

        def reset_parameters(self) -> None:
            nn.init.xavier_uniform_(self.lin.weight)
            nn.init.zeros_(self.bias)

        def forward(self, x: Any, edges: Any) -> Any:
            loops = torch.arange(len(x)).unsqueeze(0).repeat(2, 1)
            row, col = torch.cat([edges, loops], dim=1)
            degree = torch.zeros(len(x)).scatter_add_(0, col, torch.ones_like(col).float())
            scale = degree.pow(-0.5).masked_fill_(degree == 0, 0.0)
            message = (scale[row] * scale[col]).view(-1, 1) * self.lin(x).index_select(0, row)
            return scatter(torch, message, col, len(x), "sum") + self.bias

    class GATConv(nn.Module):
        """Attention over the edges that arrive at a node, by several heads."""

        def __init__(self, inner: int, outer: int, heads: int) -> None:
            super().__init__()
            self.heads, self.outer = heads, outer
            self.lin = nn.Linear(inner, heads * outer)
            self.att = nn.ParameterDict()
            for side in ("source", "target"):
                self.att[side] = nn.Parameter(torch.Tensor(1, heads, outer).uniform_(-0.5, 0.5))

        def forward(self, x: Any, edges: Any) -> Any:
            row, col = edges
            h = self.lin(x).view(-1, self.heads, self.outer)
            score = {side: (h * att).sum(dim=-1) for side, att in self.att.items()}
            alpha = F.leaky_relu(score["source"][row] + score["target"][col], 0.2)
            alpha = (alpha - scatter(torch, alpha.detach(), col, len(x), "max")[col]).exp()
            alpha = alpha / (scatter(torch, alpha, col, len(x), "sum")[col] + 1e-16)
            return scatter(torch, h[row] * alpha[..., None], col, len(x), "sum").flatten(1)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convs = nn.ModuleList([GCNConv(6, 8), GATConv(8, 4, heads=2)])
            self.root, self.neighbours = nn.Linear(8, 3), nn.Linear(8, 3, bias=False)

        def forward(self, x: Any, edges: Any) -> Any:
            for conv in self.convs:
                x = F.dropout(F.elu(conv(x, edges)), p=0.2, training=self.training)
            near = scatter(torch, x[edges[0]], edges[1], len(x), "mean")
            return F.log_softmax(self.root(x) + self.neighbours(near), dim=1)

    torch.manual_seed(0)
    x, edges, group = (torch.from_numpy(each) for each in community_graph())
    edges = torch.unique(torch.cat([edges, edges.flip(0)], dim=1), dim=1)
    mask = torch.zeros(NODES, dtype=torch.bool)
    mask[torch.randperm(NODES)[:24]] = True
    model = Net()
    optimizer = torch.optim.Adam(
        [
            {"params": model.convs.parameters(), "weight_decay": 5e-4},
            {"params": [*model.root.parameters(), *model.neighbours.parameters()]},
        ],
        lr=0.02,
    )
    losses = []
    for _ in range(steps):
        model.train()
        optimizer.zero_grad()
        loss = F.nll_loss(model(x, edges)[mask], group[mask])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    adjacency = torch.sparse_coo_tensor(
        edges, torch.ones(edges.size(1)), (NODES, NODES), check_invariants=True
    )
    summed = torch.sparse.mm(adjacency, x)
    assert torch.allclose(summed, scatter(torch, x[edges[0]], edges[1], NODES, "sum"), atol=1e-5)
    return losses

"""Layers over graphs, sets and trees."""

import weft as torch
from weft import Tensor, nn
from weft.nn import functional as F


def degree(index: Tensor, nodes: int) -> Tensor:
    return torch.zeros(nodes).index_add(0, index, torch.ones(index.size(0)))


class GraphConv(nn.Module):
    """Neighbours summed, each divided by the roots of both degrees."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * 0.3)
        if bias:
            self.bias = nn.Parameter(torch.zeros(outputs))
        else:
            self.register_parameter("bias", None)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        loops = torch.arange(x.size(0)).repeat(2, 1)
        source, target = torch.cat([edges, loops], dim=1)
        scale = degree(target, x.size(0)).pow(-0.5)
        messages = (x @ self.weight)[source] * (scale[source] * scale[target]).unsqueeze(1)
        out = torch.zeros(x.size(0), messages.size(1)).index_add(0, target, messages)
        if self.bias is not None:
            out = out + self.bias
        return out


class GraphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GraphConv(3, 4), GraphConv(4, 2, bias=False)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        x = F.dropout(F.relu(self.first(x, edges)), 0.3, self.training)
        return F.log_softmax(self.second(x, edges), dim=1)


class GraphAttention(nn.Module):
    def __init__(self, inputs: int = 3, outputs: int = 2, heads: int = 2):
        super().__init__()
        self.heads, self.outputs = heads, outputs
        self.linear = nn.Linear(inputs, heads * outputs, bias=False)
        self.left = nn.Parameter(torch.randn(heads, outputs))
        self.right = nn.Parameter(torch.randn(heads, outputs))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        nodes = x.size(0)
        source, target = edges[0], edges[1]
        h = self.linear(x).view(nodes, self.heads, self.outputs)
        a = (h * self.left).sum(-1)[source] + (h * self.right).sum(-1)[target]
        a = F.leaky_relu(a, 0.2)
        a = torch.exp(a - a.max())
        total = torch.zeros(nodes, self.heads).index_add(0, target, a)
        weights = a / (total[target] + 1e-12)
        messages = h[source] * weights.unsqueeze(-1)
        out = torch.zeros(nodes, self.heads, self.outputs).index_add(0, target, messages)
        return F.elu(out.flatten(1))


class MessagePassing(nn.Module):
    """Messages over a dict of neighbours, until no node moves much or the steps run out."""

    def __init__(self, size: int = 3):
        super().__init__()
        self.message = nn.Linear(2 * size, size)
        self.update = nn.GRUCell(size, size)

    def forward(
        self, states: list[Tensor], neighbours: dict[int, list[int]], steps: int
    ) -> tuple[list[Tensor], int]:
        done = 0
        for _ in range(steps):
            new: list[Tensor] = []
            for node, state in enumerate(states):
                if node not in neighbours:
                    new.append(state)
                    continue
                total = torch.zeros_like(state)
                for other in neighbours[node]:
                    total += torch.tanh(self.message(torch.cat([state, states[other]])))
                new.append(self.update(total.unsqueeze(0), state.unsqueeze(0))[0])
            moved = max([float((a - b).abs().max().detach()) for a, b in zip(new, states)])
            states = new
            done += 1
            if moved < 0.4:
                break
        return states, done


class DeepSets(nn.Module):
    def __init__(self, pool: str):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 4), nn.ReLU())
        self.outer = nn.Linear(4, 2)
        self.pool = pool

    def forward(self, sets: list[Tensor]) -> Tensor:
        rows: list[Tensor] = []
        for each in sets:
            inner = self.inner(each)
            if self.pool == "max":
                rows.append(inner.max(dim=0)[0])
            elif self.pool == "mean":
                rows.append(inner.mean(0))
            else:
                raise RuntimeError("pool: " + self.pool)
        return self.outer(torch.stack(rows))


class TreeLstm(nn.Module):
    """Sums over children, from the leaves up; parents come after their children."""

    def __init__(self, size: int = 3):
        super().__init__()
        self.gates = nn.Linear(2 * size, 3 * size)
        self.forget_x, self.forget_h = nn.Linear(size, size), nn.Linear(size, size, bias=False)
        self.size = size

    def node(self, x: Tensor, children: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        h, c = torch.zeros(self.size), torch.zeros(self.size)
        for child_h, child_c in children:
            h = h + child_h
            c = c + torch.sigmoid(self.forget_x(x) + self.forget_h(child_h)) * child_c
        i, o, u = self.gates(torch.cat([x, h])).chunk(3)
        c = c + i.sigmoid() * u.tanh()
        return o.sigmoid() * c.tanh(), c

    def forward(self, x: Tensor, parents: list[int]) -> Tensor:
        pending: dict[int, list[tuple[Tensor, Tensor]]] = {}
        root = torch.zeros(self.size)
        for index, parent in enumerate(parents):
            children: list[tuple[Tensor, Tensor]] = []
            if index in pending:
                children = pending.pop(index)
            state = self.node(x[index], children)
            if parent < 0:
                root = state[0]
                continue
            if parent not in pending:
                pending[parent] = []
            pending[parent].append(state)
        assert len(pending) == 0
        return root


def components(edges: list[tuple[int, int]], nodes: int) -> dict[int, list[int]]:
    """The connected parts of a graph, by their least node."""
    parent = list(range(nodes))
    for a, b in edges:
        while parent[a] != a:
            a = parent[a]
        while parent[b] != b:
            b = parent[b]
        parent[max(a, b)] = min(a, b)
    parts: dict[int, list[int]] = {}
    for node in range(nodes):
        root = node
        while parent[root] != root:
            root = parent[root]
        if root in parts:
            parts[root].append(node)
        else:
            parts[root] = [node]
    return parts


def edges():
    return torch.tensor([[0, 1, 2, 3, 1, 4], [1, 2, 3, 0, 3, 2]])


CASES = {
    "graph net": (GraphNet, lambda: (torch.randn(5, 3), edges())),
    "graph attention": (GraphAttention, lambda: (torch.randn(5, 3), edges())),
    "message passing": (MessagePassing, lambda: ([torch.randn(3) for _ in range(4)], {0: [1, 2], 1: [0], 3: [2, 0]}, 4)),
    "deep sets, max": (lambda: DeepSets("max"), lambda: ([torch.randn(3, 2), torch.randn(1, 2)],)),
    "deep sets, mean": (lambda: DeepSets("mean"), lambda: ([torch.randn(2, 2), torch.randn(4, 2)],)),
    "tree lstm": (TreeLstm, lambda: (torch.randn(5, 3), [2, 2, 4, 4, -1])),
    "components": (lambda: components, lambda: ([(0, 3), (4, 1), (3, 5)], 7)),
}  # fmt: skip

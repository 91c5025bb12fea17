"""Passes over a traced network: an activation exchanged before training, normalisation folded into
convolutions behind it, as public passes over torch.fx do it."""

from __future__ import annotations

import copy
from typing import Any


def fold(torch: Any, model: Any) -> Any:
    """A copy of the model for inference, without normalisation behind a convolution."""
    fx, nn = torch.fx, torch.nn
    traced = fx.symbolic_trace(copy.deepcopy(model).eval())
    modules = dict(traced.named_modules())
    for node in traced.graph.nodes:
        if node.op != "call_module" or not isinstance(modules[node.target], nn.BatchNorm2d):
            continue
        source = node.args[0]
        if source.op != "call_module" or len(source.users) > 1:
            continue
        conv, bn = modules[source.target], modules[node.target]
        scale = bn.weight / torch.sqrt(bn.running_var + bn.eps)
        conv.weight = nn.Parameter(conv.weight * scale.reshape(-1, 1, 1, 1))
        conv.bias = nn.Parameter((conv.bias - bn.running_mean) * scale + bn.bias)
        node.replace_all_uses_with(source)
        traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.graph.lint()
    traced.recompile()
    return traced


def train(torch: Any, steps: int = 50) -> list[float]:
    fx, nn, F = torch.fx, torch.nn, torch.nn.functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
            self.conv2, self.bn2 = nn.Conv2d(4, 8, 3, stride=2), nn.BatchNorm2d(8)
            self.head = nn.Linear(8, 2)

        def forward(self, x: Any) -> Any:
            x = F.relu(self.bn1(self.conv1(x)))
            x = F.relu(self.bn2(self.conv2(x))) * 1.0
            x = F.adaptive_avg_pool2d(x, 1)
            return self.head(torch.flatten(x, 1))

    class Smooth(fx.Transformer):
        """Every relu becomes a silu."""

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(F.silu if target is F.relu else target, args, kwargs)

    torch.manual_seed(5)
    data = torch.randn(64, 1, 8, 8)
    labels = (data[:, 0, :4].mean((1, 2)) > data[:, 0, 4:].mean((1, 2))).long()
    model = Smooth(fx.symbolic_trace(Net())).transform()
    fx.replace_pattern(model, lambda x: x * 1.0, lambda x: x.contiguous())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for step in range(steps):
        batch = slice(step % 2 * 32, step % 2 * 32 + 32)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    folded = fold(torch, model)
    assert not any(isinstance(m, nn.BatchNorm2d) for m in folded.modules())
    assert torch.allclose(folded(data), model.eval()(data), atol=1e-5)
    return losses

"""A network pruned while it learns: by magnitude, by channels, and for good in the end."""

from __future__ import annotations

import importlib
import io
from typing import Any

import numpy as np


def train(torch: Any, steps: int = 50) -> list[float]:
    nn = torch.nn
    prune = importlib.import_module(f"{torch.__name__}.nn.utils.prune")

    class LeNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 4, 3)
            self.conv2 = nn.Conv2d(4, 8, 3)
            self.fc1 = nn.Linear(8 * 2 * 2, 16)
            self.fc2 = nn.Linear(16, 3)

        def forward(self, x: Any) -> Any:
            x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), (2, 2))
            x = torch.relu(self.conv2(x))
            x = x.view(-1, int(x.nelement() / x.shape[0]))
            return self.fc2(torch.relu(self.fc1(x)))

    class Checkerboard(prune.BasePruningMethod):
        """Every other entry."""

        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t: Any, default_mask: Any) -> Any:
            mask = default_mask.clone(memory_format=torch.contiguous_format)
            mask.view(-1)[::2] = 0
            return mask

    def sparsity(model: Any) -> float:
        weights = [m.weight for m in model.modules() if isinstance(m, (nn.Conv2d, nn.Linear))]
        return sum(int((w == 0).sum()) for w in weights) / sum(w.nelement() for w in weights)

    torch.manual_seed(0)
    rng = np.random.default_rng(8)
    labels = torch.from_numpy(rng.integers(0, 3, 96))
    x = torch.from_numpy(rng.standard_normal((96, 1, 10, 10))).float()
    x += torch.eye(3)[labels].repeat_interleave(4, dim=1)[:, None, :, None][:, :, :10] * 0.7
    model = LeNet()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=3e-2)
    losses = []
    for step in range(steps):
        if step == 10:
            prune.l1_unstructured(model.conv1, name="weight", amount=3)
            prune.random_unstructured(model.conv1, "bias", amount=0.25)
            prune.ln_structured(model.conv2, name="weight", amount=0.25, n=2, dim=0)
            Checkerboard.apply(model.fc2, "weight")
        if step == 20:
            chosen = [(model.conv2, "weight"), (model.fc1, "weight")]
            prune.global_unstructured(chosen, pruning_method=prune.L1Unstructured, amount=0.3)
        batch = slice(step % 3 * 32, step % 3 * 32 + 32)
        optimizer.zero_grad()
        loss = nn.CrossEntropyLoss()(model(x[batch]), labels[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    assert sorted(dict(model.conv1.named_buffers())) == ["bias_mask", "weight_mask"]
    before = model(x).detach()
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    for module in model.children():
        for name, _ in list(module.named_parameters()):
            if name.endswith("_orig"):
                prune.remove(module, name[: -len("_orig")])
    assert not prune.is_pruned(model) and torch.equal(model(x), before)
    losses[-1] += sparsity(model) * 0.01
    file.seek(0)
    assert "conv2.weight_mask" in torch.load(file, weights_only=True)
    return losses

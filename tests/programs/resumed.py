"""Training that is stopped and resumed: mixed schedules, averages, accumulation, checkpoints."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np


def seed_everything(torch: Any, seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


def train(torch: Any, steps: int = 50) -> list[float]:
    nn, swa = torch.nn, torch.optim.swa_utils
    checkpoint = torch.utils.checkpoint

    class Trainer:
        """What lasts from a checkpoint to the next."""

        def __init__(self) -> None:
            inner = [nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Dropout(0.1)) for _ in range(3)]
            self.model = nn.Sequential(nn.Linear(8, 16), *inner, nn.Linear(16, 1))
            self.ema = swa.AveragedModel(self.model, multi_avg_fn=swa.get_ema_multi_avg_fn(0.9))
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
            self.scheduler = torch.optim.lr_scheduler.ChainedScheduler(
                [
                    torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.2, total_iters=8),
                    torch.optim.lr_scheduler.MultiStepLR(self.optimizer, [30, 40], gamma=0.5),
                ]
            )
            self.step, self.best = 0, float("inf")

        def state_dict(self) -> dict[str, Any]:
            parts = ("model", "ema", "optimizer", "scheduler")
            return {
                **{name: getattr(self, name).state_dict() for name in parts},
                "step": self.step,
                "best": self.best,
                "rng": torch.get_rng_state(),
                "hparams": {"lr": 0.1, "betas": (0.9, 0.999), "name": "résumé"},
            }

        def load_state_dict(self, state: dict[str, Any]) -> None:
            for name in ("model", "ema", "optimizer", "scheduler"):
                getattr(self, name).load_state_dict(state[name])
            self.step, self.best = state["step"], state["best"]
            torch.set_rng_state(state["rng"])

        def forward(self, x: Any) -> Any:
            """Activations of the middle are computed again in backward."""
            x = self.model[0](x)
            x = checkpoint.checkpoint_sequential(self.model[1:-1], 3, x, use_reentrant=False)
            return self.model[-1](x).squeeze(-1)

        def train_step(self, x: Any, y: Any) -> float:
            self.optimizer.zero_grad()
            total = 0.0
            for part_x, part_y in zip(x.chunk(2), y.chunk(2), strict=True):
                loss = nn.functional.huber_loss(self.forward(part_x), part_y) / 2
                loss.backward()
                total += loss.item()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, error_if_nonfinite=True)
            self.optimizer.step()
            self.scheduler.step()
            self.ema.update_parameters(self.model)
            self.step, self.best = self.step + 1, min(self.best, total)
            return total

    seed_everything(torch, 11)
    rng = np.random.default_rng(11)
    x = torch.from_numpy(rng.standard_normal((64, 8)).astype(np.float32))
    y = torch.sin(x.sum(1))
    losses: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer()
        while trainer.step < steps:
            losses.append(trainer.train_step(x, y))
            if trainer.step == steps // 2:
                path = Path(folder) / f"epoch={trainer.step}.ckpt"
                torch.save(trainer.state_dict(), path)
                expected = trainer.train_step(x, y)
                trainer = Trainer()
                trainer.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
                losses.append(trainer.train_step(x, y))
                assert losses[-1] == expected
    trainer.ema.eval()
    with torch.no_grad():
        average = nn.functional.huber_loss(trainer.ema(x).squeeze(-1), y)
    assert average < 2 * trainer.best and int(trainer.ema.n_averaged) == steps
    return losses[:steps]

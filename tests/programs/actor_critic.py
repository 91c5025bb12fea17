"""Reinforcement learning: an actor and a critic that balance a pole, by clipped policy steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


class Poles:
    """Several carts with a pole each, to be held upright by pushes to the left or right."""

    def __init__(self, count: int) -> None:
        self.rng = np.random.default_rng(0)
        self.state = self._fresh(count)

    def _fresh(self, count: int) -> Any:
        return self.rng.uniform(-0.05, 0.05, (count, 4))

    def step(self, action: Any) -> tuple[Any, Any, Any]:
        """The next states, rewards, and whether each episode has ended (and begun anew)."""
        _, v, angle, turn = self.state.T
        sin, cos = np.sin(angle), np.cos(angle)
        push = (np.where(action == 1, 10.0, -10.0) + 0.05 * turn**2 * sin) / 1.1
        twist = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        self.state = self.state + 0.02 * np.stack(
            [v, push - 0.05 * twist * cos / 1.1, turn, twist], 1
        )
        done = (np.abs(self.state[:, 0]) > 2.4) | (np.abs(self.state[:, 2]) > 0.21)
        reward = np.where(done, -1.0, 1.0)
        self.state[done] = self._fresh(int(done.sum()))
        return self.state, reward, done


def advantages(torch: Any, rewards: Any, values: Any, dones: Any, last: Any) -> Any:
    """Generalised advantage estimates [steps, carts]."""
    found, running = torch.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        following = last if t == len(rewards) - 1 else values[t + 1]
        delta = rewards[t] + 0.95 * following * (1 - dones[t]) - values[t]
        found[t] = running = delta + 0.95 * 0.9 * (1 - dones[t]) * running
    return found


def train(torch: Any, steps: int = 50) -> list[float]:
    """The critic's error after each round of playing and learning."""
    nn, Categorical = torch.nn, torch.distributions.Categorical

    def layer(inner: int, outer: int, std: float = math.sqrt(2)) -> Any:
        made = nn.Linear(inner, outer)
        nn.init.orthogonal_(made.weight, std)
        nn.init.constant_(made.bias, 0.0)
        return made

    class Agent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(layer(4, 16), nn.Tanh())
            self.critic, self.actor = layer(16, 1, 1.0), layer(16, 2, 0.01)

        def forward(self, x: Any, action: Any = None) -> Any:
            hidden = self.body(x)
            policy = Categorical(logits=self.actor(hidden))
            if action is None:
                action = policy.sample()
            return action, policy.log_prob(action), policy.entropy(), self.critic(hidden)[..., 0]

    torch.manual_seed(1)
    agent, poles = Agent().double(), Poles(8)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-2, eps=1e-5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: 1 - done / (2 * steps))
    observed = torch.from_numpy(poles.state.copy())
    losses = []
    for _ in range(steps):
        buffer: dict[str, list[Any]] = {name: [] for name in ("x", "a", "logp", "v", "r", "done")}
        for _ in range(16):
            with torch.no_grad():
                action, logp, _, value = agent(observed)
            state, reward, done = poles.step(action.cpu().numpy())
            seen = (
                observed,
                action,
                logp,
                value,
                torch.tensor(reward),
                torch.tensor(done).double(),
            )
            for kept, each in zip(buffer.values(), seen, strict=True):
                kept.append(each)
            observed = torch.as_tensor(state.copy())
        x, a, logp, v, r, done = (torch.stack(kept) for kept in buffer.values())
        with torch.no_grad():
            gain = advantages(torch, r, v, done, agent(observed)[3])
        returns, gain = gain + v, (gain - gain.mean()) / (gain.std() + 1e-8)
        for chosen in torch.randperm(16).split(8):
            _, fresh, entropy, value = agent(x[chosen], a[chosen])
            ratio = (fresh - logp[chosen]).exp()
            clipped = torch.clamp(ratio, 0.8, 1.2)
            policy_loss = -torch.min(gain[chosen] * ratio, gain[chosen] * clipped).mean()
            value_loss = nn.functional.smooth_l1_loss(value, returns[chosen])
            optimizer.zero_grad()
            (policy_loss + value_loss - 0.01 * entropy.mean()).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        schedule.step()
        losses.append(value_loss.item())
    return losses

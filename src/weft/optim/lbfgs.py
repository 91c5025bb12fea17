"""L-BFGS: quasi-Newton steps from the last differences of parameters and gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import enable_grad, no_grad
from weft.optim._line_search import Point, strong_wolfe
from weft.optim._line_search import _cubic_interpolate as _cubic_interpolate
from weft.optim._line_search import _strong_wolfe as _strong_wolfe
from weft.optim.optimizer import Optimizer, check_at_least_zero, real_parts


class LBFGS(Optimizer):
    """Limited-memory BFGS (Nocedal and Wright, Numerical Optimization, 7.2), for whole batches.

    max_iter, max_eval: iterations and evaluations of the closure that one step may take (max_eval
    is max_iter * 5 // 4 unless given). tolerance_grad: a greatest gradient this small ends a step,
    tolerance_change: so does a change of parameters or loss this small. history_size: how many
    differences are kept. line_search_fn: None (steps of lr) or "strong_wolfe". Raises ValueError
    for a negative lr and for several groups, RuntimeError for another line_search_fn, TypeError for
    a step without closure.

    >>> p = weft.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = weft.optim.LBFGS([p], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((p - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> p
    tensor([1.0000, 1.0000], requires_grad=True)
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_at_least_zero("learning rate", lr)
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError(
                f"LBFGS: expected line_search_fn None or 'strong_wolfe', got {line_search_fn!r}"
            )
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError(
                f"LBFGS: expected one group of parameters, got {len(self.param_groups)}"
            )
        self._params = self.param_groups[0]["params"]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of up to max_iter iterations; returns the first loss.

        closure: clears the gradients, computes the loss and its gradients, and returns the loss.
        """
        if closure is None:
            raise TypeError("LBFGS: expected a closure that computes the loss, got None")
        with no_grad():
            return _Step(self, closure).run()

    def _flat_grad(self) -> Tensor:
        parts = [
            real_parts(_C.zeros_like(p) if p.grad is None else p.grad).reshape(-1)
            for p in self._params
        ]
        return _C.cat(parts, 0)

    def _move(self, length: float, direction: Tensor) -> None:
        at = 0
        for param in map(real_parts, self._params):
            part = direction[at : at + param.numel()]
            param.add_(part.view(param.shape), alpha=length)
            at += param.numel()


class _Step:
    """What one call of LBFGS.step holds: the loss, its gradient and the state that is kept."""

    def __init__(self, optimizer: LBFGS, closure: Callable[[], Any]) -> None:
        self.optimizer, self.group = optimizer, optimizer.param_groups[0]
        self.closure = closure
        self.state = optimizer.state[optimizer._params[0]]
        self.state.setdefault("func_evals", 0)
        self.state.setdefault("n_iter", 0)
        self.evaluations = 0

    def run(self) -> Any:
        first_loss = self._evaluate()
        if self._has_arrived():
            return first_loss
        state, group = self.state, self.group
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction()
            state["prev_flat_grad"] = self.grad.clone()
            before = state["prev_loss"] = self.loss
            length = float(group["lr"])
            if state["n_iter"] == 1:
                total = self.grad.abs().sum().item()
                length *= min(1.0, 1.0 / total) if total else 1.0
            state["d"], state["t"] = direction, length
            slope = self.grad.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break
            self._advance(length, slope, last=iteration == group["max_iter"])
            if self.evaluations >= group["max_eval"] or self._has_arrived():
                break
            if direction.mul(state["t"]).abs().max().item() <= group["tolerance_change"]:
                break
            if abs(self.loss - before) < group["tolerance_change"]:
                break
        return first_loss

    def _evaluate(self) -> Any:
        with enable_grad():
            loss = self.closure()
        self.loss, self.grad = float(loss), self.optimizer._flat_grad()
        self.evaluations += 1
        self.state["func_evals"] += 1
        return loss

    def _has_arrived(self) -> bool:
        return self.grad.abs().max().item() <= self.group["tolerance_grad"]

    def _direction(self) -> Tensor:
        """Minus the gradient, times what the kept differences say of the inverse Hessian."""
        state = self.state
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -self.grad
        change = self.grad.sub(state["prev_flat_grad"])
        step = state["d"].mul(state["t"])
        curvature = change.dot(step)
        if curvature.item() > 1e-10:
            kept = (state["old_dirs"], state["old_stps"], state["ro"])
            if len(state["old_dirs"]) == self.group["history_size"]:
                for history in kept:
                    history.pop(0)
            for history, value in zip(kept, (change, step, 1.0 / curvature)):
                history.append(value)
            state["H_diag"] = curvature / change.dot(change)
        changes, steps, inverse = state["old_dirs"], state["old_stps"], state["ro"]
        shares = state["al"] = [None] * self.group["history_size"]
        q = -self.grad
        for i in range(len(changes) - 1, -1, -1):
            shares[i] = steps[i].dot(q) * inverse[i]
            q.addcmul_(changes[i], -shares[i])
        r = q.mul(state["H_diag"])
        for i, change in enumerate(changes):
            r.addcmul_(steps[i], shares[i] - change.dot(r) * inverse[i])
        return r

    def _advance(self, length: float, slope: float, last: bool) -> None:
        direction, optimizer = self.state["d"], self.optimizer
        if self.group["line_search_fn"] is None:
            optimizer._move(length, direction)
            if not last:
                self._evaluate()
            return
        origin = [p.clone() for p in optimizer._params]

        def evaluate(at: float) -> Point:
            optimizer._move(at, direction)
            self._evaluate()
            for param, value in zip(optimizer._params, origin):
                param.copy_(value)
            return Point(at, self.loss, self.grad, self.grad.dot(direction).item())

        start = Point(0.0, self.loss, self.grad, slope)
        smallest = 1e-9 / direction.abs().max().item()  # in lengths of the direction
        left = self.group["max_eval"] - self.evaluations
        point = strong_wolfe(evaluate, start, length, smallest=smallest, max_trials=left)
        self.state["t"], self.loss, self.grad = point.at, point.loss, point.grad
        optimizer._move(point.at, direction)

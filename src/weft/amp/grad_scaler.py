"""GradScaler: losses scaled up so that small gradients of float16 do not vanish."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad

_READY, _UNSCALED, _STEPPED = "ready", "unscaled", "stepped"


class GradScaler:
    """Scales losses by a factor that grows until gradients overflow, and shrinks when they do.

    Each step: `scale(loss).backward()`, `step(optimizer)`, which divides the gradients by the
    scale and is skipped where one is infinite or NaN, then `update()`. enabled=False: does nothing.

    >>> p = weft.ones(1, requires_grad=True)
    >>> scaler = weft.amp.GradScaler("cpu", init_scale=8.0)
    >>> optimizer = weft.optim.SGD([p], lr=0.5)
    >>> scaler.scale(p.sum()).backward()
    >>> p.grad
    tensor([8.])
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> p
    tensor([0.5000], requires_grad=True)
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and device == "cuda":
            warnings.warn(
                "GradScaler: expected a GPU for device 'cuda', got none; it stays off", stacklevel=2
            )
            enabled = False
        if enabled and not growth_factor > 1.0:
            raise AssertionError(f"GradScaler: expected growth_factor above 1, got {growth_factor}")
        if enabled and not backoff_factor < 1.0:
            raise AssertionError(
                f"GradScaler: expected backoff_factor below 1, got {backoff_factor}"
            )
        self._device, self._enabled = device, enabled
        self._scale = float(init_scale)
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval, self._growth_tracker = growth_interval, 0
        # State, and whether all gradients were finite; None without any.
        self._optimizers: dict[int, tuple[str, bool | None]] = {}

    def scale(self, outputs: Any) -> Any:
        """A tensor, or tensors in lists and tuples, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale
        if isinstance(outputs, Iterable):
            made = [self.scale(output) for output in outputs]
            return type(outputs)(made) if isinstance(outputs, (list, tuple)) else made
        raise ValueError(f"GradScaler.scale: expected tensors, got {type(outputs).__name__}")

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimizer's parameters by the scale, once between updates."""
        if not self._enabled:
            return
        state, _ = self._optimizers.get(id(optimizer), (_READY, True))
        if state != _READY:
            raise RuntimeError(
                "GradScaler.unscale_: expected one call for each optimizer between updates, "
                f"got another after it was {state}"
            )
        finite = None
        with no_grad():
            for group in optimizer.param_groups:
                for param in group["params"]:
                    if param.grad is not None:
                        if param.grad.dtype == _C.float16:
                            raise ValueError(
                                "GradScaler.unscale_: expected gradients of float32, got float16"
                            )
                        param.grad.mul_(1.0 / self._scale)
                        finite = finite is not False and bool(param.grad.isfinite().all())
        self._optimizers[id(optimizer)] = (_UNSCALED, finite)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """optimizer.step(...) with unscaled gradients; not called where one is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("GradScaler.step: expected no closure, got one")
        if self._optimizers.get(id(optimizer), (_READY, True))[0] == _STEPPED:
            raise RuntimeError("GradScaler.step: expected update() since the last step, got none")
        if self._optimizers.get(id(optimizer), (_READY, True))[0] == _READY:
            self.unscale_(optimizer)
        finite = self._optimizers[id(optimizer)][1]
        if finite is None:
            raise AssertionError("GradScaler.step: expected gradients to step by, got none")
        self._optimizers[id(optimizer)] = (_STEPPED, finite)
        return optimizer.step(*args, **kwargs) if finite else None

    def update(self, new_scale: Any = None) -> None:
        """The scale of the next step: `new_scale`, or by what the gradients of this one were."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        else:
            if not self._optimizers:
                raise AssertionError("GradScaler.update: expected a step before, got none")
            self._adapt(all(finite is not False for _, finite in self._optimizers.values()))
        self._optimizers.clear()

    def _adapt(self, finite: bool) -> None:
        if not finite:
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
            return
        self._growth_tracker += 1
        if self._growth_tracker == self._growth_interval:
            self._scale *= self._growth_factor
            self._growth_tracker = 0

    def get_scale(self) -> float:
        """The factor; 1 where it is not enabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether it does anything."""
        return self._enabled

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by to grow."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets the growth factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by to shrink."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets the backoff factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many finite steps it takes to grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the growth interval."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """What it takes to go on; empty where it is not enabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what state_dict returned."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "GradScaler.load_state_dict: expected the state of an enabled scaler, got {}"
            )
        for name, value in state_dict.items():
            setattr(self, name if name.startswith("_") else f"_{name}", value)


class CudaGradScaler(GradScaler):
    """GradScaler("cuda"), as weft.cuda.amp.GradScaler."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )

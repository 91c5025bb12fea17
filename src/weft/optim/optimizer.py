"""Optimizer: groups of parameters with their options, and the state kept for each parameter."""

from __future__ import annotations

import copy
import functools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import enable_grad, set_grad_enabled
from weft.optim._hooks import (
    Hookable,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
# What optimizers of programs that began as copies of PyTorch's import.
_params_doc = _foreach_doc = _fused_doc = _maximize_doc = _capturable_doc = _differentiable_doc = ""


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` that records gradients where the option `differentiable` says so."""

    @functools.wraps(step)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(self.defaults["differentiable"]):
            return step(self, *args, **kwargs)

    return run


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether an optimizer is fused, and works on lists: neither, on a CPU."""
    return False, False


class Optimizer(Hookable):
    """Base of all optimizers.

    params: tensors, (name, tensor) pairs, or dicts with "params" and options of their own.
    defaults: the options of groups that do not say otherwise.
    A subclass defines `step`, and may define `_update(group)`, which `step` calls for each group.

    Raises TypeError for a single tensor, ValueError for no parameters, and for one that is in two
    groups. Parameters are of floating or complex dtypes; states are of the same dtypes.

    >>> class SignDescent(weft.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     def _update(self, group):
    ...         for p in group["params"]:
    ...             p.sub_(p.grad.sign(), alpha=group["lr"])
    >>> p = weft.ones(1, requires_grad=True)
    >>> p.grad = weft.full((1,), 2.0)
    >>> SignDescent([p], lr=0.5).step()
    >>> p
    tensor([0.5000], requires_grad=True)
    """

    # In PyTorch's order of options these stand behind the others.
    _last_options = ""
    defaults: dict[str, Any]
    state: defaultdict[Tensor, dict[str, Any]]
    param_groups: list[dict[str, Any]]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                f"{type(self).__name__}: expected an iterable of tensors or dicts, got one Tensor"
            )
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a dict with "params" (tensors that are in no group yet) and options."""
        if not isinstance(param_group, dict):
            raise TypeError(f"add_param_group: expected a dict, got {type(param_group).__name__}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError("add_param_group: expected params in a fixed order, got a set")
        listed = [params] if isinstance(params, Tensor) else list(params)
        named = [isinstance(one, tuple) for one in listed]
        if any(named):
            if not all(named):
                raise ValueError("add_param_group: expected names for all parameters, got some")
            param_group["param_names"] = [name for name, _ in listed]
            listed = [tensor for _, tensor in listed]
        for group in self.param_groups:
            if ("param_names" in group) != ("param_names" in param_group):
                raise ValueError("add_param_group: expected names in all groups or none, got some")
        self._check_params(listed)
        param_group["params"] = listed
        for name, value in self.defaults.items():
            if param_group.setdefault(name, value) is required:
                raise ValueError(f"add_param_group: expected a value for {name!r}, got none")
        self.param_groups.append(param_group)

    def _check_params(self, params: list[Any]) -> None:
        seen = {id(p) for group in self.param_groups for p in group["params"]}
        if len({id(p) for p in params}) < len(params):
            warnings.warn(
                "optimizer: expected each parameter once in a group, got a parameter group with "
                "duplicate parameters, which are updated several times",
                stacklevel=4,
            )
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(f"optimizer: expected Tensors, got {type(param).__name__}")
            if not (self.defaults.get("differentiable") or param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
            if id(param) in seen:
                raise ValueError("some parameters appear in more than one parameter group")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops all gradients, or (set_to_none=False) fills them with zero."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    param.grad = param.grad.detach().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates all parameters from their gradients; returns what `closure` returned.

        closure: computes the loss again with gradients, before the update.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            differentiable = group.get("differentiable", False)
            if differentiable:
                self._clone_recorded_states(group)
            with set_grad_enabled(differentiable):
                if any(param.is_complex() for param in group["params"]):
                    self._update_parts(group)
                else:
                    self._update(group)
        return loss

    def _clone_recorded_states(self, group: dict[str, Any]) -> None:
        """Clones states that the step before recorded: this one writes them in place."""
        for param in group["params"]:
            for name, value in self.state.get(param, {}).items():
                if isinstance(value, Tensor) and value.requires_grad:
                    self.state[param][name] = value.clone()

    def _update_parts(self, group: dict[str, Any]) -> None:
        """`_update`, given complex parameters and their state as real tensors of their parts."""
        if group.get("fused"):
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors, got complex"
            )
        complexes, params = {}, []
        for param in group["params"]:
            params.append(real_parts(param))
            if param.is_complex():
                complexes[params[-1]] = param
                params[-1].grad = None if param.grad is None else real_parts(param.grad)
                kept = self.state.pop(param, {}).items()
                self.state[params[-1]] = {name: real_parts(value) for name, value in kept}
        self._update({**group, "params": params})
        for parts, param in complexes.items():
            state = self.state.pop(parts)
            if state:
                self.state[param] = {n: _joined(value, parts) for n, value in state.items()}

    def _update(self, group: dict[str, Any]) -> None:
        raise NotImplementedError(f"{type(self).__name__}: expected step or _update, got neither")

    def _begun(self, param: Tensor, *names: str) -> dict[str, Any]:
        """The state of a parameter: at first "step" 0, and zeros by these names."""
        state = self.state[param]
        if not state:
            state["step"] = _C.tensor(0.0, dtype=_C.float32)
            state.update({name: _C.zeros_like(param) for name in names})
        return state

    # State ------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """{"state": ..., "param_groups": ...}; parameters are named by their position."""
        self._run_state_hooks("state_dict_pre", None)
        numbers: dict[int, int] = {}
        start = 0
        for group in self.param_groups:
            places = enumerate(group["params"], start)
            numbers.update({id(p): n for n, p in places if id(p) not in numbers})
            start += len(group["params"])
        groups = [
            {
                **{name: value for name, value in group.items() if name != "params"},
                "params": [numbers[id(param)] for param in group["params"]],
            }
            for group in self.param_groups
        ]
        state = {numbers.get(id(key), key): value for key, value in self.state.items()}
        state_dict = {"state": state, "param_groups": groups}
        return self._run_state_hooks("state_dict_post", state_dict)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what state_dict returned, for the same groups in the same order."""
        state_dict = self._run_state_hooks("load_state_dict_pre", dict(state_dict))
        saved_groups = copy.deepcopy(state_dict["param_groups"])  # tensors among the options
        if len(saved_groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        owners: dict[Any, Tensor] = {}
        for saved, group in zip(saved_groups, self.param_groups):
            if len(saved["params"]) != len(group["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size "
                    "of optimizer's group"
                )
            owners.update(zip(saved["params"], group["params"]))
        self.state = defaultdict(dict)
        for key, values in state_dict["state"].items():
            if key in owners:
                param = owners[key]
                self.state[param] = {n: _as_state(n, v, param) for n, v in values.items()}
            else:
                self.state[key] = values
        groups = [
            self._loaded_group(saved, group)
            for saved, group in zip(saved_groups, self.param_groups)
        ]
        self.__setstate__({"state": self.state, "param_groups": groups})
        self._run_state_hooks("load_state_dict_post", None)

    def _loaded_group(self, saved: dict[str, Any], group: dict[str, Any]) -> dict[str, Any]:
        """The saved options, with the group's own parameters. What others noted in the group since,
        as schedules their initial_lr, is gone; options that an older file lacks stay."""
        kept = {n: v for n, v in group.items() if n in self.defaults or n == "param_names"}
        return {**kept, **saved, "params": group["params"]}

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes what __getstate__ gave, or a loaded state; classes with new options override it."""
        self.__dict__.update(state)

    def __repr__(self) -> str:
        parts = []
        for number, group in enumerate(self.param_groups):
            lines = [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
            parts.append("\n".join([f"Parameter Group {number}", *lines]))
        body = "\n\n".join(parts)
        return f"{type(self).__name__} (\n{body}\n)"


def _as_state(name: str, value: Any, param: Tensor) -> Any:
    """A loaded value as this parameter keeps it: own memory, the parameter's dtype."""
    if not isinstance(value, Tensor):
        return value
    if name == "step" or not (param.is_floating_point() or param.is_complex()):
        return value.clone()
    return value.to(param.dtype).clone()


def real_parts(value: Any) -> Any:
    """A complex tensor [*] as the real one [*, 2] over its memory; anything else as it is."""
    complex_ = isinstance(value, Tensor) and value.is_complex()
    return _C.view_as_real(value) if complex_ else value


def _joined(value: Any, parts: Tensor) -> Any:
    """A state of a complex parameter's `parts` as a complex tensor."""
    matches = isinstance(value, Tensor) and value.shape == parts.shape
    return _C.view_as_complex(value) if matches else value


def full_like(param: Tensor, value: float) -> Tensor:
    """A state in which every number, each part of a complex one too, is `value`."""
    state = _C.empty_like(param.detach())
    real_parts(state).fill_(value)
    return state


def options_of(given: Mapping[str, Any], *at_least_zero: str) -> dict[str, Any]:
    """The options of an optimizer, of what its __init__ was given (`locals()`). ValueError for one
    of those named that is below 0, and for betas outside [0, 1)."""
    options = {n: v for n, v in given.items() if n not in ("self", "params", "__class__")}
    last = filter(options.__contains__, given["self"]._last_options.split())
    options.update({name: options.pop(name) for name in last})
    for name in at_least_zero:
        check_at_least_zero(_TOLD.get(name, f"{name} value"), options[name])
    if "betas" in options:
        check_betas(options["betas"])
    _check_implementations(options)
    return options


def _check_implementations(options: dict[str, Any]) -> None:
    """Refuses implementations that exclude each other, though there is one here."""
    foreach = options.get("foreach")
    if options.get("fused"):
        if options["differentiable"]:
            raise RuntimeError("`fused` does not support `differentiable`")
        if foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if foreach and "amsgrad" in options and not options["capturable"]:
        names = ("lr", "betas[0]", "betas[1]")
        for name, value in zip(names, (options["lr"], *options["betas"])):
            if isinstance(value, Tensor):
                raise ValueError(
                    f"{name} as a Tensor is not supported for capturable=False and foreach=True"
                )


_TOLD = {"lr": "learning rate", "eps": "epsilon value"}  # what messages call them


def check_at_least_zero(name: str, value: Any) -> None:
    """Raises ValueError unless 0 <= value, a number or a tensor of one element."""
    if isinstance(value, Tensor) and value.numel() != 1:
        shape = tuple(value.shape)
        raise ValueError(f"{name}: expected a number or a tensor of one element, got shape {shape}")
    if not value >= 0.0:
        raise ValueError(f"Invalid {name}: {value}")


def check_betas(betas: tuple[float, float]) -> None:
    """Raises ValueError unless 0 <= beta < 1 for both."""
    for index, beta in enumerate(betas):
        if not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")

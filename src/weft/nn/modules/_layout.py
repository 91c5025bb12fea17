"""The state of a module in pickles: PyTorch keeps its members in three dicts, weft among the
attributes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from weft.nn.modules._registry import VIEWS

_PARTS = {kind: name for name, kind in VIEWS.items()}
# PyTorch's modules have these from the start; weft's when somebody asks for them.
_HOOKS = ("_backward_hooks", "_forward_hooks")


def torch_layout(module: Any, state: Any) -> Any:
    """The `__dict__` of a module as PyTorch has it; what a class of a program made of it stays."""
    if not isinstance(state, dict) or "_kinds" not in state:
        return state
    kinds = state["_kinds"]
    made: dict[str, dict[str, Any]] = {name: {} for name in _PARTS.values()}
    for name, kind in kinds.items():
        made[_PARTS[kind]][name] = state[name]
    hooks: dict[str, Any] = {name: OrderedDict() for name in _HOOKS}
    rest = {
        n: v for n, v in state.items() if n not in kinds and n not in ("_kinds", "_hooked", *VIEWS)
    }
    computed = {name: getattr(module, name) for name in module._computed_attributes}
    return {**made, **hooks, **rest, **computed}


def own_layout(module: Any, state: dict[str, Any]) -> dict[str, Any]:
    """The `__dict__` of a module of weft, from either layout. Empty hooks are left out."""
    if "_kinds" in state or "_parameters" not in state:
        return state
    state = dict(state)
    kinds: dict[str, str] = {}
    members: dict[str, Any] = {}
    for kind, part in _PARTS.items():
        held = state.pop(part, {})
        kinds.update(dict.fromkeys(held, kind))
        members.update(held)
    hooks = [name for name in state if name.endswith("_hooks") or "_hooks_" in name]
    hooked = any(state[name] for name in hooks)
    left_out = {*module._computed_attributes, *(name for name in hooks if not state[name])}
    kept = {name: value for name, value in state.items() if name not in left_out}
    return {**kept, "_kinds": kinds, **members, **({"_hooked": True} if hooked else {})}

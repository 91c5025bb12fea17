"""Helpers for layers that programs import by their private names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft._runtime.program_state import is_scripting

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], Any]:
    """A function that repeats a value n times, and leaves what can be iterated as it is. In
    programs a list stays a list."""

    def parse(x: Any) -> Any:
        if is_scripting() and isinstance(x, list):
            return x
        return tuple(x) if isinstance(x, Iterable) else (x,) * n

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Sequence[Any], n: int) -> tuple[Any, ...]:
    """The entries of t backwards, each n times: padding as `pad` takes it."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: Sequence[int]) -> list[int]:
    """Sizes with those of `defaults` where one is None. ValueError for as many or more of them."""
    if isinstance(out_size, int):
        return out_size  # type: ignore[return-value]
    if len(defaults) <= len(out_size):
        raise ValueError(
            f"_list_with_default: expected more than {len(out_size)} defaults, got {len(defaults)}"
        )
    last = defaults[-len(out_size) :]
    return [default if size is None else size for size, default in zip(out_size, last)]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Removes a prefix from the names of a state dict, such as "module.", in place.

    >>> from weft.nn.modules.utils import consume_prefix_in_state_dict_if_present
    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': 1, 'bias': 2}
    """
    renamed = {key.removeprefix(prefix): value for key, value in state_dict.items()}
    state_dict.clear()
    state_dict.update(renamed)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        own = {"" if key == prefix[:-1] else key.removeprefix(prefix): metadata[key]
               for key in metadata}  # fmt: skip
        metadata.clear()
        metadata.update(own)

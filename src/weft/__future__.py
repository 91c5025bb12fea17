"""How conversions of modules (`Module.to`, `float`, ...) treat parameters."""

from __future__ import annotations

from weft._runtime.exports import list_own

_overwrite = False
_swap = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """True: conversions put new parameters into modules; False: they give the parameters that are
    there other data, so that optimizers keep them.

    >>> layer = weft.nn.Linear(1, 1)
    >>> weight = layer.weight
    >>> weft.__future__.set_overwrite_module_params_on_conversion(True)
    >>> layer.double().weight is weight
    False
    >>> weft.__future__.set_overwrite_module_params_on_conversion(False)
    """
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What set_overwrite_module_params_on_conversion has set; False at first."""
    return _overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Keeps value. It has no effect: parameters stay the same objects without swapping them."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion() -> bool:
    """What set_swap_module_params_on_conversion has set; False at first."""
    return _swap


list_own(vars())

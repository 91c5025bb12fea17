"""The types of operators' results with names: weft.max(x, 1) is a `weft.return_types.max`.

A function's result and a method's are of two types. Both are instances of the one here.
"""

from __future__ import annotations

from typing import Any

from weft import _C, linalg
from weft._runtime.named_results import SHOWN

# What follows the tensor in a call that gives the result.
_DIMENSION = "cummax cummin max median min mode nanmedian sort"
_ARGUMENTS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(_DIMENSION.split(), (0,)),
    **dict.fromkeys(("kthvalue", "topk"), (1, 0)),
    **dict.fromkeys(("aminmax", "frexp", "geqrf", "qr", "slogdet", "svd"), ()),
    **dict.fromkeys(
        ("linalg_cholesky_ex", "linalg_eig", "linalg_eigh", "linalg_inv_ex", "linalg_qr"), ()
    ),
    **dict.fromkeys(("linalg_slogdet", "linalg_svd"), ()),
}

__all__ = sorted({*_ARGUMENTS, *SHOWN})


class _Result(type):
    """The type of a result: calls make one from a sequence of tensors. Pickles of PyTorch give a
    dict of further members too, which is empty."""

    def __instancecheck__(cls, instance: Any) -> bool:
        kind = type(instance)
        if cls.__name__ in SHOWN:
            return kind is SHOWN[cls.__name__]
        return kind.__name__ == cls.__name__ and kind.__module__ == "torch.return_types"

    def __call__(cls, values: Any, members: Any = None) -> Any:
        name = cls.__name__
        return SHOWN[name](*values) if name in SHOWN else _made_by_a_call(name)(values)


def _made(name: str, values: Any) -> Any:
    """The result that a pickle has."""
    return (globals().get(name) or __getattr__(name))(values)


def _made_by_a_call(name: str) -> Any:
    place: Any = linalg if name.startswith("linalg_") else _C
    function = getattr(place, name.removeprefix("linalg_"))
    return type(function(_C.eye(1), *_ARGUMENTS[name]))


def __getattr__(name: str) -> Any:
    if name not in _ARGUMENTS and name not in SHOWN:
        raise AttributeError(f"module 'weft.return_types' has no attribute {name!r}")
    members = {"__module__": "torch.return_types", "__doc__": f"What weft.{name} returns."}
    made = globals()[name] = _Result(name, (tuple,), members)
    return made

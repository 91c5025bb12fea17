"""Functions of networks as the operators that PyTorch has in its main namespace: `weft.lstm`,
`weft.group_norm`. They take what `weft.nn.functional` takes, in the operators' order, with numbers
for the names of modes: reduction 0 is none, 1 mean, 2 sum.

Programs from archives call them by the same signatures.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from weft.nn._operators import layers, losses, recurrent

#: by the name of an operator the functions of its overloads
FUNCTIONS: dict[str, tuple[Callable[..., Any], ...]] = {
    **layers.OVERLOADS,
    **losses.OVERLOADS,
    **recurrent.OVERLOADS,
}


def _register(module: ModuleType) -> None:
    for name in module.__all__:
        if name not in FUNCTIONS:
            function = getattr(module, name)
            FUNCTIONS[name] = (getattr(function, "_weft_unwrapped", function),)


for _module in (layers, losses, recurrent):
    _register(_module)

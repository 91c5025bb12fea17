"""Special functions under the names of `torch.special`."""

from __future__ import annotations

from typing import Any

import weft

_OTHER_NAMES = {
    "gammaln": "lgamma",
    "psi": "digamma",
    "expit": "sigmoid",
    "round": "round",
}
_SAME_NAMES = frozenset(
    "digamma erf erfc erfinv exp2 expm1 i0 log1p log_softmax logit logsumexp polygamma sinc "  # noqa: SIM905
    "softmax xlogy".split()
)
i1 = weft._C._aten.special_i1


def __getattr__(name: str) -> Any:
    if name in _OTHER_NAMES or name in _SAME_NAMES:
        return getattr(weft, _OTHER_NAMES.get(name, name))
    raise AttributeError(f"module 'weft.special' has no attribute {name!r}")

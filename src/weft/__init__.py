"""weft: tensors that share memory with everything around them, with define-by-run gradients.

The names are PyTorch's, so that `import weft as torch` runs programs as they are. The operators
come from the table in `weft._ops` through the extension `weft._C`; `nn`, `optim` and the like are
imported when they are first used (`weft._exports`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft import _C, _exports
from weft._runtime import imports as _imports
from weft._runtime import lazy as _lazy

if TYPE_CHECKING:
    from weft import (
        autograd,
        cuda,
        fft,
        memory,
        multiprocessing,
        nn,
        optim,
        random,
        serialization,
        utils,
    )
    from weft._C import *  # noqa: F403

# Operators of the table stand beside what the bindings write by hand: dtypes, tensor(), ... Modules
# of the package take both from weft._C.
vars(_C).update(_C._functions)
globals().update({name: value for name, value in vars(_C).items() if not name.startswith("_")})

from weft._tensor import aliases as _aliases  # noqa: E402
from weft._tensor import generators as _generators  # noqa: E402  (their Python-written methods)
from weft._tensor.tensor import (  # noqa: E402  (Tensor gets its Python-written methods)
    get_rng_state,
    is_complex,
    is_floating_point,
    is_inference,
    is_nonzero,
    is_storage,
    is_tensor,
    numel,
    typename,
)
from weft.autograd.anomaly_mode import (  # noqa: E402
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
)
from weft.autograd.grad_mode import (  # noqa: E402
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from weft.storage import TypedStorage, UntypedStorage  # noqa: E402
from weft.version import __version__  # noqa: E402

inf, nan, pi, e = math.inf, math.nan, math.pi, math.e
newaxis = None

# A Python-written function may take more than the operator of its name does.
for _name in ("block_diag", "cdist", "nonzero", "norm"):
    globals().pop(_name, None)
_aliases.install(globals())

_EXPORTED = _exports.NAMES.difference(globals())
__all__ = sorted(
    {n for n in {*globals(), *_exports.MODULES, *_EXPORTED} if not n.startswith("_")}
    - {"annotations", "math", "Any", "TYPE_CHECKING"}
)


def __getattr__(name: str) -> Any:
    return _lazy.find("weft", name, _exports.module_of(name))


def __dir__() -> list[str]:
    return __all__

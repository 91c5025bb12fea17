"""weft: tensors that share memory with everything around them, with define-by-run gradients.

The names are PyTorch's, so that `import weft as torch` runs programs as they are. The operators
come from the table in `weft._ops` through the extension `weft._C`; `nn`, `optim` and the like are
imported when they are first used.
"""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Any

from weft import _C, _imports

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

# Operators of the table, then what the bindings write by hand: dtypes, tensor(), from_numpy(), ...
globals().update(_C._functions)
globals().update({name: value for name, value in vars(_C).items() if not name.startswith("_")})

from weft import _aliases, _tensor  # noqa: E402  (Tensor gets its Python-written methods)
from weft._tensor import (  # noqa: E402
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

inf = math.inf
nan = math.nan
pi = math.pi
e = math.e
newaxis = None

# Imported at the first use of the name.
_LAZY_MODULES = frozenset(
    (
        "accelerator",
        "amp",
        "autograd",
        "backends",
        "compiler",
        "cuda",
        "distributed",
        "distributions",
        "fft",
        "func",
        "functional",
        "futures",
        "hub",
        "jit",
        "linalg",
        "memory",
        "multiprocessing",
        "mps",
        "nn",
        "onnx",
        "optim",
        "profiler",
        "random",
        "serialization",
        "signal",
        "special",
        "testing",
        "utils",
        "version",
        "xpu",
    )
)
_LAZY_NAMES = {
    "Event": "weft._streams",
    "GradScaler": "weft.amp",
    "Stream": "weft._streams",
    "autocast": "weft.amp",
    "get_autocast_dtype": "weft.amp",
    "is_autocast_enabled": "weft.amp",
    "get_autocast_cpu_dtype": "weft.amp.autocast_mode",
    "get_autocast_gpu_dtype": "weft.amp.autocast_mode",
    "is_autocast_cpu_enabled": "weft.amp.autocast_mode",
    "set_default_tensor_type": "weft._typed",
    "compile": "weft.compiler",
    "embedding_renorm_": "weft.nn._embedding_functions",
    "finfo": "weft._limits",
    "from_file": "weft._mapped",
    "iinfo": "weft._limits",
    "install_as_torch": "weft.compat.install",
    "load": "weft.serialization",
    "poisson": "weft._poisson",
    "resize_as_": "weft.storage",
    "result_type": "weft._promotion",
    "save": "weft.serialization",
    "set_printoptions": "weft._tensor_str",
}

# Written in Python, over the operators; some take more than the operator of that name does.
_FUNCTIONS = (
    "atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors "
    "cartesian_prod cdist "
    "column_stack combinations complex concat concatenate corrcoef cov dstack einsum hstack "
    "meshgrid nanquantile "
    "nonzero norm polar quantile row_stack tensordot unique unique_consecutive "
    "vstack"
)
_SHAPING = (
    "as_strided_scatter chain_matmul cumulative_trapezoid dsplit gradient hsplit index_reduce "
    "is_conj is_neg logspace mvlgamma nonzero_static pinverse "
    "resolve_conj resolve_neg split_copy split_with_sizes_copy trapezoid trapz unbind_copy "
    "unravel_index vander vsplit"
)
_SETTINGS = (
    "OutOfMemoryError _assert _check _check_is_size are_deterministic_algorithms_enabled "
    "get_default_device set_default_device "
    "get_deterministic_debug_mode get_float32_matmul_precision "
    "is_deterministic_algorithms_warn_only_enabled set_deterministic_debug_mode "
    "set_float32_matmul_precision use_deterministic_algorithms"
)
_LAZY_NAMES.update(dict.fromkeys(("histogram", "histogramdd"), "weft._histograms"))
_LAZY_NAMES.update(dict.fromkeys(("lu_solve", "lu_unpack", "triangular_solve"), "weft._factors"))
_LAZY_NAMES["matrix_exp"] = "weft._matrix_functions"
_FOURIER = "bartlett_window blackman_window hamming_window hann_window istft kaiser_window stft"
_LAZY_NAMES.update(dict.fromkeys(_FUNCTIONS.split(), "weft.functional"))
_LAZY_NAMES.update(dict.fromkeys(_SHAPING.split(), "weft.shaping"))
_LAZY_NAMES.update(dict.fromkeys(_SETTINGS.split(), "weft._settings"))
_LAZY_NAMES.update(dict.fromkeys(_FOURIER.split(), "weft._spectrogram"))
_LAZY_NAMES.update(
    dict.fromkeys(
        (
            "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor",
            "FloatTensor", "HalfTensor", "IntTensor", "LongTensor", "ShortTensor",
        ),
        "weft._typed",
    )
)  # fmt: skip
_NN_FUNCTIONS = (
    "adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d bilinear conv3d conv_transpose1d "
    "conv_transpose3d cosine_embedding_loss cosine_similarity ctc_loss hinge_embedding_loss "
    "margin_ranking_loss max_pool1d max_pool1d_with_indices max_pool3d pairwise_distance pdist "
    "poisson_nll_loss triplet_margin_loss"
)
_LAZY_NAMES.update(
    {name: "weft.nn.functional" for name in _NN_FUNCTIONS.split() if name not in globals()}
)
for _name in ("block_diag", "cdist", "nonzero", "norm"):
    globals().pop(_name, None)
_aliases.install(globals())

__all__ = sorted(
    {name for name in globals() if not name.startswith("_")}.union(_LAZY_MODULES, _LAZY_NAMES)
    - {"_assert", "_check", "_check_is_size"}
    - {"annotations", "importlib", "math", "Any", "TYPE_CHECKING"}
)


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        return _imports.load(f"weft.{name}")
    if name in _LAZY_NAMES:
        value = getattr(importlib.import_module(_LAZY_NAMES[name]), name)
        globals()[name] = value
        return value
    if name.startswith("_foreach_"):
        return getattr(importlib.import_module("weft._foreach"), name)
    raise AttributeError(f"module 'weft' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

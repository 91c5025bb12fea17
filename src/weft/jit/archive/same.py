"""Operators of PyTorch that are functions of weft, written in Python: by name, with the operator's
arguments in their order. Code of archives reaches no other function of weft."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft.nn.functional as F
from weft._C import Tensor
from weft._runtime.public import weft

# A prefix of operators' names, the module of the functions, their names. Archives that weft writes
# name these operators where a program calls the functions.
_WRITTEN: tuple[tuple[str, Any, str], ...] = (
    (
        "",
        F,
        """adaptive_avg_pool1d adaptive_avg_pool3d bilinear celu_ conv3d conv_tbc conv_transpose1d
        conv_transpose3d cosine_similarity glu hardshrink pad
        pairwise_distance pdist prelu rms_norm scaled_dot_product_attention selu_ softshrink
        threshold_""",
    ),
    (
        "",
        weft,
        """as_strided_scatter combinations corrcoef cov get_autocast_dtype
        index_reduce is_autocast_cpu_enabled istft lu_solve matrix_exp nanquantile
        nonzero_static pinverse polar quantile stft unbind_copy vander""",
    ),
    (
        "fft_",
        weft.fft,
        """fft fft2 fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn
        irfft irfft2 irfftn rfft rfft2 rfftn""",
    ),
    (
        "linalg_",
        weft.linalg,
        """cond diagonal ldl_factor_ex ldl_solve lu_solve matrix_exp matrix_norm multi_dot norm pinv
        solve_ex tensorinv vander vecdot""",
    ),
    (
        "special_",
        weft.special,
        """bessel_j0 bessel_j1 bessel_y0 bessel_y1 chebyshev_polynomial_t chebyshev_polynomial_u
        chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he
        laguerre_polynomial_l legendre_polynomial_p modified_bessel_k0 modified_bessel_k1
        scaled_modified_bessel_k0 scaled_modified_bessel_k1
        shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u
        shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w spherical_bessel_j0""",
    ),
)
# Functions that have further arguments behind the operator's, take several arguments for one list,
# or are of the table under another name.
_READ: tuple[tuple[str, Any, str], ...] = (
    (
        "",
        F,
        """alpha_dropout avg_pool1d avg_pool3d celu feature_alpha_dropout max_pool1d
        max_pool1d_with_indices max_pool3d max_pool3d_with_indices mish native_channel_shuffle selu
        threshold""",
    ),
    (
        "",
        weft,
        """absolute absolute_ arccos arccos_ arccosh arccosh_ arcsin arcsin_ arcsinh arcsinh_ arctan
        arctan2 arctan_ arctanh arctanh_ atleast_1d atleast_2d atleast_3d bartlett_window
        blackman_window broadcast_tensors cartesian_prod clip clip_ column_stack
        complex concat concatenate cumulative_trapezoid divide dsplit dstack fix fix_
        frobenius_norm ger gradient greater greater_equal hamming_window hann_window
        hsplit hstack kaiser_window less less_equal logspace lu_unpack meshgrid multiply negative
        negative_ not_equal nuclear_norm range resolve_conj resolve_neg result_type
        row_stack segment_reduce split_copy split_with_sizes_copy subtract swapdims
        trapezoid trapz triangular_solve true_divide view_as_complex_copy view_as_real_copy
        vsplit vstack""",
    ),
    (
        "",
        Tensor,
        """arctan2_ divide_ greater_ greater_equal_ less_
        less_equal_ multiply_ not_equal_ pin_memory set_ subtract_ swapdims_
        true_divide_""",
    ),
    ("fft_", weft.fft, "fftfreq rfftfreq"),
    ("linalg_", weft.linalg, "lstsq matmul matrix_power matrix_rank tensorsolve"),
    (
        "special_",
        weft.special,
        """digamma erf erfc erfinv exp2 expit expm1 gammainc gammaincc gammaln i0 log1p log_softmax
        logit logsumexp modified_bessel_i0 modified_bessel_i1 multigammaln polygamma psi round sinc
        xlogy""",
    ),
)
# Those of other names.
_NAMED = {
    "__and__": "bitwise_and",
    "__or__": "bitwise_or",
    "__xor__": "bitwise_xor",
    "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift",
    "_conj": "conj",
    "_conj_physical": "conj_physical",
    "_neg_view": "neg",
    "_unsafe_view": "reshape",
    "data": "detach",
}
_NAMED_IN_PLACE = {f"__i{name[2:]}": f"{_NAMED[name]}_" for name in list(_NAMED)[:5]}


def _functions(rows: tuple[tuple[str, Any, str], ...]) -> dict[str, Callable[..., Any]]:
    return {
        f"aten::{prefix}{name}": getattr(module, name)
        for prefix, module, names in rows
        for name in names.split()
    }


WRITTEN = _functions(_WRITTEN)
_CALLED = {
    **WRITTEN,
    **_functions(_READ),
    **{f"aten::{name}": getattr(weft, function) for name, function in _NAMED.items()},
    **{f"aten::{name}": getattr(Tensor, method) for name, method in _NAMED_IN_PLACE.items()},
}


def find(kind: str) -> Callable[..., Any] | None:
    """weft's function of an operator's name, if there is one."""
    return _CALLED.get(kind)


# What PyTorch calls the first parameter; of all others "self".
_FIRST = {
    name: first
    for first, names in {
        "input": """_convolution _convolution_mode _native_batch_norm_legit_no_training
            _pack_padded_sequence alpha_dropout
            batch_norm_stats conv3d conv_transpose1d conv_transpose3d convolution dropout
            feature_alpha_dropout feature_dropout gru gru_cell instance_norm
            linalg_matrix_rank lstm lstm_cell native_batch_norm native_dropout native_group_norm
            native_layer_norm poisson_nll_loss rms_norm rnn_relu rnn_relu_cell rnn_tanh
            rnn_tanh_cell""",
        "x": """special_chebyshev_polynomial_t special_chebyshev_polynomial_u
            special_chebyshev_polynomial_v special_chebyshev_polynomial_w
            special_hermite_polynomial_h special_hermite_polynomial_he
            special_laguerre_polynomial_l special_legendre_polynomial_p
            special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1
            special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
            special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w
            special_spherical_bessel_j0""",
    }.items()
    for name in names.split()
}


def parameter_name(kind: str, name: str) -> str:
    """What PyTorch calls a parameter of an operator, which the function calls `name`."""
    if name == "input":
        return _FIRST.get(kind.partition("::")[2], "self")
    return "dtype" if name == "number" else name

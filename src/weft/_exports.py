"""The public names of `weft` beyond its operators, by the modules that define them.

`weft` imports a module when one of its names is first used: `import weft` takes as long as it did
with few of them.
"""

from __future__ import annotations

#: submodules, shown as attributes of weft
_MODULES = (
    "accelerator amp array_api autograd backends compiler cpu cuda distributed distributions "
    "export fft func functional futures fx hub jit library linalg masked memory mps "
    "multiprocessing nested nn onnx ops optim overrides profiler quasirandom random return_types "
    "serialization signal sparse special testing types utils version xpu"
)
MODULES = frozenset(_MODULES.split())

_NAMES_OF_MODULES = {
    "_C": "_int_mm _sample_dirichlet _scaled_mm _standard_gamma _weight_int8pack_mm",
    "_functions.branches": "cond while_loop",
    "_functions.calculus": "cumulative_trapezoid gradient logspace trapezoid trapz vander",
    "_functions.closed_range": "range",
    "_functions.elements": "complex index_reduce is_conj is_neg nonzero nonzero_static "
    "polar resolve_conj resolve_neg unique unique_consecutive",
    "_functions.histograms": "histogram histogramdd",
    "_functions.factorizations": "eig lstsq matrix_rank orgqr ormqr solve symeig",
    "_functions.lu": "lu lu_solve lu_unpack triangular_solve",
    "_functions.layouts": "as_strided_ detach_ empty_permuted get_device get_device_module "
    "is_same_size is_signed unsafe_split_with_sizes view_as_complex_copy view_as_real_copy",
    "_functions.lobpcg": "lobpcg",
    "_functions.low_rank": "pca_lowrank svd_lowrank",
    "_functions.matrices": "_grouped_mm cdist einsum matrix_exp tensordot",
    "_functions.norms": "_weight_norm chain_matmul frobenius_norm norm norm_except_dim "
    "nuclear_norm pinverse",
    "_functions.segments": "_convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo "
    "hash_tensor segment_reduce",
    "_functions.shapes": "as_strided_scatter broadcast_shapes broadcast_tensors dsplit hsplit "
    "meshgrid split_copy split_with_sizes_copy unbind_copy unravel_index vsplit",
    "_functions.spectra": "bartlett_window blackman_window hamming_window hann_window istft "
    "kaiser_window stft",
    "_functions.stacking": "atleast_1d atleast_2d atleast_3d block_diag cartesian_prod "
    "column_stack combinations concat concatenate dstack hstack row_stack vstack",
    "_functions.statistics": "corrcoef cov nanquantile quantile",
    "_runtime.settings": "OutOfMemoryError _assert _assert_async _check _check_is_size "
    "are_deterministic_algorithms_enabled compiled_with_cxx11_abi "
    "get_default_device get_deterministic_debug_mode "
    "get_float32_matmul_precision get_num_interop_threads "
    "is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled set_default_device "
    "set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal "
    "set_num_interop_threads set_warn_always use_deterministic_algorithms",
    "_runtime.streams": "Event Stream",
    "_runtime.symbolic": "SymBool SymFloat SymInt sym_constrain_range "
    "sym_constrain_range_for_size sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt "
    "sym_sum",
    "_tensor.legacy_types": "BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage "
    "ByteTensor CharStorage CharTensor ComplexDoubleStorage ComplexFloatStorage DoubleStorage "
    "DoubleTensor FloatStorage FloatTensor HalfStorage HalfTensor IntStorage IntTensor LongStorage "
    "LongTensor ShortStorage ShortTensor Storage set_default_tensor_type",
    "_tensor.limits": "finfo iinfo",
    "_tensor.mapped": "from_file",
    "_tensor.promotion": "result_type",
    "_tensor.repr": "set_printoptions",
    "array_api._info": "__array_namespace_info__",
    "amp": "GradScaler autocast get_autocast_dtype is_autocast_enabled",
    "amp.autocast_mode": "autocast_decrement_nesting autocast_increment_nesting "
    "clear_autocast_cache get_autocast_cpu_dtype get_autocast_gpu_dtype is_autocast_cache_enabled "
    "is_autocast_cpu_enabled set_autocast_cache_enabled set_autocast_cpu_dtype "
    "set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype",
    "compat.install": "install_as_torch",
    "compiler": "compile",
    "func": "vmap",
    "futures": "Future",
    "nn._embedding_functions": "embedding_renorm_",
    "nn._operators.layers": "_convolution _convolution_mode affine_grid_generator alpha_dropout "
    "alpha_dropout_ batch_norm_stats convolution dropout_ embedding_bag feature_alpha_dropout "
    "feature_alpha_dropout_ feature_dropout feature_dropout_ instance_norm "
    "native_batch_norm native_dropout native_group_norm native_layer_norm",
    "nn._operators.losses": "cosine_embedding_loss ctc_loss hinge_embedding_loss kl_div "
    "margin_ranking_loss poisson_nll_loss triplet_margin_loss",
    "nn._operators.recurrent": "_pack_padded_sequence _pad_packed_sequence gru gru_cell lstm "
    "lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "nn.functional": "adaptive_avg_pool1d adaptive_max_pool1d avg_pool1d bilinear celu celu_ "
    "conv3d conv_tbc conv_transpose1d conv_transpose3d cosine_similarity max_pool1d "
    "max_pool1d_with_indices max_pool3d native_channel_shuffle pairwise_distance pdist rms_norm "
    "rrelu rrelu_ selu selu_ threshold threshold_",
    "serialization": "load save",
    "sparse._construct": "sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor "
    "sparse_csr_tensor",
    "sparse._products": "dsmm smm spmm",
    "_tensor.storage_methods": "resize_as_",
}

#: methods of tensors that are functions of those modules
_METHODS = (
    "__array_namespace__ as_strided_ as_strided_scatter corrcoef cov dim_order dsplit eig "
    "hardshrink hash_tensor histogram hsplit index_reduce "
    "index_reduce_ is_conj is_neg is_nonzero is_same_size istft lstsq lu lu_solve matrix_exp "
    "nanquantile new_empty_strided nonzero nonzero_static norm orgqr ormqr "
    "pinverse prelu quantile resize resize_as resolve_conj resolve_neg smm solve stft "
    "sum_to_size symeig to_device triangular_solve unique unique_consecutive "
    "to_padded_tensor unsafe_split_with_sizes vsplit"
)
METHODS = tuple(_METHODS.split())

#: the module that defines a name
MODULE_OF = {
    name: f"weft.{module}" for module, names in _NAMES_OF_MODULES.items() for name in names.split()
}
#: names of weft; what is only a method is none
NAMES = frozenset(MODULE_OF)
#: methods that know the parts of sparse tensors
_SPARSE_METHODS = (
    "_indices _nnz _values ccol_indices coalesce col_indices crow_indices dense_dim indices "
    "is_coalesced row_indices sparse_dim sparse_mask to_dense to_sparse to_sparse_coo "
    "to_sparse_csc to_sparse_csr values"
)
SPARSE_METHODS = tuple(_SPARSE_METHODS.split())
METHODS += SPARSE_METHODS
MODULE_OF |= dict.fromkeys(SPARSE_METHODS, "weft.sparse._convert")
MODULE_OF["__array_namespace__"] = MODULE_OF["to_device"] = "weft.array_api._info"
MODULE_OF["index_reduce_"] = "weft._functions.elements"
MODULE_OF |= dict.fromkeys(("dim_order", "new_empty_strided"), "weft._functions.layouts")
MODULE_OF |= dict.fromkeys(("hardshrink", "prelu"), "weft.nn.functional")
MODULE_OF |= {"is_nonzero": "weft._tensor.tensor", "to_padded_tensor": "weft.nested._construct"}
MODULE_OF.update(dict.fromkeys(("resize", "resize_as", "sum_to_size"), "weft._functions.shapes"))


def module_of(name: str) -> str | None:
    """The module that defines an attribute of weft, or that is one; None of others."""
    if name in MODULES:
        return f"weft.{name}"
    if name.startswith("_foreach_"):
        return "weft._functions.foreach"
    return MODULE_OF[name] if name in NAMES else None

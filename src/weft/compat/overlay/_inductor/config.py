"""torch._inductor.config: settings that are kept and change nothing."""

from types import SimpleNamespace

from weft.compat.overlay._settings import patcher

coordinate_descent_tuning = False
epilogue_fusion = True
force_fuse_int_mm_with_mul = False
freezing = False
fx_graph_cache = True
max_autotune = False
triton = SimpleNamespace(unique_kernel_names=True, cudagraphs=False, cudagraph_trees=True)
patch = patcher(__name__)

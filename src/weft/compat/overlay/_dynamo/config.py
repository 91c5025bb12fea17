"""torch._dynamo.config: settings that are kept and change nothing."""

from weft.compat.overlay._settings import patcher

assume_static_by_default = True
automatic_dynamic_shapes = True
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
dynamic_shapes = True
optimize_ddp = True
suppress_errors = False
verbose = False
patch = patcher(__name__)

"""torch._functorch.config: settings that are kept and change nothing."""

from weft.compat.overlay._settings import patcher

donated_buffer = False
enable_autograd_cache = True
patch = patcher(__name__)

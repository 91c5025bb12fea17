"""torch.version: the PyTorch that weft answers for, and the accelerators of this build (none)."""

from weft.compat.overlay.torch_version import __version__
from weft.version import cuda, debug, git_version, hip, xpu

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

"""What this build of weft is: `__version__`, and which accelerators it was built for (none)."""

from __future__ import annotations

__version__ = "0.1.0"
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
debug = False
git_version = "unknown"

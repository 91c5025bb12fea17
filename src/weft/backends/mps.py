"""Apple's GPUs, which this build cannot use."""

from weft._runtime.absent import is_available as is_available
from weft._runtime.absent import is_built as is_built


def is_macos_or_newer(major: int, minor: int) -> bool:
    """False: asked only of devices that are available."""
    return False

"""Apple's GPUs, which this build cannot use."""


def is_available() -> bool:
    """False."""
    return False


def is_built() -> bool:
    """False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """False: asked only of devices that are available."""
    return False

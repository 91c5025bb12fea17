"""OpenMP, which this build does not use."""


def is_available() -> bool:
    """False."""
    return False

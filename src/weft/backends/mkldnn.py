"""oneDNN, which this build does not use."""

enabled = True


def is_available() -> bool:
    """False."""
    return False

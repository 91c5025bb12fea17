"""torch._guards: what libraries ask while they compute."""


def active_fake_mode() -> None:
    """None: no mode is there in which tensors have no elements."""

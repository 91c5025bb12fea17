"""What passes over graphs have in common: a base class, and lists of passes."""

from weft.fx.passes.infra import pass_base, pass_manager

__all__ = ["pass_base", "pass_manager"]

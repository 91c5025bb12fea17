"""The frontend: Python source to the IR."""

from weft.jit.frontend import (  # noqa: F401  (they register what they handle)
    expressions,
    operators,
    statements,
)
from weft.jit.frontend.errors import FrontendError, NotSupportedError
from weft.jit.frontend.functions import compile_function

__all__ = ["FrontendError", "NotSupportedError", "compile_function"]

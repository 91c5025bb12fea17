"""The frontend: Python source to the IR."""

from weft.jit.frontend import (  # noqa: F401  (they register what they handle)
    expressions,
    operators,
    statements,
)
from weft.jit.frontend.errors import FrontendError, NotSupportedError
from weft.jit.frontend.functions import compile_function
from weft.jit.frontend.refused import REFUSED, REFUSED_FORMS

__all__ = ["REFUSED", "REFUSED_FORMS", "FrontendError", "NotSupportedError", "compile_function"]

"""The frontend: Python source to the IR."""

from weft.jit.frontend import (  # noqa: F401  (they register what they handle)
    builtin_numbers,
    builtin_objects,
    comparison,
    comprehensions,
    expressions,
    limits,
    operators,
    statements,
    strings,
    subscripts,
)
from weft.jit.frontend.errors import FrontendError, NotSupportedError
from weft.jit.frontend.functions import compile_function
from weft.jit.frontend.refused import REFUSED, REFUSED_FORMS

__all__ = ["REFUSED", "REFUSED_FORMS", "FrontendError", "NotSupportedError", "compile_function"]

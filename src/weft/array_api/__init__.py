"""The Python Array API standard 2025.12 over weft's tensors: what `x.__array_namespace__()` gives.

Most functions are weft's own. The namespace differs where the standard does: arguments are called
`axis` and `keepdims`, arrays without axes take part in promotion, sums of unsigned integers are
unsigned, and `var` divides by n. docs/array_api.md has the table.

>>> import weft.array_api as xp
>>> xp.sum(xp.asarray([[1, 2], [3, 4]]), axis=0, keepdims=True)
tensor([[4, 6]])
"""

from math import e, inf, nan, pi

from weft._C import (
    bool,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from weft.array_api import _creation, _dtypes, _elements, _shapes, _statistics, fft, linalg
from weft.array_api._creation import *  # noqa: F403
from weft.array_api._dtypes import *  # noqa: F403
from weft.array_api._elements import *  # noqa: F403
from weft.array_api._info import __array_namespace_info__
from weft.array_api._operators import StandardOperators
from weft.array_api._shapes import *  # noqa: F403
from weft.array_api._statistics import *  # noqa: F403
from weft.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot

newaxis = None
globals().update({**_elements.FUNCTIONS, **_creation.FUNCTIONS})

__array_api_version__ = "2025.12"
__all__ = [
    "StandardOperators", "__array_api_version__", "__array_namespace_info__", "bool", "complex64",
    "complex128", "e", "fft", "float32", "float64", "inf", "int8", "int16", "int32", "int64",
    "linalg", "matmul", "matrix_transpose", "nan", "newaxis", "pi", "tensordot", "uint8",
    "uint16", "uint32", "uint64", "vecdot",
]  # fmt: skip
__all__ += [*_elements.FUNCTIONS, *_creation.FUNCTIONS]
for _module in (_creation, _dtypes, _elements, _shapes, _statistics):
    __all__ += _module.__all__

# ruff: noqa: F403
"""Differentiable maps of values, with the logarithm of the determinant of their Jacobian.

>>> weft.distributions.transforms.AffineTransform(1.0, 2.0)(weft.tensor([0.0, 1.0]))
tensor([1., 3.])
"""

from weft._runtime.exports import take_own as _take_own
from weft.distributions.transforms.elementwise import *
from weft.distributions.transforms.elementwise import _clipped_sigmoid as _clipped_sigmoid
from weft.distributions.transforms.transform import *
from weft.distributions.transforms.transform import _InverseTransform as _InverseTransform
from weft.distributions.transforms.vectors import *

_take_own(vars(), "_InverseTransform _clipped_sigmoid")

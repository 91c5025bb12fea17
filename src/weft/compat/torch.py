"""Importing this module makes `import torch` mean weft; the module itself is then torch.

>>> import weft.compat.torch as torch  # doctest: +SKIP
>>> torch.__version__  # doctest: +SKIP
'2.13.0'
"""

import sys

from weft.compat.install import install_as_torch

install_as_torch()
sys.modules[__name__] = sys.modules["torch"]

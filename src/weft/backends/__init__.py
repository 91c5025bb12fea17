"""Flags of the libraries that PyTorch computes with, for programs that set them.

weft computes with its own kernels and OpenBLAS: what is asked of another library here is that it is
not available. A flag keeps the value it is given and changes nothing.

>>> weft.backends.cudnn.allow_tf32 = True
>>> weft.backends.cudnn.is_available()
False
"""

from weft.backends import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum, quantized

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "quantized"]

"""Reductions, cumulations and normalizations of the elements that a mask keeps: `torch.masked`.

`mask` is True where an element counts, and broadcasts to `input`; without one all elements count.
What is masked out takes no part in the gradient either. Where a mask keeps nothing, a reduction
gives its identity (0, 1, an infinity), a mean nan.
"""

from weft.masked._cumulations import cumprod as cumprod
from weft.masked._cumulations import cumsum as cumsum
from weft.masked._normalizations import log_softmax as log_softmax
from weft.masked._normalizations import normalize as normalize
from weft.masked._normalizations import softmax as softmax
from weft.masked._normalizations import softmin as softmin
from weft.masked._reductions import amax as amax
from weft.masked._reductions import amin as amin
from weft.masked._reductions import argmax as argmax
from weft.masked._reductions import argmin as argmin
from weft.masked._reductions import logaddexp as logaddexp
from weft.masked._reductions import logsumexp as logsumexp
from weft.masked._reductions import mean as mean
from weft.masked._reductions import median as median
from weft.masked._reductions import norm as norm
from weft.masked._reductions import prod as prod
from weft.masked._reductions import std as std
from weft.masked._reductions import sum as sum
from weft.masked._reductions import var as var

# ruff: noqa: F403
"""The layers, one file per family."""

from weft._runtime.exports import take_own as _take_own
from weft.nn.modules import lazy as lazy
from weft.nn.modules import utils as utils
from weft.nn.modules.activation import *
from weft.nn.modules.adaptive import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from weft.nn.modules.attention import MultiheadAttention as MultiheadAttention
from weft.nn.modules.batchnorm import *
from weft.nn.modules.container import *
from weft.nn.modules.conv import *
from weft.nn.modules.dropout import *
from weft.nn.modules.flatten import *
from weft.nn.modules.instancenorm import *
from weft.nn.modules.lazy_layers import *
from weft.nn.modules.linear import Identity as Identity
from weft.nn.modules.linear import Linear as Linear
from weft.nn.modules.loss import *
from weft.nn.modules.loss_linear import *
from weft.nn.modules.loss_margin import *
from weft.nn.modules.module import Module as Module
from weft.nn.modules.normalization import *
from weft.nn.modules.padding import *
from weft.nn.modules.pooling import *
from weft.nn.modules.resampling import *
from weft.nn.modules.rnn import *
from weft.nn.modules.rnn_cell import *
from weft.nn.modules.sparse import *
from weft.nn.modules.syncbatchnorm import SyncBatchNorm as SyncBatchNorm
from weft.nn.modules.transformer import *

_take_own(vars())

"""The layers, one file per family."""

from weft.nn.modules.activation import (
    GELU,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    Sigmoid,
    SiLU,
    Softmax,
    Tanh,
)
from weft.nn.modules.activation_more import (
    CELU,
    ELU,
    GLU,
    SELU,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LogSigmoid,
    Mish,
    PReLU,
    ReLU6,
    Softmin,
    Softplus,
    Softshrink,
    Softsign,
    Tanhshrink,
    Threshold,
)
from weft.nn.modules.attention import MultiheadAttention
from weft.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d
from weft.nn.modules.container import ModuleDict, ModuleList, ParameterList, Sequential
from weft.nn.modules.conv import Conv1d, Conv2d
from weft.nn.modules.conv_transpose import ConvTranspose2d
from weft.nn.modules.dropout import Dropout
from weft.nn.modules.flatten import Flatten, Unflatten
from weft.nn.modules.linear import Identity, Linear
from weft.nn.modules.loss import BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from weft.nn.modules.loss_more import (
    BCELoss,
    CosineSimilarity,
    GaussianNLLLoss,
    HuberLoss,
    KLDivLoss,
    SmoothL1Loss,
)
from weft.nn.modules.module import Module
from weft.nn.modules.normalization import LayerNorm
from weft.nn.modules.normalization_more import GroupNorm, RMSNorm
from weft.nn.modules.pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from weft.nn.modules.rnn import GRU, LSTM, RNN, RNNBase
from weft.nn.modules.rnn_cell import GRUCell, LSTMCell, RNNCell, RNNCellBase
from weft.nn.modules.sparse import Embedding
from weft.nn.modules.transformer import TransformerEncoder, TransformerEncoderLayer

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "GRU",
    "LSTM",
    "RNN",
    "SELU",
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose2d",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GRUCell",
    "GaussianNLLLoss",
    "GroupNorm",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "HuberLoss",
    "Identity",
    "KLDivLoss",
    "L1Loss",
    "LSTMCell",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiheadAttention",
    "NLLLoss",
    "PReLU",
    "ParameterList",
    "RMSNorm",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "ReLU",
    "ReLU6",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "Softmax",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "Unflatten",
]

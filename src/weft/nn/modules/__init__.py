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
from weft.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d
from weft.nn.modules.container import ModuleDict, ModuleList, ParameterList, Sequential
from weft.nn.modules.conv import Conv1d, Conv2d
from weft.nn.modules.dropout import Dropout
from weft.nn.modules.flatten import Flatten, Unflatten
from weft.nn.modules.linear import Identity, Linear
from weft.nn.modules.loss import BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from weft.nn.modules.module import Module
from weft.nn.modules.normalization import LayerNorm
from weft.nn.modules.pooling import AdaptiveAvgPool2d, AvgPool2d, MaxPool2d
from weft.nn.modules.sparse import Embedding

__all__ = [
    "GELU",
    "AdaptiveAvgPool2d",
    "AvgPool2d",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Conv1d",
    "Conv2d",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "Identity",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2d",
    "Module",
    "ModuleDict",
    "ModuleList",
    "NLLLoss",
    "ParameterList",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "Unflatten",
]

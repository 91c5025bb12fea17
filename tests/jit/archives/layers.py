"""Layers, for the operators of PyTorch that they call."""

from collections.abc import Callable
from typing import Any

import torch
from tests.jit.archives import X, case, image
from torch import Tensor, nn


def layer(name: str, make: Callable[[], Any], *args: Any) -> None:
    """Registers a layer in evaluation mode, and one call of it."""

    def make_layer() -> Any:
        return make().eval()

    case(name, list(args))(make_layer)


Y = image(4, 3).t()
SIGNS = torch.tensor([1.0, -1.0, 1.0])
LABELS = torch.tensor([0, 2, 3])
FLAT, VOLUME = image(2, 4, 6), image(1, 4, 4, 4, 4)
PICTURE = image(1, 4, 4, 4)

# Losses -------------------------------------------------------------------------------------------

layer("KLDivLoss, batchmean", lambda: nn.KLDivLoss(reduction="batchmean"), X, Y.softmax(-1))
layer("KLDivLoss, sum", lambda: nn.KLDivLoss(reduction="sum", log_target=True), X, Y)
layer("HuberLoss", lambda: nn.HuberLoss(delta=0.3), X, Y)
layer("SmoothL1Loss", lambda: nn.SmoothL1Loss(reduction="sum", beta=0.2), X, Y)
layer(
    "MarginRankingLoss",
    lambda: nn.MarginRankingLoss(0.1, reduction="none"),
    X[:, 0],
    Y[:, 0],
    SIGNS,
)
layer("MultiMarginLoss", lambda: nn.MultiMarginLoss(2, reduction="sum"), X, LABELS)
layer(
    "MultiLabelMarginLoss",
    lambda: nn.MultiLabelMarginLoss(reduction="sum"),
    X,
    torch.tensor([[1, 2, -1, 0]] * 3),
)
layer("PoissonNLLLoss", lambda: nn.PoissonNLLLoss(full=True, reduction="sum"), X, Y.abs() + 1)
layer("SoftMarginLoss", lambda: nn.SoftMarginLoss(reduction="none"), X, Y.sign().long())
layer("TripletMarginLoss", lambda: nn.TripletMarginLoss(swap=True, reduction="sum"), X, Y, X + Y)
layer("HingeEmbeddingLoss", lambda: nn.HingeEmbeddingLoss(reduction="sum"), X[:, 0], SIGNS)
layer("CosineEmbeddingLoss", lambda: nn.CosineEmbeddingLoss(0.1, reduction="sum"), X, Y, SIGNS)
layer("BCELoss", lambda: nn.BCELoss(reduction="sum"), X.sigmoid(), Y.sigmoid())
layer("BCEWithLogitsLoss", lambda: nn.BCEWithLogitsLoss(pos_weight=image(4) + 2), X, Y.sigmoid())
layer("MSELoss", lambda: nn.MSELoss(reduction="none"), X, Y)
layer("NLLLoss", lambda: nn.NLLLoss(weight=image(4) + 2, reduction="sum"), X, LABELS)
layer("CrossEntropyLoss", lambda: nn.CrossEntropyLoss(label_smoothing=0.1), X, LABELS)
layer("CTCLoss", lambda: nn.CTCLoss(reduction="sum"), image(6, 2, 5).log_softmax(-1),
      torch.tensor([[1, 2], [3, 1]]), torch.tensor([6, 6]), torch.tensor([2, 2]))  # fmt: skip

# Images -------------------------------------------------------------------------------------------

layer("Upsample, nearest", lambda: nn.Upsample(size=(7, 7)), PICTURE)
layer("Upsample, nearest of one dimension", lambda: nn.Upsample(scale_factor=1.5), FLAT)
layer(
    "Upsample, nearest-exact", lambda: nn.Upsample(scale_factor=1.7, mode="nearest-exact"), PICTURE
)
layer("Upsample, linear", lambda: nn.Upsample(scale_factor=1.5, mode="linear"), FLAT)
layer(
    "Upsample, bilinear",
    lambda: nn.Upsample(scale_factor=2.5, mode="bilinear", align_corners=True),
    PICTURE,
)
layer("Upsample, bicubic", lambda: nn.Upsample(scale_factor=(1.5, 2.0), mode="bicubic"), PICTURE)
layer("Upsample, trilinear", lambda: nn.Upsample(size=(3, 5, 7), mode="trilinear"), VOLUME)
layer("Unfold", lambda: nn.Unfold((2, 3), padding=1), PICTURE)
layer("Fold", lambda: nn.Fold((4, 4), (2, 2)), image(1, 8, 9))
layer("AdaptiveMaxPool3d", lambda: nn.AdaptiveMaxPool3d((1, 2, 3), return_indices=True), VOLUME)
layer("MaxPool1d", lambda: nn.MaxPool1d(2, return_indices=True), FLAT)
layer("MaxPool3d", lambda: nn.MaxPool3d(2), VOLUME)
layer("AvgPool1d", lambda: nn.AvgPool1d(2, padding=1), FLAT)
layer("LocalResponseNorm", lambda: nn.LocalResponseNorm(2), PICTURE)
layer("PixelUnshuffle", lambda: nn.PixelUnshuffle(2), PICTURE)
layer("Dropout2d", lambda: nn.Dropout2d(), PICTURE)
layer("ReplicationPad3d", lambda: nn.ReplicationPad3d(1), VOLUME)
layer("Conv2d, circular", lambda: nn.Conv2d(4, 3, 3, padding=1, padding_mode="circular"), PICTURE)
layer("Conv1d, same", lambda: nn.Conv1d(4, 3, 3, padding="same"), FLAT)
layer("ConvTranspose3d", lambda: nn.ConvTranspose3d(4, 3, 2), VOLUME)


@case("grids", [PICTURE])
class Grids(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        theta = torch.tensor([[[0.9, 0.1, 0.0], [-0.1, 0.8, 0.2]]])
        grid = nn.functional.affine_grid(theta, [1, 4, 3, 5], align_corners=False)
        near = nn.functional.grid_sample(x, grid, "nearest", "border", True)
        return [grid, nn.functional.grid_sample(x, grid, align_corners=False), near]


# Others -------------------------------------------------------------------------------------------

layer("Hardsigmoid in place", lambda: nn.Sequential(nn.Linear(4, 4), nn.Hardsigmoid(True)), X)
layer("ReLU6 in place", lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU6(True)), X)
layer("Threshold in place", lambda: nn.Sequential(nn.Linear(4, 4), nn.Threshold(0.2, 0.1, True)), X)
layer("RReLU", lambda: nn.RReLU(), X)
layer(
    "EmbeddingBag",
    lambda: nn.EmbeddingBag(5, 3, mode="sum", padding_idx=1),
    torch.tensor([[0, 1], [2, 3]]),
)
layer("GRUCell", lambda: nn.GRUCell(4, 3), X)
layer("LSTMCell", lambda: nn.LSTMCell(4, 3), X)
layer(
    "Transformer",
    lambda: nn.Transformer(8, 2, 1, 1, 16, dropout=0.0),
    image(4, 2, 8),
    image(3, 2, 8),
)


@case("traced, a cell", [X])
def make_traced_cell():
    return torch.jit.trace(nn.GRUCell(4, 3), (X,))


@case("traced, convolution of padding same", [FLAT])
def make_traced_same():
    return torch.jit.trace(nn.Conv1d(4, 3, 3, padding="same"), (FLAT,))


@case("traced, weight norm", [X])
def make_traced_weight_norm():
    return torch.jit.trace(nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), (X,))


class Block(nn.Module):
    def __init__(self, activation: nn.Module):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return self.activation(self.linear(x))


@case("traced, modules in several others", [X])
def make_traced_shared():
    activation, linear = nn.PReLU(), nn.Linear(4, 4)
    inner = nn.Sequential(linear, nn.Tanh()), nn.Sequential(nn.Sigmoid(), linear)
    blocks = (Block(activation), Block(activation), *inner, activation)
    return torch.jit.trace(nn.Sequential(*blocks), (X,))


@case("transforms", [X])
class Transforms(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        half = torch.fft.rfft(x, 6, norm="ortho")
        whole = torch.fft.ifftn(torch.fft.fft2(x, dim=[0, 1]), norm="backward")
        back = torch.fft.irfft2(torch.fft.rfft2(x), s=[3, 4])
        return [torch.view_as_real(half), torch.view_as_real(torch.fft.fftshift(whole)), back]

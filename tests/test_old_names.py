"""Names that public programs of some years ago use."""

import pytest

import weft
from weft.nn import functional as F


@pytest.mark.parametrize("name", ["celu", "elu", "hardtanh", "leaky_relu", "relu", "selu"])
def test_activations_in_place(name):
    x = weft.tensor([-2.0, 0.5])
    expected = getattr(F, name)(x)
    assert getattr(F, f"{name}_")(x) is x and weft.equal(x, expected)


def test_losses_of_images():
    logs, target = weft.randn(2, 3, 2, 2).log_softmax(1), weft.zeros(2, 2, 2, dtype=weft.int64)
    loss = weft.nn.NLLLoss2d(reduction="sum")
    assert repr(loss) == "NLLLoss2d()" and loss(logs, target) == F.nll_loss(
        logs, target, reduction="sum"
    )


def test_clip_grad_norm():
    p = weft.ones(2, requires_grad=True)
    p.grad = weft.tensor([3.0, 4.0])
    with pytest.warns(FutureWarning, match="use clip_grad_norm_"):
        assert weft.nn.utils.clip_grad_norm([p], 1.0) == 5
    assert p.grad.norm().item() == pytest.approx(1, abs=1e-5)

"""Operators that traces of PyTorch name, and no program of weft: values, and beside PyTorch's own."""

from __future__ import annotations

import io

import pytest
from tests.jit.archive_writer import ROOT, archive, forward

import weft
from weft import jit

EYE = "torch.mul(torch.eye(3), 2)"
PADDED = "torch.reshape(torch.arange(12., dtype=6), [12])"
# The expression of an archive, x = [1, -2, 3], and its value as nested lists.
CASES = {
    "conj": ("torch.real(torch._conj(torch.complex(x, x)))", [1, -2, 3]),
    "conj_physical": ("torch.imag(torch._conj_physical(torch.complex(x, x)))", [-1, 2, -3]),
    "neg_view": ("torch._neg_view(x)", [-1, 2, -3]),
    "unsafe_view": ("torch._unsafe_view(x, [1, 3])", [[1, -2, 3]]),
    "data": ("torch.data(x)", [1, -2, 3]),
    "iand": ("torch.__iand__(torch.gt(x, 0), torch.lt(x, 2))", [True, False, False]),
    "ior": ("torch.__ior__(torch.to(x, 4), 8)", [9, -2, 11]),
    "ixor": ("torch.__ixor__(torch.to(x, 4), 1)", [0, -1, 2]),
    "ilshift": ("torch.__ilshift__(torch.to(x, 4), 1)", [2, -4, 6]),
    "irshift": ("torch.__irshift__(torch.to(x, 4), 1)", [0, -1, 1]),
    "nonzero": ("torch.nonzero_numpy(torch.gt(x, 0))[0]", [0, 2]),
    "nonzero of a number": ("torch.nonzero_numpy(x[0])[0]", [0]),
    "pad_sequence": ("torch.pad_sequence([x, x[:1]], True, 9.)", [[1, -2, 3], [1, 9, 9]]),
    "lu_factor": (f"torch.linalg_lu_factor({EYE}, pivot=True)[1]", [1, 2, 3]),
    "lu": (f"torch.linalg_lu({EYE})[2]", [[2, 0, 0], [0, 2, 0], [0, 0, 2]]),
    "renorm": (
        "torch.embedding_renorm_(torch.ones([3, 4]), torch.to(torch.zeros([2]), 4), 1., 2.)",
        [[0.5] * 4, [1] * 4, [1] * 4],
    ),
    "chain_matmul": ("torch.chain_matmul([torch.unsqueeze(x, 0), torch.unsqueeze(x, 1)])", [[14]]),
    "shape": ("torch._shape_as_tensor(torch.ones([2, 5]))", [2, 5]),
    "dim_arange": ("torch._dim_arange(x, 0)", [0, 1, 2]),
    "softmax": ("torch._softmax(torch.mul(x, 0), 0, False)", [1 / 3] * 3),
    "conv": ("torch.thnn_conv2d(torch.ones([1, 1, 2, 2]), torch.ones([1, 1, 2, 2]), [2, 2])", [[[[4]]]]),
    "stft": (
        "torch.abs(torch.stft(torch.ones([4]), 4, 4, 4, torch.ones([4]), False, True, True))",
        [[4], [0], [0]],
    ),
    "stft around": (
        "torch.abs(torch.stft(torch.ones([4]), 4, 4, 4, torch.ones([4]), True, 'reflect', False, "
        "True, True))",
        [[4, 4], [0, 0], [0, 0]],
    ),
}  # fmt: skip
X = [1.0, -2.0, 3.0]


@pytest.mark.parametrize("name", CASES)
def test_values(name):
    text, wanted = CASES[name]
    found = jit.load(archive(forward(text), ROOT))(weft.tensor(X))
    expected = weft.tensor(wanted).to(found.dtype)
    assert found.shape == expected.shape and weft.allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.parity
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated")
def test_pytorch_says_the_same(name):
    torch = pytest.importorskip("torch")
    data = archive(forward(CASES[name][0].replace("'", '"')), ROOT).getvalue()
    wanted = torch.jit.load(io.BytesIO(data))(torch.tensor(X))
    found = jit.load(data)(weft.tensor(X))
    assert str(found.dtype) == str(wanted.dtype)
    again = torch.jit.load(io.BytesIO(jit.load(data).save_to_buffer()))(torch.tensor(X))
    for each in (torch.from_numpy(found.numpy()), again):
        torch.testing.assert_close(each, wanted, rtol=0, atol=1e-6)

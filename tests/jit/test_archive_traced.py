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
    "fractional_max_pool2d": (
        "torch.fractional_max_pool2d(torch.reshape(torch.arange(16., dtype=6), [1, 1, 4, 4]), "
        "[2, 2], [2, 2], torch.zeros([1, 1, 2]))[0]",
        [[[[5, 7], [13, 15]]]],
    ),
    "fractional_max_pool3d": (
        "torch.fractional_max_pool3d(torch.reshape(torch.arange(27., dtype=6), [1, 1, 3, 3, 3]), "
        "[2, 2, 2], [1, 1, 1], torch.zeros([1, 1, 3]))[0]",
        [[[[[26]]]]],
    ),
    "nll_loss2d": (
        "torch.nll_loss2d(torch.reshape(torch.arange(8., dtype=6), [1, 2, 2, 2]), "
        "torch.to(torch.zeros([1, 2, 2]), 4), None, 0, -100)",
        [[[0, -1], [-2, -3]]],
    ),
    "stft": (
        "torch.abs(torch.stft(torch.ones([4]), 4, 4, 4, torch.ones([4]), False, True, True))",
        [[4], [0], [0]],
    ),
    "abs of the language": ("ops.prim.abs(x)", [1, 2, 3]),
    "result_type": ("torch.mul(x, torch.result_type(2.5, x))", [6, -12, 18]),
    "remainder of a number": ("torch.remainder(7, x)", [0, -1, 1]),
    "remainder of a number, whole": ("torch.remainder(7, torch.to(x, 4))", [0, -1, 1]),
    "remainder of a fraction": ("torch.remainder(7.5, torch.to(x, 4))", [0.5, -0.5, 1.5]),
    "bitwise_and of a number": ("torch.bitwise_and(6, torch.to(x, 4))", [0, 6, 2]),
    "bitwise_or of a number": ("torch.bitwise_or(6, torch.to(x, 4))", [7, -2, 7]),
    "bitwise_xor of a number": ("torch.bitwise_xor(6, torch.to(x, 4))", [7, -8, 5]),
    "xlog1py of a number": ("torch.special_xlog1py(2, torch.mul(x, 0))", [0, 0, 0]),
    "zeta of a number": ("torch.special_zeta(2, torch.abs(x))", [1.64493407, 0.64493407, 0.39493407]),
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


NUMBER = weft.tensor(2.5, dtype=weft.float64)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "true_divide"])
def test_constants_without_dimensions_are_numbers(name):
    """A trace has the number of `x + 2.5` as a tensor of float64: of whole numbers it makes float32."""
    whole = weft.tensor([1, 2])
    for text, dtype in (
        (f"torch.{name}(x, CONSTANTS.c0)", weft.float32),
        (f"torch.{name}(CONSTANTS.c0, x)", weft.float64),
    ):
        program = jit.load(archive(forward(text), ROOT, [NUMBER], version=b"4\n"))
        assert program(whole).dtype is dtype, text
        again = jit.load(program.save_to_buffer())
        assert again(whole).dtype is dtype and again.code == program.code


@pytest.mark.parity
def test_numbers_in_traces_of_torch():
    torch = pytest.importorskip("torch")

    def numbers(x):
        return torch.arange(x.shape[0]) * 0.5, x.int() - 2.0, (x > 0) + 1.5, x.half() * 2.5, x / 2

    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(numbers, (torch.ones(3),), check_trace=False), file)
    mine, theirs = jit.load(file.getvalue())(weft.ones(3)), numbers(torch.ones(3))
    for found, expected in zip(mine, theirs):
        assert str(found.dtype) == str(expected.dtype) and found.tolist() == expected.tolist()

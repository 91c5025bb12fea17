"""Tensors of every dtype in archives, over shared and strided storages; layouts that programs have not."""

from __future__ import annotations

import io

import pytest

import weft
from weft import nn

DTYPES = (
    *("float16", "bfloat16", "float64", "complex32", "complex64", "complex128"),
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
)


def holder(t, name):
    """A scripted module that holds ones of a dtype, twice over one storage, and transposed."""

    class Holder(t.nn.Module):
        def __init__(self):
            super().__init__()
            whole = t.ones(2, 3).to(getattr(t, name))
            self.register_buffer("whole", whole)
            self.register_buffer("part", whole[1:])
            self.register_buffer("turned", t.ones(2, 3).to(getattr(t, name)).t())

        def forward(self):
            return self.part

    return t.jit.script(Holder())


def passed(program, save, load):
    """The program, saved by one library and loaded by another."""
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    return load(file)


def check(loaded, name):
    """That the tensors are as they were."""
    size = loaded.whole.element_size()
    assert {str(x.dtype) for x in loaded.buffers()} == {f"torch.{name}"}
    assert loaded.part.data_ptr() == loaded.whole.data_ptr() + 3 * size
    assert loaded.turned.stride() == (1, 3) and loaded.turned.shape == (3, 2)
    assert all((x.float() == 1).all() for x in (*loaded.buffers(), loaded()))


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_dtypes(name):
    check(passed(holder(weft, name), weft.jit.save, weft.jit.load), name)


@pytest.mark.parity
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_dtypes_in_torch(name):
    torch = pytest.importorskip("torch")
    check(passed(holder(torch, name), torch.jit.save, weft.jit.load), name)
    check(passed(holder(weft, name), weft.jit.save, torch.jit.load), name)


@pytest.mark.parity
def test_sparse_tensors_are_refused_by_name():
    torch = pytest.importorskip("torch")

    class Sparse(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("eye", torch.eye(3).to_sparse())

        def forward(self, x):
            return torch.sparse.mm(self.eye, x)

    with pytest.raises(weft.serialization.LoadError, match="strided tensors in an archive, got a"):
        passed(torch.jit.script(Sparse()), torch.jit.save, weft.jit.load)


def doubled(x):
    return x * 2


def first(xs: list[weft.Tensor]):
    return xs[0] * 2


class Holding(nn.Module):
    def __init__(self, held):
        super().__init__()
        self.register_buffer("held", held)

    def forward(self, x):
        return self.held @ x


def test_programs_take_no_sparse_tensor_for_its_values():
    sparse = weft.eye(3).to_sparse()
    message = r"x.to_dense\(\) is strided"
    with pytest.raises(NotImplementedError, match=message):
        weft.jit.script(doubled)(sparse)
    with pytest.raises(NotImplementedError, match=message):
        weft.jit.script(first)([sparse])
    with pytest.raises(NotImplementedError, match=message):
        weft.jit.trace(doubled, weft.ones(3))(sparse)
    with pytest.raises(NotImplementedError, match=message):
        weft.jit.script(Holding(sparse))(weft.ones(3, 3))

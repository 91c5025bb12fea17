"""Functions that make arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft._C import Tensor
from weft._runtime.exports import list_own as _list_own
from weft._runtime.public import weft

Shape = int | tuple[int, ...]
_OF_SHAPE = ("empty", "ones", "zeros")


def _of_shape(name: str) -> Callable[..., Tensor]:
    function = getattr(weft, name)

    def call(shape: Shape, *, dtype: Any = None, device: Any = None) -> Tensor:
        return function(_tuple(shape), dtype=dtype, device=device)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


def _like(name: str) -> Callable[..., Tensor]:
    function = getattr(weft, name)

    def call(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
        return function(x, dtype=dtype, device=device)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _of_shape(name) for name in _OF_SHAPE},
    **{f"{name}_like": _like(f"{name}_like") for name in _OF_SHAPE},
}


def _tuple(shape: Shape) -> tuple[int, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def asarray(
    obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """An array of the elements of an object: a number, nested sequences, an array, a buffer.

    copy: True for new memory, False to share the object's (ValueError where that is not possible),
    None to share it where it can be. TypeError for a buffer whose elements no dtype holds."""
    if not isinstance(obj, Tensor) and not hasattr(obj, "__array_interface__"):
        obj = _of_buffer(obj)
    return weft.asarray(obj, dtype=dtype, device=device, copy=copy)


def _of_buffer(obj: Any) -> Any:
    """The elements of an object that has a buffer, in its memory; another object itself."""
    try:
        view = memoryview(obj)
    except TypeError:
        return obj
    code = view.format.lstrip("@=<")
    kind = {"?": "bool", "f": "float32", "d": "float64"}.get(code)
    if code in tuple("bhilqnBHILQN"):
        kind = f"{'u' * code.isupper()}int{view.itemsize * 8}"
    if kind is None:
        raise TypeError(f"asarray: expected a buffer of numbers, got format {view.format!r}")
    if view.nbytes == 0 or not view.c_contiguous:
        return weft.tensor(view.tolist(), dtype=getattr(weft, kind))
    return weft.frombuffer(view, dtype=getattr(weft, kind)).reshape(view.shape)


def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None,
    device: Any = None,
) -> Tensor:  # fmt: skip
    """start, start + step, ... before stop; 0, 1, ... before `start` alone."""
    first, last = (0, start) if stop is None else (start, stop)
    whole = all(isinstance(each, int) for each in (first, last, step))
    if dtype is None:
        dtype = weft.int64 if whole else weft.get_default_dtype()
    if (last - first) * step <= 0:
        return weft.empty((0,), dtype=dtype, device=device)
    # Not in an integral dtype, which would round the step and with it how many elements there are.
    exact = dtype if whole or dtype.is_floating_point else weft.float64
    return weft.arange(first, last, step, dtype=exact, device=device).to(dtype)


def full(shape: Shape, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array filled with a number, of its kind unless a dtype is given."""
    # From one element: `weft.full` refuses what the dtype or a number of weft does not hold.
    return weft.as_tensor(fill_value, dtype=dtype, device=device).expand(_tuple(shape)).clone()


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of the shape of x filled with a number."""
    return full(tuple(x.shape), fill_value, dtype=dtype or x.dtype, device=device or x.device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Tensor:
    """Ones on a diagonal, k above the main one, zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    made = weft.zeros((n_rows, columns), dtype=dtype, device=device)
    if -n_rows < k < columns:
        made.diagonal(k).fill_(1)
    return made


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None,
    endpoint: bool = True,
) -> Tensor:  # fmt: skip
    """num numbers at equal distances from start to stop, which is one of them if endpoint."""
    if dtype is None and (isinstance(start, complex) or isinstance(stop, complex)):
        wide = weft.get_default_dtype() == weft.float64
        dtype = weft.complex128 if wide else weft.complex64
    if not endpoint:
        return linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]
    if dtype is not None and dtype.is_complex:
        begin, end = complex(start), complex(stop)
        parts = [weft.linspace(a, b, num, dtype=weft.float64) for a, b in
                 ((begin.real, end.real), (begin.imag, end.imag))]  # fmt: skip
        return weft.complex(*parts).to(device=device, dtype=dtype)
    return weft.linspace(start, stop, num, dtype=dtype, device=device)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of a grid; "xy" has the first array along the columns."""
    if not arrays:
        return ()
    return tuple(weft.meshgrid(*arrays, indexing=indexing))


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangles, up to k above the main diagonal; zeros elsewhere."""
    return weft.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangles, from k above the main diagonal on; zeros elsewhere."""
    return weft.triu(x, k)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array over the memory of another library's; a copy if wanted or moved.

    AttributeError for an object without __dlpack__; ValueError where copy=False and the array has
    to be moved."""
    if not hasattr(x, "__dlpack__"):
        raise AttributeError(f"from_dlpack: expected __dlpack__, got {type(x).__name__}")
    made = weft.from_dlpack(x)
    if device is not None and made.device != weft.device(device):
        if copy is False:
            raise ValueError(
                f"from_dlpack: expected device {made.device} with copy=False, got {device}"
            )
        return made.to(device)
    return made.clone() if copy else made


_list_own(vars())

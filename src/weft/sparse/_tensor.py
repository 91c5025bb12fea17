"""SparseTensor: values that know their places.

A sparse tensor is the tensor of its values (ValuesTensor), whose `_pattern` says where in a larger
tensor they stand; their gradient has the pattern by itself. The class answers for every operator by
a rule (`__torch_function__`), and refuses those without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeGuard, cast

from weft import _C
from weft._C import Tensor
from weft._runtime.rules import Rules
from weft._runtime.torch_function import DisableTorchFunctionSubclass
from weft._tensor.repr import contents, followed, is_default_dtype
from weft._tensor.values_tensor import ValuesTensor, name_of
from weft._tensor.values_tensor import tensor_member as tensor_member
from weft._tensor.values_tensor import values_of as values_of
from weft.sparse._pattern import Compressed, Coo, Pattern

Rule = Callable[..., Any]

#: by the name of an operator, method or attribute; "set_grad" assigns the attribute "grad"
RULES = rule = Rules()


class SparseTensor(ValuesTensor):
    """A tensor of which a few elements are kept, with their places.

    Made by `sparse_coo_tensor`, `sparse_csr_tensor` and `Tensor.to_sparse`. Operators that have no
    rule for its layout raise NotImplementedError.

    >>> isinstance(weft.eye(2).to_sparse(), weft.Tensor)
    True
    """

    _pattern: Pattern
    _refused_in_programs = "one of a sparse layout; x.to_dense() is strided"

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """The rule's result. NotImplementedError where there is none."""
        name = name_of(func)
        found = RULES.get(name)
        if found is None:
            layout = next(a for a in _flat(args, kwargs) if is_sparse(a))._pattern.layout
            raise NotImplementedError(f"{name}: expected a strided tensor, got layout {layout}")
        options = dict(kwargs or {})
        if "input" in options:
            args = (options.pop("input"), *args)
        return found(*args, **options)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        pattern, values = self._pattern, values_of(self).detach()
        parts = [*pattern.parts(), ("values", values)]
        text = (",\n" + " " * _INDENT).join(_shown(name, part) for name, part in parts)
        notes = [f"size={tuple(pattern.size)}", f"nnz={pattern.count}"]
        if not is_default_dtype(values):
            notes.append(f"dtype={values.dtype}")
        notes += [f"layout={pattern.layout}", *_history(self)]
        return followed(f"tensor({text}", notes, _INDENT, isinstance(pattern, Coo)) + ")"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        values = values_of(self).detach()
        return _rebuild, (self._pattern, values, bool(self.requires_grad))

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the layout is sparse_csr."""
        return bool(self.layout is _C.sparse_csr)

    def _like(self, values: Tensor) -> SparseTensor:
        return make(self._pattern, values)

    def __array__(self, dtype: Any = None) -> Any:
        raise TypeError("numpy: expected a strided tensor, got a sparse one; use to_dense()")

    def _gradient(self, values: Tensor) -> SparseTensor:
        """A gradient of the values as one of this tensor: places are named once."""
        if is_sparse(values):
            return values
        pattern = self._pattern
        if isinstance(pattern, Coo) and not pattern.coalesced:
            pattern, inverse = pattern.merged()
            dense = values.new_zeros((pattern.count, *values.shape[1:]))
            values = dense.index_copy(0, inverse, values)  # equal wherever places are
        return make(pattern, values)


def _flat(args: tuple[Any, ...], kwargs: Any) -> Iterable[Any]:
    for value in (*args, *(kwargs or {}).values()):
        if isinstance(value, (tuple, list)):
            yield from value
        else:
            yield value


_INDENT = len("tensor(")


def _shown(name: str, part: Tensor) -> str:
    """The text of a part of a sparse tensor. Its dtype is told once, for all."""
    prefix = f"{name}=tensor("
    size = f", size={tuple(part.shape)}" if part.numel() == 0 else ""
    return f"{prefix}{contents(part, _INDENT + len(prefix))}{size})"


def _history(tensor: SparseTensor) -> list[str]:
    if (node := tensor._history_node()) is not None:
        return [f"grad_fn=<{node.name()}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def _rebuild(pattern: Pattern, values: Tensor, requires_grad: bool) -> SparseTensor:
    made = make(pattern, values)
    made.requires_grad_(requires_grad)
    return made


def is_sparse(value: Any) -> TypeGuard[SparseTensor]:
    """Whether a value is a tensor of a sparse layout."""
    return isinstance(value, SparseTensor)


def make(pattern: Pattern, values: Tensor) -> SparseTensor:
    """The sparse tensor of these values, with their history."""
    made = SparseTensor._of(values)
    made._pattern = pattern
    return cast(SparseTensor, made)


def like(tensor: SparseTensor, values: Tensor) -> SparseTensor:
    """Other values at the same places."""
    return make(tensor._pattern, values)


def plainly(function: Rule) -> Rule:
    """A rule that treats a sparse tensor as its values."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with DisableTorchFunctionSubclass():
            return function(*args, **kwargs)

    return run


def on_values(method: Rule) -> Rule:
    """A rule that makes other values at the same places."""

    def run(self: SparseTensor, *args: Any, **options: Any) -> Any:
        options.pop("memory_format", None)
        args = tuple(values_of(one) if is_sparse(one) else one for one in args)
        made = method(values_of(self), *args, **options)
        return like(self, made) if isinstance(made, Tensor) else made

    return run


def coo_of(name: str, tensor: Any) -> Coo:
    """The pattern of a tensor of layout sparse_coo. RuntimeError for another layout."""
    if not is_sparse(tensor) or not isinstance(tensor._pattern, Coo):
        raise RuntimeError(f"{name}: expected layout torch.sparse_coo, got {tensor.layout}")
    return tensor._pattern


def compressed_of(name: str, tensor: Any, by_columns: bool = False) -> Compressed:
    """The pattern of a tensor of layout sparse_csr (sparse_csc). RuntimeError for another."""
    pattern = tensor._pattern if is_sparse(tensor) else None
    if not isinstance(pattern, Compressed) or pattern.by_columns != by_columns:
        wanted = "torch.sparse_csc" if by_columns else "torch.sparse_csr"
        raise RuntimeError(f"{name}: expected layout {wanted}, got {tensor.layout}")
    return pattern

"""NestedTensor: the values of a batch, and the form in which its tensors lie in them.

Like a sparse tensor (weft.sparse), a nested one is the tensor of its values (ValuesTensor), whose
gradient has the form by itself. The class answers for every operator by a rule
(`__torch_function__`); functions that are written in Python run with it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard, cast

from weft import _C
from weft._C import Tensor
from weft._runtime.rules import Rules
from weft._tensor.values_tensor import ValuesTensor, name_of
from weft._tensor.values_tensor import values_of as values_of
from weft.jit import operator_facts
from weft.nested._forms import Form, Jagged, Pieces, Ragged

#: by the name of an operator, method or attribute; called with it, and its arguments
RULES = rule = Rules()
#: of operators on elements that have no rule by name
pointwise = Rules()


@functools.cache
def is_pointwise(name: str) -> bool:
    """Whether the operator, or the one whose in-place form or slot it is, works on elements."""
    base = name.removesuffix("_") if name[0] != "_" else name.strip("_")
    if base in pointwise:
        return True
    entries = (
        operator_facts.entries(f"aten::{base}") if operator_facts.exists(f"aten::{base}") else []
    )
    rows = (operator_facts.row(key.removeprefix("aten::")) for key, _ in entries)
    return any(row is not None and row.kind == "pointwise" for row in rows)


class NestedTensor(ValuesTensor):
    """A batch of tensors of different sizes.

    Made by the functions of `weft.nested`. Operators that have no rule for it raise
    NotImplementedError.

    >>> x = weft.nested.nested_tensor([weft.ones(2), weft.ones(3)], layout=weft.jagged)
    >>> x.is_nested, x.values().shape, x.offsets()
    (True, torch.Size([5]), tensor([0, 2, 5]))
    """

    _form: Form
    is_nested = True
    _refused_in_programs = "a nested one; x.to_padded_tensor(0) is dense"

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """The rule's result. NotImplementedError where there is none."""
        name = name_of(func)
        found = RULES.get(name) or (pointwise["any"] if is_pointwise(name) else None)
        options = dict(kwargs or {})
        if found is None and hasattr(func, "__wrapped__"):
            return func.__wrapped__(*args, **options)
        if found is None:
            raise NotImplementedError(f"{name}: expected dense tensors, got a nested one")
        if "input" in options:
            args = (options.pop("input"), *args)
        return found(func, *args, **options)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        history = ", requires_grad=True" if self.requires_grad else ""
        if (node := self._history_node()) is not None:
            history = f", grad_fn=<{node.name()}>"
        if isinstance(self._form, Pieces):
            parts = [part.detach().requires_grad_(self.requires_grad) for part in parts_of(self)]
            texts = (repr(part).replace("\n", "\n  ") for part in parts)
            return (
                "nested_tensor([\n" + ",\n".join(f"  {text}" for text in texts) + f"\n]{history})"
            )
        return (
            f"NestedTensor(size={tuple(self.shape)}, offsets={self.offsets()}{history}, "
            f"contiguous={self.is_contiguous()})"
        )

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        form = self._form
        parts: Any = form.shapes if isinstance(form, Pieces) else form.state()
        return _rebuild, (parts, values_of(self).detach(), bool(self.requires_grad))

    def offsets(self) -> Tensor:
        """Where each tensor begins in the packed dimension, and the end of the last, [batch + 1].
        AttributeError for layout strided."""
        return self._jagged("offsets").ragged.offsets

    def lengths(self) -> Tensor | None:
        """The sizes of the ragged dimension [batch], None where each tensor ends at the next one's
        offset. AttributeError for layout strided."""
        return self._jagged("lengths").ragged.lengths

    def _get_max_seqlen(self) -> int:
        return max(self._jagged("_get_max_seqlen").ragged.sizes)

    def _get_min_seqlen(self) -> int:
        return min(self._jagged("_get_min_seqlen").ragged.sizes)

    def _nested_tensor_size(self) -> Tensor:
        return _C.tensor([part.shape for part in parts_of(self)], dtype=_C.int64)

    def _jagged(self, name: str) -> Jagged:
        if isinstance(self._form, Pieces):
            raise AttributeError(f"{name}: expected layout torch.jagged, got torch.strided")
        return self._form

    def _like(self, values: Tensor) -> NestedTensor:
        return make(self._form, values)

    def __array__(self, dtype: Any = None) -> Any:
        raise RuntimeError("numpy: expected a dense tensor, got a nested one; use unbind()")

    def _gradient(self, values: Tensor) -> NestedTensor:
        """A gradient of the values as one of this tensor."""
        return values if is_nested(values) else make(self._form, values)


def is_nested(value: Any) -> TypeGuard[NestedTensor]:
    """Whether a value is a nested tensor."""
    return isinstance(value, NestedTensor)


def make(form: Form, values: Tensor) -> NestedTensor:
    """The nested tensor of these values, with their history."""
    made = NestedTensor._of(values)
    made._form = form
    return cast(NestedTensor, made)


def leaf(made: NestedTensor, requires_grad: bool) -> NestedTensor:
    """A tensor without history, which requires a gradient or not."""
    made.requires_grad_(requires_grad)
    return made


def parts_of(tensor: NestedTensor) -> Sequence[Tensor]:
    """The tensors of the batch, with their history."""
    return tensor._form.parts(values_of(tensor))


def join(form: Form, parts: Sequence[Tensor]) -> NestedTensor:
    """The nested tensor of tensors that differ where those of a form do."""
    return make(*form.joined(parts))


def packed(tensor: NestedTensor) -> NestedTensor:
    """The tensor without holes between its parts."""
    form = tensor._form
    if isinstance(form, Pieces) or form.ragged.lengths is None:
        return tensor
    return join(form, parts_of(tensor))


def _rebuild(parts: Any, values: Tensor, requires_grad: bool) -> NestedTensor:
    form = Pieces(parts) if isinstance(parts, list) else Jagged(Ragged(*parts[:2]), parts[2])
    return leaf(make(form, values), requires_grad)

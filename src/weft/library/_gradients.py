"""Gradients of operators that programs define: by the function they registered, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._C import Tensor
from weft.autograd.function import Function
from weft.utils._pytree import tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from weft.library._operator import Operator


class _Call:
    """One call on its way through `Function.apply`, which sees tensors only: those of lists one by
    one. `forward` notes the leaves of the result, and which of them are tensors."""

    result_leaves: list[Any]
    result_positions: list[int]
    result_spec: Any
    needs: list[Any]

    def __init__(self, operator: Operator, given: list[Any], device: str) -> None:
        self.operator = operator
        self.device = device
        self.leaves, self.spec = tree_flatten(given)
        self.positions = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, Tensor)]

    @property
    def tensors(self) -> list[Tensor]:
        return [self.leaves[i] for i in self.positions]

    def nested(self, values: Any, other: Any) -> list[Any]:
        """A value for each tensor, in the structure of the arguments."""
        found = dict(zip(self.positions, values))
        return tree_unflatten([found.get(i, other) for i in range(len(self.leaves))], self.spec)

    def with_tensors(self, tensors: Any) -> list[Any]:
        """The arguments, with these tensors in the place of the call's."""
        found = dict(zip(self.positions, tensors))
        leaves = [found.get(i, leaf) for i, leaf in enumerate(self.leaves)]
        return tree_unflatten(leaves, self.spec)


def recorded(operator: Operator, given: list[Any], device: str) -> Any:
    """The result of a call whose backward is the operator's."""
    call = _Call(operator, given, device)
    if not operator.schema.returns:
        return operator.compute(given, device)
    kind: Any = type(_name(operator), (_Recorded,), {})
    outputs = kind.apply(call, *call.tensors)
    made = dict(zip(call.result_positions, outputs))
    leaves = [made.get(i, leaf) for i, leaf in enumerate(call.result_leaves)]
    return tree_unflatten(leaves, call.result_spec)


def _name(operator: Operator) -> str:
    return f"GeneratedBackwardFor_{operator.full_name.replace('::', '_').replace('.', '_')}"


class _Recorded(Function):
    @staticmethod
    def forward(ctx: Any, call: Any, *tensors: Tensor) -> Any:
        operator = call.operator
        given = call.with_tensors(tensors)
        result = operator.compute(given, call.device)
        call.result_leaves, call.result_spec = tree_flatten(result)
        leaves = call.result_leaves
        call.result_positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        ctx.call = call
        needs = ctx.needs_input_grad
        if operator.setup_context is not None:
            ctx.needs_input_grad = tuple(call.nested(needs[1:], False))
            args, by_name = operator.schema.calling(given)
            named = {"keyword_only_inputs": by_name} if by_name else {}
            operator.setup_context(ctx=ctx, inputs=tuple(args), output=result, **named)
        call.needs = call.nested(needs[1:], False)
        return tuple(leaves[i] for i in call.result_positions)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        call = ctx.call
        operator = call.operator
        if operator.backward is None:
            raise RuntimeError(
                f"Trying to backward through {operator.full_name} but no autograd formula was "
                "registered. Please use register_autograd to add one."
            )
        ctx.needs_input_grad = tuple(call.needs)
        given = operator.backward(ctx, *_of_results(call, grads))
        found = list(given) if isinstance(given, (tuple, list)) else [given]
        arguments = operator.schema.parsed.args
        positional = [arg for arg in arguments if not arg.kwarg_only]
        if len(found) != len(positional):
            raise RuntimeError(
                f"{operator.qualname}: expected {len(positional)} gradients from backward, one for "
                f"each argument, got {len(found)}"
            )
        found += [None] * (len(arguments) - len(positional))
        return (None, *_for_tensors(call, found))


def _of_results(call: Any, grads: Any) -> list[Any]:
    """The gradients as backward takes them: one for each result, a list for a list."""
    found = dict(zip(call.result_positions, grads))
    leaves = [found.get(i) for i in range(len(call.result_leaves))]
    nested = tree_unflatten(leaves, call.result_spec)
    several = len(call.operator.schema.returns) > 1
    return list(nested) if several else [nested]


def _for_tensors(call: Any, found: list[Any]) -> list[Any]:
    """The gradients of the tensors, out of those of the arguments."""
    result: list[Any] = []
    for argument, grad in zip(call.with_tensors(call.tensors), found):
        if isinstance(argument, Tensor):
            result.append(grad)
        elif isinstance(argument, (list, tuple)):
            tensors = [item for item in argument if isinstance(item, Tensor)]
            grads = [None] * len(argument) if grad is None else list(grad)
            if len(grads) != len(argument):
                raise RuntimeError(
                    f"{call.operator.qualname}: expected a list of {len(argument)} gradients for a "
                    f"list of as many tensors, got {len(grads)}"
                )
            if tensors:
                result += [g for item, g in zip(argument, grads) if isinstance(item, Tensor)]
    return result

"""Operators of tensors by the standard, for the programs that ask for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft._C import Tensor
from weft.array_api._dtypes import SCALARS
from weft.array_api._elements import FUNCTIONS, remainder
from weft.array_api.linalg import matmul
from weft.overrides import TorchFunctionMode

Function = Callable[..., Any]

#: methods of tensors behind operators, and the standard's functions for them
_METHODS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "div": "divide", "__pow__": "pow",
    "__floordiv__": "floor_divide", "__and__": "bitwise_and", "bitwise_and": "bitwise_and",
    "__or__": "bitwise_or", "bitwise_or": "bitwise_or", "__xor__": "bitwise_xor",
    "bitwise_xor": "bitwise_xor", "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal", "__eq__": "equal", "ne": "not_equal",
}  # fmt: skip
_BY_NAME: dict[str, Function] = {name: FUNCTIONS[of] for name, of in _METHODS.items()}
_BY_NAME |= {"remainder": remainder, "matmul": matmul}
#: methods that have the left operand second
_REFLECTED = {"__rsub__": "sub", "__rdiv__": "div", "__rmod__": "remainder"}
_REFLECTED |= {f"__r{name}__": f"__{name}__" for name in ("floordiv", "pow", "lshift", "rshift")}


def _reflected(function: Function) -> Function:
    return lambda x, number: function(number, x)


_ANSWERS: dict[Any, Function] = {
    **{getattr(Tensor, name): function for name, function in _BY_NAME.items()},
    **{getattr(Tensor, name): _reflected(_BY_NAME[of]) for name, of in _REFLECTED.items()},
    Tensor.remainder_: lambda x, other: x.copy_(remainder(x, other)),
}


class StandardOperators(TorchFunctionMode):
    """A context in which the operators of tensors follow the standard where PyTorch's differ: an
    array without axes takes part in promotion, `@` promotes, and a zero of `%` has the sign of the
    divisor.

    >>> x = weft.ones(2)
    >>> (x * weft.tensor(2.5, dtype=weft.float64)).dtype
    torch.float32
    >>> with weft.array_api.StandardOperators():
    ...     (x * weft.tensor(2.5, dtype=weft.float64)).dtype
    torch.float64
    """

    def __torch_function__(
        self, func: Function, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """The answer of the standard's function; of PyTorch's where the standard has none."""
        answer = None if kwargs or len(args) != 2 else _ANSWERS.get(func)
        if answer is None or not isinstance(args[1], (Tensor, *SCALARS)):
            return func(*args, **(kwargs or {}))
        return answer(*args)


__all__ = ["StandardOperators"]

"""opcheck: whether what was registered for an operator fits together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft._C import Tensor
from weft.library._operator import Operator, of
from weft.utils._pytree import tree_leaves, tree_map

_TESTS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_dynamic",
)


class OpCheckError(Exception):
    """What was registered for an operator contradicts itself."""


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = _TESTS,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, str]:
    """Calls an operator with these arguments and tells by test "SUCCESS" or what is wrong.

    - test_schema: it writes to the arguments that its schema says, and to no other.
    - test_autograd_registration: where an argument requires a gradient, backward is registered.
    - test_faketensor: register_fake gives the sizes, strides and dtypes of the true results.
    - test_aot_dispatch_dynamic: backward gives gradients of the arguments' sizes.

    OpCheckError for the first that fails, unless raise_exception is False; ValueError for other
    tests.

    >>> @weft.library.custom_op("mylib::kept", mutates_args=())
    ... def kept(x: weft.Tensor) -> weft.Tensor:
    ...     return x.clone()
    >>> @kept.register_fake
    ... def _(x): return weft.empty_like(x)
    >>> weft.library.opcheck(kept, (weft.ones(2),), test_utils="test_faketensor")
    {'test_faketensor': 'SUCCESS'}
    """
    operator = of(op)
    wanted = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    unknown = [name for name in wanted if name not in _CHECKS]
    if unknown:
        raise ValueError(f"opcheck: expected test_utils among {list(_CHECKS)}, got {unknown}")
    given = operator.schema.bind(args, kwargs or {})
    found: dict[str, str] = {}
    for name in wanted:
        try:
            _CHECKS[name](operator, given)
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck({operator.full_name}): {name}: {error}") from error
            found[name] = f"{type(error).__name__}: {error}"
    return found


def _copies(given: list[Any]) -> list[Any]:
    def copied(item: Any) -> Any:
        if not isinstance(item, Tensor):
            return item
        return item.detach().clone().requires_grad_(item.requires_grad)

    return tree_map(copied, given)


def _call(operator: Operator, given: list[Any]) -> Any:
    args, kwargs = operator.schema.calling(given)
    return operator.call(tuple(args), kwargs)


def _schema(operator: Operator, given: list[Any]) -> None:
    before, after = _copies(given), tree_map(_detached, _copies(given))
    _call(operator, after)
    for arg, old, new in zip(operator.schema.parsed.args, before, after):
        pairs = zip(tree_leaves(old), tree_leaves(new))
        same = all(not isinstance(a, Tensor) or _equal(a, b) for a, b in pairs)
        if not same and not arg.is_written:
            raise RuntimeError(
                f"expected {arg.name} to stay as it is, as {operator.schema} says, got it changed"
            )


def _detached(item: Any) -> Any:
    return item.detach() if isinstance(item, Tensor) else item


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool(((one == other) | (one != one)).all())


def _autograd(operator: Operator, given: list[Any]) -> None:
    needs = any(isinstance(leaf, Tensor) and leaf.requires_grad for leaf in tree_leaves(given))
    registered = operator.backward is not None or {"autograd", "composed"} & set(operator.kernels)
    if needs and not registered:
        raise RuntimeError("expected register_autograd for arguments that require grad, got none")


def _fake(operator: Operator, given: list[Any]) -> None:
    if operator.fake is None:
        raise RuntimeError("expected register_fake, got none")
    true = tree_leaves(_call(operator, _copies(given)))
    args, kwargs = operator.schema.calling(_copies(given))
    fake = tree_leaves(operator.fake(*args, **kwargs))
    looks = [[_looks(leaf) for leaf in leaves] for leaves in (true, fake)]
    if looks[0] != looks[1]:
        raise RuntimeError(f"expected results as those on the CPU, {looks[0]}, got {looks[1]}")


def _looks(leaf: Any) -> Any:
    if not isinstance(leaf, Tensor):
        return type(leaf).__name__
    return tuple(leaf.shape), leaf.stride(), leaf.dtype


def _gradients(operator: Operator, given: list[Any]) -> None:
    copies = _copies(given)
    tensors = [leaf for leaf in tree_leaves(copies) if isinstance(leaf, Tensor)]
    results = [r for r in tree_leaves(_call(operator, copies)) if isinstance(r, Tensor)]
    total = sum(r.sum() for r in results if r.requires_grad)
    if isinstance(total, Tensor):
        total.backward()
    for tensor in tensors:
        if tensor.grad is not None and tensor.grad.shape != tensor.shape:
            wanted, got = tuple(tensor.shape), tuple(tensor.grad.shape)
            raise RuntimeError(f"expected a gradient of shape {wanted}, got {got}")


_CHECKS: dict[str, Callable[[Operator, list[Any]], None]] = {
    "test_schema": _schema,
    "test_autograd_registration": _autograd,
    "test_faketensor": _fake,
    "test_aot_dispatch_static": _gradients,
    "test_aot_dispatch_dynamic": _gradients,
}

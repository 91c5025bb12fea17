"""Checkpointed parts of a model run again in the surroundings of their first run."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import pytest

import weft
from weft._runtime.repetition import is_repetition, repeated_in
from weft.utils.checkpoint import checkpoint

try:
    import torch
except ImportError:
    torch: Any = None  # type: ignore[no-redef]


def parity(test: Any) -> Any:
    """Needs PyTorch, as the reference."""
    return pytest.mark.parity(
        pytest.mark.skipif(torch is None, reason="compares with PyTorch")(test)
    )


REENTRANT = pytest.mark.parametrize("reentrant", [True, False])


def trained(
    t: Any, x: Any, reentrant: bool | None, around: Any, inside: Any = nullcontext
) -> list[Any]:
    """Gradients of a small network in the block `around`, of which a part, in the block `inside`,
    is checkpointed (reentrant: None keeps what it saves)."""
    weight = (t.arange(16.0).reshape(4, 4) / 16 - 0.4).requires_grad_()

    def part(v: Any) -> Any:
        with inside():
            return t.nn.functional.gelu(v @ weight).tanh() @ weight

    with around():
        y = part(x) if reentrant is None else checkpoint_of(t)(part, x, use_reentrant=reentrant)
        y = y.float() @ weight
    y.float().sum().backward()
    return [y.dtype, x.grad.dtype, x.grad, weight.grad]


def checkpoint_of(t: Any) -> Any:
    return t.utils.checkpoint.checkpoint


def inputs(t: Any) -> dict[str, Any]:
    """Leaves of every kind."""
    flat = t.arange(12.0) / 12
    return {
        "own memory": flat.reshape(3, 4).clone().requires_grad_(),
        "a view": flat.reshape(3, 4).requires_grad_(),
        "transposed": flat.reshape(4, 3).t().requires_grad_(),
        "a row": t.stack([flat, flat]).reshape(2, 3, 4)[1].requires_grad_(),
    }


AROUND: dict[str, Any] = {
    "nothing": lambda t: nullcontext(),
    "bfloat16": lambda t: t.autocast("cpu", t.bfloat16),
    "float16": lambda t: t.autocast("cpu", t.float16),
    "off": lambda t: t.autocast("cpu", enabled=False),
}


@REENTRANT
@pytest.mark.parametrize("kind", list(inputs(weft)))
@pytest.mark.parametrize("inside", list(AROUND))
@pytest.mark.parametrize("around", list(AROUND))
def test_as_without(around: str, inside: str, kind: str, reentrant: bool) -> None:
    blocks = [partial(AROUND[block], weft) for block in (around, inside)]
    expected = trained(weft, inputs(weft)[kind], None, *blocks)
    found = trained(weft, inputs(weft)[kind], reentrant, *blocks)
    assert found[:2] == expected[:2] and weft.equal(found[2], expected[2])
    # A reentrant part adds its share of weight's gradient at another time.
    assert weft.allclose(found[3], expected[3], rtol=1e-6, atol=1e-6)


@parity
@REENTRANT
@pytest.mark.parametrize("around", list(AROUND))
def test_dtypes_as_pytorch(around: str, reentrant: bool) -> None:
    ours = trained(weft, inputs(weft)["a view"], reentrant, lambda: AROUND[around](weft))
    theirs = trained(torch, inputs(torch)["a view"], reentrant, lambda: AROUND[around](torch))
    assert [str(dtype) for dtype in ours[:2]] == [str(dtype) for dtype in theirs[:2]]
    # Half precision: four roundings by 2^-8 of values below 4.
    bound = 1e-5 if around in ("nothing", "off") else 2**-4
    for got, value in zip(ours[2:], theirs[2:]):
        assert weft.allclose(got, weft.from_numpy(value.numpy()), atol=bound, rtol=bound)


@REENTRANT
def test_backward_inside_of_another_autocast(reentrant: bool) -> None:
    x = inputs(weft)["own memory"]
    y = checkpoint(lambda v: v @ v.T, x, use_reentrant=reentrant)
    with weft.autocast("cpu"):
        y.sum().backward()
    again = inputs(weft)["own memory"]
    (again @ again.T).sum().backward()
    assert weft.equal(x.grad, again.grad)


@REENTRANT
def test_blocks_are_entered_again(reentrant: bool) -> None:
    steps: list[Any] = []

    @contextmanager
    def block(name: str) -> Any:
        steps.append(name)
        yield
        steps.append(f"end of {name}")

    def part(v: Any) -> Any:
        steps.append("again" if is_repetition() else "first")
        return checkpoint(inner, v, use_reentrant=False).exp()

    def inner(v: Any) -> Any:
        steps.append("inner again" if is_repetition() else "inner")
        return v.exp()

    x = weft.ones(2, requires_grad=True)
    with repeated_in(lambda: block("outer")):
        with repeated_in(lambda: block("middle")):
            y = checkpoint(part, x * 1, use_reentrant=reentrant)
        with repeated_in(lambda: block("later")):
            pass
    assert not is_repetition() and steps[0] == "first"
    y.sum().backward()
    assert not is_repetition()
    first = steps.index("again")
    assert steps[first - 2 : first] == ["outer", "middle"]
    assert steps.count("inner again") >= 1 and "later" not in steps
    for name in ("outer", "middle"):
        assert steps.count(name) == steps.count(f"end of {name}")
    assert weft.allclose(x.grad, weft.exp(weft.exp(x)) * weft.exp(x))


def test_blocks_end_when_a_repetition_fails() -> None:
    held = []

    @contextmanager
    def block() -> Any:
        held.append("entered")
        try:
            yield
        finally:
            held.append("left")

    def part(v: Any) -> Any:
        if is_repetition():
            raise KeyError("again")
        return v.exp()

    x = weft.ones(2, requires_grad=True)
    with repeated_in(block):
        y = checkpoint(part, x, use_reentrant=False)
    with pytest.raises(KeyError, match="again"):
        y.sum().backward()
    assert held == ["entered", "left"] and not is_repetition()


def saved(t: Any, x: Any, hooks: Any) -> list[Any]:
    """What backward of a Function sees of its input."""
    seen: list[Any] = []

    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            seen.extend([x.requires_grad, x.is_leaf, t.is_grad_enabled()])
            return grad * 2

    with hooks(t):
        y = Double.apply(x)
    y.sum().backward()
    return seen


HOOKS: dict[str, Any] = {
    "none": lambda t: nullcontext(),
    "same": lambda t: t.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x),
    "copy": lambda t: t.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x * 1),
}


@parity
@pytest.mark.parametrize("hooks", list(HOOKS))
@pytest.mark.parametrize("is_leaf", [True, False])
@pytest.mark.parametrize("kind", list(inputs(weft)))
def test_saved_tensors_keep_their_history(kind: str, is_leaf: bool, hooks: str) -> None:
    found = [
        saved(t, inputs(t)[kind] * 1 if not is_leaf else inputs(t)[kind], HOOKS[hooks])
        for t in (weft, torch)
    ]
    assert found[0] == found[1]


def packed(t: Any) -> list[Any]:
    """What pack hooks see of operands."""
    seen: list[Any] = []
    layer = t.nn.Linear(3, 2)
    x = t.ones(4, 3)
    y = t.ones(4, 3, requires_grad=True) * 2

    def pack(tensor: Any) -> Any:
        known = {"x": x, "y": y, "w": layer.weight}
        names = [name for name, value in known.items() if value is tensor]
        is_parameter = isinstance(tensor, t.nn.Parameter)
        seen.append((names, is_parameter, tensor.requires_grad, tensor.is_leaf))
        return tensor

    with t.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        ((layer.weight * y[:2]).sum() + (y * x).sum() + (y**2).sum()).backward()
    return sorted(seen)


@parity
def test_operands_are_packed_as_they_are() -> None:
    ours, theirs = packed(weft), packed(torch)
    assert ours == theirs and (["w"], True, True, True) in ours

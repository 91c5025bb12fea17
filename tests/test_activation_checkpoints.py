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


# ---- what selective checkpoints keep ----


def _block(t: Any, x: Any, w: Any, b: Any) -> Any:
    f = t.nn.functional
    y = f.gelu(f.linear(x, w, b))
    y = f.layer_norm(y @ w, (4,), None, b)
    y = f.dropout(y, 0.25) + f.relu(y).max(-1, keepdim=True).values
    return t.softmax(y * 2, -1).sigmoid().chunk(2, -1)[1]


def _selected(t: Any, policy: Any, seen: Any = None) -> list[Any]:
    """Gradients of a block of which a policy keeps results (None: not checkpointed)."""
    t.manual_seed(3)
    x, w, b = (t.randn(*size, requires_grad=True) for size in ((3, 4), (4, 4), (4,)))
    if policy is None:
        made = _block(t, x, w, b)
    else:
        contexts = partial(t.utils.checkpoint.create_selective_checkpoint_contexts, policy)
        run = partial(_block, t)
        made = checkpoint_of(t)(run, x, w, b, use_reentrant=False, context_fn=contexts)
    made.square().sum().backward()
    return [x.grad, w.grad, b.grad]


def _policies(t: Any) -> dict[str, Any]:
    aten, policy = t.ops.aten, t.utils.checkpoint.CheckpointPolicy
    products = [aten.mm.default, aten.addmm.default]
    return {
        "list": products,
        "function": lambda ctx, op, *args, **kwargs: (
            policy.MUST_SAVE if op in products else policy.PREFER_RECOMPUTE
        ),
        "nothing": lambda ctx, op, *args, **kwargs: policy.MUST_RECOMPUTE,
        "everything": lambda ctx, op, *args, **kwargs: policy.PREFER_SAVE,
        "bools": lambda ctx, op, *args, **kwargs: "gelu" in str(op) or "norm" in str(op),
        "two results": lambda ctx, op, *args, **kwargs: "max" in str(op) or "dropout" in str(op),
    }


@pytest.mark.parametrize("name", list(_policies(weft)))
def test_selective_gradients(name: str) -> None:
    for got, wanted in zip(_selected(weft, _policies(weft)[name]), _selected(weft, None)):
        assert weft.equal(got, wanted)


@parity
def test_policies_are_asked_as_by_pytorch() -> None:
    """For the same operators in the same order, but for views inside of linear."""
    seen: dict[Any, list[str]] = {weft: [], torch: []}
    for t, names in seen.items():

        def policy(ctx: Any, op: Any, *args: Any, names: Any = names, **kwargs: Any) -> Any:
            assert not ctx.is_recompute and ctx.op_output is not None
            names.append(str(op))
            return False

        def run(x: Any, w: Any, b: Any, t: Any = t) -> Any:
            f = t.nn.functional
            y = f.layer_norm(f.gelu(f.linear(x, w, b)) @ w, (4,))
            return t.softmax(f.relu(y) * 2 - y / 3, -1).sigmoid().exp().sum()

        x, w, b = (t.ones(*size, requires_grad=True) for size in ((4, 4), (4, 4), (4,)))
        contexts = partial(t.utils.checkpoint.create_selective_checkpoint_contexts, policy)
        checkpoint_of(t)(run, x, w, b, use_reentrant=False, context_fn=contexts).backward()
    mine, others = ([n for n in names if n != "aten.t.default"] for names in seen.values())
    assert mine == others and len(mine) == 12


@pytest.mark.parametrize("kept", [True, False])
def test_kept_results_are_not_computed_again(kept: bool) -> None:
    calls: list[str] = []

    @weft.library.custom_op(f"selective_{kept}::double".lower(), mutates_args=())
    def double(x: weft.Tensor) -> weft.Tensor:
        calls.append("double")
        return x * 2

    double.register_autograd(
        lambda ctx, grad: grad * 2 * ctx.saved_tensors[0].sign() ** 2,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    x = weft.tensor([1.0, -2.0], requires_grad=True)
    contexts = partial(
        weft.utils.checkpoint.create_selective_checkpoint_contexts,
        lambda ctx, op, *args, **kwargs: kept and "double" in str(op),
    )

    def run(x: weft.Tensor) -> weft.Tensor:
        return double(x.exp()).sin()

    checkpoint(run, x, use_reentrant=False, context_fn=contexts).sum().backward()
    assert len(calls) == (1 if kept else 2)
    mine, x.grad = x.grad, None
    run(x).sum().backward()
    assert weft.equal(mine, x.grad)


def _contexts(t: Any, **options: Any) -> Any:
    make = t.utils.checkpoint.create_selective_checkpoint_contexts
    return partial(make, [t.ops.aten.mm.default], **options)


@pytest.mark.parametrize(
    "t",
    [
        weft,
        pytest.param(
            torch, marks=[pytest.mark.parity, pytest.mark.skipif(torch is None, reason="compares")]
        ),
    ],
)
def test_selective_errors(t: Any) -> None:
    x = t.ones(2, 2, requires_grad=True)
    make = t.utils.checkpoint.create_selective_checkpoint_contexts
    with pytest.raises(ValueError, match=r"mm\.default|overloads"):
        make([t.ops.aten.mm])
    with pytest.raises(TypeError):
        make(3)
    made = checkpoint_of(t)(
        lambda x: (x @ x).exp(), x, use_reentrant=False, context_fn=_contexts(t)
    )
    made.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="backward"):
        made.sum().backward()

    def changes(x: Any) -> Any:
        y = x @ x
        z = y.sin()
        y.detach().add_(1)
        return z.exp()

    for options in ({}, {"allow_cache_entry_mutation": True}):
        contexts = _contexts(t, **options)
        made = checkpoint_of(t)(changes, x, use_reentrant=False, context_fn=contexts)
        if options:
            made.sum().backward()
        else:
            with pytest.raises(RuntimeError, match=r"changed|mutated"):
                made.sum().backward()

"""Classes of errors, in both libraries: a table of calls that both refuse in the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from libraries import both

Call = Callable[[Any, Any], Any]  # of the library and its nn.functional


def table(lib: Any, *shape: int) -> Any:
    return lib.zeros(shape or (4, 2))


def with_hook(lib: Any, register: str, change: Any) -> None:
    """A backward pass through a node whose hook returns other than as many gradients."""
    x = lib.ones(2, requires_grad=True).exp()
    getattr(x.grad_fn, register)(lambda *grads: change(grads[0]))
    x.sum().backward()


def attend(lib: Any, query: tuple[int, ...], key: tuple[int, ...], **options: Any) -> Any:
    keys = lib.ones(key)
    return lib.nn.MultiheadAttention(4, 2)(lib.ones(query), keys, keys, **options)


CALLS: dict[str, tuple[type[Exception], Call]] = {
    "padding of a layer": (AssertionError, lambda t, F: t.nn.Embedding(4, 2, padding_idx=4)),
    "padding of bags": (AssertionError, lambda t, F: t.nn.EmbeddingBag(4, 2, padding_idx=-5)),
    "table of a layer": (AssertionError, lambda t, F: t.nn.Embedding(4, 2, _weight=table(t, 2, 2))),
    "padding": (
        AssertionError,
        lambda t, F: F.embedding(t.tensor([1]), table(t), padding_idx=5),
    ),
    "padding of the function of bags": (
        RuntimeError,
        lambda t, F: F.embedding_bag(t.tensor([[1]]), table(t), padding_idx=5),
    ),
    "bags of a table of three dims": (
        ValueError,
        lambda t, F: F.embedding_bag(t.tensor([[1]]), table(t, 4, 2, 3)),
    ),
    "sparse bags of maxima": (
        ValueError,
        lambda t, F: F.embedding_bag(t.tensor([[1]]), table(t), mode="max", sparse=True),
    ),
    "a first offset of 1": (
        RuntimeError,
        lambda t, F: F.embedding_bag(t.tensor([1, 2]), table(t), t.tensor([1])),
    ),
    "an offset beyond the entries": (
        RuntimeError,
        lambda t, F: F.embedding_bag(t.tensor([1, 2]), table(t), t.tensor([0, 3])),
    ),
    "no last offset": (
        RuntimeError,
        lambda t, F: F.embedding_bag(
            t.tensor([]).long(), table(t), t.tensor([]).long(), include_last_offset=True
        ),
    ),
    "Hessian of a tuple": (
        RuntimeError,
        lambda t, F: t.autograd.functional.hessian(lambda x: (x.sum(), x.sum()), t.ones(2)),
    ),
    "Hessian of no tensor": (
        TypeError,
        lambda t, F: t.autograd.functional.hvp(lambda x: 3, t.ones(2), t.ones(2)),
    ),
    "gradcheck of entries that overlap": (
        RuntimeError,
        lambda t, F: t.autograd.gradcheck(
            lambda x: x * 2, t.ones(1).double().expand(3).requires_grad_()
        ),
    ),
    "transforms that are none": (
        ValueError,
        lambda t, F: t.distributions.TransformedDistribution(
            t.distributions.Normal(0.0, 1.0), lambda x: x
        ),
    ),
    **{
        f"{name} with a gradient {what}": (
            RuntimeError,
            lambda t, F, name=name, change=change: with_hook(t, name, change),
        )
        for name in ("register_hook", "register_prehook")
        for what, change in {"less": lambda g: (), "more": lambda g: (*g, g[0])}.items()
    },
    **{
        f"an index of {index} among bags": (
            RuntimeError,
            lambda t, F, index=index: F.embedding_bag(t.tensor([[index]]), table(t)),
        )
        for index in (-1, 4)
    },
    **{
        f"attention {name}": (AssertionError, call)
        for name, call in {
            "of a wrong width": lambda t, F: attend(t, (3, 1, 3), (3, 1, 3)),
            "of heads that do not divide": lambda t, F: F.multi_head_attention_forward(
                *[t.ones(3, 1, 4)] * 3,
                4,
                3,
                t.ones(12, 4),
                None,
                None,
                None,
                False,
                0.0,
                t.ones(4, 4),
                None,
            ),
            "of four dims": lambda t, F: attend(t, (3, 1, 1, 4), (3, 1, 1, 4)),
            "of two and three dims": lambda t, F: attend(t, (3, 4), (3, 1, 4)),
            "with a mask of other keys": lambda t, F: attend(
                t, (3, 1, 4), (5, 1, 4), key_padding_mask=t.ones(2, 5).bool()
            ),
            "with a bias beside given keys": lambda t, F: F.multi_head_attention_forward(
                *[t.ones(3, 1, 4)] * 3,
                4,
                2,
                t.ones(12, 4),
                None,
                t.ones(1, 1, 4),
                t.ones(1, 1, 4),
                False,
                0.0,
                t.ones(4, 4),
                None,
                static_k=t.ones(2, 5, 2),
            ),
        }.items()
    },
    "heads that do not divide": (AssertionError, lambda t, F: t.nn.MultiheadAttention(5, 2)),
    "no heads": (ValueError, lambda t, F: t.nn.MultiheadAttention(4, 0)),
    **{
        f"CircularPad{dims}d of {len(shape)} dims": (
            ValueError,
            lambda t, F, dims=dims, shape=shape: getattr(t.nn, f"CircularPad{dims}d")(1)(
                t.ones(shape)
            ),
        )
        for dims, shape in [(1, (2, 3, 4, 5)), (2, (2, 3)), (3, (2, 3)), (1, (2,))]
    },
    **{
        f"{name} of another dtype": (
            ValueError,
            lambda t, F, name=name: getattr(t.nn, name)(3, 2)(t.ones(2, 3).double()),
        )
        for name in ("RNN", "LSTM", "GRU")
    },
    "sequences that are none": (RuntimeError, lambda t, F: t.nn.utils.rnn.pad_sequence(5)),
    "another side": (
        RuntimeError,
        lambda t, F: t.nn.utils.rnn.pad_sequence([t.ones(2)], padding_side="up"),
    ),
    "an optimizer of a result": (
        ValueError,
        lambda t, F: t.optim.SGD([t.ones(2, requires_grad=True) * 2], 0.1),
    ),
    **{
        f"strict {name}": (
            RuntimeError,
            lambda t, F, name=name: getattr(t.autograd.functional, name)(
                lambda x: x.clone(),
                t.ones(2),
                *(() if name == "jacobian" else (t.ones(2),)),
                create_graph=True,
                strict=True,
            ),
        )
        for name in ("vjp", "jvp", "jacobian")
    },
    **{
        f"2**64 for {name}": (OverflowError, lambda t, F, name=name: LARGE[name](t))
        for name in ("operand", "comparison", "exponent", "value", "limit", "end")
    },
    **{
        f"2**64 for {name}": (ValueError, lambda t, F, name=name: LARGE[name](t))
        for name in ("dim", "index", "place to write", "classes", "high")
    },
    **{
        f"2**64 among {name}": (TypeError, lambda t, F, name=name: LARGE[name](t))
        for name in ("sizes", "sizes of a view", "repeats", "dims")
    },
    "text as an index": (TypeError, lambda t, F: t.ones(3)["a"]),
    "text among indices": (TypeError, lambda t, F: t.ones(3, 3)[0, "a"]),
    "an object as an index": (IndexError, lambda t, F: t.ones(3)[object()]),
    "numbers to copy into a list": (TypeError, lambda t, F: t._foreach_copy_([t.ones(2)], [1.0])),
    "a number to copy into a list": (TypeError, lambda t, F: t._foreach_copy_([t.ones(2)], 1.0)),
    "one state of an LSTM": (
        IndexError,
        lambda t, F: t.nn.LSTM(3, 4)(t.ones(2, 1, 3), t.ones(1, 1, 4)),
    ),
    **{
        f"{name} of another size": (
            RuntimeError,
            lambda t, F, name=name: getattr(
                t.distributions.transforms.ReshapeTransform((2, 3), (6,)), name
            )(t.ones(5)),
        )
        for name in ("__call__", "_inverse")
    },
    "likelihood of numbers": (TypeError, lambda t, F: F.gaussian_nll_loss(1.0, 2.0, 1.0)),
}

#: calls with an int that no int64 holds
LARGE: dict[str, Callable[[Any], Any]] = {
    "operand": lambda t: t.ones(2) * 2**64,
    "comparison": lambda t: t.ones(2) < 2**64,
    "exponent": lambda t: t.ones(2).pow(-(2**64)),
    "value": lambda t: t.full((2,), 2**64),
    "limit": lambda t: t.ones(2).clamp(max=2**64),
    "end": lambda t: t.arange(2**64),
    "dim": lambda t: t.ones(2).sum(2**64),
    "index": lambda t: t.ones(2)[2**64],
    "place to write": lambda t: t.ones(2).__setitem__(2**64, 1),
    "classes": lambda t: t.nn.functional.one_hot(t.tensor([0]), 2**64),
    "high": lambda t: t.randint(2**64, (2,)),
    "sizes": lambda t: t.zeros(1, 2**64),
    "sizes of a view": lambda t: t.ones(2).view((2**64,)),
    "repeats": lambda t: t.ones(2).repeat(2**64),
    "dims": lambda t: t.ones(2).sum((2**64,)),
}


@both
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CALLS)
def test_classes_of_errors(lib: Any, name: str) -> None:
    error, call = CALLS[name]
    with pytest.raises(error) as caught:
        call(lib, lib.nn.functional)
    assert caught.type is error or error is RuntimeError  # gradcheck has its own

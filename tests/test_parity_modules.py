"""PyTorch's own samples of its modules: outputs, gradients and buffers equal, in training and in evaluation.

tests/parity/modules.txt has the modules and the samples that are not compared or differ, and why.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch", reason="PyTorch is the reference of these tests")
modules = pytest.importorskip("torch.testing._internal.common_modules", exc_type=ImportError)
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

KNOWN = Path(__file__).with_name("parity") / "modules.txt"
INFOS = {info.name.removeprefix("nn."): info for info in modules.module_db}
MOST = 150  # samples; of one loss there are 857
TOLERANCE = 5e-5  # of the largest number of a result: sums of terms that cancel are no better


def known() -> dict[str, str]:
    """The samples that differ, by name, with the reason."""
    lines = KNOWN.read_text().splitlines()
    pairs = (line.split(": ", 1) for line in lines if line and line[0] != "#")
    return dict(pairs)


def numbers(value: Any) -> Any:
    return np.asarray(
        value.detach().resolve_conj().numpy() if torch.is_tensor(value) else value.detach().numpy()
    )


def close(ours: Any, theirs: Any, what: str) -> None:
    from parity.convert import flat

    ours, theirs = flat(ours), flat(theirs)
    assert len(ours) == len(theirs), what
    for mine, other in zip(ours, theirs):
        assert (mine is None) == (other is None), what
        if mine is None:
            continue
        mine, other = numbers(mine), numbers(other)
        assert mine.shape == other.shape, what
        size = max(1.0, float(np.abs(other).max(initial=0.0)))
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=TOLERANCE * size, err_msg=what)


def run(module: Any, args: Any, kwargs: Any, kind: type) -> tuple[Any, list[Any]]:
    """Outputs, and the gradients of their weighted sums for every input and parameter."""
    from parity.convert import flat, tensors_in

    out = module(*args, **kwargs)
    differentiable = [one for one in flat(out) if isinstance(one, kind) and one.requires_grad]
    leaves = [*tensors_in((args, kwargs), kind), *module.parameters()]
    leaves = [leaf for leaf in leaves if leaf.requires_grad]
    if differentiable and leaves:
        total = sum((one * (i + 1) * 0.5).pow(2).mean() for i, one in enumerate(differentiable))
        total.backward()
    return out, [leaf.grad for leaf in leaves]


def as_leaf(tensor: Any) -> Any:
    return tensor.detach().requires_grad_(tensor.requires_grad)


def compare(sample: Any, theirs_class: Any, training: bool) -> None:
    from parity.convert import map_tensors, to_weft

    made = sample.constructor_input
    theirs = theirs_class(*made.args, **made.kwargs)
    ours_class = getattr(weft.nn, theirs_class.__name__)
    ours = ours_class(*to_weft(made.args), **to_weft(made.kwargs))
    given = sample.forward_input
    args, kwargs = map_tensors((given.args, given.kwargs), as_leaf)
    arguments = to_weft(args), to_weft(kwargs)
    if theirs_class.__name__.startswith("Lazy"):  # the first input makes its parameters
        theirs(*args, **kwargs), ours(*arguments[0], **arguments[1])
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state), "state_dict"
    ours.load_state_dict({key: to_weft(value) for key, value in state.items()})
    ours.train(training), theirs.train(training)
    torch.manual_seed(3)
    expected, expected_grads = run(theirs, args, kwargs, torch.Tensor)
    weft.manual_seed(3)
    out, grads = run(ours, *arguments, weft.Tensor)
    close(out, expected, "outputs")
    close(grads, expected_grads, "gradients")
    for (name, buffer), other in zip(ours.named_buffers(), theirs.buffers()):
        close(buffer, other, name)


def samples(name: str, training: bool) -> list[tuple[str, Any]]:
    """Named samples of a module, float32 on the CPU; about MOST of a longer list, spread over it."""
    info = INFOS[name]
    torch.manual_seed(0)
    made = info.module_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
    )
    mode = "train" if training else "eval"
    made = [(f"{name}-{mode}-{i}", sample) for i, sample in enumerate(made)]
    return made[:: 1 + len(made) // MOST]


def differing(name: str) -> dict[str, str]:
    """The samples of a module that differ, with the first line of how."""
    found = {}
    for training in (True, False):
        for label, sample in samples(name, training):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    compare(sample, INFOS[name].module_cls, training)
            except Exception as error:
                lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                found[label] = f"{type(error).__name__}: {lines[0] if lines else ''}"[:110]
    return found


@pytest.mark.parametrize("name", [name for name in INFOS if name not in known()])
def test_samples_of_modules(name: str) -> None:
    expected = {label for label in known() if label.rsplit("-", 2)[0] == name}
    # Whether sums in another order leave the tolerance is up to the processor.
    sure = {label for label in expected if "in another order" not in known()[label]}
    found = differing(name)
    assert sure <= found.keys() <= expected, found


def test_modules_that_are_not_compared_are_missing() -> None:
    samples_only = ("TransformerEncoder", "FractionalMaxPool2d", "FractionalMaxPool3d")
    left_out = [name for name in known() if name in INFOS and name not in samples_only]
    assert [name for name in left_out if hasattr(weft.nn, name)] == []


def refusal(cls: Any, sample: Any, convert: Any, training: bool) -> tuple[str, str]:
    """Where a wrong sample is refused, and by which class of error."""
    made, given = sample.constructor_input, sample.forward_input
    try:
        module = cls(*convert(made.args), **convert(made.kwargs)).train(training)
    except Exception as error:
        return "made", type(error).__name__
    if given is not None:
        try:
            module(*convert(given.args), **convert(given.kwargs))
        except Exception as error:
            return "called", type(error).__name__
    return "never", ""


@pytest.mark.parametrize("name", [n for n, info in INFOS.items() if info.module_error_inputs_func])
@pytest.mark.parametrize("training", [False, True])
def test_refusals_are_of_the_same_class(name: str, training: bool) -> None:
    from parity.convert import to_weft

    info = INFOS[name]
    samples = info.module_error_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=training
    )
    for sample in (each.module_error_input for each in samples):
        theirs = refusal(info.module_cls, sample, lambda value: value, training)
        assert refusal(getattr(weft.nn, name), sample, to_weft, training) == theirs, str(sample)

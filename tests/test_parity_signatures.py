"""Names and defaults of the arguments of what Python defines, beside PyTorch's.

tests/parity/signatures.txt has those that differ. Operators of the table have their schemas:
tests/test_parity_torch.py.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is the reference of these tests")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

KNOWN = Path(__file__).with_name("parity") / "signatures.txt"
NAMES = """
    accelerator amp autograd autograd.forward_ad autograd.functional autograd.graph cpu cuda distributed
    distributed.algorithms.join distributed.checkpoint distributed.optim distributed.tensor distributions
    distributions.constraints distributions.kl distributions.transforms fft func functional futures fx hub
    jit library linalg masked multiprocessing nn nn.attention nn.functional nn.init nn.modules nn.parallel
    nn.parameter nn.utils nn.utils.parametrizations nn.utils.parametrize nn.utils.prune nn.utils.rnn onnx
    optim optim.lr_scheduler optim.swa_utils overrides profiler quasirandom random serialization
    signal.windows sparse special storage testing types utils utils._pytree utils.benchmark
    utils.checkpoint utils.data utils.data.distributed utils.flop_counter utils.tensorboard
"""
MODULES = NAMES.split()
OPEN = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def shown(default: Any) -> str:
    """A default as text that is the same in both libraries."""
    if default is inspect.Parameter.empty:
        return "required"
    if callable(default):
        return getattr(default, "__name__", "callable")
    if isinstance(default, tuple):  # among them Size
        return f"({', '.join(map(shown, default))})"
    return re.sub(r" at 0x\w+|'/.*'", "", repr(default)).replace("weft.", "torch.")


def arguments(function: Callable[..., Any]) -> dict[str, str] | None:
    """Its public arguments in order, with their defaults; None where they are not told."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind in OPEN for p in parameters):
        return None
    return {p.name: shown(p.default) for p in parameters if not p.name.startswith("_")}


def own(value: Any) -> bool:
    return (getattr(value, "__module__", None) or "").startswith(("torch", "weft"))


def methods(theirs: type, ours: type) -> Iterator[tuple[str, Any, Any]]:
    for name in sorted({*(n for n in vars(theirs) if n[0] != "_"), "__init__"}):
        pair = getattr(theirs, name, None), getattr(ours, name, None)
        if all(callable(one) and not isinstance(one, type) for one in pair):
            yield name, *pair


def pairs(module: str) -> Iterator[tuple[str, Any, Any]]:
    """What both libraries define in a module, by name."""
    theirs, ours = (importlib.import_module(f"{lib}.{module}") for lib in ("torch", "weft"))
    for name in getattr(theirs, "__all__", None) or dir(theirs):
        expected, found = (
            getattr(theirs, name, None),
            vars(ours).get(name, getattr(ours, name, None)),
        )
        if name.startswith("_") or not (own(expected) and own(found)):
            continue
        if isinstance(expected, type) and isinstance(found, type):
            for method, a, b in methods(expected, found):
                yield f"{module}.{name}.{method}", a, b
        elif callable(expected) and callable(found):
            yield f"{module}.{name}", expected, found


def differing(module: str) -> dict[str, str]:
    result = {}
    for name, theirs, ours in pairs(module):
        expected, found = arguments(theirs), arguments(ours)
        if expected is None or found is None or list(expected.items()) == list(found.items()):
            continue
        names = [n for n in {**expected, **found} if expected.get(n) != found.get(n)]
        result[name] = ", ".join(
            f"{n} {expected.get(n, 'absent')} / {found.get(n, 'absent')}" for n in names
        )
    return result


def known() -> dict[str, str]:
    lines = KNOWN.read_text().splitlines()
    return dict(line.split(": ", 1) for line in lines if line and line[0] != "#")


@pytest.mark.parametrize("module", MODULES)
def test_arguments_are_those_of_pytorch(module: str) -> None:
    names = {name for name, *_ in pairs(module)}
    assert differing(module) == {n: d for n, d in known().items() if n in names}


def test_enough_is_compared() -> None:
    every = [(name, a, b) for module in MODULES for name, a, b in pairs(module)]
    compared = {name for name, *both in every if all(map(arguments, both))}
    assert len(compared) > 1500
    assert {
        "nn.Linear.__init__",
        "optim.lr_scheduler.StepLR.__init__",
        "nn.functional.pad",
    } <= compared
    assert known().keys() <= compared

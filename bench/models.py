"""Whole networks: eager mode, frozen programs beside other engines, training steps; medians."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from timeit import repeat
from typing import Any

from bench.case import Group
from bench.engines import ENGINES, frozen
from bench.jit import needs_compiler, warm
from bench.mlp import training
from bench.networks import INFERENCE, archive, input_of, networks

group = Group("models")
SECONDS = 2.0


def _inference(torch: Any, run: Callable[[Any], Any], name: str) -> Callable[[], Any]:
    """The call that is timed; its result is compared with that of the archive, unfrozen."""
    x = input_of(torch, name)

    def infer() -> Any:
        with torch.no_grad():
            return run(x)

    with torch.no_grad():
        expected = torch.jit.load(str(archive(name)))(x)
    if not torch.allclose(infer(), expected, rtol=1e-3, atol=1e-3):
        raise AssertionError("expected the result of the archive, got another")
    return infer


def _module(torch: Any, name: str) -> Any:
    """The network with the archive's weights, for inference."""
    module = networks(torch)[name].make().eval()
    module.load_state_dict(torch.jit.load(str(archive(name))).state_dict())
    return module


def _eager(name: str) -> Callable[[Any], dict[str, Any]]:
    """In the layout of memory that is faster for the library: rows of pixels, or channels last."""

    def setup(torch: Any) -> dict[str, Any]:
        module = _module(torch, name)
        infer = _inference(torch, module, name)
        if len(networks(torch)[name].sizes) != 4:
            return {"infer": infer}
        moved = _module(torch, name).to(memory_format=torch.channels_last)
        last = _inference(
            torch, lambda x: moved(x.contiguous(memory_format=torch.channels_last)), name
        )
        return {"infer": min(infer, last, key=lambda f: median(repeat(f, number=1, repeat=5)))}

    return setup


def _compiled(name: str) -> Callable[[Any], dict[str, Any]]:
    """A frozen program of weft beside torch.compile."""

    def setup(torch: Any) -> dict[str, Any]:
        if torch.__name__ == "weft":
            return _beside(name, "torch.jit, frozen")(torch)
        needs_compiler()
        return {"infer": _inference(torch, torch.compile(_module(torch, name)), name)}

    return setup


def _beside(name: str, engine: str) -> Callable[[Any], dict[str, Any]]:
    """A frozen program of weft beside another engine."""

    def setup(torch: Any) -> dict[str, Any]:
        load = frozen if torch.__name__ == "weft" else ENGINES[engine]
        run = load(torch, str(archive(name)), input_of(torch, name))
        infer = _inference(torch, run, name)
        warm(torch, infer, ())
        return {"infer": infer}

    return setup


def _training(name: str) -> Callable[[Any], dict[str, Any]]:
    """A step of Adam; GPT tells the next token."""

    def setup(torch: Any) -> dict[str, Any]:
        network, x = networks(torch)[name].make(), input_of(torch, name)
        optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
        with torch.no_grad():
            shape = network(x).shape
        if len(shape) == 3:  # a class for each token, as for each pixel
            inner = network
            network = torch.nn.Sequential(inner, torch.nn.Flatten(0, 1))
            shape = (shape[0] * shape[1], shape[2])
        y = torch.randint(0, shape[1], (shape[0], *shape[2:]))
        return training(torch, network, optimizer, x, y)

    return setup


for _name in INFERENCE:
    group.add(f"{_name} | eager", "infer()", _eager(_name), SECONDS, middle=True)
    for _engine in ENGINES:
        group.add(f"{_name} | {_engine}", "infer()", _beside(_name, _engine), SECONDS, middle=True)
    group.add(
        f"{_name} | torch.compile", "infer()", _compiled(_name), SECONDS, "compile", middle=True
    )
for _name in ("ResNet-18, batch 8", "MobileNet, batch 4", "GPT, batch 8", "LSTM", "U-Net, batch 4"):
    group.add(f"{_name} | training", "step()", _training(_name), SECONDS, middle=True)

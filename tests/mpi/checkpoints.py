"""Checkpoints of several processes: `checkpoints.py FOLDER`; the next run may have another number."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import weft
import weft.distributed as dist
import weft.distributed.checkpoint as checkpoint
from weft import nn
from weft.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from weft.distributed.fsdp import fully_shard

dist.init_process_group()
ME, N, FOLDER = dist.get_rank(), dist.get_world_size(), Path(sys.argv[1])


def made() -> tuple[Any, Any]:
    weft.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    for layer in (model[0], model[2]):
        fully_shard(layer)
    return model, weft.optim.Adam(model.parameters(), lr=0.01)


def steps(model: Any, optimizer: Any, count: int) -> list[Any]:
    """Steps on a batch that is the same in all processes; the parameters."""
    for at in range(count):
        x = weft.randn(4, 5, generator=weft.Generator().manual_seed(at))
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
    return [p.detach().clone() for p in model.parameters()]


def state_of(model: Any, optimizer: Any) -> dict[str, Any]:
    model_state, optimizer_state = get_state_dict(model, optimizer)
    return {"model": model_state, "optimizer": optimizer_state, "note": "after 3", "step": 3}


def loaded() -> tuple[Any, Any]:
    model, optimizer = made()
    steps(model, optimizer, 1)  # for states to fill
    state = state_of(model, optimizer) | {"note": "", "step": 0}
    checkpoint.load(state, checkpoint_id=FOLDER)
    assert (state["note"], state["step"]) == ("after 3", 3)
    set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
    )
    return model, optimizer


model, optimizer = made()
steps(model, optimizer, 3)
if (FOLDER / "index.json").exists():  # of a run of another number of processes
    for got, expected in zip(loaded()[0].parameters(), model.parameters()):
        assert weft.allclose(got, expected, 1e-5, 1e-6)
dist.barrier()
checkpoint.save({"model": {"x": weft.ones(N)}}, checkpoint_id=FOLDER)
saved = checkpoint.async_save(state_of(model, optimizer), checkpoint_id=FOLDER)
expected = steps(model, optimizer, 2)  # while it is written
saved.result(100)
dist.barrier()
assert len(list(FOLDER.glob("*.safetensors"))) == N
for got, value in zip(steps(*loaded(), 2), expected):
    assert weft.equal(got, value)
for wrong, kind in (({"y": weft.ones(1)}, KeyError), ({"step": weft.ones(1)}, KeyError)):
    try:
        checkpoint.load(wrong, checkpoint_id=FOLDER)
    except kind as error:
        assert "has no such tensor" in str(error)
    else:
        raise AssertionError("a missing tensor is not noticed")


def wrong(state: dict[str, Any], kind: type[Exception], message: str) -> None:
    """Saving raises on all ranks, and leaves the checkpoint and the world as they were."""
    before = (FOLDER / "index.json").read_text()
    try:
        checkpoint.save(state, checkpoint_id=FOLDER)
    except kind as error:
        assert message in str(error), error
    else:
        raise AssertionError(f"saves {state}")
    assert (FOLDER / "index.json").read_text() == before
    dist.barrier()


shard = checkpoint.files.Shard(weft.ones(1, dtype=weft.complex128), ME, (N,))
wrong({"x": shard}, ValueError, "expected a dtype of safetensors")
wrong({"x": {1, 2}}, TypeError, "expected values that JSON holds beside tensors, got 'x' of set")
if N > 1:  # of one rank
    wrong(
        {"x": shard} if ME == N - 1 else {},
        ValueError if ME == N - 1 else dist.DistError,
        "expected a dtype of safetensors" if ME == N - 1 else f"save: rank {N - 1} raised ValueE",
    )

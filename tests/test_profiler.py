"""profile: events of operators, their times and averages, schedules, traces."""

from __future__ import annotations

import gzip
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule


def test_events_of_a_step() -> None:
    layer = weft.nn.Linear(3, 2)
    with profile(record_shapes=True) as prof:
        with record_function("forward"):
            loss = (layer(weft.ones(4, 3)) * 2).sum()
        loss.backward()
    names = [event.name for event in prof.events()]
    assert names == [
        "forward",
        "aten::ones",
        "aten::linear",
        "aten::mul",
        "aten::sum",
        "autograd::backward",
        "SumBackward0",
        "MulBackward0",
        "LinearBackward0",
        *["torch::autograd::AccumulateGrad"] * 2,
    ]
    forward, *inner = prof.events()[:5]
    backward, *nodes = prof.events()[5:]
    assert forward.cpu_children == inner and all(event.cpu_parent is forward for event in inner)
    assert backward.cpu_parent is None and forward.is_user_annotation
    assert inner[1].input_shapes[:2] == [[4, 3], [2, 3]] and inner[2].input_shapes == [[4, 2], []]
    assert backward.cpu_children == nodes and nodes[1].input_shapes == [[4, 2]]
    assert layer.weight.grad is not None


@weft.jit.script
def scaled(x: weft.Tensor, y: weft.Tensor) -> weft.Tensor:
    return (weft.relu(x @ y) + 1) * 2


@weft.jit.script
def forked(x: weft.Tensor) -> weft.Tensor:
    other = weft.jit.fork(scaled, x, x)
    return weft.jit.wait(other).sum()


def test_programs_are_seen() -> None:
    x = weft.ones(4, 4)
    expected = scaled(x, x)
    with profile(record_shapes=True) as prof:
        found = scaled(x, x)
    assert found.equal(expected)
    program, product, *others = prof.events()
    assert program.name == "scaled" and program.cpu_children == [product, *others]
    assert product.name == "aten::matmul" and product.input_shapes == [[4, 4], [4, 4]]
    assert 0 < product.cpu_time_total < program.cpu_time_total
    assert all(name in " ".join(e.name for e in others) for name in ("relu", "add", "mul"))
    with profile() as prof:
        forked(x)
    caller, other = (e for e in prof.events() if e.name in ("forked", "scaled"))
    assert caller.name == "forked" and other.thread != caller.thread and other.cpu_parent is None
    assert other.cpu_children[0].name == "aten::matmul"
    with profile() as outer:
        with profile() as inner:
            scaled(x, x)
        scaled(x, x)
    assert [e.name for e in inner.events()].count("scaled") == 1
    assert [e.name for e in outer.events()].count("scaled") == 2


def test_times_are_those_that_passed() -> None:
    with profile() as prof:
        started = time.perf_counter()
        with record_function("outer"):
            time.sleep(0.02)
            with record_function("inner"):
                time.sleep(0.01)
        passed = (time.perf_counter() - started) * 1e6
    outer, inner = prof.events()
    assert 30_000 <= outer.cpu_time_total <= passed and inner.cpu_time_total >= 10_000
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inner.cpu_time_total)
    assert (
        outer.time_range.start
        <= inner.time_range.start
        <= inner.time_range.end
        <= outer.time_range.end
    )
    assert prof.events().self_cpu_time_total == pytest.approx(outer.cpu_time_total)


def test_averages_and_table() -> None:
    x = weft.ones(2, 3)
    with profile(record_shapes=True) as prof:
        for _ in range(3):
            x.add(1)
        weft.ones(5).add(1)
        with record_function("again"), record_function("again"):
            x.mul(2)
    averages = {event.key: event for event in prof.key_averages()}
    assert averages["aten::add"].count == 4 and averages["again"].count == 2
    total = sum(event.cpu_time_total for event in prof.events() if event.key == "aten::add")
    assert averages["aten::add"].cpu_time_total == pytest.approx(total)
    assert averages["aten::add"].cpu_time == pytest.approx(total / 4)
    once = next(event for event in prof.events() if event.key == "again")
    assert averages["again"].cpu_time_total == once.cpu_time_total  # not twice
    shaped = [e for e in prof.key_averages(group_by_input_shape=True) if e.key == "aten::add"]
    assert [(e.count, e.input_shapes) for e in shaped] == [(3, [[2, 3], []]), (1, [[5], []])]
    lines = prof.key_averages().table(sort_by="count", row_limit=2).splitlines()
    assert lines[1].split("  ")[-1] == "# of Calls" and lines[3].split()[0] == "aten::add"
    assert lines[5] == lines[0] and lines[-1].startswith("Self CPU time total: ")
    assert prof.key_averages().total_average().count == len(prof.events())
    with pytest.raises(AttributeError, match="no_such"):
        prof.key_averages().table(sort_by="no_such")


PLANS = [
    ({"wait": 1, "warmup": 1, "active": 2}, "NWRSNWRSNW"),
    ({"wait": 0, "warmup": 0, "active": 1}, "SSSS"),
    ({"wait": 1, "warmup": 1, "active": 1, "repeat": 2}, "NWSNWSNNN"),
    ({"wait": 1, "warmup": 0, "active": 2, "skip_first": 3}, "NNNNRSNRS"),
    ({"wait": 2, "warmup": 0, "active": 1, "skip_first": 1, "skip_first_wait": 1}, "NSNNSNNS"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "actions"), PLANS)
def test_schedules(arguments: dict[str, int], actions: str) -> None:
    letters = {"NONE": "N", "WARMUP": "W", "RECORD": "R", "RECORD_AND_SAVE": "S"}
    plan = schedule(**arguments)
    assert "".join(letters[plan(step).name] for step in range(len(actions))) == actions


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
@pytest.mark.parametrize(("arguments", "actions"), PLANS)
def test_schedules_equal_torch(arguments: dict[str, int], actions: str) -> None:
    torch = pytest.importorskip("torch")
    mine, theirs = schedule(**arguments), torch.profiler.schedule(**arguments)
    assert [mine(step).name for step in range(20)] == [theirs(step).name for step in range(20)]


def run_steps(lib: Any, steps: int, plan: dict[str, int]) -> list[list[str]]:
    """The operators of each recording that was handed over."""
    found: list[list[str]] = []

    def ready(prof: Any) -> None:
        names = [event.name for event in prof.events()]
        found.append(
            [name for name in names if name in ("aten::mul", "aten::relu") or "Step" in name]
        )

    x = lib.ones(3)
    cpu = lib.profiler.ProfilerActivity.CPU
    with lib.profiler.profile(
        activities=[cpu], schedule=lib.profiler.schedule(**plan), on_trace_ready=ready
    ) as prof:
        for step in range(steps):
            x.mul(2) if step % 2 else x.relu()
            prof.step()
    return found


def test_steps() -> None:
    plan = {"wait": 1, "warmup": 0, "active": 2, "repeat": 2}
    step = "ProfilerStep#{}".format
    first = [step(1), "aten::mul", step(2), "aten::relu"]
    assert run_steps(weft, 8, plan) == [first, [step(4), "aten::relu", step(5), "aten::mul"]]
    assert run_steps(weft, 2, plan) == [[step(1), "aten::mul", step(2)]]  # cut short


def test_traces(tmp_path: Path) -> None:
    with profile(
        on_trace_ready=weft.profiler.tensorboard_trace_handler(str(tmp_path), "me", True)
    ) as prof:
        with record_function("mark"):
            weft.ones(2)
        prof.add_metadata("text", "value")
        prof.add_metadata_json("numbers", "[1, 2]")
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("me.") and path.name.endswith(".pt.trace.json.gz")
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    for text in (gzip.decompress(path.read_bytes()), (tmp_path / "trace.json").read_text()):
        trace = json.loads(text)
        assert trace["text"] == "value" and trace["numbers"] == [1, 2]
        mark, ones = trace["traceEvents"]
        assert (mark["cat"], mark["name"], ones["cat"], ones["name"]) == (
            "user_annotation",
            "mark",
            "cpu_op",
            "aten::ones",
        )
        assert (
            mark["ts"] <= ones["ts"] and ones["ts"] + ones["dur"] <= mark["ts"] + mark["dur"] + 1e-3
        )


def test_only_its_thread_and_its_time() -> None:
    def other() -> None:
        with record_function("elsewhere"):
            weft.ones(2)

    with record_function("around"), profile() as prof:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        weft.zeros(2)
        left = record_function("left open")
        left.__enter__()
    left.__exit__(None, None, None)
    weft.ones(2)
    assert [event.name for event in prof.events()] == ["aten::zeros", "left open"]
    with weft.autograd.profiler.profile(enabled=False) as nothing:
        weft.ones(2)
    assert nothing.function_events == []


def test_errors_pass_through() -> None:
    with profile() as prof:
        with pytest.raises(RuntimeError):
            weft.ones(2) @ weft.ones(3)
        weft.ones(1)
    assert [event.name for event in prof.events()][-1] == "aten::ones"
    assert all(event.cpu_parent is None for event in prof.events())
    for wrong in ([], [1]):
        with pytest.raises(ValueError, match="profile: expected activities, got"):
            profile(activities=wrong)
    with pytest.raises(ValueError, match="schedule: expected counts"):
        schedule(wait=0, warmup=0, active=0)
    assert weft.profiler.supported_activities() == {ProfilerActivity.CPU}
    assert ProfilerAction.RECORD.value == 2

"""weft.export: programs of operators compute what their modules do, and survive files."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import json
import random
import subprocess
import sys
import zipfile
from typing import Any

import numpy as np
import pytest

import weft
from weft.export._read import program_of
from weft.export._write import program_record
from weft.utils._pytree import tree_leaves

from .modules import Case, cases, dims

CASES = cases(weft)


def exported(case: Case) -> weft.export.ExportedProgram:
    module = case.module.eval()
    shapes = dims(weft, case.shapes)
    return weft.export.export(module, case.args, case.kwargs, dynamic_shapes=shapes)


def results(module: Any, args: Any, kwargs: Any) -> list[Any]:
    args = copy.deepcopy(args)
    with weft.no_grad():
        return tree_leaves(module(*args, **kwargs))


def same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        weft.equal(a.nan_to_num(7.5), b.nan_to_num(7.5)) and a.dtype == b.dtype
        if isinstance(a, weft.Tensor)
        else type(a) is type(b) and a == b
        for a, b in zip(one, other)
    )


def saved(program: weft.export.ExportedProgram) -> bytes:
    file = io.BytesIO()
    weft.export.save(program, file)
    return file.getvalue()


@pytest.mark.parametrize("name", CASES)
def test_the_program_computes_what_the_module_does(name: str) -> None:
    case = CASES[name]
    program = exported(case)
    loaded = weft.export.load(io.BytesIO(saved(program)))
    calls = [case.args, *([case.others] if case.others else [])]
    for args in calls:
        expected = results(copy.deepcopy(case.module), args, case.kwargs)
        for each in (program.module(), loaded.module()):
            each = copy.deepcopy(each)  # over buffers of its own, which the program may change
            assert same(results(each, args, case.kwargs), expected)
    assert loaded.graph_signature == program.graph_signature
    assert str(loaded.graph) == str(program.graph)
    assert saved(loaded) == saved(program)


@pytest.mark.parametrize("name", ["by batch", "in place", "functions", "LSTM", "encoder"])
def test_the_module_of_a_program_is_compiled(name: str) -> None:
    case = CASES[name]
    case = case._replace(kwargs={}, shapes=case.shapes if not case.kwargs else None)
    if name == "by batch":
        case = CASES["shared"]
    program = exported(case)
    compiled = weft.jit.script(copy.deepcopy(program.module()))
    expected = results(copy.deepcopy(case.module), case.args, {})
    assert same(results(compiled, case.args, {}), expected)


def test_gradients_go_through_the_program() -> None:
    module = CASES["without gradients"].module
    x = weft.randn(2, 3)
    program = weft.export.export(module, (x,))
    grads = []
    for each in (module, program.module()):
        module.zero_grad()
        each(x).sum().backward()
        grads.append([p.grad.clone() for p in module.parameters()])
    assert same(*grads)
    assert next(program.parameters()) is next(module.parameters())


def test_the_parts_of_a_program() -> None:
    program = exported(CASES["by batch"])
    signature = program.graph_signature
    assert signature.parameters[:2] == ("conv.weight", "conv.bias")
    assert signature.buffers[:2] == ("kept", "lost")
    assert signature.non_persistent_buffers == ("lost",)
    assert signature.lifted_tensor_constants == ("plain",)
    assert signature.user_inputs == ("x", False)
    assert signature.user_outputs == ("getitem", "getitem", "zeros")
    assert "lost" not in program.state_dict and "lost" in program.constants
    assert program.range_constraints == {"s0": (2, 64)}
    x = next(node for node in program.graph.nodes if node.name == "x")
    assert x.meta["tensor_meta"].text() == "f32[s0, 3, 8, 8]"
    assert x.meta["val"].device.type == "meta" and x.meta["val"].shape == (2, 3, 8, 8)
    targets = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert targets[:3] == ["aten.conv2d.default", "aten.batch_norm.default", "aten.relu.default"]
    assert "aten.sym_size.int" in targets and "aten.mul.Tensor" in targets
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(weft.ones(2, 3, 8, 8))
    assert "x: USER_INPUT" in str(program) and "f32[s0, 4, 8, 8]" in str(program)


def test_calls_are_checked() -> None:
    module = exported(CASES["by batch"]).module()
    for x, text in (
        (weft.ones(2, 3, 8, 9), r"x.size\(\)\[3\] == 8"),
        (weft.ones(65, 3, 8, 8), "<= 64"),
        (weft.ones(2, 3, 8), r"len\(x.size\(\)\) == 4"),
        (weft.ones(2, 3, 8, 8, dtype=weft.float64), "x.dtype"),
        (1.5, "expected a tensor"),
    ):
        with pytest.raises(RuntimeError, match=text):
            module(x, flag=False)
    with pytest.raises(RuntimeError, match="flag == False"):
        module(weft.ones(2, 3, 8, 8), flag=True)
    with pytest.raises(ValueError, match="structure"):
        module(weft.ones(2, 3, 8, 8))
    with pytest.raises(NotImplementedError):
        module.train()


class Decides(weft.nn.Module):
    def forward(self, x: weft.Tensor) -> weft.Tensor:
        return x + 1 if x.sum() > 0 else x - 1


class DecidesBySize(weft.nn.Module):
    def forward(self, x: weft.Tensor) -> weft.Tensor:
        return x + 1 if x.shape[0] > 3 else x - 1


class Counts(weft.nn.Module):
    """A buffer that a call replaces, and one that it changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("replaced", weft.zeros(2))
        self.register_buffer("changed", weft.zeros(2))

    def forward(self, x: weft.Tensor) -> weft.Tensor:
        self.replaced = self.replaced + x
        self.changed.add_(x)
        return self.replaced * self.changed


def test_an_export_leaves_the_module_as_it_was() -> None:
    module, x = Counts(), weft.tensor([1.0, 2.0])
    buffers = dict(module.named_buffers())
    program = weft.export.export(module, (x,))
    assert all(dict(module.named_buffers())[name] is each for name, each in buffers.items())
    assert module.replaced.tolist() == module.changed.tolist() == [0.0, 0.0]
    run, expected = program.module(), Counts()
    for _ in range(2):
        assert run(x).tolist() == expected(x).tolist()
    assert run.replaced.tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError):
        weft.export.export(module, (weft.ones(3),))
    assert all(dict(module.named_buffers())[name] is each for name, each in buffers.items())


class ComplexBySize(weft.nn.Module):
    def forward(self, x: weft.Tensor) -> weft.Tensor:
        return x * (1j if x.shape[0] > 3 else 2j)


class Even(weft.nn.Module):
    def forward(self, x: weft.Tensor) -> weft.Tensor:
        return x.reshape(x.shape[0] // 2, 2)


def test_what_cannot_be_exported() -> None:
    export, dim = weft.export.export, weft.export.Dim
    x = (weft.ones(2),)
    with pytest.raises(ValueError, match="to be an instance of"):
        export(lambda x: x, x)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a tuple of arguments"):
        export(Decides(), weft.ones(2))  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="values of tensors"):
        export(Decides(), x)
    with pytest.raises(NotImplementedError, match="preserve_module_call_signature"):
        export(weft.nn.ReLU(), x, preserve_module_call_signature=("",))
    batch = dim("batch", max=8)
    with pytest.raises(RuntimeError, match="other results than its program where s0 = 5"):
        export(DecidesBySize(), x, dynamic_shapes=({0: batch},))
    with pytest.raises(RuntimeError, match="other results than its program where s0 = 5"):
        export(ComplexBySize(), x, dynamic_shapes=({0: batch},))
    with pytest.raises(RuntimeError, match="fails where s0 = 5"):
        export(Even(), x, dynamic_shapes=({0: batch},))
    for shapes, text in (
        (({0: dim("n", min=3)},), "3 <= n"),
        (({0: 3},), "constraint of 3"),
        (({1: batch},), "1 dimensions"),
        (({0: "n"},), "expected Dim"),
        ({"y": None}, "by the names"),
        ((None, None), "of 1 arguments"),
    ):
        with pytest.raises((RuntimeError, ValueError), match=text):
            export(weft.nn.ReLU(), x, dynamic_shapes=shapes)


class Part(weft.nn.Module):
    def forward(self, x: weft.Tensor) -> tuple[weft.Tensor, ...]:
        return x[1:], x.repeat(3, 1)[2:], x.t() @ x, x.flatten()[: x.shape[0] ** 2]


def test_sizes_of_results_as_formulas() -> None:
    shapes = ({0: weft.export.Dim("n")},)
    program = weft.export.export(Part(), (weft.ones(2, 5),), dynamic_shapes=shapes)
    loaded = weft.export.load(io.BytesIO(saved(program)))
    for each in (program, loaded):
        results = [n.meta["tensor_meta"].text() for n in each.graph.output_node().args[0]]
        assert results[:3] == ["f32[s0 - 1, 5]", "f32[3*s0 - 2, 5]", "f32[5, 5]"]
        assert results[3].startswith("f32[u")  # no linear one


def test_sizes_that_are_tried() -> None:
    x = (weft.ones(4),)
    program = weft.export.export(Even(), x, dynamic_shapes=({0: weft.export.Dim.AUTO},))
    assert program.range_constraints == {}  # 7 rows are no pairs
    program = weft.export.export(Even(), x, dynamic_shapes=({0: 2 * weft.export.Dim("pairs")},))
    assert program.module()(weft.ones(10)).shape == (5, 2)
    same_size = weft.export.Dim("n")
    shapes = {"input": {0: same_size}, "other": {0: same_size}}
    with pytest.raises(RuntimeError, match="n == 3"):
        args = (weft.ones(3), weft.ones(4))
        weft.export.export(weft.nn.CosineSimilarity(0), args, dynamic_shapes=tuple(shapes.values()))


def test_what_operators_of_programs_refuse() -> None:
    aten, x = weft.ops.aten, weft.ones(2)
    assert aten.detach_.default(x) is x
    with pytest.raises(RuntimeError, match="without gradients"):
        aten.detach_.default(weft.ones(2, requires_grad=True) * 2)
    with pytest.raises(RuntimeError, match="too few"):
        aten._assert_scalar.default(False, "too few")
    with pytest.raises(RuntimeError, match="not so"):
        aten._assert_async.msg(weft.tensor(False), "not so")
    aten._assert_tensor_metadata.default(x, [2], None, weft.float32)
    with pytest.raises(RuntimeError, match="dtype mismatch"):
        aten._assert_tensor_metadata.default(x, None, None, weft.float64)
    with pytest.raises(RuntimeError, match="sizes mismatch"):
        aten._assert_tensor_metadata.default(x, [3])


def test_files_of_the_user(tmp_path: Any) -> None:
    program = exported(CASES["shared"])
    weft.export.save(program, tmp_path / "p.pt2", extra_files={"note": "text"})
    found = {"note": "", "other": ""}
    loaded = weft.export.load(tmp_path / "p.pt2", extra_files=found)
    assert found == {"note": "text", "other": ""}
    first, second = loaded.state_dict["first.weight"], loaded.state_dict["second.weight"]
    assert first.data_ptr() == second.data_ptr()
    with pytest.raises(TypeError, match="ExportedProgram"):
        weft.export.save(weft.nn.ReLU(), tmp_path / "q.pt2")  # type: ignore[arg-type]


def test_a_program_is_compiled_for_a_process_without_python(tmp_path: Any) -> None:
    module = weft.nn.Sequential(weft.nn.Linear(4, 8), weft.nn.GELU(), weft.nn.Linear(8, 3))
    x = weft.randn(2, 4)
    weft.export.save(weft.export.export(module, (x,)), tmp_path / "model.pt2")
    np.save(tmp_path / "x.npy", x.numpy())
    for command in (
        ["compile", "model.pt2", "-o", "model.weft"],
        ["exec", "model.weft", "--input", "x.npy", "--output", "y.npy"],
    ):
        run = [sys.executable, "-m", "weft", *command]
        done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), module(x).detach().numpy(), 1e-5)


@dataclasses.dataclass
class Batch:
    x: weft.Tensor
    y: weft.Tensor | None = None


class OfBatches(weft.nn.Module):
    def forward(self, batch: Batch, by: list[Batch]) -> tuple[Batch, weft.Tensor]:
        return Batch(batch.x * 2, by[0].x), by[0].x + 1


def test_dataclasses_among_arguments_and_results() -> None:
    weft.export.register_dataclass(Batch)
    args = (Batch(weft.ones(2)), [Batch(weft.zeros(2))])
    program = weft.export.export(OfBatches(), args)
    loaded = weft.export.load(io.BytesIO(saved(program)))
    for each in (program, loaded):
        result, other = each.module()(*args)
        assert isinstance(result, Batch) and result.x.tolist() == [2.0, 2.0]
        assert result.y.tolist() == [0.0, 0.0] and other.tolist() == [1.0, 1.0]
        with pytest.raises(ValueError, match="structure"):
            each.module()(Batch(weft.ones(2), weft.ones(2)), args[1])


# Hostile files ------------------------------------------------------------------------------------

REFUSED = (RuntimeError, NotImplementedError, OSError)


def changed(record: Any, draw: random.Random) -> Any:
    """A record with one value in it replaced, removed or doubled."""
    at, holder, key = record, None, None
    while isinstance(at, (dict, list)) and len(at) and (holder is None or draw.random() < 0.93):
        holder = at
        key = draw.choice(list(at)) if isinstance(at, dict) else draw.randrange(len(at))
        at = at[key]
    kind = draw.randrange(4)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(at))
    else:
        others = [None, -1, 2**70, "", "x", "torch.ops.aten.add.Tensor", 1.5, [], {}, {"as_int": 1}]
        holder[key] = draw.choice(others)
    return record


@pytest.mark.parametrize("name", ["by batch", "in place", "sizes"])
def test_changed_records_are_refused_or_programs(name: str) -> None:
    program = exported(CASES[name])
    whole = json.dumps(program_record(program))
    draw = random.Random(name)
    refused = 0
    for _ in range(400):
        record = changed(json.loads(whole), draw)
        data = rewritten(saved_bytes(name, program), json.dumps(record))
        try:
            module = weft.export.load(io.BytesIO(data)).module(check_guards=False)
        except REFUSED:
            refused += 1
            continue
        with contextlib.suppress(Exception):  # another program, which may raise as any other
            module(*CASES[name].args, **CASES[name].kwargs)
    assert refused > 50


_saved: dict[str, bytes] = {}


def saved_bytes(name: str, program: Any) -> bytes:
    return _saved.setdefault(name, saved(program))


def rewritten(data: bytes, record: str, entry: str = "models/model.json") -> bytes:
    """An archive with other bytes in one of its records."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(made, "w") as new:
        for each in old.infolist():
            inside = record.encode() if each.filename.endswith(entry) else old.read(each)
            new.writestr(each.filename, inside)
    return made.getvalue()


def test_names_and_notes_of_files_are_no_code() -> None:
    program = exported(CASES["shared"])
    record = program_record(program)
    for path in ('first"); raise SystemExit(9); ("', "first\n.bias", "first..bias", ""):
        changed_record = json.loads(json.dumps(record).replace("first.bias", "NAME"))
        text = json.dumps(changed_record).replace('"NAME"', json.dumps(path))
        held = {path: weft.ones(3), **program.state_dict}
        with pytest.raises(weft.serialization.LoadError, match="name"):
            program_of(json.loads(text), held, {}, None)
    for node in record["graph_module"]["graph"]["nodes"]:
        node["metadata"] = {"tensor_meta": "x", "number": "x", "argument_names": 1, "torch_fn": "f"}
    loaded = program_of(record, program.state_dict, {}, None)
    metas = [n.meta for n in loaded.graph.nodes if n.op == "call_function"]
    assert all(m["tensor_meta"].sizes == [2, 3] and m["torch_fn"] == "f" for m in metas)
    assert not any("number" in m or m["argument_names"] == 1 for m in metas)


def test_parameters_of_one_name_are_refused() -> None:
    program = exported(CASES["nested"])
    record = program_record(program)
    signature = record["graph_module"]["module_call_graph"][0]["signature"]
    signature["forward_arg_names"] = ["x", "x"]
    data = rewritten(saved(program), json.dumps(record))
    with pytest.raises(weft.serialization.LoadError, match="duplicate argument"):
        weft.export.load(io.BytesIO(data))


def test_functions_that_files_may_not_call() -> None:
    program = exported(CASES["sizes"])
    text = json.dumps(program_record(program))
    for target in ("os.system", "builtins.eval", "torch.load", "torch.ops.aten", "_operator.call"):
        record = text.replace("torch.ops.aten.mul.Tensor", target)
        with pytest.raises(NotImplementedError, match=target):
            program_of(json.loads(record), {}, {}, None)


def test_tensors_that_do_not_fit_their_bytes() -> None:
    data = saved(exported(CASES["shared"]))
    entry = "data/weights/model_weights_config.json"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        config = json.loads(archive.read(f"archive/{entry}"))
    meta = config["config"]["first.bias"]["tensor_meta"]
    for key, value in (
        ("sizes", [{"as_int": 4}]),
        ("sizes", [{"as_int": -1}]),
        ("strides", [{"as_int": 2**62}]),
        ("storage_offset", {"as_int": 1}),
        ("dtype", 8),
        ("dtype", 1),
        ("dtype", 99),
        ("layout", 1),
    ):
        record = copy.deepcopy(config)
        record["config"]["first.bias"]["tensor_meta"] = {**meta, key: value}
        with pytest.raises(weft.serialization.LoadError):
            weft.export.load(io.BytesIO(rewritten(data, json.dumps(record), entry)))

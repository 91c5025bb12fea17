"""Exported programs beside PyTorch's: each library runs what the other one wrote."""

from __future__ import annotations

import copy
import io
import json
import warnings
import zipfile
from collections import Counter
from typing import Any

import numpy as np
import pytest

import weft

from .modules import cases, dims

pytestmark = pytest.mark.parity
NAMES = list(cases(weft))


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def converted(given: Any, library: Any) -> Any:
    """Arguments with another library's tensors."""
    if isinstance(given, (tuple, list)):
        return type(given)(converted(each, library) for each in given)
    if isinstance(given, dict):
        return {key: converted(each, library) for key, each in given.items()}
    return library.from_numpy(given.numpy().copy()) if hasattr(given, "numpy") else given


def arrays(library: Any, module: Any, args: Any, kwargs: Any) -> list[Any]:
    """What a call gives."""
    with library.no_grad():
        result = module(*converted(args, library), **converted(kwargs, library))
    return [
        each.numpy() if hasattr(each, "numpy") else each
        for each in library.utils._pytree.tree_leaves(result)
    ]


def assert_close(got: list[Any], wanted: list[Any]) -> None:
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted):
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, 1e-4, 1e-5)
        else:
            assert one == other


def bytes_of(library: Any, name: str) -> tuple[bytes, Any, Any]:
    case = cases(library)[name]
    module = case.module.eval()
    expected = copy.deepcopy(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = library.export.export(
            module, case.args, case.kwargs, dynamic_shapes=dims(library, case.shapes)
        )
    file = io.BytesIO()
    library.export.save(program, file)
    return file.getvalue(), case, expected


@pytest.mark.parametrize("name", NAMES)
def test_weft_runs_what_pytorch_exported(torch: Any, name: str) -> None:
    data, case, module = bytes_of(torch, name)
    program = weft.export.load(io.BytesIO(data))
    again = io.BytesIO()
    weft.export.save(program, again)
    for args in filter(None, (case.args, case.others)):
        wanted = arrays(torch, copy.deepcopy(module), args, case.kwargs)
        loaded = copy.deepcopy(program.module())
        assert_close(arrays(weft, loaded, args, case.kwargs), wanted)
        back = torch.export.load(io.BytesIO(again.getvalue())).module()
        assert_close(arrays(torch, back, args, case.kwargs), wanted)


@pytest.mark.parametrize("name", NAMES)
def test_pytorch_runs_what_weft_exported(torch: Any, name: str) -> None:
    data, case, module = bytes_of(weft, name)
    for args in filter(None, (case.args, case.others)):
        wanted = arrays(weft, copy.deepcopy(module), args, case.kwargs)
        loaded = torch.export.load(io.BytesIO(data)).module()
        assert_close(arrays(torch, loaded, args, case.kwargs), wanted)


@pytest.mark.parametrize("name", ["convolutions", "encoder", "LSTM", "functions"])
def test_programs_call_the_operators_that_pytorch_calls(torch: Any, name: str) -> None:
    found = []
    for library in (weft, torch):
        data, _, _ = bytes_of(library, name)
        nodes = weft.export.load(io.BytesIO(data)).graph.nodes
        named = (str(n.target) for n in nodes if n.op == "call_function")
        found.append(Counter(each for each in named if each.startswith("aten.")))
    shared = sum((found[0] & found[1]).values())
    assert shared > 0.5 * sum(found[1].values()), (found[0] - found[1], found[1] - found[0])


class Branches:
    """Programs of PyTorch that call graphs."""

    @staticmethod
    def module(torch: Any) -> Any:
        class Branch(torch.nn.Module):
            def forward(self, x: Any) -> Any:
                return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))

        class Modes(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = torch.nn.Linear(3, 3)

            def forward(self, x: Any) -> Any:
                with torch.autocast("cpu", torch.bfloat16):
                    y = self.linear(x)
                return y.float() * 2

        class WithoutGradients(torch.nn.Module):
            def forward(self, x: Any) -> Any:
                with torch.no_grad():
                    y = x.exp()
                return y * x

        class Counted(torch.nn.Module):
            def forward(self, x: Any) -> Any:
                count = x.abs().max().long().item()
                torch._check(count >= 0)
                torch._check(count < 9)
                return torch.zeros(count) + x.sum()

        return {
            "branch": Branch(),
            "modes": Modes(),
            "without gradients": WithoutGradients(),
            "counted": Counted(),
        }


@pytest.mark.parametrize("name", ["branch", "modes", "without gradients", "counted"])
def test_graphs_inside_graphs(torch: Any, name: str) -> None:
    module, x = Branches.module(torch)[name], torch.ones(2, 3)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(torch.export.export(module, (x,)), file)
    program = weft.export.load(io.BytesIO(file.getvalue()))
    again = io.BytesIO()
    weft.export.save(program, again)
    for each in (x, -x):
        wanted = arrays(torch, module, (each,), {})
        for run in (program.module(), weft.jit.script(program.module())):
            got = arrays(weft, run, (each,), {})
            np.testing.assert_allclose(got[0], wanted[0], 2e-2, 2e-2)
        back = torch.export.load(io.BytesIO(again.getvalue())).module()
        np.testing.assert_allclose(arrays(torch, back, (each,), {})[0], wanted[0], 2e-2, 2e-2)


def test_writes_of_programs_without_writes(torch: Any) -> None:
    """Programs in which changes of buffers and inputs are results."""
    case = cases(torch)["in place"]
    expected = copy.deepcopy(case.module).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(case.module.eval(), case.args).run_decompositions()
    assert program.graph_signature.buffers_to_mutate
    file = io.BytesIO()
    torch.export.save(program, file)
    loaded = weft.export.load(io.BytesIO(file.getvalue()))
    again = io.BytesIO()
    weft.export.save(loaded, again)
    modules = (loaded.module(), weft.export.load(io.BytesIO(again.getvalue())).module())
    for _ in range(2):
        wanted = arrays(torch, expected, case.args, {})
        for module in modules:
            assert_close(arrays(weft, module, case.args, {}), wanted)


def test_the_smallest_set_of_operators(torch: Any) -> None:
    """What PyTorch tags as core, but for gradients of layers and sums over bags."""
    from weft.export._read import _target

    def is_core(overload: Any) -> bool:
        return torch.Tag.core in overload.tags

    packets = [getattr(torch.ops.aten, name) for name in torch.ops.aten]
    overloads = [getattr(each, name) for each in packets for name in each.overloads()]
    names = [f"torch.ops.{each}" for each in filter(is_core, overloads)]
    missing = {each.split(".")[3] for each in names if _target(each) is None}
    assert len(names) > 150
    assert {each for each in missing if not each.endswith("_backward")} <= {
        "_embedding_bag", "_local_scalar_dense", "resize_", "sym_is_contiguous",
    }  # fmt: skip


class Core:
    """Calls of operators that only such programs have."""

    @staticmethod
    def calls(aten: Any, x: Any) -> list[Any]:
        spectrum = aten._fft_r2c.default(x, [0, 1], 1, True)
        return [
            aten.copy.default(x, x[0].double()),
            aten._adaptive_avg_pool2d.default(x[None], [2, 3]),
            aten._adaptive_avg_pool3d.default(x[None, None], [1, 2, 3]),
            aten._pdist_forward.default(x, 2.0),
            aten._cdist_forward.default(x, x + 1, 1.0, None),
            aten._fft_r2c.default(x, [1], 0, False).abs(),
            spectrum.abs(),
            aten._fft_c2r.default(spectrum, [0, 1], 2, x.shape[1]),
            aten._fft_c2r.default(spectrum, [0, 1], 0, x.shape[1]),
        ]


def test_operators_of_such_programs(torch: Any) -> None:
    data = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)
    both = [Core.calls(each.ops.aten, each.from_numpy(data.copy())) for each in (weft, torch)]
    assert_close(*([each.numpy() for each in found] for found in both))


def test_a_program_as_a_model_of_onnx(torch: Any) -> None:
    runtime = pytest.importorskip("onnxruntime")
    data, case, module = bytes_of(torch, "encoder")
    program = weft.export.load(io.BytesIO(data))
    file = io.BytesIO()
    weft.onnx.export(program, (), file)  # its own example and sizes
    session = runtime.InferenceSession(file.getvalue())
    for args in (case.args, case.others):
        got = session.run(None, {session.get_inputs()[0].name: args[0].numpy()})
        assert_close(got, arrays(torch, module, args, {}))


def _formerly(record: Any) -> Any:
    """A record as PyTorch 2.6 wrote it: what is None, and how an argument is given, is left out."""
    if isinstance(record, list):
        return [_formerly(each) for each in record]
    if not isinstance(record, dict):
        return record
    how = {"kind"} if set(record) == {"name", "arg", "kind"} else set()
    kept = {key: each for key, each in record.items() if each is not None and key not in how}
    return {key: _formerly(each) for key, each in kept.items()}


@pytest.mark.parametrize("name", ["convolutions", "encoder", "defaults"])
def test_archives_of_former_versions(torch: Any, name: str) -> None:
    """Files without a folder, in which tensors are pickled: up to PyTorch 2.7."""
    from torch._export.serde.serialize import serialize

    case = cases(torch)[name]
    module = case.module.eval()
    artifact = serialize(torch.export.export(module, case.args))
    program = json.dumps(_formerly(json.loads(artifact.exported_program)))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("serialized_exported_program.json", program)
        archive.writestr("serialized_state_dict.pt", artifact.state_dict)
        archive.writestr("serialized_constants.pt", artifact.constants)
        archive.writestr("version", "8.8")
    loaded = weft.export.load(io.BytesIO(file.getvalue())).module()
    assert_close(arrays(weft, loaded, case.args, {}), arrays(torch, module, case.args, {}))

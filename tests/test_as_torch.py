"""weft under the name torch, in a process of its own: what is installed stays."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.compat.absent import placeholder
from weft.compat.overlay.torch_version import TorchVersion

PROGRAM = """
    import weft

    weft.install_as_torch()
    weft.install_as_torch()
    import copy, io, pickle
    import torch, torch.nn as nn, torch.nn.functional as F
    from torch.optim.lr_scheduler import StepLR
    from torch.utils.data import DataLoader

    assert torch.add is weft.add and nn is weft.nn and F is weft.nn.functional
    assert StepLR is weft.optim.lr_scheduler.StepLR and DataLoader is weft.utils.data.DataLoader
    assert nn.__spec__.name == nn.__name__ == "weft.nn"
    x = torch.ones(2)
    values = [x, nn.Parameter(x), nn.Buffer(x), torch.float32, torch.device("cpu"), x.shape,
              torch.Generator(), torch.strided, torch.preserve_format]
    print({type(value).__module__ for value in values}, torch.FloatTensor.__module__)
    print(repr(type(x)), torch.typename(x))

    values = [x, nn.Parameter(x), torch.Tensor, torch.float32, torch.device("cpu"), nn.Linear(1, 1)]
    for again in (pickle.loads(pickle.dumps(values)), copy.deepcopy(values)):
        assert again[0].tolist() == [1, 1] and again[2] is torch.Tensor
        assert [type(value) for value in again] == [type(value) for value in values]
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    assert torch.load(file)["x"].tolist() == [1, 1]

    def f(x: torch.Tensor, layer: float = 2.0) -> torch.Tensor:
        return F.relu(x) * layer

    for made in (torch.jit.script(f), torch.jit.trace(f, x), torch.jit.script(nn.Linear(2, 2))):
        assert made(x).shape == (2,)
    try:
        import torch.nonsense
    except ModuleNotFoundError as error:
        print(error)
"""


def test_programs_import_weft_as_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    names, shown, missing = done.stdout.splitlines()
    assert names in (
        "{'torch', 'torch.nn.parameter'} torch",
        "{'torch.nn.parameter', 'torch'} torch",
    )
    assert shown == "<class 'torch.Tensor'> torch.FloatTensor"
    assert missing == "No module named 'torch.nonsense'"


def test_pytorch_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", sys)
    with pytest.raises(RuntimeError, match="expected torch not to be imported yet, got PyTorch"):
        weft.install_as_torch()
    assert weft.Tensor.__module__ == "weft"


def run_program(text: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`weft run program.py words` in a folder that holds only the program."""
    (cwd / "program.py").write_text(textwrap.dedent(text))
    command = [sys.executable, "-m", "weft", "run", *words]
    source = str(Path(weft.__file__).parent.parent)
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, cwd=cwd,
        env={**os.environ, "PYTHONPATH": source},
    )  # fmt: skip


CHILDREN = """
    import subprocess, sys
    import multiprocessing
    import torch

    def double(x):
        return x * 2

    if __name__ == "__main__":
        print(sys.argv[1:], torch.__version__, __file__.rpartition("/")[2])
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(pool.map(double, [torch.ones(2).tolist()[0]]), flush=True)
        code = "import torch; print(torch.__version__, torch.add.__module__)"
        subprocess.run([sys.executable, "-c", code], check=True)
"""


@pytest.mark.parametrize("words", [("program.py",), ("-m", "program")])
def test_run_gives_the_program_and_its_children_torch(words: Any, tmp_path: Path) -> None:
    done = run_program(CHILDREN, *words, "-x", "--name=1", cwd=tmp_path)
    assert done.stderr == ""
    first, second, third = done.stdout.splitlines()
    assert first == "['-x', '--name=1'] 2.13.0 program.py"
    assert second == "[2.0]" and third.startswith("2.13.0 ")


def test_run_shows_the_programs_own_traceback(tmp_path: Path) -> None:
    done = run_program("import torch\ntorch.ones(2) @ torch.ones(3)\n", "program.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "runpy" not in done.stderr and "_command" not in done.stderr
    assert 'program.py", line 2' in done.stderr
    done = run_program("raise SystemExit(3)", "program.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, "")


ABSENT = """
    import weft.compat.torch
    import torch, importlib, importlib.metadata, importlib.util
    from unittest import mock
    from torch.nn.modules.instancenorm import InstanceNorm2d
    from torch.utils.checkpoint import CheckpointFunction
    import torch.distributed.tensor.parallel as parallel
    from weft.compat import names
    import weft.compat.torch as again

    assert again is torch and InstanceNorm2d is torch.nn.InstanceNorm2d
    assert torch.__version__ == "2.13.0" and torch.__version__ > "2.9" and torch.version.__version__ >= (2, 13)
    assert importlib.metadata.version("torch") == "2.13.0" and importlib.util.find_spec("torch")

    # Mentions: a base, an annotation, a default, a parameter of a type, isinstance.
    class Layer(CheckpointFunction, torch.nn.Module):
        pass

    def f(x: torch.masked.MaskedTensor | None, dim: torch.export.ShapesCollection = torch.hspmm.default): ...

    assert not isinstance(1, torch.fx.experimental.symbolic_shapes.ShapeEnv)
    # Probes are answered as they are.
    assert not hasattr(torch, "hspmm") and getattr(torch, "npu", 0) == 0
    assert not hasattr(torch, "nonsense") and hasattr(torch, "compile")
    for use in (Layer, torch.hspmm, lambda: bool(torch.export.ShapesCollection), lambda: f.__defaults__[0] + 1,
                lambda: len(torch.masked.MaskedTensor), lambda: torch.masked.MaskedTensor().x):
        try:
            use()
        except NotImplementedError as error:
            print(error)
    try:
        torch.nonsense
    except AttributeError as error:
        print(error)
    import torch.autograd.gradcheck, torch.nn.utils.weight_norm
    from torch.nn.utils.weight_norm import WeightNorm
    assert not isinstance(torch.autograd.gradcheck, type(torch)) and torch.nn.utils.weight_norm(
        torch.nn.Linear(1, 1))(torch.ones(1)).shape == (1,)
    with mock.patch("torch.nn.functional.relu", 3), mock.patch("torch.ones", 3):
        assert torch.nn.functional.relu == torch.ones == 3
    assert torch.nn.functional.relu(torch.ones(1)) == 1
    for name in names.modules():
        if not name.startswith("torch.utils.tensorboard"):  # asks for its package, as PyTorch's
            importlib.import_module(name)
"""


def test_absent_names_can_be_mentioned_and_not_used(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(ABSENT))
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")], capture_output=True, text=True, timeout=120
    )
    assert done.stderr == ""
    places = (
        "utils.checkpoint.CheckpointFunction",
        "hspmm",
        "export.ShapesCollection",
        "hspmm.default",
        "masked.MaskedTensor",
    )
    lacks = "expected a name that weft has, got one it has not yet"
    assert done.stdout.splitlines() == [
        *(f"torch.{place}: {lacks}" for place in (*places, "masked.MaskedTensor")),
        "module 'torch' has no attribute 'nonsense'",
    ]


def test_extensions_in_cuda_are_refused_when_they_are_made() -> None:
    with pytest.raises(NotImplementedError, match=r"torch\.utils\.cpp_extension\.CUDAExtension"):
        placeholder("torch.utils.cpp_extension.CUDAExtension")("a", ["a.cu"])


def test_versions_compare_by_numbers() -> None:
    version = TorchVersion("2.13.0")
    assert version > "2.9" and version >= (2, 13) and version == "2.13" and version < "3"
    assert version > "2.13.0a1" and not version < "2.13.0+cpu" and version != "2.12"
    assert {version: 1}["2.13.0"] == 1 and str(version).split(".")[1] == "13"
    assert version != "parrots" and (version == "parrots") is False and version < "new"  # as texts
    with pytest.raises(TypeError, match="not supported"):
        version > None  # noqa: B015


KEYS = """
    import weft.compat.torch
    import torch
    from torch._C import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard
    from torch.distributed import ReduceOp
    from torch.distributed.tensor import Partial, Replicate, Shard
    from torch.profiler import kineto_available
    from torch.serialization import MAP_LOCATION

    keys = DispatchKeySet(DispatchKey.AutocastCPU) | DispatchKeySet(DispatchKey.AutocastCUDA)
    print(keys, keys.has(DispatchKey.AutocastCPU), (keys - keys).has(DispatchKey.AutocastCPU))
    x = torch.ones(2, 2)
    with torch.autocast("cpu"):
        with _ExcludeDispatchKeyGuard(keys):
            print((x @ x).dtype)
        print((x @ x).dtype)
    try:
        _ExcludeDispatchKeyGuard(DispatchKeySet(DispatchKey.CPU))
    except NotImplementedError as error:
        print(error)
    print(isinstance(ReduceOp.SUM, ReduceOp.RedOpType), ReduceOp.RedOpType.SUM == ReduceOp.SUM)
    print(hasattr(torch.ops.aten, "_pin_memory"), torch.ops.aten._pin_memory.default)
    print({torch.ops.aten._chunk_cat: 1}, hasattr(torch.ops.aten, "_chunk_cat"))
    print(torch.nn.init.kaiming_uniform_.__module__)
    active = torch._C._are_functorch_transforms_active
    torch.vmap(lambda x: print(active(), end=" ") or x)(x)
    print(active())
    print([Shard(0), Replicate(), Partial("avg")], Shard(1).is_shard(0), Shard(1) == Shard(1))
"""


def test_names_that_libraries_import(tmp_path: Path) -> None:
    done = run_program(KEYS, "program.py", cwd=tmp_path)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "DispatchKeySet(AutocastCPU, AutocastCUDA) True False",
        "torch.float32",
        "torch.bfloat16",
        "_ExcludeDispatchKeyGuard: expected keys of autocast, got CPU",
        "True True",
        "False <torch.ops.aten._pin_memory.default: weft lacks it>",
        "{<torch.ops.aten._chunk_cat: weft lacks it>: 1} False",
        "torch.nn.init",
        "True False",
        "[Shard(dim=0), Replicate(), Partial(avg)] False True",
    ]


HELPERS = """
    from torch._jit_internal import Optional, Tuple
    from torch.jit.annotations import Dict, List
    from torch.nn.functional import _canonical_mask, _in_projection_packed, _pair
    from torch.nn.modules.container import _addindent
    from torch.nn.modules.conv import _ConvNd, _reverse_repeat_tuple, _size_2_t, _triple
    from torch.nn.modules.pooling import _AdaptiveAvgPoolNd, _single
    from torch.nn.modules.transformer import _get_activation_fn, _get_clones
    from torch.optim.optimizer import ParamsT, _foreach_doc, _use_grad_for_differentiable
    from torch.utils._contextlib import _DecoratorContextManager
    from torch.utils.data._utils.pin_memory import pin_memory
    from torch._C import _functorch, _is_torch_function_mode_enabled
    from torch._decomp import core_aten_decompositions
    from torch._functorch.vmap import _add_batch_dim
    from torch._guards import active_fake_mode
    from torch._inductor import codecache
    from torch._utils import _get_device_module
    from torch.optim.swa_utils import _group_tensors_by_device_and_dtype
    from functorch import FunctionalModule, vmap
    import torch

    assert vmap is torch.func.vmap and _get_device_module("cpu") is torch.cpu
    assert getattr(torch, "qint32") is torch.qint32 and not hasattr(torch, "float4_e2m1fn_x2")
    assert active_fake_mode() is None and not _is_torch_function_mode_enabled()
    asked = []
    torch.vmap(lambda x: (asked.append(_functorch.is_batchedtensor(x)), x)[1])(torch.ones(2))
    assert asked == [True] and not _functorch.is_batchedtensor(torch.ones(1))
    print(_pair(1), _triple(2), _reverse_repeat_tuple((1, 2), 2), _addindent("a\\nb", 1).split())
    try:
        pin_memory(1)
    except NotImplementedError as error:
        print(error)
"""


def test_helpers_under_private_names(tmp_path: Path) -> None:
    done = run_program(HELPERS, "program.py", cwd=tmp_path)
    assert done.stdout == (
        "(1, 1) (2, 2, 2) (2, 2, 1, 1) ['a', 'b']\n"
        "torch.utils.data._utils.pin_memory.pin_memory: expected a name that weft has, got one it has not yet\n"
    ), done.stderr


FUNCTIONAL = """
    import functorch, torch
    from torch._functorch.make_functional import FunctionalModuleWithBuffers

    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    call, params = functorch.make_functional(model)
    x = torch.ones(4, 2)
    assert isinstance(call, functorch.FunctionalModule) and torch.equal(call(params, x), model(x))
    assert all(p.is_meta for p in call.parameters())
    moved = tuple(p + 1 for p in params)
    assert not torch.equal(call(moved, x), model(x)) and not model[0].weight.equal(moved[0])
    gradients = functorch.grad(lambda params: call(params, x).sum())(params)
    model(x).sum().backward()
    assert all(g.equal(p.grad) for g, p in zip(gradients, model.parameters()))
    frozen = functorch.make_functional(model, disable_autograd_tracking=True)[1]
    print(len(params), params[0].requires_grad, frozen[0].requires_grad, model[0].weight.requires_grad)

    from functorch.experimental import chunk_vmap, replace_all_batch_norm_modules_
    from functorch.experimental.control_flow import cond, map
    rows = torch.arange(10.0).reshape(5, 2)
    assert replace_all_batch_norm_modules_ is torch.func.replace_all_batch_norm_modules_
    assert chunk_vmap(torch.sum, 1, chunks=3)(rows.T.clone()).equal(rows.sum(1))
    assert cond(True, torch.sin, torch.cos, (rows,)).equal(rows.sin())
    total, turned = map(lambda x, y: (x[0].sum() * y, x[1].T), (rows, rows[:, :, None]), 2)
    assert total.equal(2 * rows.sum(1)) and turned.equal(rows[:, None])

    class Scaled(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) * self.scale

    tied = torch.nn.ModuleList([Scaled(2, 2), Scaled(2, 2)])
    tied[1].weight = tied[0].weight
    for layer in tied:
        layer.register_buffer("scale", torch.ones(1))
    tied[1].scale = tied[0].scale
    tied = torch.nn.Sequential(*tied)
    call, params, buffers = functorch.make_functional_with_buffers(tied)
    assert torch.equal(call(params, buffers, torch.ones(2)), tied(torch.ones(2)))
    print([tuple(p.shape) for p in params], len(buffers))

    norms = [torch.nn.BatchNorm1d(2).eval() for _ in range(3)]
    for n, norm in enumerate(norms):
        norm.running_mean.fill_(n)
    call, params, buffers = functorch.combine_state_for_ensemble(norms)
    assert isinstance(call, FunctionalModuleWithBuffers) and not params[0].requires_grad
    out = functorch.vmap(call, in_dims=(0, 0, None))(params, buffers, x)
    assert torch.equal(out, torch.stack([norm(x) for norm in norms]))
    print([tuple(t.shape) for t in params + buffers])
    for wrong in (lambda: functorch.make_functional(norms[0]), lambda: functorch.combine_state_for_ensemble([]),
                  lambda: functorch.combine_state_for_ensemble([norms[0], torch.nn.BatchNorm1d(2)])):
        try:
            wrong()
        except RuntimeError as error:
            print(error)
"""


def test_functions_of_parameters_by_their_old_names(tmp_path: Path) -> None:
    done = run_program(FUNCTIONAL, "program.py", cwd=tmp_path)
    assert done.stdout == (
        "4 True False True\n"
        "[(2, 2), (2,), (2,)] 1\n"
        "[(3, 2), (3, 2), (3, 2), (3, 2), (3,)]\n"
        "make_functional: expected a model without buffers, got one with; "
        "make_functional_with_buffers takes it\n"
        "combine_state_for_ensemble: expected models of one class and in one mode, got []\n"
        "combine_state_for_ensemble: expected models of one class and in one mode, got ['BatchNorm1d']\n"
    ), done.stderr


PICKLED = """
    import pickle, sys
    import torch

    for name, value in pickle.load(open(sys.argv[1], "rb")).items():
        print(name, repr(value))
"""


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_pickles_of_pytorch(tmp_path: Path) -> None:
    """Python's own pickles of tensors, modules and optimizers are read under the name torch."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    parameter = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    parameter.tag = "kept"
    tagged = torch.arange(3.0)
    tagged.tag = torch.ones(1)
    values = {
        "view": torch.arange(12.0).reshape(3, 4)[1:, ::2],
        "lists": [torch.ones(2, dtype=torch.bfloat16), {"x": torch.tensor(3)}],
        "parameter": parameter,
        "tagged": (tagged, torch.nn.Buffer(torch.ones(1)), torch.empty(2, 3, device="meta").t()),
        "named": torch.nn.ParameterDict({"a": torch.ones(1), "b": 3}),
        "facts": (torch.Size([1, 2]), torch.float16, torch.device("cpu"), torch.strided),
        "module": module,
        "state": module.state_dict(),
        "sparse": (torch.eye(2).to_sparse(), torch.eye(2).to_sparse_csr()),
        "bits": (torch.tensor([1 + 2j]).conj(), torch.tensor([1 + 2j]).conj().imag),
        "storage": torch.arange(3).storage().tolist(),
        "result": torch.ones(2).max(0),
        "distribution": torch.distributions.Normal(0.0, 1.0),
        "optimizer": torch.optim.Adam(module.parameters(), lr=0.5),
    }
    path = tmp_path / "values.pkl"
    path.write_bytes(pickle.dumps(values))
    done = run_program(PICKLED, "program.py", str(path), cwd=tmp_path)
    assert done.stdout == "".join(f"{name} {value!r}\n" for name, value in values.items())

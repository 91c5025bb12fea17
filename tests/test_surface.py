"""Small public modules, and private names of PyTorch that libraries import."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from libraries import both

import weft


@both
def test_futures(lib: Any) -> None:
    futures = [lib.futures.Future() for _ in range(3)]
    all_done = lib.futures.collect_all(futures)
    seen: list[int] = []
    futures[0].add_done_callback(lambda done: seen.append(done.value()))
    later = futures[0].then(lambda done: done.value() + 1)
    wrong = futures[1].then(lambda done: 1 // done.value())
    assert not later.done() and not all_done.done()
    for value, future in enumerate(futures):
        future.set_result(value)
    with pytest.raises(RuntimeError):
        futures[0].set_result(1)
    assert later.wait() == 1 and seen == [0] and wrong.wait() == 1
    assert [each.wait() for each in all_done.wait()] == [0, 1, 2]
    assert lib.futures.wait_all(futures) == [0, 1, 2]
    failed = lib.futures.Future()
    failed.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        failed.wait()
    assert lib.futures.collect_all([]).wait() == []


def test_futures_without_results() -> None:
    future = weft.futures.Future()
    with pytest.raises(RuntimeError, match=r"Future.value: expected a future that is done"):
        future.value()
    with pytest.raises(TypeError, match=r"Future.set_exception: expected an error, got str"):
        future.set_exception("no")
    later = future.then(lambda done: 1 // done.value())
    future.set_result(0)
    with pytest.raises(ZeroDivisionError):
        later.wait()


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    weft.save({"w": weft.ones(2)}, str(tmp_path / "plain.pth"))
    data = (tmp_path / "plain.pth").read_bytes()
    named = tmp_path / f"net-{hashlib.sha256(data).hexdigest()[:8]}.pth"
    named.write_bytes(data)
    return named


@both
def test_weights_are_downloaded_once(
    lib: Any, weights: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(lib.hub, "_chosen" if lib is weft else "_hub_dir", None)
    assert lib.hub.get_dir() == str(tmp_path / "home" / "hub")
    assert lib.hub._get_torch_home() == str(tmp_path / "home")
    options = {"progress": False, "check_hash": True}
    for _ in range(2):
        state = lib.hub.load_state_dict_from_url(weights.as_uri(), **options)
        assert state["w"].tolist() == [1, 1]
        weights.unlink(missing_ok=True)  # the second call does not read it
    assert (tmp_path / "home/hub/checkpoints" / weights.name).exists()
    lib.hub.set_dir(str(tmp_path / "other"))
    assert lib.hub.get_dir() == str(tmp_path / "other")
    other = tmp_path / "net-00000000.pth"
    other.write_bytes(b"x")
    with pytest.raises(RuntimeError):
        lib.hub.load_state_dict_from_url(other.as_uri(), **options)
    assert not list((tmp_path / "other" / "checkpoints").iterdir())


HUBCONF = """
dependencies = ["math"]
def small(n, scale=1):
    "A list."
    import beside
    return [beside.START] * n, scale
"""


@both
def test_models_of_folders(lib: Any, tmp_path: Path) -> None:
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "beside.py").write_text(f"START = {lib.__name__!r}")
    hub, folder = lib.hub, str(tmp_path)
    try:
        made = hub.load(folder, "small", 2, source="local", scale=3, trust_repo=True)
    finally:
        sys.modules.pop("beside", None)
    assert made == ([lib.__name__] * 2, 3) and folder not in sys.path
    with pytest.raises(RuntimeError, match="Cannot find callable large in hubconf"):
        hub.load(folder, "large", source="local")
    (tmp_path / "hubconf.py").write_text(HUBCONF.replace("math", "no_such_package"))
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        hub.load(folder, "small", 1, source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load(folder, "small", source="elsewhere")


def test_models_of_folders_are_listed(tmp_path: Path) -> None:
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    folder = str(tmp_path)
    assert weft.hub.list(folder, source="local") == ["small"]
    assert weft.hub.help(folder, "small", source="local") == "A list."
    with pytest.raises(
        NotImplementedError, match=r"hub\.load: expected source='local' and a folder"
    ):
        weft.hub.load("pytorch/vision", "resnet18")


@both
def test_helpers_of_layers(lib: Any) -> None:
    utils = lib.nn.modules.utils
    assert utils._pair(3) == (3, 3) and utils._triple([1, 2, 3]) == (1, 2, 3)
    assert utils._single(1) == (1,) and utils._quadruple("abcd") == ("a", "b", "c", "d")
    assert utils._ntuple(2)(x=None) == (None, None)
    assert utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert utils._list_with_default([None, 4], [1, 2, 3]) == [2, 4]
    with pytest.raises(ValueError):
        utils._list_with_default([1, 2], [1])
    net = lib.nn.Sequential(lib.nn.Linear(1, 1))
    state = lib.nn.DataParallel(net).state_dict()
    utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["0.weight", "0.bias"] and list(state._metadata) == ["", "0"]


@both
def test_synchronised_batch_norm(lib: Any) -> None:
    nn = lib.nn
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Sequential(nn.BatchNorm2d(2, affine=False)),
                        nn.InstanceNorm1d(2), nn.Linear(2, 2)).eval()  # fmt: skip
    kept = net[0].weight
    changed = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    names = [type(each).__name__ for each in changed.modules()]
    assert names.count("SyncBatchNorm") == 2 and "InstanceNorm1d" in names
    assert changed[0].weight is kept and not changed[0].training
    x = lib.arange(12.0).reshape(3, 2, 2)
    layer, plain = nn.SyncBatchNorm(2), nn.BatchNorm1d(2)
    assert lib.equal(layer(x), plain(x)) and lib.equal(layer.running_var, plain.running_var)
    with pytest.raises(ValueError, match="expected at least 2D input"):
        layer(lib.ones(2))


@both
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_older_names_of_settings(lib: Any) -> None:
    assert lib.get_autocast_cpu_dtype() == lib.bfloat16
    assert lib.get_autocast_gpu_dtype() == lib.float16
    assert not lib.is_autocast_cpu_enabled()
    with lib.autocast("cpu"):
        assert lib.is_autocast_cpu_enabled()
    for kind, dtype in (("torch.DoubleTensor", lib.float64), (lib.FloatTensor, lib.float32)):
        lib.set_default_tensor_type(kind)
        assert lib.get_default_dtype() == dtype
    with pytest.raises(TypeError):
        lib.set_default_tensor_type("torch.LongTensor")
    with pytest.raises(TypeError):
        lib.set_default_tensor_type(3)


@both
def test_dense_tensors_are_dense(lib: Any) -> None:
    x = lib.ones(2, requires_grad=True)
    assert x.to_dense() is x
    assert x.to_dense(dtype=lib.float64).dtype == lib.float64


def test_exports_are_not_under_way() -> None:
    assert weft.onnx.is_in_onnx_export() is False


PRIVATE = """
    import {installed}
    import torch
    import torch._dynamo, torch._inductor.config, torch._functorch.config
    from torch._C import _log_api_usage_once, _LinAlgError
    from torch._dynamo.eval_frame import OptimizedModule
    from torch.nn.modules.batchnorm import _BatchNorm
    from torch.nn.modules.instancenorm import _InstanceNorm

    _log_api_usage_once("x")
    assert _LinAlgError is torch.linalg.LinAlgError and torch._C._get_tracing_state() is None
    assert torch._C._is_alias_of(x := torch.ones(2), x[1:]) and not torch._C._is_alias_of(x, x.clone())
    states = []
    torch.jit.trace(lambda x: (states.append(torch._C._get_tracing_state()), x + 1)[1], torch.ones(1))
    assert states[0]
    expected = (torch.device("cpu"), torch.float64, True, None)
    assert torch._C._nn._parse_to("cpu", torch.float64, non_blocking=True) == expected
    assert torch._C._nn._parse_to(torch.float32) == (None, torch.float32, False, None)
    assert not torch._C._jit_can_fuse_on_gpu() and torch._C._jit_set_profiling_mode(False)
    assert isinstance(torch.Tensor, torch._C._TensorMeta)
    assert isinstance(torch.nn.InstanceNorm2d(2), _InstanceNorm)
    torch._dynamo.reset()
    torch._dynamo.mark_dynamic(torch.ones(2), 0)
    assert torch._dynamo.optimize("eager")(lambda x: x + 1)(torch.ones(1)).item() == 2
    assert not torch._dynamo.is_compiling() and OptimizedModule is torch._dynamo.OptimizedModule
    config = torch._dynamo.config
    before = config.cache_size_limit
    with config.patch(cache_size_limit=3):
        assert config.cache_size_limit == 3
    with config.patch({{"verbose": True}}):
        assert config.verbose
    assert config.cache_size_limit == before and not config.verbose
    torch._inductor.config.triton.unique_kernel_names = True
    torch._inductor.config.fx_graph_cache = True
    assert torch._dynamo.config.automatic_dynamic_shapes and torch._C._get_privateuse1_backend_name()
"""


@pytest.mark.parametrize("installed", [
    "weft.compat.torch", pytest.param("torch", marks=pytest.mark.parity)
])  # fmt: skip
def test_private_names(installed: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PRIVATE.format(installed=installed)))
    command = [sys.executable, "-W", "ignore", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@both
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(lib: Any, dim: int | None) -> None:
    nn = lib.nn
    lib.manual_seed(0)
    layer, x = nn.Linear(2, 3), lib.ones(1, 2)
    before, expected = layer.weight.detach().clone(), layer(x)
    assert nn.utils.weight_norm(layer, dim=dim) is layer
    shapes = {0: (3, 1), 1: (1, 2), None: ()}
    assert tuple(layer.weight_g.shape) == shapes[dim] and "weight" not in layer.state_dict()
    assert lib.allclose(layer(x), expected, atol=1e-6)
    layer(x).sum().backward()
    # The direction's gradient is at right angles to the direction.
    assert abs((layer.weight_v.grad * layer.weight_v).sum().item()) < 1e-5
    with lib.no_grad():
        layer.weight_g.mul_(2)
    assert lib.allclose(layer(x) - layer.bias, 2 * (expected - layer.bias), atol=1e-6)
    with pytest.raises(RuntimeError):
        nn.utils.weight_norm(layer)
    nn.utils.remove_weight_norm(layer)
    assert lib.allclose(layer.weight, 2 * before, atol=1e-6) and layer(x).shape == (1, 3)
    assert sorted(layer.state_dict()) == ["bias", "weight"]
    with pytest.raises(ValueError):
        nn.utils.remove_weight_norm(layer)


def test_exports_ask_for_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("weft.onnx._")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="export: expected the package onnx"):
        weft.onnx.export(weft.nn.ReLU(), weft.ones(1))

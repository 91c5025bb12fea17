"""Small modules and names that programs use, in both libraries: types, devices that are not there,
paths of trees, swapped tensors, old names."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import textwrap
import typing
import warnings
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from libraries import both

import weft


@both
def test_types(lib: Any) -> None:
    assert isinstance(3, lib.types.Number) and not isinstance("3", lib.types.Number)
    assert lib.types._dtype is lib.dtype and lib.types._int is int
    for kind in (lib.SymInt, lib.SymFloat, lib.SymBool):
        assert not isinstance(3, kind) and kind in lib.types.py_sym_types
    assert isinstance(lib.futures.Future(), lib.Future)


RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    "max": lambda lib, x: x.max(1), "min": lambda lib, x: x.min(1), "mode": lambda lib, x: x.mode(),
    "median": lambda lib, x: x.median(0), "nanmedian": lambda lib, x: x.nanmedian(0),
    "sort": lambda lib, x: x.sort(), "topk": lambda lib, x: x.topk(1), "kthvalue": lambda lib, x: x.kthvalue(1),
    "cummax": lambda lib, x: x.cummax(0), "cummin": lambda lib, x: x.cummin(0), "aminmax": lambda lib, x: x.aminmax(),
    "frexp": lambda lib, x: x.frexp(), "linalg_qr": lambda lib, x: lib.linalg.qr(x),
    "linalg_svd": lambda lib, x: lib.linalg.svd(x), "linalg_eigh": lambda lib, x: lib.linalg.eigh(x),
    "linalg_eig": lambda lib, x: lib.linalg.eig(x), "geqrf": lambda lib, x: lib.geqrf(x),
    "histogram": lambda lib, x: lib.histogram(x, 2), "histogramdd": lambda lib, x: lib.histogramdd(x, [2, 2]),
    "linalg_ldl_factor": lambda lib, x: lib.linalg.ldl_factor(x), "linalg_lu": lambda lib, x: lib.linalg.lu(x),
    "linalg_ldl_factor_ex": lambda lib, x: lib.linalg.ldl_factor_ex(x),
    "linalg_lu_factor": lambda lib, x: lib.linalg.lu_factor(x),
    "linalg_lu_factor_ex": lambda lib, x: lib.linalg.lu_factor_ex(x),
    "linalg_lstsq": lambda lib, x: lib.linalg.lstsq(x, x), "linalg_solve_ex": lambda lib, x: lib.linalg.solve_ex(x, x),
    "lu_unpack": lambda lib, x: lib.lu_unpack(*lib.linalg.lu_factor(x)),
}  # fmt: skip


@both
@pytest.mark.parametrize("name", RESULTS)
def test_types_of_results(lib: Any, name: str) -> None:
    result = RESULTS[name](lib, lib.eye(2))
    assert isinstance(result, getattr(lib.return_types, name))
    kind = getattr(lib.return_types, name)
    assert isinstance(kind(list(result)), kind) and not isinstance((1, 2), kind)
    for protocol in (2, 5):
        again = pickle.loads(pickle.dumps(result, protocol))
        assert isinstance(again, kind) and repr(again) == repr(result)
    assert isinstance(kind(list(result), {}), kind)


ABSENT: list[tuple[type[BaseException], Callable[[Any], Any]]] = [
    (RuntimeError, lambda lib: lib.cuda.Event()),
    (RuntimeError, lambda lib: lib.cuda.Event(enable_timing=True)),
    (RuntimeError, lambda lib: lib.cuda.Stream()),
    (RuntimeError, lambda lib: lib.cuda.CUDAGraph()),
    (AssertionError, lambda lib: lib.cuda.cudart()),
    (AssertionError, lambda lib: lib.cuda.set_sync_debug_mode(0)),
    (RuntimeError, lambda lib: lib.cuda.nvtx.range_push("a")),
    (RuntimeError, lambda lib: lib.accelerator.current_stream()),
    (RuntimeError, lambda lib: lib.accelerator.synchronize()),
    (RuntimeError, lambda lib: lib.accelerator.set_device_index(0)),
    (AssertionError, lambda lib: lib.ones(1).xpu()),
    (RuntimeError, lambda lib: lib.symeig(lib.eye(2))),
    (RuntimeError, lambda lib: lib.ones(2).solve(lib.eye(2))),
    (RuntimeError, lambda lib: lib.lstsq(lib.eye(2), lib.eye(2))),
    (RuntimeError, lambda lib: lib._assert_async(lib.tensor(0))),
    (RuntimeError, lambda lib: lib._assert_async(lib.ones(2))),
]


@both
@pytest.mark.parametrize("number", range(len(ABSENT)))
def test_absent_devices_and_functions(lib: Any, number: int) -> None:
    error, call = ABSENT[number]
    with pytest.raises(error):
        call(lib)


@both
def test_devices_answer_alike(lib: Any) -> None:
    assert (
        lib.cpu.is_available() and lib.cpu.device_count() == 1 and lib.cpu.current_device() == "cpu"
    )
    lib.cpu.synchronize()
    with lib.cpu.stream(lib.cpu.current_stream()):
        assert isinstance(lib.cpu.current_stream(), lib.cpu.Stream)
    assert not isinstance(3, lib.cuda.Event) and issubclass(
        lib.cuda.ExternalStream, lib.cuda.Stream
    )
    assert lib.cuda._is_in_bad_fork() is False and lib.backends.opt_einsum.enabled in (True, False)
    assert lib._assert_async(lib.tensor(2)) is None


@both
def test_autocast_of_the_cpu(lib: Any) -> None:
    module = importlib.import_module(f"{lib.__name__}.cpu.amp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with module.autocast():
            assert (lib.ones(1, 1) @ lib.ones(1, 1)).dtype == lib.bfloat16
        with module.autocast(enabled=False):
            assert (lib.ones(1, 1) @ lib.ones(1, 1)).dtype == lib.float32


@both
def test_properties_of_tensors(lib: Any) -> None:
    x = lib.arange(6)
    assert x.name is None and not x.is_nested and not x.is_distributed()
    with pytest.warns(UserWarning, match="resize"):
        assert x.resize(2, 3).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.warns(UserWarning, match="resize"):
        assert x.resize_as(lib.ones(3, 2)).shape == (3, 2)
    with pytest.warns(UserWarning, match="resize"), pytest.raises(RuntimeError):
        x.resize(4)


@both
def test_old_initialisers(lib: Any) -> None:
    init = lib.nn.init
    names = "uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal orthogonal sparse"
    for name in names.split():
        arguments = {"constant": (2.0,), "sparse": (0.5,)}.get(name, ())
        shape = (3, 3, 3) if name == "dirac" else (3, 3)
        results = []
        for each in (getattr(init, name), getattr(init, name + "_")):
            lib.manual_seed(0)
            if not results:
                with pytest.warns(FutureWarning, match=f"nn.init.{name}_"):
                    results.append(each(lib.zeros(shape), *arguments))
            else:
                results.append(each(lib.zeros(shape), *arguments))
        assert lib.equal(*results)


Point = namedtuple("Point", "x y")


@both
def test_paths_of_trees(lib: Any) -> None:
    tree_module = importlib.import_module(f"{lib.__name__}.utils._pytree")
    tree = {"a": [1, Point(2, (3,))], "b": 4}
    leaves, spec = tree_module.tree_flatten_with_path(tree)
    expected = ["['a'][0]", "['a'][1].x", "['a'][1].y[0]", "['b']"]
    assert [tree_module.keystr(path) for path, _ in leaves] == expected
    assert tree_module.tree_unflatten([leaf for _, leaf in leaves], spec) == tree
    key = tree_module.MappingKey("a")
    assert leaves[0][0] == (key, tree_module.SequenceKey(0)) and key.get(tree) is tree["a"]
    assert tree_module.GetAttrKey("x").get(Point(5, 6)) == 5 == tree_module.SequenceKey(0).get([5])
    named = tree_module.tree_map_with_path(lambda path, x, y: (len(path), x + y), tree, tree)
    assert named == {"a": [(2, 2), Point((3, 4), ((4, 6),))], "b": (1, 8)}


@both
def test_swapped_tensors(lib: Any) -> None:
    a, b = lib.nn.Parameter(lib.ones(2)), lib.zeros(3, dtype=lib.int64)
    a.grad, b.tag = lib.ones(2), "b"
    seen_a, seen_b = id(a), id(b)
    lib.utils.swap_tensors(a, b)
    assert (id(a), id(b)) == (seen_a, seen_b) and a.tag == "b" and not hasattr(b, "tag")
    assert type(a) is lib.Tensor and isinstance(b, lib.nn.Parameter) and b.requires_grad
    assert a.tolist() == [0, 0, 0] and a.grad is None and b.grad.tolist() == [1, 1]
    (b * 2).sum().backward()
    assert b.grad.tolist() == [3, 3]
    if lib is weft:  # PyTorch refuses some of them
        with pytest.raises(RuntimeError, match="swap_tensors: expected leaf tensors, got one"):
            lib.utils.swap_tensors(a, b * 2)


@both
def test_join(lib: Any) -> None:
    if lib is not weft:
        return  # which needs a group of processes
    join = importlib.import_module("weft.distributed.algorithms.join")
    seen: list[Any] = []

    class Hook(join.JoinHook):  # type: ignore[name-defined, misc]
        def post_hook(self, is_last_joiner: bool) -> None:
            seen.append(is_last_joiner)

    class Trainer(join.Joinable):  # type: ignore[name-defined, misc]
        join_device, join_process_group = "cpu", None

        def join_hook(self, **kwargs: Any) -> Any:
            seen.append(kwargs)
            return Hook()

    weft.distributed.init_process_group(world_size=1, rank=0)
    with join.Join([Trainer()], divide=True):
        assert join.Join.notify_join_context(Trainer()) is None
    weft.distributed.destroy_process_group()
    assert seen == [{"divide": True}, True]
    with pytest.raises(ValueError, match="Join: expected at least one joinable, got none"):
        join.Join([])


@both
def test_projections_of_attention(lib: Any) -> None:
    layer = lib.nn.MultiheadAttention(4, 2)
    kind = lib.nn.modules.linear.NonDynamicallyQuantizableLinear
    assert isinstance(layer.out_proj, kind) and issubclass(kind, lib.nn.Linear)
    text = "NonDynamicallyQuantizableLinear(in_features=4, out_features=4, bias=True)"
    assert repr(layer) == f"MultiheadAttention(\n  (out_proj): {text}\n)"


PRIVATE = """
    import {installed}
    import torch
    from torch._utils import (_flatten_dense_tensors, _rebuild_parameter, _rebuild_tensor,
                              _rebuild_tensor_v2, _take_tensors, _unflatten_dense_tensors)
    from collections import OrderedDict

    parts = [torch.ones(2, 2), torch.zeros(3)]
    flat = _flatten_dense_tensors(parts)
    assert flat.shape == (7,)
    for back, part in zip(_unflatten_dense_tensors(flat, parts), parts):
        assert torch.equal(back, part)
    groups = _take_tensors([*parts, torch.ones(2, dtype=torch.int64), torch.ones(9)], 28)
    assert [[each.numel() for each in group] for group in groups] == [[4, 3], [9], [2]]
    from torch.nn.modules.conv import _ConvTransposeMixin, _ConvTransposeNd
    assert issubclass(_ConvTransposeMixin, _ConvTransposeNd)
    storage = torch.arange(6.0).storage()
    made = _rebuild_tensor_v2(storage, 1, (2, 2), (2, 1), True, OrderedDict())
    assert made.tolist() == [[1, 2], [3, 4]] and made.requires_grad
    assert _rebuild_tensor(storage, 0, (2,), (3,)).tolist() == [0, 3]
    assert isinstance(_rebuild_parameter(torch.ones(1), False, OrderedDict()), torch.nn.Parameter)
    assert torch.torch is torch and "\\n" in torch.__config__.show() and torch.__config__.parallel_info()
    torch._C._jit_set_texpr_fuser_enabled(False)
    assert not torch._C._jit_texpr_fuser_enabled()
    assert torch._C._get_accelerator() == torch.device("cpu")
    assert torch.cuda.memory.memory_allocated() == 0
    from torch.distributed.algorithms.join import Join, Joinable
    from torch.cuda.amp import autocast
    from torch.cuda.streams import Stream
    assert Stream is torch.cuda.Stream
    import functorch
    from functorch import vmap
    assert functorch.grad(lambda x: x**2)(torch.tensor(3.0)) == 6 and vmap(torch.sum)(flat[None]) == 4
    from torch.jit._state import _enabled
    assert _enabled and isinstance(torch.distributed.autograd.is_available(), bool)
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


def test_containers_by_their_node_type() -> None:
    tree, pair = weft.utils._pytree, namedtuple("pair", "a b")
    value = pair([1, 2], {"c": 3})
    kind = tree._get_node_type(value)
    assert kind is namedtuple and tree._get_node_type([1]) is list
    assert tree._get_node_type(1) not in tree.SUPPORTED_NODES
    parts, context = tree.SUPPORTED_NODES[kind].flatten_fn(value)
    assert tree.SUPPORTED_NODES[kind].unflatten_fn(parts, context) == value
    leaves, spec = tree.tree_flatten(value)
    assert spec.type is kind and tree.tree_unflatten(leaves, spec) == value


def test_no_tensor_is_a_wrapper() -> None:
    dispatch = importlib.import_module("weft.utils._python_dispatch")
    assert not dispatch.is_traceable_wrapper_subclass(weft.ones(1))


@pytest.mark.parametrize("isa, expected", [("v2", {"DEFAULT"}), ("v3", {"AVX2", "DEFAULT"})])
def test_capability_of_the_cpu(isa: str, expected: set[str]) -> None:
    """That of the kernels which WEFT_ISA lets in, where the processor has them."""
    text = "import weft; print(weft.backends.cpu.get_cpu_capability(), weft._C._isa())"
    done = subprocess.run(
        [sys.executable, "-c", text], env={**os.environ, "WEFT_ISA": isa}, text=True,
        capture_output=True, check=True,
    )  # fmt: skip
    name, level = done.stdout.split()
    assert name in expected
    assert (name == "DEFAULT") == (level == "0")


def test_batches_are_cut_and_joined() -> None:
    """Nested containers keep their kinds; what is no tensor is in every part."""
    from weft.nn.parallel.scatter_gather import gather, scatter, scatter_kwargs

    devices = ["cpu", "cpu"]
    batch = {"x": weft.arange(5), "more": (weft.arange(4.0), [None, "name"])}
    parts = scatter(batch, devices)
    assert [part["x"].tolist() for part in parts] == [[0, 1, 2], [3, 4]]
    assert [part["more"][1] for part in parts] == [[None, "name"]] * 2
    joined = gather([part["more"][0] for part in parts], "cpu")
    assert joined.tolist() == [0, 1, 2, 3]
    assert gather([{"loss": weft.tensor(1.0)}, {"loss": weft.tensor(2.0)}], "cpu")[
        "loss"
    ].tolist() == [1, 2]
    assert scatter((), devices) == [(), ()] and scatter(weft.arange(1), devices)[0].tolist() == [0]
    args, named = scatter_kwargs((weft.arange(2), 3), {"dim": 0}, devices)
    assert [(part.tolist(), more) for part, more in args] == [([0], 3), ([1], 3)]
    assert named == ({"dim": 0}, {"dim": 0})
    assert scatter_kwargs((), {"dim": 0}, devices)[0] == ((), ())


@both
def test_types_of_sizes(lib: Any) -> None:
    types = importlib.import_module(f"{lib.__name__}.nn.common_types")
    assert types._size_2_t == int | tuple[int, int] and types._size_any_t == int | tuple[int, ...]
    assert types._ratio_3_t == float | tuple[float, float, float]
    assert types._maybe_indices_t == lib.Tensor | tuple[lib.Tensor, lib.Tensor]


@both
def test_the_old_functional_call_warns(lib: Any) -> None:
    layer = lib.nn.Linear(2, 1, bias=False)
    weight = lib.ones(1, 2, requires_grad=True)
    with pytest.warns(FutureWarning, match=r"Please use `torch\.func\.functional_call`"):
        result = lib.nn.utils.stateless.functional_call(layer, {"weight": weight}, (lib.ones(2),))
    result.sum().backward()
    assert result.item() == 2 and weight.grad.tolist() == [[1, 1]] and layer.weight.grad is None


@both
def test_tensors_in_groups_of_one_dtype(lib: Any) -> None:
    utils = importlib.import_module(f"{lib.__name__}.utils._foreach_utils")
    x, y, z = lib.ones(1), lib.ones(2, dtype=lib.float64), lib.zeros(3)
    groups = utils._group_tensors_by_device_and_dtype([[x, y, z], [], [z, None, x]], True)
    cpu = lib.device("cpu")
    assert set(groups) == {(cpu, lib.float32), (cpu, lib.float64)}
    (first, empty, last), places = groups[cpu, lib.float32]
    assert first[0] is x and first[1] is z and not empty and places == [0, 2]
    assert last[0] is z and last[1] is x
    assert groups[cpu, lib.float64][0][2] == [None]
    assert utils._has_foreach_support([x, None], cpu)
    assert not utils._has_foreach_support([lib.nn.Parameter(x)], cpu)


def test_old_private_names_of_torch() -> None:
    """What libraries read without asking: in a process of its own, because the name stays."""
    program = """
        import warnings
        import weft.compat.torch, torch
        from torch._vmap_internals import _vmap, vmap
        assert _vmap(lambda x: x.sum())(torch.ones(2, 3)).tolist() == [3, 3]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert vmap(torch.sum, 1)(torch.ones(2, 3)).tolist() == [2, 2, 2]
        assert caught[0].category is FutureWarning
        assert torch._C._is_tracing() is torch._C._mps_is_available() is False
        assert torch._C._get_cudnn_enabled() and torch._utils._get_available_device_type() is None
        assert torch.cuda._initialized is False
        try:
            torch.cuda._lazy_init()
        except AssertionError as error:
            assert "Torch not compiled with CUDA enabled" in str(error)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


@both
def test_parameters_of_derived_classes_print_within_parameter(lib: Any) -> None:
    class Scale(lib.nn.Parameter):  # type: ignore[misc, name-defined]
        pass

    plain = lib.nn.Parameter(lib.ones(1))
    assert repr(plain) == "Parameter containing:\ntensor([1.], requires_grad=True)"
    scale = Scale(lib.tensor([[1.0, 2], [3, 4]]))
    assert repr(scale) == (
        "Parameter containing:\nParameter(Scale([[1., 2.],\n       [3., 4.]], requires_grad=True))"
    )
    assert lib.Tensor.__repr__(Scale(lib.ones(1), False)) == "Parameter(Scale([1.]))"


@both
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_know_their_size_in_memory(lib: Any) -> None:
    """What counts the memory of a model asks for it."""
    few, many = lib.ones(10), lib.ones(1010)
    for kind in ("untyped_storage", "storage"):
        sizes = [sys.getsizeof(getattr(tensor, kind)()) for tensor in (few, many)]
        assert sizes[1] - sizes[0] == 4000 and sizes[0] >= 40


@both
def test_functions_may_save_for_forward(lib: Any) -> None:
    class Double(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_forward(x, None)
            return 2 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * grad

    x = lib.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2]


@both
def test_a_sigmoid_stays_within_its_interval(lib: Any) -> None:
    transforms = importlib.import_module(f"{lib.__name__}.distributions.transforms")
    ends = transforms._clipped_sigmoid(lib.tensor([-1000.0, 0, 1000]))
    limits = lib.finfo(lib.float32)
    assert ends.tolist() == [limits.tiny, 0.5, 1 - limits.eps]


def test_implicit_replication_can_be_imported() -> None:
    module = importlib.import_module("weft.distributed._tensor.experimental")
    with pytest.raises(NotImplementedError, match="implicit_replication: expected"):
        module.implicit_replication()


@both
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_whole_jacobians_by_differences(lib: Any) -> None:
    module = importlib.import_module(f"{lib.__name__}.autograd.gradcheck")
    x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
    z = lib.tensor([1 + 2j], dtype=lib.complex128, requires_grad=True)

    def function(x: Any, z: Any) -> Any:
        return x**2, (z.real * x).sum() + z.imag[0] ** 2

    wanted = lib.tensor([[2.0, 0], [0, 4]], dtype=lib.float64)
    found = module._get_numerical_jacobian(function, (x, z), eps=1e-6)
    assert lib.allclose(found[0][0], wanted) and not found[1][0].any()
    assert lib.allclose(found[0][1], lib.ones(2, 1, dtype=lib.float64))
    second = module._get_numerical_jacobian(function, (x, z), None, z, 1e-6)[0][1]
    assert lib.allclose(second, lib.tensor([[3 + 4j]], dtype=lib.complex128))
    (older,) = module.get_numerical_jacobian(lambda given: function(*given), (x, z), x, 1e-6)
    assert lib.allclose(older, wanted)
    with pytest.raises(ValueError, match="grad_out"):
        module.get_numerical_jacobian(lambda given: given[0], (x,), grad_out=2.0)
    with pytest.raises(ValueError, match="complex"):
        module._get_numerical_jacobian(lambda z: z, (z,))


@both
def test_flags_of_devices_that_are_not_there(lib: Any) -> None:
    for name in ("ipu", "maia", "mkldnn", "mps", "mtia", "vulkan", "xla", "xpu"):
        assert getattr(lib.ones(1), f"is_{name}") is False


@both
def test_storages_are_restored_where_a_file_says(lib: Any, tmp_path: Path) -> None:
    restore = lib.serialization.default_restore_location
    storage = lib.ones(2).untyped_storage()
    assert restore(storage, "cpu") is storage
    with pytest.raises((RuntimeError, ValueError, OSError)):
        restore(storage, "cuda:0")
    lib.save({"a": lib.ones(2)}, tmp_path / "a.pt")
    loaded = lib.load(tmp_path / "a.pt", map_location=lambda s, place: restore(s, "cpu"))
    assert loaded["a"].tolist() == [1, 1]


BRANCHES = (lambda x: x + 1, lambda x: x * 2)


@both
def test_cond(lib: Any) -> None:
    x = lib.ones(2)
    for pred, expected in ((True, 2), (0, 2), (lib.tensor(False), 2)):
        assert lib.cond(pred, *BRANCHES, (x,)).tolist() == [expected] * 2
    assert lib.cond(True, lambda: x, lambda: None) is x
    for pred, branches, operands in (
        (lib.ones(2), BRANCHES, (x,)),
        ("a", BRANCHES, (x,)),
        (lib.tensor(True), (3, BRANCHES[0]), (x,)),
        (lib.tensor(True), BRANCHES, x),
    ):
        with pytest.raises(RuntimeError):
            lib.cond(pred, *branches, operands)


@both
def test_while_loop(lib: Any) -> None:
    def below(n: Any, x: Any) -> Any:
        return n < 5

    def doubled(n: Any, x: Any) -> Any:
        return n + 1, x * 2

    for start, steps in ((2, 3), (7, 0)):
        n, x = lib.while_loop(below, doubled, (lib.tensor(start), lib.ones(2)))
        assert (n.item(), x.tolist()) == (start + steps, [2**steps] * 2)
    for condition, body, carried in (
        (below, doubled, lib.ones(2)),
        (below, lambda n, x: (n + 1,), (lib.tensor(2), lib.ones(2))),
        (lambda n, x: n, doubled, (lib.tensor(2), lib.ones(2))),
    ):
        with pytest.raises(RuntimeError):
            lib.while_loop(condition, body, carried)


def _more(x: weft.Tensor, by: float) -> weft.Tensor:
    return x + by


def _less(x: weft.Tensor, by: float) -> weft.Tensor:
    return x - by


def _branching(x: weft.Tensor, pred: bool) -> weft.Tensor:
    y = weft.cond(x.sum() > 0, _more, _less, (x, 2.0))
    return weft.cond(pred, _more, _less, operands=(y, 1.0)) if pred else y


def test_cond_in_programs() -> None:
    run = weft.jit.script(_branching)
    for x in (weft.ones(2), -weft.ones(2)):
        for pred in (False, True):
            assert run(x, pred).tolist() == _branching(x, pred).tolist()


@both
def test_detached_variables(lib: Any) -> None:
    detach_variable = importlib.import_module(f"{lib.__name__}.utils.checkpoint").detach_variable
    x = lib.ones(2, requires_grad=True)
    y, number = detach_variable((x * 2, 3))
    assert y.is_leaf and y.requires_grad and y.tolist() == [2, 2] and number == 3
    with pytest.raises(RuntimeError):
        detach_variable([x])


@both
def test_what_a_parameter_loads(lib: Any) -> None:
    x, other = lib.zeros(2), lib.ones(2, requires_grad=True)
    with lib.no_grad():
        assert x.module_load(other).data_ptr() == x.data_ptr() and x.tolist() == [1, 1]
        assert x.module_load(other, assign=True).data_ptr() == other.data_ptr()
    with pytest.raises(RuntimeError):
        lib.nn.Parameter(x).module_load(other)


@both
def test_norm_of_a_dtype_by_place(lib: Any) -> None:
    x = lib.tensor([[3.0, 4.0], [0.0, 2.0]])
    assert x.norm(2, 1, True, lib.float64).tolist() == [[5.0], [2.0]]
    assert x.norm("fro", (0, 1), False, lib.float64).dtype is lib.float64
    assert x.norm("nuc", dtype=lib.float64).dtype is lib.float64
    for arguments in (
        ("nuc", 1),
        ("abc",),
        ("abc", (0, 1)),
        ("nuc", (0, 1, 2)),
        ("fro", (0, 1, 2)),
    ):
        with pytest.raises(RuntimeError):
            lib.norm(lib.ones(2, 2, 2), *arguments)
    with pytest.raises(RuntimeError):
        lib.norm(lib.ones(2, 2, 2), "nuc")


@both
def test_complex_numbers_without_imaginary_part(lib: Any) -> None:
    assert int(lib.tensor(3 + 0j)) == 3 and float(lib.tensor([2.5 + 0j])) == 2.5
    for convert in (int, float):
        with pytest.raises(RuntimeError):
            convert(lib.tensor(1 + 2j))


@both
def test_seeds_of_workers(lib: Any) -> None:
    worker = importlib.import_module(f"{lib.__name__}.utils.data._utils.worker")
    assert worker._generate_state(5, 1) == [3025039489, 3528014902, 3507927383, 2601490367]
    assert lib.compiled_with_cxx11_abi()


@both
def test_operators_of_networks_by_name(lib: Any) -> None:
    x, aten = lib.arange(6.0).reshape(2, 3), lib.ops.aten
    out, mean, _ = aten.native_layer_norm.default(x, [3], None, None, 1e-5)
    assert out.shape == (2, 3) and mean.tolist() == [[1.0], [4.0]]
    assert aten.group_norm(x, 1).shape == (2, 3)
    image, weight = lib.ones(1, 1, 3, 3), lib.ones(1, 1, 2, 2)
    made = aten.convolution(image, weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
    assert made.tolist() == [[[[4.0, 4.0], [4.0, 4.0]]]]


@both
def test_grouped_products(lib: Any) -> None:
    grouped = lib._grouped_mm
    ends = lib.tensor([4, 12], dtype=lib.int32)
    a, b = lib.randn(12, 8), lib.randn(2, 8, 16)
    parts = lib.cat([a[:4] @ b[0], a[4:] @ b[1]])
    assert lib.allclose(grouped(a, b, offs=ends), parts, atol=1e-5)
    assert lib.allclose(grouped(b, b.mT), b @ b.mT, atol=1e-5)
    wide = lib.randn(8, 12)
    parts = lib.cat([b[0].mT @ wide[:, :4], b[1].mT @ wide[:, 4:]], 1)
    assert lib.allclose(grouped(b.mT.contiguous(), wide, offs=ends), parts, atol=1e-5)
    parts = lib.stack([wide[:, :4] @ a[:4], wide[:, 4:] @ a[4:]])
    assert lib.allclose(grouped(wide, a, offs=ends), parts, atol=1e-5)
    assert lib.nn.functional.grouped_mm(a, b, offs=ends).shape == (12, 16)
    for wrong in ((a, b), (a, b, ends.long()), (b, b, ends)):
        with pytest.raises(RuntimeError):
            grouped(*wrong)


@both
def test_elements_by_functions(lib: Any) -> None:
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.map2_(lib.ones(2), x, lambda s, a, b: s * b + a) is x
    assert x.tolist() == [[2, 5], [10, 17]]
    assert x.map_(lib.ones(2, 1), lambda s, a: s - a).tolist() == [[1, 4], [9, 16]]
    with pytest.raises(RuntimeError):
        lib.ones(2, requires_grad=True).map2_(x[0], x[0], lambda s, a, b: a)


@both
@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_types_of_storages(lib: Any) -> None:
    assert lib.ones(2).storage_type() is lib.FloatStorage
    assert lib.zeros(1, dtype=lib.complex64).storage_type() is lib.ComplexFloatStorage


def test_marks_of_blocks_are_refused_when_they_are_entered() -> None:
    """A function may be decorated on a machine without a GPU, and raises when it is called."""

    @weft.cuda.nvtx.range("step")
    def step() -> None: ...

    with pytest.raises(RuntimeError, match=r"cuda\.nvtx\.range_push: expected a GPU"):
        step()


def test_helpers_of_normal_vectors() -> None:
    """The private names by which libraries compute with covariances."""
    from weft.distributions import multivariate_normal as normal

    weft.manual_seed(0)
    half = weft.randn(3, 4, 4, dtype=weft.float64)
    matrix = half @ half.mT + weft.eye(4)
    vector = weft.randn(4, dtype=weft.float64)
    factor = normal._precision_to_scale_tril(matrix)
    weft.testing.assert_close(factor @ factor.mT, matrix.inverse())
    assert not factor.triu(1).any()
    weft.testing.assert_close(normal._batch_mv(matrix, vector), (matrix * vector).sum(-1))
    distance = normal._batch_mahalanobis(factor, vector)
    weft.testing.assert_close(distance, (vector * normal._batch_mv(matrix, vector)).sum(-1))


def test_annotations_of_losses_are_evaluated_among_the_names_of_a_program() -> None:
    """A library asks for the types of a loss with its own globals."""
    scope = {"Any": typing.Any, "Tensor": weft.Tensor}
    assert typing.get_type_hints(weft.nn.MSELoss(), globalns=scope) == {}
    for name in ("CrossEntropyLoss", "NLLLoss", "BCEWithLogitsLoss", "HuberLoss"):
        hints = typing.get_type_hints(getattr(weft.nn, name)(), globalns=scope)
        assert hints["reduction"] is str


def test_tensors_of_modules_are_swapped_by_name() -> None:
    from weft.nn.utils._named_member_accessor import swap_tensor

    layer, other = weft.nn.Linear(2, 1), weft.ones(1, 2)
    before = layer.weight
    assert swap_tensor(layer, "weight", other) is before and layer.weight is other
    assert swap_tensor(layer, "weight", before) is other
    layer.extra = weft.zeros(1)
    assert swap_tensor(layer, "extra", None).item() == 0 and layer.extra is None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        swap_tensor(layer, "nothing", other)
    with pytest.raises(KeyError, match=r"got 'a\.b'"):
        swap_tensor(layer, "a.b", other)
    with pytest.raises(TypeError, match="expected a tensor, got int"):
        swap_tensor(layer, "weight", 3)


def test_hooks_of_all_modules_are_there_to_read() -> None:
    from weft.nn.modules import module

    handle = module.register_module_parameter_registration_hook(lambda *_: None)
    assert len(module._global_parameter_registration_hooks) == 1
    handle.remove()
    assert not module._global_parameter_registration_hooks


@both
def test_results_with_names_are_told_from_tuples(lib: Any) -> None:
    tree = importlib.import_module(f"{lib.__name__}.utils._pytree")
    assert tree.is_structseq_instance(lib.ones(2, 2).max(0))
    for other in ((1, 2), typing.NamedTuple("Pair", [("a", int)])(1), [1]):
        assert not tree.is_structseq_instance(other)


@both
def test_limits_of_the_numbers_of_python(lib: Any) -> None:
    assert lib.finfo(float).eps == lib.finfo(complex).eps == 2.0**-52
    assert lib.iinfo(int).max == 2**63 - 1
    for limits, kind in ((lib.finfo, int), (lib.iinfo, float), (lib.iinfo, bool)):
        with pytest.raises(TypeError):
            limits(kind)


@both
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_numbers_of_reductions_and_switches_of_parts(lib: Any) -> None:
    enum = lib.nn.functional._Reduction
    assert [enum.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    assert enum.legacy_get_enum(True, False, emit_warning=False) == 0
    with pytest.raises(ValueError):
        enum.get_enum("max")
    with lib.backends.mkldnn.flags(enabled=False):
        assert lib.cuda.is_tf32_supported() is False


class Doubled:
    def __call__(self, x: int) -> int:
        return 2 * x

    def method(self, x: int) -> int:
        """Twice x."""
        return 2 * x


@both
def test_methods_are_kept_from_the_compiler(lib: Any) -> None:
    kept = lib.compiler.disable(Doubled().method)
    assert kept(3) == 6 and kept.__name__ == "method" and kept.__doc__ == "Twice x."

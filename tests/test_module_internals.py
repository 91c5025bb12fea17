"""What programs read and set inside of modules: members by kind, hooks by kind, formats.

Each case is run with weft, and with PyTorch where it is installed; both give what is written here.
"""

from __future__ import annotations

import copy
import gc
import importlib
import math
import pickle
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any

import pytest
from libraries import both

import weft

CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {}


def gives(expected: Any) -> Callable[[Callable[[Any], Any]], None]:
    """The result of a case, which is a function of the library."""

    def add(function: Callable[[Any], Any]) -> None:
        CASES[function.__name__] = function, expected

    return add


@pytest.mark.filterwarnings("ignore:Using a non-full backward hook:FutureWarning")
@pytest.mark.parametrize("name", CASES)
def test_internals(name: str) -> None:
    function, expected = CASES[name]
    assert function(weft) == expected


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:Full backward hook is firing when gradients:UserWarning")
@pytest.mark.parametrize("name", CASES)
def test_internals_of_torch(name: str) -> None:
    function, expected = CASES[name]
    assert function(pytest.importorskip("torch")) == expected


def example(lib: Any) -> Any:
    """A module with a parameter w, a buffer b and a child c."""

    class Example(lib.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.w = lib.nn.Parameter(lib.ones(1))
            self.register_buffer("b", lib.zeros(1))
            self.c = lib.nn.Linear(1, 1, bias=False)

        def forward(self, x: Any, scale: float = 1.0) -> Any:
            if scale == 0:
                raise ArithmeticError
            return self.c(x) * self.w * scale

    return Example()


# Members ------------------------------------------------------------------------------------------


@gives((["b", "c.weight"], False, ["v", "c.weight"], False, 2.0))
def parameters_are_replaced(lib: Any) -> Any:
    m = example(lib)
    m._parameters = {}
    without, has = list(m.state_dict()), hasattr(m, "w")
    m._parameters = OrderedDict(v=lib.nn.Parameter(lib.full((1,), 2.0)))
    m._buffers = {}
    return without, has, list(m.state_dict()), hasattr(m, "b"), m.v.item()


@gives(([["w"], ["b"], ["c"]], 3.0, [True, True, True], ["w", "x"]))
def members_lie_in_the_dict_of_a_module(lib: Any) -> Any:
    m = example(lib)
    held = m.__dict__
    names = [list(held[kind]) for kind in ("_parameters", "_buffers", "_modules")]
    held["_parameters"]["w"] = lib.nn.Parameter(lib.full((1,), 3.0))
    same = [each.__dict__["_parameters"]["w"] is each.w for each in (m, copy.copy(m))]
    twin = copy.deepcopy(m)
    same.append(twin.__dict__["_parameters"]["w"] is twin.w is not m.w)
    twin._parameters = {"w": m.w, "x": m.w}
    return names, m.w.item(), same, list(vars(twin)["_parameters"])


@gives((["inner"], "Linear"))
def a_program_looks_for_members_in_the_dict(lib: Any) -> Any:
    class Wrapper(lib.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = lib.nn.Linear(1, 1)

        def __getattr__(self, name: str) -> Any:
            found = self.__dict__.get("_modules", {}).get(name)
            return getattr(super().__getattr__("inner"), name) if found is None else found

    m = Wrapper()
    assert m.weight is m.inner.weight
    return list(m._modules), type(m.inner).__name__


@gives((["w"], [], ["w", "b"], False))
def buffers_and_modules_are_replaced(lib: Any) -> Any:
    m = example(lib)
    m._buffers, m._modules = {}, {}
    first = list(m.state_dict()), list(m.children())
    m._buffers = {"b": lib.ones(1)}
    return *first, list(m.state_dict()), hasattr(m, "c")


@gives((1.0, 9.0, ["w", "new", "c.weight"], ["w", "c.weight"]))
def a_replica_has_members_of_its_own(lib: Any) -> Any:
    m = example(lib)
    replica = m.__new__(type(m))
    replica.__dict__ = m.__dict__.copy()
    replica._parameters = dict(m._parameters)
    replica._buffers, replica._modules = m._buffers.copy(), m._modules.copy()
    replica._parameters["w"] = lib.nn.Parameter(lib.full((1,), 9.0))
    replica.new = lib.nn.Parameter(lib.ones(1))
    names = [[name for name, _ in one.named_parameters()] for one in (replica, m)]
    return m.w.item(), replica.w.item(), *names


@gives((["w"], [], False))
def members_are_copied_and_cleared(lib: Any) -> Any:
    m = example(lib)
    kept = m._parameters.copy()
    m._parameters.clear()
    return list(kept), list(m.parameters(recurse=False)), hasattr(m, "w")


@gives((["p.b"], ["w", "c.weight"]))
def members_by_function(lib: Any) -> Any:
    m = example(lib)
    buffers = m._named_members(lambda one: one._buffers.items(), prefix="p", recurse=False)
    everything = m._named_members(lambda one: one._parameters.items())
    return [name for name, _ in buffers], [name for name, _ in everything]


# Hooks of calls -----------------------------------------------------------------------------------

KINDS = [
    "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks",
    "_forward_hooks_with_kwargs", "_forward_hooks_always_called", "_backward_pre_hooks",
    "_backward_hooks", "_state_dict_pre_hooks", "_state_dict_hooks", "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
]  # fmt: skip


@gives(([0] * 11, [1] * 11, [0] * 11, True))
def every_kind_is_a_dict_of_hooks(lib: Any) -> Any:
    m = example(lib)
    found = [[len(getattr(m, kind)) for kind in KINDS]]
    both = {"with_kwargs": True}
    handles = [
        m.register_forward_pre_hook(print, **both),
        m.register_forward_hook(print, always_call=True, **both),
        m.register_full_backward_pre_hook(print),
        m.register_full_backward_hook(print),
        m.register_state_dict_pre_hook(print),
        m._register_state_dict_hook(print),
        m._register_load_state_dict_pre_hook(print),
        m.register_load_state_dict_post_hook(print),
    ]
    found.append([len(getattr(m, kind)) for kind in KINDS])
    for handle in handles:
        handle.remove()
    found.append([len(getattr(m, kind)) for kind in KINDS])
    return *found, m._is_full_backward_hook


@gives(["set", "pre", "set", "pre", "with", "set"])
def hooks_are_set_by_hand(lib: Any) -> Any:
    m, seen = example(lib), []
    x = lib.ones(1)
    m._forward_hooks[7] = lambda module, args, result: seen.append("set")
    m(x)
    m._forward_pre_hooks["a"] = lambda module, args: seen.append("pre")
    m(x)
    m._forward_pre_hooks["b"] = lambda module, args, kwargs: seen.append("with")
    m._forward_pre_hooks_with_kwargs["b"] = True
    m(x)
    m._forward_hooks = OrderedDict()
    m._forward_pre_hooks = {}
    m(x)
    return seen


@gives(([1, 2], [2, 2], [2], 1))
def hooks_are_cleared_and_copied(lib: Any) -> Any:
    m, seen = example(lib), []
    for number in (1, 2):
        m.register_forward_hook(lambda *_, number=number: seen.append(number))
    found = []
    m(lib.ones(1))
    found.append(list(seen))
    seen.clear()
    del m._forward_hooks[next(iter(m._forward_hooks))]
    m(lib.ones(1)), copy.copy(m)(lib.ones(1))
    found.append(list(seen))
    seen.clear()
    twin = copy.deepcopy(m)
    m._forward_hooks.clear()
    m(lib.ones(1)), twin(lib.ones(1))
    return *found, list(seen), len(twin._forward_hooks)


@gives((["always", "too"], ["always", "plain", "too"]))
def a_hook_is_called_after_an_error(lib: Any) -> Any:
    m, seen = example(lib), []
    m.register_forward_hook(lambda *_: seen.append("always"), always_call=True)
    m.register_forward_hook(lambda *_: seen.append("plain"))
    m.register_forward_hook(lambda *_: seen.append("too"), always_call=True, with_kwargs=True)
    with pytest.raises(ArithmeticError):
        m(lib.ones(1), 0)
    first = list(seen)
    seen.clear()
    m._forward_hooks_always_called.clear()
    with pytest.raises(ArithmeticError):
        m(lib.ones(1), 0)
    m(lib.ones(1))
    return first, seen


@gives((["pre", "first", "second"], ["first", "second"], [1, 0]))
def a_hook_is_called_once_after_an_error_of_hooks(lib: Any) -> Any:
    m, seen = example(lib), []

    def fails(name: str) -> Any:
        def hook(*_: Any) -> None:
            seen.append(name)
            raise ArithmeticError

        return hook

    before = m.register_forward_pre_hook(fails("pre"))
    m.register_forward_hook(fails("first"), always_call=True)
    m.register_forward_hook(lambda *_: seen.append("second"), always_call=True)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught, pytest.raises(ArithmeticError):
            warnings.simplefilter("always")
            m(lib.ones(1))
        before.remove()
        seen.append(len(caught))
    middle = seen.index(1)
    return seen[:middle], seen[middle + 1 : -1], [seen[middle], seen[-1]]


@gives((["shared", "own"], ["own"], 2.0))
def a_regular_backward_hook_of_all_modules(lib: Any) -> Any:
    m, seen, x = lib.nn.ReLU(), [], lib.ones(2, requires_grad=True)
    module = lib.nn.modules.module
    module._global_is_full_backward_hook = None  # PyTorch remembers the kind of earlier tests
    handle = module.register_module_backward_hook(lambda *_: seen.append("shared"))
    m.register_full_backward_hook(lambda *_: seen.append("own"))
    m(x).sum().backward()
    handle.remove()
    module._global_is_full_backward_hook = None
    both = list(seen)
    m(x).sum().backward()
    return both, seen[2:], x.grad[0].item()


@gives(1)
def backward_hooks_warn_of_results_that_are_no_tensors(lib: Any) -> Any:
    class Named(lib.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return {"x": x * 2}

    m = Named()
    m.register_full_backward_hook(print)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        m(lib.ones(1, requires_grad=True))
    return sum("tuple of " in str(each.message).lower() for each in caught)


@gives((None, [True]))
def a_hook_of_loading_does_not_keep_its_module(lib: Any) -> Any:
    m, seen = example(lib), []
    kind = type(m)
    m.register_load_state_dict_pre_hook(lambda module, *_: seen.append(type(module) is kind))
    m.load_state_dict(m.state_dict())
    gone = weakref.ref(m)
    gc.disable()
    try:
        del m
        return gone(), seen
    finally:
        gc.enable()


@gives((["c.weight"], True, [False, True], [0, 0]))
def loading_shows_children_their_own_part_and_keeps_parameters(lib: Any) -> Any:
    m, seen = example(lib), []
    m.c.register_load_state_dict_pre_hook(lambda module, state, *_: seen.extend(state))
    m.load_state_dict(m.state_dict())
    given = {name: lib.nn.Parameter(x.clone()) for name, x in m.named_parameters()}
    m.w.requires_grad_(False)
    gc.collect()
    m.load_state_dict({**m.state_dict(), **given}, assign=True)
    found = gc.collect()
    flags = [m.w.requires_grad, m.c.weight.requires_grad]
    return seen[:1], m.w is given["w"], flags, [found, gc.collect()]


@gives(["Pair", RuntimeError, RuntimeError])
def full_backward_hooks_keep_named_tuples_and_count_gradients(lib: Any) -> Any:
    kind = namedtuple("Pair", "x y")

    class Two(lib.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return kind(x * 2, x)

    m, x = Two(), lib.ones(1, requires_grad=True)
    handle = m.register_full_backward_hook(lambda *_: None)
    found: list[Any] = [type(m(x)).__name__]
    handle.remove()
    for register in (m.register_full_backward_hook, m.register_full_backward_pre_hook):
        handle = register(lambda module, *grads: (*grads[0], None))
        with pytest.raises(RuntimeError) as caught:
            m(x)[0].backward()
        found.append(caught.type)
        handle.remove()
    return found


@gives([[True, True, True], [False, True, True]])
def conversions_put_new_parameters_where_asked(lib: Any) -> Any:
    found, settings = [], lib.__future__
    for overwrite in (False, True):
        settings.set_overwrite_module_params_on_conversion(overwrite)
        m = lib.nn.Linear(1, 1)
        weight = m.weight
        m(lib.ones(1)).sum().backward()
        m.double()
        settings.set_overwrite_module_params_on_conversion(False)
        types = [each.dtype == lib.float64 for each in (m.weight, m.weight.grad)]
        found.append([m.weight is weight, *types])
    return found


@gives(([2.0, 2.0], [(1, 1)], False))
def a_regular_backward_hook_is_one_of_the_last_node(lib: Any) -> Any:
    m, seen = lib.nn.ReLU(), []
    handle = m.register_backward_hook(lambda module, back, out: seen.append((len(back), len(out))))
    double = m.register_backward_hook(lambda module, back, out: (back[0] * 2,))
    x = lib.ones(2, requires_grad=True)
    m(x).sum().backward()
    grads = x.grad.tolist()
    handle.remove(), double.remove()
    m(x).sum().backward()
    return grads, seen, m._is_full_backward_hook


@gives(([[[1.0], [0.0], None, [0]]], [[None, None, None]], [5.0], None))
def full_backward_hooks_have_zeros_beside_gradients(lib: Any) -> Any:
    class Sum(lib.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any, y: Any, number: int, whole: Any) -> Any:
            return x * self.w + y + number + whole

    def values(grads: Any) -> list[Any]:
        return [None if grad is None else grad.tolist() for grad in grads]

    m, seen = Sum(), []
    m.w = lib.nn.Parameter(lib.ones(1))
    handle = m.register_full_backward_hook(lambda m, back, out: seen.append(values(back)))
    replace = m.register_full_backward_hook(lambda m, back, out: (back[0] * 5, *back[1:]))
    x, y, whole = lib.ones(1, requires_grad=True), lib.ones(1), lib.tensor([1])
    m(x, y, 1, whole).sum().backward()
    beside, alone = list(seen), []
    handle.remove(), replace.remove()
    m.register_full_backward_hook(lambda m, back, out: alone.append(values(back)[:3]))
    m(y, y, 1, whole).sum().backward()
    return beside, alone, x.grad.tolist(), y.grad


@gives([RuntimeError, RuntimeError])
def one_sort_of_backward_hooks_a_module(lib: Any) -> Any:
    errors = []
    for names in (
        ("register_backward_hook", "register_full_backward_hook"),
        ("register_full_backward_hook", "register_backward_hook"),
    ):
        m = example(lib)
        getattr(m, names[0])(print)
        try:
            getattr(m, names[1])(print)
        except RuntimeError as error:
            errors.append(type(error))
    return errors


@gives((["shared", "shared", "own"], [1]))
def calls_by_other_names_and_hooks_of_all_modules(lib: Any) -> Any:
    m, seen = example(lib), []
    m.register_forward_hook(lambda *_: seen.append("own"))
    register = lib.nn.modules.module.register_module_forward_hook
    handle = register(lambda *_: seen.append("shared"))
    m._call_impl(lib.ones(1))
    found = list(seen)
    handle.remove()
    return found, list(m._wrapped_call_impl(lib.ones(1)).shape)


# Hooks of state -----------------------------------------------------------------------------------


@gives([7, 7, (8, True), (8, True)])
def hooks_before_loading(lib: Any) -> Any:
    m, seen = example(lib), []
    state = m.state_dict()
    handle = m._register_load_state_dict_pre_hook(lambda *args: seen.append(len(args)))
    m.load_state_dict(state)
    m._register_load_state_dict_pre_hook(
        lambda *args: seen.append((len(args), args[0] is m)), with_module=True
    )
    m.load_state_dict(state)
    handle.remove()
    m.load_state_dict(state)
    m._load_state_dict_pre_hooks.clear()
    m.load_state_dict(state)
    return seen


@gives((True, 1.0, 5.0))
def a_hook_before_loading_renames(lib: Any) -> Any:
    m = example(lib)

    def rename(module: Any, state: Any, prefix: str, *rest: Any) -> None:
        state[prefix + "w"] = state.pop(prefix + "old")
        seen.append(module)

    seen: list[Any] = []
    m.register_load_state_dict_pre_hook(rename)
    twin = copy.deepcopy(m)
    state = {**m.state_dict(), "old": lib.full((1,), 5.0)}
    del state["w"]
    twin.load_state_dict(state)
    return seen[0] is twin, m.w.item(), twin.w.item()


@gives([("pre", "", False), ("post", "", ["b", "c.weight", "w"])])
def hooks_around_state_dict(lib: Any) -> Any:
    m, seen = example(lib), []
    m.register_state_dict_pre_hook(lambda _, prefix, keep: seen.append(("pre", prefix, keep)))
    m.register_state_dict_post_hook(
        lambda _, state, prefix, metadata: seen.append(("post", prefix, sorted(state)))
    )
    m.state_dict()
    return seen


@gives((["a"], ["b", "c.weight"], RuntimeError))
def hooks_change_the_state_dict(lib: Any) -> Any:
    m, other, wrong = example(lib), example(lib), example(lib)
    m._register_state_dict_hook(lambda *_: {"a": 1})
    other.register_state_dict_post_hook(lambda _, state, prefix, meta: state.pop("w") and None)
    wrong.register_state_dict_post_hook(lambda _, state, *rest: state)
    try:
        wrong.state_dict()
    except RuntimeError as error:
        return list(m.state_dict()), list(other.state_dict()), type(error)


# Memory formats -----------------------------------------------------------------------------------


@gives(((18, 1, 6, 2), (1,), (18, 1, 6, 2), "torch.float64", True))
def modules_take_a_memory_format(lib: Any) -> Any:
    m = lib.nn.Conv2d(2, 4, 3)
    m(lib.ones(1, 2, 5, 5)).sum().backward()
    m.to("cpu", lib.float64, memory_format=lib.channels_last)
    twin = pickle.loads(pickle.dumps(m))
    m.to(memory_format=lib.preserve_format)
    strides = m.weight.stride(), m.bias.stride(), m.weight.grad.stride()
    return *strides, str(m.weight.dtype), twin.weight.stride() == m.weight.stride()


def test_a_regular_backward_hook_warns_of_what_it_misses() -> None:
    m = weft.nn.Linear(2, 2)
    m.register_backward_hook(lambda *_: None)
    with pytest.warns(FutureWarning, match="This hook will be missing some grad_input"):
        m(weft.ones(1, 2))


def test_programs_know_nothing_of_the_dicts() -> None:
    m = example(weft).c
    for kind in KINDS:
        assert getattr(m, kind) == {}
    program = weft.jit.script(m)
    assert sorted(program._jit_info.type.attributes) == sorted(
        weft.jit.script(example(weft).c)._jit_info.type.attributes
    )
    program.register_forward_hook(lambda module, args, result: result + 1)
    assert program(weft.zeros(1)).item() == 1.0 and len(program._forward_hooks) == 1


@both
def test_members_are_walked_and_taken_like_those_of_a_dict(lib: Any) -> None:
    net = lib.nn.Sequential(lib.nn.Linear(1, 1), lib.nn.ReLU(), lib.nn.Tanh())
    first, _, last = net
    assert list(reversed(net._modules)) == ["2", "1", "0"]
    assert [name for name, _ in reversed(net._modules.items())] == ["2", "1", "0"]
    assert next(reversed(net._modules.values())) is last
    assert list(reversed(first._parameters.keys())) == ["bias", "weight"]
    assert net._modules.keys() - {"1"} == {"0", "2"}
    assert list(first._parameters | {"more": 1}) == ["weight", "bias", "more"]
    assert list({"more": 1} | first._parameters) == ["more", "weight", "bias"]
    assert net._modules.popitem() == ("2", last) and len(net) == 2
    for name, module in net._modules.items():
        net._modules[name] = lib.nn.Identity() if module is first else module
    assert isinstance(net[0], lib.nn.Identity)
    with pytest.raises(KeyError):
        net._buffers.popitem()


@both
def test_a_parameter_under_the_name_of_a_property(lib: Any) -> None:
    """Allowed while the property has no value; its value is what reading gives afterwards."""

    class Scale(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, late: bool) -> None:
            super().__init__()
            if late:
                self.other = 2.0
            self.own = lib.nn.Parameter(lib.ones(1))
            self.other = 3.0

        @property
        def own(self) -> float:
            return -self.other

        @own.setter
        def own(self, value: Any) -> None:
            raise AssertionError("not called for parameters")

    module = Scale(late=False)
    assert module.own == -3 and list(module.state_dict()) == ["own"]
    assert module._parameters["own"].item() == 1 and len(list(module.parameters())) == 1
    del module.own
    assert not module._parameters and module.own == -3
    with pytest.raises(KeyError):
        Scale(late=True)


@both
def test_train_calls_that_of_each_child(lib: Any) -> None:
    """A child may keep a norm in evaluation mode, or drop what it has kept."""

    class Frozen(lib.nn.Sequential):  # type: ignore[misc, name-defined]
        def train(self, mode: bool = True) -> Any:
            super().train(mode)
            self[0].training = False
            return self

    net = lib.nn.Sequential(lib.nn.Linear(2, 2), Frozen(lib.nn.BatchNorm1d(2), lib.nn.ReLU()))
    net.train()
    assert [module.training for module in net.modules()] == [True, True, True, False, True]
    net.eval()
    assert not any(module.training for module in net.modules())


@both
def test_conversions_leave_complex_members_and_overridden_ones_alone(lib: Any) -> None:
    class Kept(lib.nn.Linear):  # type: ignore[misc, name-defined]
        def to(self, *args: Any, **kwargs: Any) -> Any:
            raise AssertionError("not called by the short forms")

    module = Kept(2, 2)
    module.register_buffer("phase", lib.ones(2, dtype=lib.complex64))
    module.register_buffer("count", lib.ones(2, dtype=lib.int64))
    for name, dtype in {
        "double": lib.float64, "half": lib.float16, "bfloat16": lib.bfloat16, "float": lib.float32,
        "cpu": lib.float32,
    }.items():  # fmt: skip
        assert getattr(module, name)() is module
        found = [module.weight.dtype, module.phase.dtype, module.count.dtype]
        assert found == [dtype, lib.complex64, lib.int64]


@both
def test_getattr_by_its_name_finds_members_only(lib: Any) -> None:
    class Parts(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(1))
            self.register_buffer("count", lib.zeros(1))
            self.inner = lib.nn.ReLU()
            self.plain = 3

    parts = Parts()
    for name in ("weight", "count", "inner"):
        assert parts.__getattr__(name) is getattr(parts, name)
    for name in ("plain", "absent"):
        with pytest.raises(AttributeError, match=f"'Parts' object has no attribute '{name}'"):
            parts.__getattr__(name)


@both
def test_a_getattr_of_a_program_is_asked_for_members(lib: Any) -> None:
    """It may note who reads a parameter, or give another value; properties come before it."""
    read = []

    class Noting(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = lib.nn.Parameter(lib.ones(2))
            self.inner = lib.nn.Linear(2, 1)
            self.register_buffer("count", lib.zeros(1))
            self.plain = 3

        def __getattr__(self, name: str) -> Any:
            read.append(name)
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name == "inner" or "inner" not in self._modules:
                    raise
                return getattr(self.inner, name)

        @property
        def twice(self) -> Any:
            return 2 * self.weight

    class Derived(Noting):
        def forward(self, x: Any) -> Any:
            return self.inner(x * self.weight) + self.count + self.plain

    module = Derived()
    read.clear()
    module(lib.ones(1, 2)).sum().backward()
    assert read == ["inner", "weight", "count"] and module.weight.grad is not None
    read.clear()
    assert module.twice.tolist() == [2, 2] and module.bias is module.inner.bias
    assert read == ["weight", "bias", "inner", "inner"]
    assert not hasattr(module, "absent")
    assert list(module.state_dict()) == ["weight", "count", "inner.weight", "inner.bias"]


def test_hooks_of_registration():
    nn, members = weft.nn, weft.nn.modules.module
    seen = []

    def note(kind):
        return lambda module, name, value: seen.append((kind, name, value is None))

    handles = [
        members.register_module_parameter_registration_hook(note("parameter")),
        members.register_module_buffer_registration_hook(note("buffer")),
        members.register_module_module_registration_hook(note("module")),
    ]
    layer = nn.Linear(1, 1, bias=False)
    layer.weight = nn.Parameter(weft.ones(1, 1))
    layer.register_parameter("none", None)  # asks nobody
    layer.register_buffer("count", None)
    layer.count = weft.ones(1)
    nn.Sequential(layer).x = None  # no member
    layer.add_module("later", None)
    layer.double()
    for handle in handles:
        handle.remove()
    nn.Linear(1, 1)
    assert seen == [
        ("parameter", "weight", False),
        ("parameter", "weight", False),
        ("buffer", "count", True),
        ("buffer", "count", False),
        ("module", "0", False),
        ("module", "later", True),
    ]


def test_a_hook_of_registration_may_replace():
    def zeros(module, name, parameter):
        return weft.nn.Parameter(weft.zeros(parameter.shape), requires_grad=False)

    with weft.nn.modules.module.register_module_parameter_registration_hook(zeros):
        module = weft.nn.Module()
        module.weight = weft.nn.Parameter(weft.ones(2))
    assert module.weight.tolist() == [0, 0] and not module.weight.requires_grad


def test_a_program_may_delete_members_from_their_dict():
    class Forgetting(weft.nn.Module):
        def __delattr__(self, name):
            if name in self._parameters:
                del self._parameters[name]
            else:
                super().__delattr__(name)

    module = Forgetting()
    module.weight = weft.nn.Parameter(weft.ones(1))
    del module.weight
    assert not hasattr(module, "weight") and list(module.parameters()) == []


@gives([(3, 2, 3, 1), (1, 1, 0, 0), (2, 3, 3, 1), (1, 3, 4, 4), "zeros"])
def convolutions_of_programs_call_the_base_as_pytorch_has_it(lib):
    class Mine(lib.nn.modules.conv._ConvNd):
        def __init__(self, transposed):
            zeros = lib.nn.modules.utils._pair(0)
            super().__init__(
                2, 3, (3, 1), (1, 1), (1, 0), (1, 1), transposed, zeros, 1, True, "zeros"
            )

        def forward(self, x):
            return lib.nn.functional.conv2d(
                x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups
            )

    plain, transposed = Mine(False), Mine(True)
    sides = tuple(plain._reversed_padding_repeated_twice)
    return [
        tuple(plain.weight.shape), sides[2:] + sides[:2], tuple(transposed.weight.shape),
        tuple(plain(lib.ones(1, 2, 4, 4)).shape), plain.padding_mode,
    ]  # fmt: skip


@gives([True, True, [0.0, -math.inf], None, [True, "AssertionError", "AssertionError"]])
def attention_of_programs_takes_parts_of_the_library(lib):
    parts = lib.nn.functional
    x, weight = lib.arange(24.0).reshape(3, 2, 4).sin(), lib.arange(48.0).reshape(12, 4).cos()
    together = parts._in_projection_packed(x, x, x, weight)
    apart = parts._in_projection(x, x.clone(), x, *weight.chunk(3))
    packed = parts._in_projection_packed(x, x.clone(), x, weight, lib.zeros(12))
    equal = [
        all(lib.allclose(*pair, atol=1e-6) for pair in zip(together, other))
        for other in (apart, packed)
    ]
    mask = lib.tensor([False, True])
    added = parts._canonical_mask(mask, "mask", None, "", lib.float32)
    checks = []
    for inputs in ((x, x, x), (x, x[0], x)):
        try:
            checks.append(parts._mha_shape_check(*inputs, None, None, 2))
        except AssertionError as error:
            checks.append(type(error).__name__)
    try:
        parts._canonical_mask(mask.long(), "mask", None, "", lib.float32)
    except AssertionError as error:
        checks.append(type(error).__name__)
    return [*equal, added.tolist(), parts._none_or_dtype(None), checks]


@gives([2, True, "a\n   b", [False, True], 1.5, ["in", "out"], ([], [])])
def helpers_of_programs(lib):
    transformer = lib.nn.modules.transformer
    optimizer = importlib.import_module(f"{lib.__name__}.optim.optimizer")
    clones = transformer._get_clones(lib.nn.Linear(1, 1), 2)
    seen, told = [], []

    class Mine(lib.optim.Optimizer):
        @optimizer._use_grad_for_differentiable
        def step(self, closure=None):
            seen.append(lib.is_grad_enabled())

    for differentiable in (False, True):
        parameters: optimizer.ParamsT = clones.parameters()
        Mine(parameters, {"differentiable": differentiable}).step()

    class Told(lib.autograd.grad_mode._DecoratorContextManager):
        def __enter__(self):
            told.append("in")

        def __exit__(self, *exception):
            told.append("out")

    Told()(lambda: None)()
    return [
        len(clones), transformer._get_activation_fn("gelu") is lib.nn.functional.gelu,
        lib.nn.modules.module._addindent("a\nb", 3), seen, optimizer._get_value(lib.tensor(1.5)),
        told, lib.utils.checkpoint.get_device_states(lib.ones(1)),
    ]  # fmt: skip


@gives([2, 1])
def checkpoints_stop_early_unless_told_otherwise(lib):
    checkpoint = lib.utils.checkpoint
    calls = []

    def function(x):
        y = x.exp()
        calls.append(1)
        return y

    runs = []
    for stops in (False, True):
        calls.clear()
        with checkpoint.set_checkpoint_early_stop(stops):
            checkpoint.checkpoint(
                function, lib.ones(1, requires_grad=True), use_reentrant=False
            ).backward()
        runs.append(len(calls))
    return runs


def test_modules_are_freed_at_once() -> None:
    module = weft.nn.Linear(1, 1)
    reference = weakref.ref(module)
    del module
    assert reference() is None

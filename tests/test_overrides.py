"""__torch_function__: subclasses of Tensor, foreign classes, modes, and weft.overrides."""

from __future__ import annotations

import copy
import operator
import pickle
import threading
from typing import Any, ClassVar

import numpy as np
import pytest

import weft
from weft import Tensor, overrides
from weft.nn import functional as F


class Plain(Tensor):
    """A subclass that says nothing."""


class Logging(Tensor):
    """Notes what it is asked."""

    calls: ClassVar[list[tuple[Any, ...]]] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append((func, types, args, kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})


class Foreign:
    """No tensor at all; answers with the function and its arguments."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, args, kwargs


class Declines:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def plain(*size: int) -> Plain:
    return weft.ones(*size).as_subclass(Plain)


def asked(call) -> list[tuple[Any, tuple[type, ...]]]:
    """The functions that Logging was asked for, and the types of their arguments."""
    Logging.calls.clear()
    call()
    return [(func, tuple(map(type, args))) for func, _, args, _ in Logging.calls]


RESULTS = {
    "operator": lambda x: x + 1,
    "reflected": lambda x: 1 - x,
    "of a tensor": lambda x: weft.ones(2, 2) * x,
    "method": lambda x: x.sum(0),
    "function": weft.relu,
    "by name": lambda x: weft.add(input=weft.ones(2, 2), other=x),
    "in a list": lambda x: weft.cat([weft.ones(2, 2), x]),
    "composed": lambda x: F.softmax(x, dim=0),
    "attribute": lambda x: x.T,
    "item": lambda x: x[0],
    "item of a tensor": lambda x: weft.ones(3)[x.long()[0]],
    "in a tuple of indices": lambda x: weft.ones(3, 3)[x.long()[0], 0],
    "comparison": lambda x: x == 1,
    "negation": lambda x: -x,
    "conversion": lambda x: x.double(),
    "of several": lambda x: x.max(0).values,
    "rows": lambda x: next(iter(x)),
    "split": lambda x: x.split(1)[0],
    "linear": lambda x: weft.nn.Linear(2, 3)(x),
    "like": weft.zeros_like,
    "linalg": weft.linalg.det,
    "out": lambda x: weft.add(weft.ones(2, 2), 1, out=x),
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_of_the_subclass(name):
    assert type(RESULTS[name](plain(2, 2))) is Plain


PLAIN_RESULTS = {
    "bool": lambda x: bool(x.all()),
    "len": len,
    "item": lambda x: x.sum().item(),
    "shape": lambda x: x.shape[0],
    "list": lambda x: len(x.tolist()),
    "numpy": lambda x: int(np.asarray(x).sum()),
    "dim": lambda x: x.dim(),
}


@pytest.mark.parametrize("name", PLAIN_RESULTS)
def test_numbers_stay_numbers(name):
    expected = PLAIN_RESULTS[name](weft.ones(2, 2))
    found = PLAIN_RESULTS[name](plain(2, 2))
    assert found == expected and type(found) is type(expected)


def test_parameters_give_plain_tensors():
    parameter = weft.nn.Parameter(weft.ones(2))

    class Mine(weft.nn.Parameter):
        pass

    assert type(parameter + 1) is Tensor and type(Mine(weft.ones(2)) * 2) is Tensor
    assert not overrides.has_torch_function((parameter, weft.ones(1), 3, "x", [parameter]))


def test_a_parameter_of_a_subclass_is_of_it():
    parameter = weft.nn.Parameter(plain(2, 2))
    assert type(parameter) is Plain and isinstance(parameter, weft.nn.Parameter)
    assert not isinstance(plain(2), weft.nn.Parameter)
    assert parameter.is_leaf and parameter.requires_grad
    assert repr(weft.nn.Parameter(plain(1))) == "Parameter(Plain([1.], requires_grad=True))"

    layer = weft.nn.Linear(2, 2)
    layer.weight = parameter
    assert type(layer(weft.ones(1, 2))) is Plain
    layer(weft.ones(1, 2)).sum().backward()
    weft.optim.SGD(layer.parameters(), 1.0).step()
    assert layer.weight.tolist() == [[0, 0], [0, 0]]
    assert type(layer.double().weight) is Plain and layer.weight.dtype == weft.float64
    layer.load_state_dict(weft.nn.Linear(2, 2).state_dict())
    assert type(layer.weight) is Plain and "weight" in dict(layer.named_parameters())


def test_a_parameter_needs_a_class_that_detach_keeps():
    class Forgetting(Tensor):
        def detach(self):
            return super().detach().as_subclass(Tensor)

    with pytest.raises(RuntimeError, match=r"expected detach\(\) to give a tensor of Forgetting"):
        weft.nn.Parameter(weft.ones(1).as_subclass(Forgetting))


def test_parameters_stay_parameters_under_modes():
    class Watching(weft.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    for mode in (Watching(), weft.device("cpu"), weft.device("meta")):
        with mode:
            layer = weft.nn.Linear(2, 2)
        assert type(layer.weight) is weft.nn.Parameter
        assert repr(layer.weight).startswith("Parameter containing:")


def test_gradients_flow_through_a_subclass():
    x = weft.ones(2).requires_grad_()
    y = (x.as_subclass(Plain) * 3).sum()
    assert type(y) is Plain
    y.backward()
    assert x.grad.tolist() == [3.0, 3.0]


BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "__floordiv__",
    "mod": "remainder", "pow": "__pow__", "matmul": "matmul", "lt": "lt", "le": "le", "gt": "gt",
    "ge": "ge", "ne": "ne", "eq": "__eq__", "iadd": "add_", "isub": "sub_", "imul": "mul_",
    "itruediv": "div_", "imod": "remainder_",
}  # fmt: skip


@pytest.mark.parametrize("name", BINARY)
def test_the_method_behind_an_operator(name):
    x = weft.ones(2, 2).as_subclass(Logging)
    (call,) = asked(lambda: getattr(operator, name)(x, weft.ones(2, 2)))
    assert call == (getattr(Tensor, BINARY[name]), (Logging, Tensor))


REFLECTED = {"sub": "__rsub__", "truediv": "__rdiv__", "pow": "__rpow__", "mod": "__rmod__"}


@pytest.mark.parametrize("name", REFLECTED)
def test_the_method_behind_a_reflected_operator(name):
    x = weft.ones(2).as_subclass(Logging)
    (call,) = asked(lambda: getattr(operator, name)(2, x))
    assert call == (getattr(Tensor, REFLECTED[name]), (Logging, int))


def test_attributes_are_asked_for_by_their_getters():
    x = weft.ones(2).as_subclass(Logging)
    assert asked(lambda: x.shape) == [(Tensor.shape.__get__, (Logging,))]
    assert asked(lambda: setattr(x, "grad", None)) == [(Tensor.grad.__set__, (Logging, type(None)))]


def test_composed_functions_are_asked_once_with_their_defaults():
    x = weft.ones(2).as_subclass(Logging)
    assert asked(lambda: F.relu(x)) == [(F.relu, (Logging,))]
    assert Logging.calls[0][3] == {"inplace": False}
    assert asked(lambda: weft.einsum("i->", x)) == [(weft.einsum, (str, Logging))]
    # a sequence of operands is not shown as such
    assert asked(lambda: weft.einsum("i,i->", [x, x])) == [(weft.einsum, (str, Logging, Logging))]
    assert asked(lambda: weft.einsum(x, [0], [0])) == [(weft.einsum, (str, Logging))]


def test_foreign_objects_answer():
    x = Foreign()
    assert weft.add(x, 1) == (weft.add, (x, 1), {})
    assert weft.sum(weft.ones(2), dim=x)[0] is weft.sum
    assert weft.zeros(x, 2)[0] is weft.zeros
    assert (weft.ones(2) + x)[0] is Tensor.add
    assert weft.ones(2).view(x)[0] is Tensor.view
    assert weft.ones(2).to(x)[0] is Tensor.to
    assert F.relu(x) == (F.relu, (x,), {"inplace": False})


def test_a_class_may_decline():
    with pytest.raises(TypeError, match=r"no implementation found for 'weft.add'.*Declines"):
        weft.add(Declines(), 1)
    assert weft.add(Declines(), Foreign())[0] is weft.add
    assert weft.ones(2).__add__(Declines()) is NotImplemented


def test_operands_that_know_nothing_of_tensors_get_their_turn():
    class Other:
        def __radd__(self, other):
            return "mine"

    assert plain(2) + Other() == "mine"


def test_a_subclass_is_asked_before_its_base():
    order = []

    class Base(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append(cls.__name__)
            return NotImplemented

    class Derived(Base):
        pass

    x, y = weft.ones(1).as_subclass(Base), weft.ones(1).as_subclass(Derived)
    with pytest.raises(TypeError):
        weft.add(x, y)
    assert order == ["Derived", "Base"]


def test_unrelated_subclasses_do_not_mix():
    class Other(Tensor):
        pass

    with pytest.raises(TypeError, match="no implementation found"):
        weft.add(plain(2), weft.ones(2).as_subclass(Other))


def test_disabled():
    x = plain(2)
    with weft._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is Tensor and not overrides.has_torch_function((x,))
    assert type(x + 1) is Plain

    class Quiet(Tensor):
        __torch_function__ = weft._C._disabled_torch_function_impl

    assert type(weft.ones(2).as_subclass(Quiet) + 1) is Tensor


def test_a_class_that_changes_its_mind():
    class Changing(Tensor):
        __torch_function__ = weft._C._disabled_torch_function_impl

    x = weft.ones(1).as_subclass(Changing)
    assert type(x + 1) is Tensor
    Changing.__torch_function__ = classmethod(lambda cls, func, types, args, kwargs: "asked")
    assert x + 1 == "asked"


class Names(overrides.TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_modes_see_factories_operators_and_attributes():
    with Names() as mode:
        y = weft.ones(2) * 2
        y.shape  # noqa: B018
        weft.tensor([1.0])
        F.relu(y)
    assert mode.names == ["ones", "mul", "__get__", "tensor", "relu"]
    weft.ones(1)
    assert len(mode.names) == 5


def test_modes_see_initialisers_and_may_leave_them_out():
    class Skipping(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if getattr(func, "__module__", None) == "weft.nn.init":
                return (kwargs or {}).get("tensor", args[0] if args else None)
            return func(*args, **(kwargs or {}))

    before = weft.get_rng_state()
    with Skipping():
        weft.nn.Linear(3, 4)
        weft.nn.init.normal_(weft.ones(2))
    assert weft.get_rng_state().equal(before)


def test_names_of_operators_of_one_tensor():
    x = plain(2).as_subclass(Logging)
    Logging.calls.clear()
    -x, +x, abs(x)
    assert [call[0].__name__ for call in Logging.calls] == ["neg", "positive", "abs"]


def test_modes_nest_and_are_off_inside_of_themselves():
    with Names() as outer, Names() as inner:
        assert overrides._get_current_function_mode() is inner
        weft.ones(2)
    assert outer.names == inner.names == ["ones"]


def test_modes_belong_to_a_thread():
    with Names() as mode:
        thread = threading.Thread(target=weft.ones, args=(2,))
        thread.start()
        thread.join()
    assert mode.names == []


def test_modes_and_what_is_disabled():
    with Names() as mode, weft._C.DisableTorchFunctionSubclass():
        weft.ones(2)
    with mode, weft._C.DisableTorchFunction():
        weft.ones(2)
    assert mode.names == ["ones"]


def test_a_mode_ends_with_an_error():
    with pytest.raises(RuntimeError), Names():
        weft.ones(2).view(3)
    assert overrides._get_current_function_mode() is None


def test_functions_of_overrides():
    assert overrides.is_tensor_like(weft.ones(1)) and overrides.is_tensor_like(Foreign())
    assert not overrides.is_tensor_like([1])
    assert overrides.has_torch_function_variadic(1, plain(1))
    assert overrides.resolve_name(weft.add) == "torch.add"
    assert overrides.resolve_name(F.relu) == "torch.nn.functional.relu"
    assert overrides.resolve_name(Tensor.shape.__get__) == "torch.Tensor.shape.__get__"
    assert overrides.is_tensor_method_or_property(Tensor.add)
    assert overrides.is_tensor_method_or_property(Tensor.shape.__get__)
    assert not overrides.is_tensor_method_or_property(weft.add)
    everything = overrides.get_overridable_functions()
    assert weft.add in everything[weft] and Tensor.add in everything[Tensor]
    assert overrides.get_testing_overrides()[weft.add](1, other=2) == -1
    assert weft.from_numpy in overrides.get_ignored_functions()


def test_wrapping_a_function():
    @overrides.wrap_torch_function(lambda a, b: (a, b))
    def both(a, b):
        return a + b

    assert both(1, 2) == 3
    assert both(1, Foreign())[0] is both


def test_overridable_functions_are_functions():
    assert getattr(F.relu, "".join(["__reduce", "_ex__"]))(4) == "relu"  # not an interned string
    assert (
        F.relu.__name__ == "relu"
        and F.relu.__doc__
        and pickle.loads(pickle.dumps(F.relu)) is F.relu
    )
    with pytest.raises(TypeError, match="relu"):
        F.relu()
    assert weft.jit.script(lambda x: F.relu(x))(weft.tensor([-1.0])).item() == 0.0


def test_a_trace_records_what_a_subclass_does():
    traced = weft.jit.trace(lambda x: x.as_subclass(Plain) * 2 + 1, weft.ones(2))
    assert traced(weft.tensor([3.0, 4.0])).tolist() == [7.0, 9.0]


# Of weft one function, of torch two: that of torch and that of nn.functional; and those that only raise in both.
TWO = {
    "adaptive_max_pool1d",
    "celu",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool3d",
    "rms_norm",
    "rrelu",
}
TWO |= {
    "selu",
    "threshold",
    "resize_as_",
    "split",
    "eig",
    "lstsq",
    "matrix_rank",
    "solve",
    "symeig",
}


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("space", ["", "nn.functional", "linalg", "fft", "special"])
def test_operators_are_no_methods(space: str) -> None:
    """An operator that is an attribute of a class is called without the instance, a function of Python with it."""
    theirs, ours = pytest.importorskip("torch"), weft
    for part in filter(None, space.split(".")):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    compared = 0
    for name in dir(theirs):
        function = getattr(ours, name, None)
        if name.startswith("_") or (name in TWO and space != "linalg"):
            continue
        if isinstance(function, (weft._C._OpFunction, weft._C._Overridable)):
            binds = hasattr(getattr(theirs, name), "__get__")
            compared += 1
            assert hasattr(function, "__get__") is binds, name
    assert compared > 5


def test_a_class_may_hold_operators_and_functions() -> None:
    class Holder:
        operator, function = F.conv3d, F.relu

    assert Holder().operator is F.conv3d
    assert Holder().function.__self__.operator is F.conv3d

"""Operators that programs define: which of their functions answers a call.

A call passes those who watch operators first (`__torch_function__`, traces, vmap), then autocast,
then autograd, and ends at the kernel of its tensors' device. Each of them is a function that the
program may register, or a rule that holds without one.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from weft import _C
from weft._C import Tensor
from weft._runtime import torch_function
from weft.amp import autocast_mode
from weft.autograd.grad_mode import is_grad_enabled, no_grad
from weft.jit import schema_parts
from weft.jit.ir import types as ty
from weft.library._gradients import recorded
from weft.library._schema import Schema
from weft.utils._pytree import tree_leaves, tree_map

#: By name of PyTorch's dispatch key what a function registered for it is here: that of a device, of
#: every device, one made of operators alone, one that records gradients itself, one that answers
#: under autocast and ends it (`torch._C._ExcludeDispatchKeyGuard`).
KEYS = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "MPS": "mps",
    "XPU": "xpu",
    "Meta": "meta",
    "PrivateUse1": "privateuseone",
    "CompositeExplicitAutograd": "every",
    "CompositeImplicitAutograd": "composed",
    "Autograd": "autograd",
    "AutogradCPU": "autograd",
    "AutogradCUDA": "autograd_cuda",
    "AutocastCPU": "autocast_cpu",
    "AutocastCUDA": "autocast_cuda",
    "AutocastXPU": "autocast_xpu",
}

#: the operators of programs, by qualified name and overload
OPERATORS: dict[str, dict[str, Operator]] = {}
#: names of those that weft has in the place of libraries
PROVIDED: set[str] = set()
#: what register_fake gave for operators that are not there, as those of a library in C++
WAITING_FAKES: dict[str, Callable[..., Any]] = {}


class BatchInfo(NamedTuple):
    """What a rule for batches is told of the batch."""

    batch_size: int
    randomness: str


class _Within(threading.local):
    def __init__(self) -> None:
        self.kernels: set[Operator] = set()  # whose autograd kernel runs in this thread


_within = _Within()


_overload_of: Callable[[Operator], Any]


def set_overloads(overload_of: Callable[[Operator], Any]) -> None:
    """Tells how the object is made by which programs call an operator."""
    global _overload_of
    _overload_of = overload_of


class Operator:
    """One overload. Programs call the object `overload` (`weft.ops.mylib.f.default`)."""

    def __init__(self, qualname: str, schema: Schema) -> None:
        self.qualname = qualname
        self.schema = schema
        self.kernels: dict[str, Callable[..., Any]] = {}
        self.fake: Callable[..., Any] | None = None
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        self.batched: Callable[..., Any] | None = None
        self.autocast: dict[str, Any] = {}
        self.may_alias = True
        self.compiled: Callable[..., Any] | None = None  # what programs compile where they call it

    @functools.cached_property
    def overload(self) -> Any:
        """The object by which programs call it."""
        return _overload_of(self)

    def __repr__(self) -> str:
        return f"<operator {self.qualname}>"

    def __deepcopy__(self, memo: Any) -> Operator:
        return self

    @property
    def full_name(self) -> str:
        """mylib::f.default, as errors name it."""
        return f"{self.qualname}.{self.schema.overload_name or 'default'}"

    @functools.cached_property
    def program_schema(self) -> schema_parts.Schema:
        """The schema as compilers know it, with the defaults that hold."""
        schema = self.schema
        args = [
            [a.name, a.type, a.has_default, None, a.kwarg_only, a.alias] for a in schema.parsed.args
        ]
        returns = [[r.name, r.type, r.alias] for r in schema.parsed.returns]
        made = schema_parts.parse(self.qualname, [args, returns, False])
        given = {a.name: schema.default(a) for a in schema.parsed.args if a.has_default}
        filled = [
            schema_parts.Arg(
                a.name, a.type, given.get(a.name), a.has_default, a.kwarg_only, a.length, a.alias
            )
            for a in made.args
        ]
        return schema_parts.Schema(self.qualname, tuple(filled), made.returns, False)

    @property
    def program_type(self) -> ty.Type:
        """The type of its result in programs: a tuple of several, None of none."""
        types = tuple(each.type for each in self.program_schema.returns)
        if len(types) == 1:
            return types[0]
        return ty.TupleType(types) if types else ty.NONE

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call from Python."""
        if _C._has_torch_function(tuple(_flat((*args, *kwargs.values())))):
            return torch_function.answer(self.overload, args, kwargs)
        given = self.schema.bind(args, kwargs)
        recorder = _C._recorder()
        if recorder is not None:
            return recorder.override("custom_operator", (self, given), {})
        return self.run(given)

    def flat(self, *given: Any) -> Any:
        """A call with every argument by position: that of programs."""
        return self.run(list(given))

    def run(self, given: list[Any]) -> Any:
        """The result for bound arguments. Neither a trace nor vmap sees it."""
        self.schema.check(given)
        device = _device_of(given)
        dtype, own = self.autocast.get(device), self.kernels.get(f"autocast_{device}")
        if own is not None and autocast_mode.is_autocast_enabled(device):
            return self.apply(own, given)
        if dtype is not None and autocast_mode.is_autocast_enabled(device):
            with autocast_mode.autocast(device, enabled=False):
                return self.differentiate(_cast(given, dtype), device)
        return self.differentiate(given, device)

    def differentiate(self, given: list[Any], device: str) -> Any:
        """The result, with its history."""
        own = self.kernels.get("autograd")
        if own is not None and self not in _within.kernels:
            _within.kernels.add(self)
            try:
                return self.apply(own, given)
            finally:
                _within.kernels.discard(self)
        if not is_grad_enabled() or not any(
            isinstance(item, Tensor) and item.requires_grad for item in _flat(given)
        ):
            return self.compute(given, device)
        if self.is_composed(device):
            return self.apply(self.kernels["composed"], given)
        return recorded(self, given, device)

    def is_composed(self, device: str) -> bool:
        """Whether it is made of operators, which record themselves, on the device."""
        found = self.kernels
        return "composed" in found and device not in found and "every" not in found

    def compute(self, given: list[Any], device: str) -> Any:
        """The result of the device's kernel, without a history."""
        kernel = self.kernel(device)
        with no_grad():
            result = self.apply(kernel, given)
        if not self.may_alias:
            self._refuse_aliases(given, result)
        return result

    def kernel(self, device: str) -> Callable[..., Any]:
        """The function that computes on a device. NotImplementedError where there is none."""
        if device == "meta" and self.fake is not None:
            return self.fake
        for key in (device, "every", "composed"):
            if key in self.kernels:
                return self.kernels[key]
        if device == "meta":
            hint = "; register_fake gives it one"
        else:
            hint = "; register_kernel or Library.impl gives it one"
        known = sorted(self.kernels) or "none at all"
        raise NotImplementedError(
            f"{self.qualname}: expected a kernel for device {device}, got {known}{hint}"
        )

    def apply(self, function: Callable[..., Any], given: list[Any]) -> Any:
        """A function of the operator's signature, called with bound arguments."""
        args, kwargs = self.schema.calling(given)
        return function(*args, **kwargs)

    def _refuse_aliases(self, given: list[Any], result: Any) -> None:
        """Compilers move operators whose results are new: a result that is an input would be
        changed behind their back."""
        known = {_memory(tensor) for tensor in _flat(given) if isinstance(tensor, Tensor)} - {0}
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and (place := _memory(tensor)):
                if place in known:
                    raise RuntimeError(
                        f"{self.qualname}: expected results that share no memory with an argument "
                        "or with each other, got one that does; return a clone() of it"
                    )
                known.add(place)

    def batch(self, level: Any, given: list[Any]) -> Any:
        """The result under vmap, by the rule for batches or sample by sample."""
        if not level.holds(given):
            with level.outside():
                return self.flat_outside(given)
        if self.batched is None:
            return level.one_by_one(self.qualname, self.flat_outside, given)
        rule = self.batched
        dims = tree_map(lambda item: None if level.samples(item) is None else 0, given)
        samples = tree_map(lambda item: _or(level.samples(item), item), given)
        args, kwargs = self.schema.calling(samples)
        info = BatchInfo(level.size, level.randomness)
        with level.outside():
            result, out_dims = rule(info, tuple(dims[: len(args)]), *args, **kwargs)
            return _wrapped(level, result, out_dims)

    def flat_outside(self, given: list[Any]) -> Any:
        """A call that whoever is further out may watch."""
        args, kwargs = self.schema.calling(given)
        return self.call(tuple(args), kwargs)


def _wrapped(level: Any, result: Any, dim: Any) -> Any:
    """What a rule for batches returned, given where the batch lies: a number for each tensor, or
    one for all of a sequence."""
    if isinstance(result, (tuple, list)):
        told = dim if isinstance(dim, (tuple, list)) else [dim] * len(result)
        if len(told) != len(result):
            raise RuntimeError(
                f"register_vmap: expected out_dims for {len(result)} results, got {len(told)}"
            )
        return type(result)(_wrapped(level, r, d) for r, d in zip(result, told))
    if dim is None or not isinstance(result, Tensor):
        return result
    return level.wrap(result if dim == 0 else result.movedim(dim, 0))


def _or(value: Any, other: Any) -> Any:
    return other if value is None else value


def _flat(values: Sequence[Any]) -> list[Any]:
    """The values, those of lists one by one."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            found += value
        else:
            found.append(value)
    return found


def _device_of(given: list[Any]) -> str:
    kinds = [item.device.type for item in _flat(given) if isinstance(item, Tensor)]
    kinds += [_C.device(item).type for item in given if isinstance(item, _C.device)]
    return str(next((kind for kind in kinds if kind != "cpu"), "cpu"))


def _memory(tensor: Tensor) -> int:
    return 0 if tensor.numel() == 0 else tensor.untyped_storage().data_ptr()


def _cast(given: list[Any], dtype: Any) -> list[Any]:
    def cast(item: Any) -> Any:
        return item.to(dtype) if isinstance(item, Tensor) and item.is_floating_point() else item

    return [[cast(v) for v in item] if isinstance(item, list) else cast(item) for item in given]


# ---- the registry ----


def define(qualname: str, schema: str) -> Operator:
    """A new operator. `schema`: "f.overload(Tensor x) -> Tensor", without the namespace.
    RuntimeError for one that is there already."""
    parsed = Schema(qualname, schema)
    overloads = OPERATORS.setdefault(qualname, {})
    if parsed.overload_name in overloads:
        raise RuntimeError(
            f"define: expected an operator that is not there yet, got {parsed}, a second "
            f"{qualname}.{parsed.overload_name or 'default'}"
        )
    made = overloads[parsed.overload_name] = Operator(qualname, parsed)
    made.fake = WAITING_FAKES.pop(made.full_name, None)
    return made


def find(name: str) -> Operator | None:
    """The operator of a name "mylib::f" or "mylib::f.overload"; None where there is none."""
    qualname, _, overload = name.partition(".")
    return overloads_of(qualname).get("" if overload == "default" else overload)


def overloads_of(qualname: str) -> dict[str, Operator]:
    """The operators of a name by their overloads, those of a library that was not loaded by
    load_library as well: an extension module that was imported."""
    if qualname not in OPERATORS:
        names = _C._host_operators()
        define_host_operators({k: text for k, text in names if k.partition(".")[0] == qualname})
    return OPERATORS.get(qualname, {})


def define_composed(qualname: str, schema: str, function: Callable[..., Any]) -> Operator:
    """A new operator that a function of operators of weft is, which programs compile."""
    operator = define(qualname, schema)
    operator.kernels["composed"] = operator.compiled = function
    PROVIDED.add(qualname)
    return operator


def define_host_operators(schemas: Mapping[str, str]) -> None:
    """Makes operators of those that a library has registered by weft.h, by names and schemas."""
    for name, text in schemas.items():
        qualname = name.partition(".")[0]
        operator = define(qualname, text.partition("::")[2])
        operator.kernels["autograd"] = operator.kernels["every"] = _host_kernel(operator, name)


def _host_kernel(operator: Operator, name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if operator.fake is not None and _device_of([*args, *kwargs.values()]) == "meta":
            return operator.fake(*args, **kwargs)
        return _C._call_host_operator(name, operator.schema.bind(args, kwargs))

    return call


def _for_compiled_file(name: str) -> Callable[..., Any] | None:
    """What a compiled file calls that knows an operator's name; None where Python has it not."""
    operator = find(name)
    return operator.flat if operator is not None and operator.kernels else None


_C._set_operator_finder(_for_compiled_file)


def of(op: Any) -> Operator:
    """The operator of a name, an overload or a CustomOpDef. RuntimeError where there is none that
    a program defined, TypeError for other objects."""
    found = find(op) if isinstance(op, str) else getattr(op, "_weft_custom_operator", None)
    if isinstance(found, Operator):
        return found
    if isinstance(op, str) or hasattr(op, "_schema"):
        _unknown(op)
    raise TypeError(
        f"library: expected the name of an operator, an overload or a CustomOpDef, got "
        f"{type(op).__name__}"
    )


def _unknown(op: Any) -> NoReturn:
    raise RuntimeError(
        f"library: expected an operator that custom_op or define made, got {op}; weft's own "
        "operators cannot be changed"
    )

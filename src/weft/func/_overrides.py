"""What is asked of tensors beside the operators of the table, for a batch.

Most of it are operators in another form; the overrides of traces (weft.jit.tracing), which are
written so, serve here too. What follows replaces the ones that write into a graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft import _C
from weft._C import Tensor
from weft._runtime.rules import Rules
from weft.func._batched import Refused, has_history, seen_by
from weft.jit.tracing import indexing as _indexing  # noqa: F401  (its overrides, too)
from weft.jit.tracing import overrides as traced

if TYPE_CHECKING:
    from weft.func._level import Level

_aten = _C._aten
OVERRIDES = Rules(traced.OVERRIDES)
"""Of batches."""


# Read of the first sample, whose sizes, dtype and device are those of all -----------------------


def _read(name: str, is_method: bool) -> None:
    def call(level: Level, self: Tensor, *args: Any) -> Any:
        with seen_by(None):
            return getattr(self, name)(*args) if is_method else getattr(self, name)

    OVERRIDES[name] = call


for _name in ("size", "stride", "numel", "nelement", "storage_offset"):
    _read(_name, True)
for _name in ("shape", "dtype", "device", "nbytes"):
    _read(_name, False)


@OVERRIDES("length")
def _length(level: Level, self: Tensor) -> int:
    with seen_by(None):
        return len(self)


OVERRIDES("iter")(lambda level, self: iter(_aten.unbind(self, 0)))


# Elements, which Python may not learn -----------------------------------------------------------


def _element(name: str, what: str) -> None:
    def call(level: Level, self: Tensor, *args: Any, **kwargs: Any) -> Any:
        level.refuse_decision(what, [self, *args])
        with level.outside():
            return getattr(self, name)(*args, **kwargs)

    OVERRIDES[name] = call


for _name in ("__int__", "__float__", "__index__", "__complex__"):
    _element(_name, f"{_name[2:-2]}() of one")
for _name in ("item", "tolist", "numpy", "__array__", "__dlpack__"):
    _element(_name, f"{_name}() of one")
_element("__bool__", "a decision by one")


@OVERRIDES("contains")
def _contains(level: Level, self: Tensor, item: Any) -> bool:
    level.refuse_decision("`in` of one", [self, item])
    with level.outside():
        return item in self


# Layout and history -----------------------------------------------------------------------------


OVERRIDES("T")(lambda level, self: _aten.permute(self, list(range(self.dim()))[::-1]))


OVERRIDES["mT"] = lambda level, self: _aten.transpose(self, -2, -1)
OVERRIDES["mH"] = OVERRIDES["H"] = lambda level, self: _aten.conj(_aten.transpose(self, -2, -1))


@OVERRIDES("grad")
def _grad(level: Level, self: Tensor) -> Any:
    if level.samples(self) is not None:
        return None  # backward() is refused, so there is none
    with level.outside():
        return self.grad


OVERRIDES["requires_grad"] = lambda level, self: has_history(self)


@OVERRIDES("set_requires_grad")
def _set_requires_grad(level: Level, self: Tensor, flag: bool) -> None:
    if level.samples(self) is not None and flag != has_history(self):
        level.unsupported("requires_grad_(); use weft.func.grad or vjp, which take part in it")
    with level.outside():
        self.requires_grad = flag


@OVERRIDES("requires_grad_")
def _requires_grad_(level: Level, self: Tensor, requires_grad: bool = True) -> Tensor:
    _set_requires_grad(level, self, requires_grad)
    return self


@OVERRIDES("detach_")
def _detach_(level: Level, self: Tensor) -> Tensor:
    samples = level.samples(self)
    if samples is not None:
        with level.outside():
            samples.detach_()
    with seen_by(None if samples is not None else level.outer):
        return self.detach_()


@OVERRIDES("backward")
def _backward(level: Level, *args: Any, **kwargs: Any) -> Any:
    level.unsupported("backward(); use weft.func.grad or vjp inside, or backward() outside")


@OVERRIDES("run_backward")
def _run_backward(level: Level, roots: Any, gradients: Any, targets: Any, *flags: bool) -> Any:
    """autograd.grad: all samples at once where each has roots and targets of its own, for then no
    root depends on another sample's target."""
    _, create, accumulate, unused = flags
    if accumulate:
        _backward(level)
    tensors = [*roots, *targets]
    batched = [level.samples(each) is not None for each in tensors]
    given = (list(roots), list(gradients), list(targets))
    if not level.holds(given):
        with level.outside():
            return _run(given, *flags)
    if all(batched):
        samples = [
            None if g is None and root.dim() else _seed(level, root, g)
            for root, g in zip(roots, gradients)
        ]
        whole = ([level.samples(r) for r in roots], samples, [level.samples(t) for t in targets])
        with level.outside():
            found = _run(whole, *flags)
        return tuple(None if each is None else level.wrap(each) for each in found)
    return _one_by_one(level, given, create, unused)


def _run(given: tuple[list[Any], list[Any], list[Any]], *flags: bool) -> Any:
    recorder: Any = _C._recorder()
    roots, gradients, targets = map(tuple, given)
    if recorder is not None:
        return recorder.override("run_backward", (roots, gradients, targets, *flags), {})
    return _C._autograd.run_backward(roots, gradients, targets, *flags)


def _seed(level: Level, root: Tensor, gradient: Tensor | None) -> Tensor:
    if gradient is None:
        gradient = _aten.ones_like(root.detach())
    return level.expanded(gradient)


def _one_by_one(level: Level, given: Any, create: bool, unused: bool) -> Any:
    """A call for each sample: its roots and gradients, with targets that others may share."""
    roots, gradients, targets = given
    rows = []
    with level.outside():
        for i in range(level.size):
            whole = [t if (s := level.samples(t)) is None else s for t in targets]
            row = (level.sample(roots, i), level.sample(gradients, i), whole)
            found = _run(row, True, create, False, unused)
            rows.append(
                [
                    each if each is None or level.samples(t) is None else _aten.select(each, 0, i)
                    for each, t in zip(found, targets)
                ]
            )
        return tuple(
            None if column[0] is None else level.wrap(_aten.stack(column)) for column in zip(*rows)
        )


# Calls and data -----------------------------------------------------------------------------------


@OVERRIDES("program", "apply")
def _call(level: Level, run: Any, *args: Any, **kwargs: Any) -> Any:
    """Compiled programs and custom autograd functions: sample by sample."""
    function = getattr(run, "apply", run)
    if not level.holds([args, kwargs]):
        with level.outside():
            return function(*args, **kwargs)
    name = getattr(run, "__name__", type(run).__name__)
    return level.one_by_one(name, lambda given: function(*given[0], **given[1]), [args, kwargs])


@OVERRIDES("custom_operator")
def _custom_operator(level: Level, operator: Any, given: list[Any]) -> Any:
    """An operator that a program defined: by its rule for batches, or sample by sample."""
    return operator.batch(level, given)


@OVERRIDES("library")
def _library(level: Level, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function that decides by sizes: those of all samples are the same. One that asks for
    elements runs sample by sample."""
    try:
        return function._weft_unwrapped(*args, **kwargs)
    except Refused:
        return _call(level, function, *args, **kwargs)


@OVERRIDES("weft.manual_seed")
def _manual_seed(level: Level, seed: Any) -> Any:
    with level.outside():
        return _C.manual_seed(seed)


def _from_data(name: str) -> None:
    def call(level: Level, module: Any, data: Any = None, *args: Any, **kwargs: Any) -> Any:
        data = kwargs.pop("obj", kwargs.pop("data", data))
        if isinstance(data, Tensor) and level.samples(data) is not None:
            return _from_tensor(name, data, *args, **kwargs)
        level.refuse_decision(f"{name}() with one", data)
        with level.outside():
            return getattr(_C, name)(data, *args, **kwargs)

    OVERRIDES[f"weft.{name}"] = call


for _name in ("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "from_dlpack"):
    _from_data(_name)


def _from_tensor(name: str, data: Tensor, dtype: Any = None, **options: Any) -> Tensor:
    """tensor(x) copies; as_tensor(x) and asarray(x) share memory where they can."""
    made = data if dtype is None else _aten.to(data, dtype)
    if name == "tensor" or options.get("copy"):
        made = _aten.clone(made.detach())
    return made.requires_grad_() if options.get("requires_grad") else made


@OVERRIDES("subscript")
def _subscript(level: Level, self: Tensor, index: Any) -> Tensor:
    """A 0-d index of the batch selects another place for each sample."""
    if not _selects(level, index):
        return traced.OVERRIDES["subscript"](level, self, index)
    if isinstance(index, Tensor):
        return _aten.index(self, [index])
    return level.one_by_one("index", lambda given: given[0][given[1]], [self, index])


@OVERRIDES("assign_subscript")
def _assign(level: Level, self: Tensor, index: Any, value: Any) -> None:
    if not _selects(level, index):
        traced.OVERRIDES["assign_subscript"](level, self, index, value)
        return
    if level.samples(self) is None:
        level.unsupported("an assignment to a tensor that is the same for all samples")
    with level.outside():
        for i in range(level.size):
            target, place, given = level.sample([self, index, value], i)
            target[place] = given


def _selects(level: Level, index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return any(
        isinstance(each, Tensor) and each.dim() == 0 and level.samples(each) is not None
        for each in items
    )


@OVERRIDES("memory")
def _memory(level: Level, self: Any) -> None:
    """What is made over the memory of a tensor would be of the first sample only."""
    level.refuse_decision("an object over the memory of one", self)


OVERRIDES("as_subclass")(lambda level, self, type: self)


@OVERRIDES("set_data", "set_grad", "retain_grad", "weft._write_out")
def _assignment(level: Level, *args: Any, **kwargs: Any) -> Any:
    level.unsupported("an assignment to .data or .grad, retain_grad() or out=")


@OVERRIDES(
    "weft._storage_view", "weft._from_storage", "weft._storage_resize", "weft._set", "weft._resize"
)
def _storage(level: Level, *args: Any, **kwargs: Any) -> Any:
    level.unsupported("the storage of a tensor, set_() or resize_()")


@OVERRIDES("view")
def _view(level: Level, self: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    only = [*size, *kwargs.values()]
    if len(only) == 1 and isinstance(only[0], _C.dtype):
        level.unsupported("view() of another dtype")
    return _aten.view(self, *size, **kwargs)

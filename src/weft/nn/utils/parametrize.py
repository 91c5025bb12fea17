"""Tensors of modules that are computed from others whenever they are read."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from weft import _C
from weft._C import Tensor
from weft._runtime.exports import list_own as _list_own
from weft.autograd.grad_mode import no_grad
from weft.nn.modules.container import ModuleDict, ModuleList
from weft.nn.modules.module import Module
from weft.nn.parameter import Parameter

M = TypeVar("M", bound=Module)


class _Cache:
    """The computed tensors by module and name, while `depth` blocks of `cached` are open."""

    def __init__(self) -> None:
        self.depth = 0
        # A module is kept beside its tensor: its id cannot be that of a later one.
        self.tensors: dict[tuple[int, str], tuple[Module, Tensor]] = {}

    def get(self, module: Module, name: str, compute: Callable[[], Tensor]) -> Tensor:
        """The tensor of this name, computed where there is none yet."""
        if not self.depth:
            return compute()
        if _C._get_tracing_state() is not None:
            raise RuntimeError(
                f"parametrize.cached: expected no trace of a model inside of it, got {name!r} of "
                f"{type(module).__name__}"
            )
        key = id(module), name
        if key not in self.tensors:
            self.tensors[key] = module, compute()
        return self.tensors[key][1]


_cache = _Cache()


@contextmanager
def cached() -> Iterator[None]:
    """Computes each parametrized tensor once in this block, when it is first read.

    A change of an original inside of the block is not seen. RuntimeError for a trace in it.

    >>> layer = register_parametrization(weft.nn.Linear(2, 2), "weight", weft.nn.Identity())
    >>> with cached():
    ...     layer.weight is layer.weight
    True
    """
    _cache.depth += 1
    try:
        yield
    finally:
        _cache.depth -= 1
        if not _cache.depth:
            _cache.tensors.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, called in their order, and the originals they start from.

    The original is `original`, or `original0`, `original1`, ... where the first right_inverse gives
    a sequence of tensors. `module.parametrizations.weight` is the list of module.weight. unsafe:
    dtype and shape of the result are not compared with those of `original`.

    ValueError for no modules, and where a result is no tensor or changes dtype or shape.

    >>> made = ParametrizationList([weft.nn.Softplus()], weft.zeros(1))
    >>> made(), made.original
    (tensor([0.6931]), tensor([0.]))
    """

    original: Tensor
    unsafe: bool

    def __init__(
        self, modules: Sequence[Module], original: Tensor | Parameter, unsafe: bool = False
    ) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList: expected one or more modules, got none")
        super().__init__(modules)
        self.unsafe = unsafe
        before = original.detach()
        dtype, shape = before.dtype, before.shape
        with no_grad():
            new = self._inverse(original)
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            _check("right_inverse", "dtype", original.dtype, new.dtype)
            _check("right_inverse", "device", original.device, new.device)
            with no_grad():
                original.set_(new)
            _register(self, "original", original)
        else:
            for index, part in enumerate(new):
                _register(self, f"original{index}", _as_member(index, part, original))
        if not self.unsafe:
            _check_result(self(), dtype, shape)

    def _inverse(self, value: Any) -> Any:
        """`value` through those right inverses that there are, last one first."""
        for module in reversed(list(self)):
            if hasattr(module, "right_inverse"):
                with suppress(NotImplementedError):
                    value = module.right_inverse(value)
        if not isinstance(value, Tensor | Sequence):
            raise _no_tensors("right_inverse", value)
        return value

    def right_inverse(self, value: Tensor) -> None:
        """Sets the originals so that the parametrized tensor becomes `value`, as far as it can.

        RuntimeError for a parametrization without a right_inverse; ValueError where the originals
        would change their dtype or number.
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization: expected {type(module).__name__} to implement "
                        "right_inverse, got none"
                    )
                value = module.right_inverse(value)
            names = ["original"] if self.is_tensor else _numbered(self.ntensors)
            for name, part in zip(names, self._parts(value)):
                original = getattr(self, name)
                if not isinstance(part, Tensor):
                    raise _no_tensors("right_inverse", part)
                _check("right_inverse", f"dtype of {name}", original.dtype, part.dtype)
                original.set_(part)

    def _parts(self, value: Any) -> Sequence[Any]:
        """The values of the originals in what a right_inverse returned."""
        if self.is_tensor:
            return [value]
        if not isinstance(value, Sequence):
            raise _no_tensors("right_inverse", value)
        if len(value) != self.ntensors:
            raise ValueError(
                f"right_inverse: expected a sequence of {self.ntensors} tensors, got {len(value)}"
            )
        return value

    def forward(self) -> Tensor:
        """The parametrized tensor."""
        first, *rest = self
        if self.is_tensor:
            value = first(self.original)
        else:
            value = first(*(getattr(self, name) for name in _numbered(self.ntensors)))
        for module in rest:
            value = module(value)
        return value


def _numbered(count: int) -> list[str]:
    return [f"original{index}" for index in range(count)]


def _as_member(index: int, part: Any, original: Tensor) -> Tensor:
    """An element of a right_inverse's result as what `original` is: a parameter or a buffer."""
    if not isinstance(part, Tensor):
        raise _no_tensors(f"right_inverse: element {index}", part)
    if isinstance(original, Parameter):
        part = Parameter(part, original.requires_grad)
    return part.requires_grad_(original.requires_grad)


def _register(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _no_tensors(name: str, value: Any) -> ValueError:
    return ValueError(
        f"{name}: expected a Tensor or a sequence of Tensors, got {type(value).__name__}"
    )


def _check(name: str, fact: str, expected: Any, got: Any) -> None:
    if expected != got:
        raise ValueError(f"{name}: expected {fact} {expected}, got {got}")


def _check_result(result: Any, dtype: Any, shape: Any) -> None:
    """Raises unless a parametrization gives a tensor like the one that it stands for."""
    if not isinstance(result, Tensor):
        got = type(result).__name__
        raise ValueError(f"parametrization: expected it to return a tensor, got {got}")
    hint = "parametrization without unsafe=True"
    _check(hint, "dtype", dtype, result.dtype)
    _check(hint, "shape", tuple(shape), tuple(result.shape))


# Parametrized modules ---------------------------------------------------------------------------


def _refuse_pickling(module: Module) -> Any:
    raise RuntimeError(
        f"{type(module).__name__}: expected a parametrized module to be saved by its state_dict(), "
        "got the module itself"
    )


def _deepcopy(module: Module, memo: dict[int, Any]) -> Any:
    duplicate = module.__class__.__new__(module.__class__)
    memo[id(module)] = duplicate
    duplicate.__setstate__(copy.deepcopy(module.__dict__, memo))
    return duplicate


def _computed(name: str) -> Any:
    """The property that computes a tensor, and sets the originals when it is assigned."""

    def get(module: Any) -> Tensor:
        return _cache.get(module, name, module.parametrizations[name])

    def put(module: Any, value: Tensor) -> None:
        module.parametrizations[name].right_inverse(value)

    return property(get, put)


def _set_class(module: Module, base: type) -> None:
    """Gives a module the class whose properties are its parametrized tensors.

    A class for each call: what one module removes, its copies keep.
    """
    members: dict[str, Any] = {"__getstate__": _refuse_pickling, "__module__": __name__}
    if not hasattr(base, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    members.update({name: _computed(name) for name in module.parametrizations})
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), members)


def register_parametrization(
    module: M, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> M:
    """Lets a parameter or buffer be computed by `parametrization`, and gives the module.

    The tensor as it was becomes module.parametrizations.<name>.original, through
    parametrization.right_inverse where there is one. Reading module.<name> calls the
    parametrization; assigning to it sets the original by right_inverse. A second parametrization
    of a name gets the first one's result. The class of the module becomes a derived one. unsafe:
    the parametrization may change dtype and shape.

    ValueError for a name without a tensor, and for results of another dtype or shape.

    >>> class Symmetric(weft.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = weft.nn.utils.parametrize.register_parametrization(
    ...     weft.nn.Linear(3, 3), "weight", Symmetric())
    >>> weft.equal(layer.weight, layer.weight.mT), [name for name, _ in layer.named_parameters()]
    (True, ['bias', 'parametrizations.weight.original'])
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_addition(parametrization, getattr(module, tensor_name))
        chain = module.parametrizations[tensor_name]
        chain.append(parametrization)
        chain.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(
            f"register_parametrization: expected a parameter or a buffer of "
            f"{type(module).__name__}, got the name {tensor_name!r}"
        )
    chain = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
    delattr(module, tensor_name)
    base = type_before_parametrizations(module)
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = chain
    _set_class(module, base)
    return module


def _check_addition(parametrization: Module, value: Tensor) -> None:
    """Raises unless a parametrization fits behind the one that gives `value`."""
    result = parametrization(value)
    _check_result(result, value.dtype, value.shape)
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(inverse, Tensor):
        raise _no_tensors("right_inverse", inverse)
    _check("right_inverse", "dtype", value.dtype, inverse.dtype)
    _check("right_inverse", "shape", tuple(value.shape), tuple(inverse.shape))


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a tensor of the module is parametrized: the one of this name, or (None) any.

    >>> weft.nn.utils.parametrize.is_parametrized(weft.nn.Linear(2, 2))
    False
    """
    known = getattr(module, "parametrizations", None)
    if not isinstance(known, ModuleDict):
        return False
    return len(known) > 0 if tensor_name is None else tensor_name in known


def remove_parametrizations(module: M, tensor_name: str, leave_parametrized: bool = True) -> M:
    """Makes a parametrized tensor a plain one again, and gives the module.

    leave_parametrized: with the computed value, otherwise with the original's.

    ValueError for a name that is not parametrized, and for leave_parametrized=False where there
    are several originals.

    >>> layer = register_parametrization(weft.nn.Linear(2, 2), "weight", weft.nn.ReLU())
    >>> layer = remove_parametrizations(layer, "weight")
    >>> layer, bool((layer.weight >= 0).all())
    (Linear(in_features=2, out_features=2, bias=True), True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"remove_parametrizations: expected a parametrized tensor of {type(module).__name__}, "
            f"got the name {tensor_name!r}"
        )
    chain = module.parametrizations[tensor_name]
    if not chain.is_tensor and not leave_parametrized:
        raise ValueError(
            f"remove_parametrizations: expected leave_parametrized=True for {tensor_name!r}, which "
            f"has {chain.ntensors} originals, got False"
        )
    plain = _plain(chain, getattr(module, tensor_name) if leave_parametrized else None)
    base = type_before_parametrizations(module)
    del module.parametrizations[tensor_name]
    if len(module.parametrizations) == 0:
        del module.parametrizations
        module.__class__ = base
    else:
        _set_class(module, base)
    _register(module, tensor_name, plain)
    return module


def _plain(chain: ParametrizationList, computed: Tensor | None) -> Tensor:
    """What takes the place of a list: its original, with the computed value where there is one."""
    if chain.is_tensor:
        if computed is not None:
            with no_grad():
                chain.original.set_(computed.detach())
        return chain.original
    assert computed is not None
    return Parameter(computed.detach()) if computed.requires_grad else computed


def type_before_parametrizations(module: Module) -> type:
    """The class that a module has without its parametrizations.

    >>> type_before_parametrizations(weft.nn.Linear(2, 2)).__name__
    'Linear'
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: M, tensor_name: str | None = None
) -> M:
    """Registers the parametrizations of one module (None: of all its tensors) with another one.

    Their modules and originals are shared. A tensor that `to_module` lacks is added.

    >>> layer = register_parametrization(weft.nn.Linear(2, 2), "weight", weft.nn.Softplus())
    >>> other = transfer_parametrizations_and_params(layer, weft.nn.Linear(2, 2))
    >>> weft.equal(other.weight, layer.weight)
    True
    """
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = to_module.parametrizations[name]
        for member, _ in [
            *source.named_parameters(recurse=False),
            *source.named_buffers(recurse=False),
        ]:
            setattr(target, member, getattr(source, member))
    return to_module


_list_own(vars())

"""Parameter, a tensor that a module learns, and Buffer, one that it keeps."""

from __future__ import annotations

from typing import Any, ClassVar

from weft import _C
from weft._C import Tensor


class _ParameterMeta(type(Tensor)):  # type: ignore[misc]
    """Counts tensors of a program's classes that are marked as parameters."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and hasattr(instance, "_is_param")


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that becomes a module's parameter when it is assigned as an attribute.

    `data` is shared, not copied; it may have any shape and dtype (a gradient needs a floating or
    complex one). Operators on a Parameter return plain tensors. Data of a class that a program
    derived from Tensor gives a tensor of that class, which counts as an instance of Parameter.

    >>> layer = weft.nn.Module()
    >>> layer.weight = weft.nn.Parameter(weft.ones(2))
    >>> [name for name, _ in layer.named_parameters()]
    ['weight']
    """

    __torch_function__ = _C._disabled_torch_function_impl
    _shown_within: ClassVar[str] = "Parameter"  # how those of derived classes print

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = _C.empty(0)
        if is_spread(data):
            return data._as_parameter(requires_grad)
        if _has_class_of_its_own(data):
            kept = data.detach().requires_grad_(requires_grad)
            if type(kept) is not type(data):
                kinds = f"{type(data).__name__}, got {type(kept).__name__}"
                raise RuntimeError(f"Parameter: expected detach() to give a tensor of {kinds}")
            vars(kept).update(_is_param=True, _shown_within=cls._shown_within)
            return kept  # type: ignore[return-value]
        return Tensor._make_subclass(cls, data, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.data, self.requires_grad)

    def __repr__(self, **options: Any) -> str:
        return "Parameter containing:\n" + super().__repr__(**options)


def _has_class_of_its_own(tensor: Tensor) -> bool:
    """Whether a program derived the class from Tensor and wants it kept by operators."""
    kind = type(tensor)
    return not (
        kind is Tensor
        or isinstance(tensor, (Parameter, Buffer, UninitializedTensorMixin))
        or getattr(kind, "__torch_function__", None) is _C._disabled_torch_function_impl
    )


def is_spread(tensor: Any) -> bool:
    """Whether several processes have the tensor: a DTensor, over the memory of this one's part."""
    return hasattr(type(tensor), "_as_parameter")


class Buffer(Tensor):
    """A tensor that becomes a module's buffer when it is assigned as an attribute.

    persistent: whether it is in state_dict. `data` is shared.

    >>> module = weft.nn.Module()
    >>> module.scale = weft.nn.Buffer(weft.ones(2))
    >>> list(module.state_dict())
    ['scale']
    """

    persistent: bool
    __torch_function__ = _C._disabled_torch_function_impl

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        if data is None:
            data = _C.empty(0)
        made: Buffer = Tensor._make_subclass(cls, data, data.requires_grad)
        made.persistent = persistent
        return made

    def __repr__(self, **options: Any) -> str:
        return self.data.__repr__(**options)


class UninitializedTensorMixin:
    """What parameters and buffers without a shape share; see UninitializedParameter."""

    cls_to_become: type
    device: Any
    dtype: Any
    data: Tensor
    requires_grad: bool

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Makes it, in place, a tensor of this shape with elements that are not set."""
        options = {"device": device or self.device, "dtype": dtype or self.dtype}
        self.data = _C.empty(shape, **options)
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        """Raises: there is none yet."""
        raise RuntimeError(f"shape: {_EXPECTED}, got {self!r}")

    def share_memory_(self) -> Any:
        """Raises: there is no memory yet."""
        raise RuntimeError(f"share_memory_: {_EXPECTED}, got {self!r}")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            make, arguments = self.__reduce_ex__(None)
            memo[id(self)] = make(*arguments)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, self.device, self.dtype)

    def __repr__(self, **options: Any) -> str:
        return f"<{type(self).__name__}>"

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        is_member = type(func).__name__ == "method-wrapper"  # of an attribute
        if not is_member and func not in _DESCRIBE and func not in _CONVERT:
            name = getattr(func, "__name__", func)
            raise ValueError(f"{name}: {_EXPECTED}, got <{cls.__name__}>")
        result = _C._disabled_torch_function_impl(func, types, args, kwargs or {})
        return result.as_subclass(cls) if func in _CONVERT else result


_EXPECTED = "expected an initialized tensor, which the first call of a lazy module makes"
_DESCRIPTIONS = "size copy_ is_complex is_floating_point get_device"
_DESCRIBE = frozenset(getattr(Tensor, name) for name in _DESCRIPTIONS.split())
_CONVERSIONS = "to cpu cuda half float double bfloat16 char short int long"
_CONVERT = frozenset(getattr(Tensor, name) for name in _CONVERSIONS.split())


def is_lazy(param: Any) -> bool:
    """Whether it is a parameter or buffer without a shape.

    >>> weft.nn.parameter.is_lazy(weft.nn.LazyLinear(2).weight)
    True
    """
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[override]
    """A parameter whose shape is not known yet; `materialize(shape)` makes it a Parameter.

    It has a device, a dtype and requires_grad, and can be converted and copied. ValueError for
    other operators, RuntimeError for its shape.

    >>> p = weft.nn.UninitializedParameter()
    >>> p.materialize((2, 3))
    >>> type(p).__name__, p.shape
    ('Parameter', torch.Size([2, 3]))
    """

    cls_to_become = Parameter

    def __new__(
        cls, requires_grad: bool = True, device: Any = None, dtype: Any = None
    ) -> UninitializedParameter:
        data = _C.empty(0, device=device, dtype=dtype)
        return Tensor._make_subclass(cls, data, requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Buffer):  # type: ignore[override]
    """A buffer whose shape is not known yet; `materialize(shape)` makes it a Tensor.

    persistent: whether it is in state_dict. Otherwise as UninitializedParameter.

    >>> b = weft.nn.UninitializedBuffer(dtype=weft.int64)
    >>> b.materialize(3)
    >>> b.dtype, b.shape
    (torch.int64, torch.Size([3]))
    """

    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> UninitializedBuffer:
        data = _C.empty(0, device=device, dtype=dtype)
        made: UninitializedBuffer = Tensor._make_subclass(cls, data, requires_grad)
        made.persistent = persistent
        return made

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return type(self), (self.requires_grad, self.device, self.dtype, self.persistent)


def _rebuild(cls: type[Parameter], data: Tensor, requires_grad: bool) -> Parameter:
    return cls(data, requires_grad)

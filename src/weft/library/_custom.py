"""Operators from one Python function: custom_op, and what is registered for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from weft.library._infer import infer_schema
from weft.library._operator import WAITING_FAKES, Operator, define, find, of
from weft.library._overloads import namespace

Function = Callable[..., Any]
DeviceTypes = str | Sequence[str] | None
_NAME = re.compile(r"[A-Za-z_]\w*::[A-Za-z_]\w*")


class CustomOpDef:
    """What custom_op makes: a call is a call of the operator."""

    _weft_custom_operator: Any = ()  # which compilers look for

    def __init__(self, operator: Operator, function: Function) -> None:
        self._weft_custom_operator = operator
        self._init_fn = function
        self._namespace, _, self._name = operator.qualname.partition("::")
        self._qualname = operator.qualname
        self._schema = str(operator.schema)
        self._opoverload = getattr(namespace(self._namespace), self._name).default
        self.__name__ = self._name
        self.__doc__ = function.__doc__

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._weft_custom_operator.call(args, kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types: DeviceTypes, fn: Function | None = None, /) -> Any:
        """The function that computes on devices of these types; None: on all."""
        return register_kernel(self, device_types, fn)

    def register_fake(self, fn: Function, /) -> Function:
        """The function that makes results of the right looks from tensors without elements."""
        register_fake(self, fn)
        return fn

    def register_autograd(
        self, backward: Function, /, *, setup_context: Function | None = None
    ) -> None:
        """The gradients: `backward(ctx, *grads)` gives one for each argument."""
        register_autograd(self, backward, setup_context=setup_context)

    def register_vmap(self, func: Function | None = None) -> Any:
        """The rule for batches: see library.register_vmap."""
        return register_vmap(self, func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """The dtype of its tensors under autocast."""
        register_autocast(self, device_type, cast_inputs)


def custom_op(
    name: str,
    fn: Function | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: DeviceTypes = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes a function an operator of a name "mylib::op"; without `fn` it is a decorator.

    The operator is `weft.ops.mylib.op` too. Programs, traces and graphs call it as it is, without
    looking inside. The function may do anything with its arguments; what it gives must be new.

    - mutates_args: the names of the tensors that it writes to, or "unknown".
    - device_types: where the function computes, as "cpu"; None: everywhere.
    - schema: "(Tensor x) -> Tensor"; by default `infer_schema` reads the annotations.

    ValueError for other names and for annotations that no schema can say.

    >>> @weft.library.custom_op("mylib::shifted", mutates_args=())
    ... def shifted(x: weft.Tensor, by: float) -> weft.Tensor:
    ...     return x + by
    >>> shifted(weft.zeros(2), 3.0), weft.ops.mylib.shifted.default._schema
    (tensor([3., 3.]), mylib::shifted(Tensor x, float by) -> Tensor)
    """

    def decorate(function: Function) -> CustomOpDef:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(f"custom_op: expected a name as 'mylib::op', got {name!r}")
        text = schema or infer_schema(function, mutates_args=mutates_args)
        operator = define(name, name.partition("::")[2] + text)
        operator.may_alias = False
        made = CustomOpDef(operator, function)
        register_kernel(made, device_types, function)
        return made

    return decorate if fn is None else decorate(fn)


def register_kernel(op: Any, device_types: DeviceTypes, func: Function | None = None, /) -> Any:
    """Registers the function that computes an operator on devices of these types; None: on all.

    `op`: a name "mylib::op", an overload or what custom_op made. Without `func` a decorator.

    >>> weft.library.define("mylib::tripled", "(Tensor x) -> Tensor")
    >>> @weft.library.register_kernel("mylib::tripled", "cpu")
    ... def _(x): return 3 * x
    >>> weft.ops.mylib.tripled(weft.ones(2))
    tensor([3., 3.])
    """
    operator = of(op)

    def register(function: Function) -> Function:
        kinds = [device_types] if device_types is None or isinstance(device_types, str) else None
        for kind in kinds if kinds is not None else device_types or ():
            operator.kernels["every" if kind is None else kind] = function
        return function

    return register if func is None else register(func)


def register_fake(op: Any, func: Function | None = None, /, *, lib: Any = None) -> Any:
    """Registers the function that makes an operator's results without reading elements: tensors of
    the right sizes and dtypes. Calls on the device "meta" run it; `opcheck` compares what it gives
    with the true results. Without `func` a decorator. A function for an operator that is not there
    waits for it.

    >>> @weft.library.custom_op("mylib::ordered", mutates_args=())
    ... def ordered(x: weft.Tensor) -> weft.Tensor:
    ...     return weft.tensor(sorted(x.tolist()))
    >>> @weft.library.register_fake("mylib::ordered")
    ... def _(x): return weft.empty_like(x)
    >>> weft.library.opcheck(ordered, (weft.ones(5),), test_utils="test_faketensor")
    {'test_faketensor': 'SUCCESS'}
    """
    operator = None if isinstance(op, str) and find(op) is None else of(op)

    def register(function: Function) -> Function:
        if operator is None:
            WAITING_FAKES[op if "." in op else f"{op}.default"] = function
        else:
            operator.fake = function
        return function

    return register if func is None else register(func)


def register_autograd(
    op: Any, backward: Function, /, *, setup_context: Function | None = None, lib: Any = None
) -> None:
    """Registers the gradients of an operator.

    - backward: `backward(ctx, *grads)` takes a gradient for each result and gives one for each
      argument, None where there is none; a list for a list of tensors.
    - setup_context: `setup_context(ctx, inputs, output)` keeps what backward needs, by
      `ctx.save_for_backward` or attributes; it takes `keyword_only_inputs` where there are some.

    RuntimeError for an operator that writes to its arguments.

    >>> @weft.library.custom_op("mylib::squared", mutates_args=())
    ... def squared(x: weft.Tensor) -> weft.Tensor:
    ...     return x * x
    >>> def setup(ctx, inputs, output): ctx.save_for_backward(inputs[0])
    >>> squared.register_autograd(lambda ctx, g: 2 * ctx.saved_tensors[0] * g, setup_context=setup)
    >>> x = weft.tensor(3.0, requires_grad=True)
    >>> weft.autograd.grad(squared(x), x)
    (tensor(6.),)
    """
    operator = of(op)
    if operator.schema.is_mutable:
        raise RuntimeError(
            "register_autograd: expected an operator that writes to no argument, got "
            f"{operator.schema}"
        )
    operator.backward, operator.setup_context = backward, setup_context
    if operator.kernels.get("autograd") is operator.kernels.get("every"):
        operator.kernels.pop("autograd", None)  # a library's operator, which records by itself


def register_vmap(op: Any, func: Function | None = None, /, *, lib: Any = None) -> Any:
    """Registers the rule of an operator for batches; without one vmap calls it sample by sample.

    `func(info, in_dims, *args)` gets tensors with the batch's dimension, which `in_dims` tells for
    each (None: no batch), and gives the results and their `out_dims`. `info.batch_size` is the
    number of samples, `info.randomness` what vmap was told.

    >>> @weft.library.custom_op("mylib::doubled", mutates_args=())
    ... def doubled(x: weft.Tensor) -> weft.Tensor:
    ...     return x * 2
    >>> @doubled.register_vmap
    ... def _(info, in_dims, x): return doubled(x), in_dims[0]
    >>> weft.vmap(doubled)(weft.ones(2, 1))
    tensor([[2.],
            [2.]])
    """
    operator = of(op)

    def register(function: Function) -> Function:
        operator.batched = function
        return function

    return register if func is None else register(func)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Under autocast on `device_type`, the operator gets its tensors of floats as `cast_inputs`.

    ValueError for other devices than "cpu" and "cuda"."""
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"register_autocast: expected 'cpu' or 'cuda', got {device_type!r}")
    of(op).autocast[device_type] = cast_inputs


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Any = None, /, **_: Any
) -> Any:
    """Refuses: weft has no `__torch_dispatch__`. NotImplementedError."""
    _absent("register_torch_dispatch", "a __torch_function__ instead, which overrides operators")


def triton_op(
    name: str,
    fn: Function | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
) -> Any:
    """custom_op, for libraries that define the operators of other devices when they are imported.

    The function runs as it is: the kernels that it starts are Triton's own matter.

    >>> @weft.library.triton_op("mylib::fourfold", mutates_args=())
    ... def fourfold(x: weft.Tensor) -> weft.Tensor:
    ...     return x * 4
    >>> fourfold(weft.ones(2))
    tensor([4., 4.])
    """
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """Refuses: weft runs no Triton kernels. NotImplementedError."""
    _absent("wrap_triton", "custom_op")


def get_ctx() -> Any:
    """Refuses: results on the device "meta" have sizes that follow from those of the arguments.
    NotImplementedError."""
    _absent("get_ctx", "results whose sizes do not depend on elements")


def get_kernel(op: Any, dispatch_key: Any) -> Any:
    """The function that computes an operator on a device, by the device's type or its key."""
    return of(op).kernel(str(getattr(dispatch_key, "name", dispatch_key)).lower())


def _absent(what: str, instead: str) -> NoReturn:
    raise NotImplementedError(f"{what}: expected {instead}, got a call; weft has it not")

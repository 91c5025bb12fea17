"""Whole derivatives of functions: Jacobian, Hessian, and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.autograd._run import grad
from weft.autograd.grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tensors(op: str, what: str, value: Any) -> tuple[tuple[Tensor, ...], bool]:
    """A tuple of tensors, and whether it was one to begin with."""
    many = isinstance(value, (tuple, list))
    items = tuple(value) if many else (value,)
    for item in items:
        if not isinstance(item, Tensor):
            raise TypeError(
                f"{op}: expected {what} as a Tensor or a tuple of Tensors, got "
                f"{type(item).__name__}"
            )
    return items, many


def _enter(inputs: tuple[Tensor, ...], create_graph: bool) -> tuple[Tensor, ...]:
    """The inputs as tensors of our own that require grad, linked to the caller's graph or not."""
    if create_graph:
        return tuple(x.view_as(x) if x.requires_grad else _fresh(x) for x in inputs)
    return tuple(_fresh(x) for x in inputs)


def _fresh(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_()


def _gradients(
    op: str,
    outputs: tuple[Tensor, ...],
    inputs: tuple[Tensor, ...],
    vectors: tuple[Tensor, ...],
    create_graph: bool,
    strict: bool,
) -> tuple[Tensor, ...]:
    """Gradients of the outputs that have any; zeros for inputs that they do not depend on."""
    pairs = [(out, v) for out, v in zip(outputs, vectors) if out.requires_grad]
    if strict and len(pairs) < len(outputs):
        raise RuntimeError(f"{op}: expected outputs that depend on the inputs, got one that is not")
    if not pairs:
        return tuple(_C.zeros_like(x) for x in inputs)
    found = grad(
        [out for out, _ in pairs],
        inputs,
        [v for _, v in pairs],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )
    if strict and any(one is None for one in found):
        raise RuntimeError(f"{op}: expected inputs that the outputs depend on, got one that is not")
    if strict and create_graph and not all(one.requires_grad for one in found):
        raise RuntimeError(
            f"{op}: expected derivatives that depend on the inputs, got one that does not"
        )
    return tuple(_C.zeros_like(x) if one is None else one for x, one in zip(inputs, found))


def _vectors(
    op: str, v: Any, targets: tuple[Tensor, ...], needed: bool = True
) -> tuple[Tensor, ...]:
    """The vectors, checked against the tensors they belong to; ones for a single element."""
    if v is None:
        if needed and (len(targets) != 1 or targets[0].numel() != 1):
            raise RuntimeError(f"{op}: expected v for more than one element, got None")
        return tuple(_C.ones_like(target) for target in targets)
    items, _ = _tensors(op, "v", v)
    if len(items) != len(targets):
        raise RuntimeError(f"{op}: expected {len(targets)} vectors, got {len(items)}")
    for item, target in zip(items, targets):
        if item.shape != target.shape:
            raise RuntimeError(
                f"{op}: expected v of shape {tuple(target.shape)}, got {tuple(item.shape)}"
            )
    return items


def _leave(values: tuple[Tensor, ...], many: bool, create_graph: bool) -> Any:
    if not create_graph:
        values = tuple(value.detach() for value in values)
    return values if many else values[0]


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(func(*inputs), v times the Jacobian): one gradient per input.

    - v: one tensor per output, of its shape; may be left out for a one-element output.
    - create_graph: record the result, so that it can be differentiated.
    - strict: raise RuntimeError where an output does not depend on an input, instead of zeros.
    """
    with enable_grad():
        given, many = _tensors("vjp", "inputs", inputs)
        own = _enter(given, create_graph)
        outputs, many_outputs = _tensors("vjp", "outputs of func", func(*own))
        vectors = _vectors("vjp", v, outputs)
        result = _gradients("vjp", outputs, own, vectors, create_graph, strict)
    return _leave(outputs, many_outputs, create_graph), _leave(result, many, create_graph)


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(func(*inputs), the Jacobian times v): one tensor per output, by backward taken twice.

    - v: one tensor per input, of its shape; may be left out for a one-element input.
    - create_graph, strict: as for `vjp`.
    """
    with enable_grad():
        given, _ = _tensors("jvp", "inputs", inputs)
        own = _enter(given, create_graph)
        vectors = _vectors("jvp", v, own)
        outputs, many_outputs = _tensors("jvp", "outputs of func", func(*own))
        # The vector-Jacobian product is linear in its vector; its derivative is the product wanted.
        seeds = tuple(_C.zeros_like(out).requires_grad_() for out in outputs)
        rows = _gradients("jvp", outputs, own, seeds, True, strict)
        result = _gradients("jvp", rows, seeds, vectors, create_graph, strict)
    return _leave(outputs, many_outputs, create_graph), _leave(result, many_outputs, create_graph)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of func: for each output and input a tensor of shape (*output, *input).

    One tensor, a tuple over inputs, or over outputs, or a tuple (outputs) of tuples (inputs), as
    `func` and `inputs` are. create_graph, strict: as for `vjp`. `vectorize` and `strategy` have no
    effect on the result, which is made row by row. As in PyTorch, "forward-mode" without vectorize
    or with create_graph raises NotImplementedError, strict with vectorize RuntimeError.
    """
    _check_strategy("jacobian", strategy, vectorize, create_graph, strict)
    with enable_grad():
        given, many = _tensors("jacobian", "inputs", inputs)
        own = _enter(given, create_graph)
        outputs, many_outputs = _tensors("jacobian", "outputs of func", func(*own))
        rows = tuple(
            _leave(_jacobian_of(out, own, create_graph, strict), many, create_graph)
            for out in outputs
        )
    return rows if many_outputs else rows[0]


def _check_strategy(
    op: str, strategy: str, vectorize: bool, create_graph: bool, strict: bool
) -> None:
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f"{op}: expected strategy 'reverse-mode' or 'forward-mode', got {strategy!r}"
        )
    if strategy == "forward-mode" and (create_graph or not vectorize):
        raise NotImplementedError(
            f"{op}: expected vectorize=True and create_graph=False for 'forward-mode', got "
            f"vectorize={vectorize} and create_graph={create_graph}"
        )
    if strict and vectorize:
        raise RuntimeError(f"{op}: expected strict or vectorize, got both")


def _jacobian_of(
    output: Tensor, inputs: tuple[Tensor, ...], create_graph: bool, strict: bool
) -> tuple[Tensor, ...]:
    """The Jacobians of one output, row by row."""
    rows = [
        _gradients("jacobian", (output,), inputs, (unit,), create_graph, strict)
        for unit in units(output)
    ]
    return tuple(joined(rows, output, inputs))


def units(tensor: Tensor) -> Iterator[Tensor]:
    """Tensors of its sizes with a single 1, one for each element."""
    count = tensor.numel()
    rows = _C._aten.eye(count, dtype=tensor.dtype, device=tensor.device)
    return (rows[i].reshape(tensor.shape) for i in range(count))


def joined(rows: list[Any], output: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Rows, each with a tensor for each input, as Jacobians of shape (*output, *input)."""
    shapes = [(*output.shape, *each.shape) for each in inputs]
    if not rows:
        return [each.new_zeros(shape) for each, shape in zip(inputs, shapes)]
    return [_C._aten.stack(column).reshape(shape) for column, shape in zip(zip(*rows), shapes)]


def _scalar(op: str, func: Callable[..., Any]) -> Callable[..., Tensor]:
    def checked(*args: Tensor) -> Tensor:
        output = func(*args)
        _tensors(op, "outputs of func", output)
        if not isinstance(output, Tensor) or output.numel() != 1:
            raise RuntimeError(f"{op}: expected func to return a Tensor of one element")
        return output.reshape(())

    return checked


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a func that returns one element: tensors of shape (*input_i, *input_j).

    One tensor for one input, else a tuple of tuples. The rest as for `jacobian`.
    """
    _check_strategy("hessian", outer_jacobian_strategy, vectorize, create_graph, strict)
    scalar = _scalar("hessian", func)
    given, many = _tensors("hessian", "inputs", inputs)

    def gradient(*own: Tensor) -> tuple[Tensor, ...]:
        return _gradients(
            "hessian", (scalar(*own),), own, (_C.ones(()).to(own[0].dtype),), True, strict
        )

    rows = jacobian(gradient, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return rows if many else rows[0][0]


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(func(*inputs), v times the Hessian) for a func that returns one element."""
    scalar = _scalar("vhp", func)
    with enable_grad():
        given, many = _tensors("vhp", "inputs", inputs)
        own = _enter(given, create_graph)
        vectors = _vectors("vhp", v, own)
        output = scalar(*own)
        ones = (_C.ones_like(output),)
        gradient = _gradients("vhp", (output,), own, ones, True, strict)
        result = _gradients("vhp", gradient, own, vectors, create_graph, strict)
    return _leave((output,), False, create_graph), _leave(result, many, create_graph)


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """(func(*inputs), the Hessian times v): the same numbers as `vhp`, a Hessian is symmetric."""
    return vhp(func, inputs, v, create_graph, strict)

"""Many modules as one: their parameters stacked; and what transforms ask of modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import _C
from weft._C import Tensor


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of modules of one class, those of a name stacked along a new first
    dimension, for `functional_call` under `vmap`. Parameters that require grad do so stacked.

    RuntimeError for no modules, modules of several classes or in different modes.

    >>> parameters, buffers = weft.func.stack_module_state([weft.nn.Linear(2, 1) for _ in range(3)])
    >>> parameters["weight"].shape
    torch.Size([3, 1, 2])
    """
    if not models:
        raise RuntimeError("stack_module_state: expected at least one module, got none")
    classes = {type(model) for model in models}
    if len(classes) > 1:
        names = sorted(each.__name__ for each in classes)
        raise RuntimeError(f"stack_module_state: expected modules of one class, got {names}")
    if len({bool(model.training) for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: expected modules in the same mode, got training and evaluation"
        )
    members = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    return (
        {name: _stacked(name, [each[name] for each in members]) for name in members[0]},
        {name: _stacked(name, [each[name] for each in buffers]) for name in buffers[0]},
    )


def _stacked(name: str, tensors: list[Tensor]) -> Tensor:
    flags = {each.requires_grad for each in tensors}
    if len(flags) > 1:
        raise RuntimeError(
            f"stack_module_state: expected {name} to require grad in all modules or in none, "
            "got both"
        )
    stacked = _C._aten.stack([each.detach() for each in tensors])
    return stacked.requires_grad_(flags.pop())


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Has every batch norm below `root`, and itself, use the statistics of its batch and keep none,
    in place: what `vmap` cannot do is write one sample's statistics into a buffer of all. Returns
    root.

    >>> norm = weft.func.replace_all_batch_norm_modules_(weft.nn.BatchNorm1d(2))
    >>> norm.track_running_stats
    False
    """
    for module in root.modules():
        if any(each.__name__ == "_BatchNorm" for each in type(module).__mro__):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """func itself: operators in place and views work under every transform of weft, so none has to
    be removed. ValueError for another `remove` than "mutations" or "mutations_and_views".

    >>> weft.func.functionalize(lambda x: x.clone().add_(1))(weft.zeros(1))
    tensor([1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise ValueError(
            "functionalize: expected remove as 'mutations' or 'mutations_and_views', got "
            f"{remove!r}"
        )
    return func

"""Many modules as one, their parameters stacked; calls of modules with other parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft import _C
from weft._C import Tensor
from weft._runtime.public import weft


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


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Tensor] | Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs) with the given tensors for the members of these names.

    parameter_and_buffer_dicts: one dict or a sequence of dicts, by dotted names; gradients flow to
    the tensors; a name that the module has not is an attribute during the call. tie_weights: a
    member that has several names is replaced under all of them, ValueError for several values.
    strict: RuntimeError unless every parameter and buffer is given, and nothing else. The module is
    the same afterwards; a member that it assigned anew meanwhile is put into the dict (where one
    dict is given). It must not be called by another thread meanwhile. TypeError for values and
    attributes that are no tensors; AttributeError for a module that is not there; RuntimeError for
    a scripted or traced module.

    >>> layer = weft.nn.Linear(2, 1, bias=False)
    >>> weft.func.functional_call(layer, {"weight": weft.ones(1, 2)}, (weft.ones(2),))
    tensor([2.])
    """
    dicts = parameter_and_buffer_dicts
    parts = [dicts] if isinstance(dicts, dict) else list(dicts)
    given: dict[str, Tensor] = {}
    for part in parts:
        repeated = sorted(set(given) & set(part))
        if repeated:
            raise ValueError(f"functional_call: expected each name once, got {repeated} again")
        given.update(part)
    if isinstance(module, weft.jit.ScriptModule):
        raise RuntimeError(
            "functional_call: expected a module of Python, got one that is scripted or traced"
        )
    names = {}
    if tie_weights or strict:  # without: modules may contain one another in a circle
        names.update(module.named_parameters(remove_duplicate=False))
        names.update(module.named_buffers(remove_duplicate=False))
    if tie_weights:
        _give_tied(given, names)
    unknown, missing = sorted(set(given) - set(names)), sorted(set(names) - set(given))
    if strict and (unknown or missing):
        raise RuntimeError(
            f"functional_call: expected the names of the module, got {unknown} besides, "
            f"without {missing}"
        )
    replaced: list[tuple[Any, str, str, Any]] = []
    try:
        for name, value in given.items():
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            before = owner.__dict__.get(last, _MISSING)
            for each in (value, before):
                if not (each is None or each is _MISSING or isinstance(each, Tensor)):
                    raise TypeError(
                        f"functional_call: expected a tensor for {name!r} and in its place, got "
                        f"{type(each).__name__}"
                    )
            replaced.append((owner, name, last, before))
            owner.__dict__[last] = value
        if args is None:
            args = ()
        elif not isinstance(args, tuple):
            args = (args,)
        return module(*args, **(kwargs or {}))
    finally:
        for owner, name, last, value in reversed(replaced):
            if isinstance(dicts, dict) and name in dicts:
                dicts[name] = owner.__dict__[last]
            if value is _MISSING:
                del owner.__dict__[last]
            else:
                owner.__dict__[last] = value


_MISSING: Any = object()  # a name that the module has not


def _give_tied(given: dict[str, Tensor], names: dict[str, Tensor]) -> None:
    """Adds the other names of the members in `given`: those of the same tensor in `names`."""
    tied: dict[Tensor, list[str]] = {}
    for name, member in names.items():
        tied.setdefault(member, []).append(name)
    for group in tied.values():
        values = [given[name] for name in group if name in given]
        if any(value is not values[0] for value in values):
            raise ValueError(
                f"functional_call: expected one value for the tied {group}, got several"
            )
        if values:
            given.update(dict.fromkeys(group, values[0]))

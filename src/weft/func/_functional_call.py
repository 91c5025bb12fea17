"""functional_call: a module with other tensors in place of its parameters and buffers."""

from __future__ import annotations

from typing import Any

from weft._C import Tensor


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
    the tensors. tie_weights: a member that has several names is replaced under all of them. strict:
    RuntimeError unless every parameter and buffer is given, and nothing else. The module is the
    same afterwards; a member that it assigned anew meanwhile is put into the dict (where one dict
    is given). It must not be called by another thread meanwhile.

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
    names = dict(module.named_parameters(remove_duplicate=False))
    names.update(module.named_buffers(remove_duplicate=False))
    unknown, missing = sorted(set(given) - set(names)), sorted(set(names) - set(given))
    if strict and (unknown or missing):
        raise RuntimeError(
            f"functional_call: expected the names of the module, got {unknown} besides, "
            f"without {missing}"
        )
    if tie_weights:
        for name, value in list(given.items()):
            same = names.get(name)
            for other, member in names.items():
                if (
                    same is not None
                    and member is same
                    and given.setdefault(other, value) is not value
                ):
                    raise ValueError(
                        f"functional_call: expected one value for the tied {name!r} and {other!r}, "
                        "got two"
                    )
    replaced: list[tuple[Any, str, str, Any]] = []
    try:
        for name, value in given.items():
            path, _, last = name.rpartition(".")
            owner = module.get_submodule(path)
            if last not in owner.__dict__:
                raise KeyError(f"functional_call: expected a member of the module, got {name!r}")
            replaced.append((owner, name, last, owner.__dict__[last]))
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
            owner.__dict__[last] = value

"""Lists and dicts of a node's arguments, which only the node itself may change."""

from __future__ import annotations

from typing import Any, NoReturn

from weft.utils import _pytree


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    kind = type(self).__name__
    raise TypeError(
        f"'{kind}' object does not support mutation: expected a new value for node.args or "
        f"node.kwargs, made from a copy, {kind.removeprefix('immutable_')}(...)"
    )


class immutable_list(list):
    """A list that cannot be changed, as node.args has it.

    >>> weft.fx.immutable_collections.immutable_list([1, 2])
    [1, 2]
    """

    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    """A dict that cannot be changed, as node.kwargs is one."""

    __delitem__ = __ior__ = __setitem__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


_pytree.register_pytree_node(
    immutable_list, lambda value: (list(value), None), lambda items, _: immutable_list(items)
)
_pytree.register_pytree_node(
    immutable_dict,
    lambda value: (list(value.values()), list(value)),
    lambda items, keys: immutable_dict(zip(keys, items)),
)

__all__ = ["immutable_dict", "immutable_list"]

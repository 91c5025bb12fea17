"""From names in the source to Python objects: closures, globals, builtins, the caller's locals."""

from __future__ import annotations

import builtins as python_builtins
import sys
from collections.abc import Mapping
from typing import Any

from weft.jit.cache import reads


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING = _Missing()


class Resolver:
    """Looks a name up in several mappings in turn; only what is asked for is touched. The last ones
    are the builtins."""

    def __init__(
        self, *scopes: Mapping[str, Any], builtins: Mapping[str, Any] = vars(python_builtins)
    ) -> None:
        self.scopes = [*scopes, builtins]

    def find(self, name: str) -> Any:
        """The object, or MISSING."""
        for scope in self.scopes:
            if name in scope:
                return scope[name]
        return MISSING

    def within(self, scope: Mapping[str, Any]) -> Resolver:
        """This resolver with a scope of its own in front."""
        return Resolver(scope, *self.scopes[:-1], builtins=self.scopes[-1])


class Cells(Mapping[str, Any]):
    """The variables a function closes over; a cell that is still empty counts as absent."""

    def __init__(self, function: Any) -> None:
        names = function.__code__.co_freevars
        self._cells = dict(zip(names, function.__closure__ or ()))

    def __getitem__(self, name: str) -> Any:
        try:
            return self._cells[name].cell_contents
        except ValueError:
            raise KeyError(name) from None

    def __iter__(self) -> Any:
        return iter([name for name in self._cells if name in self])

    def __len__(self) -> int:
        return len(list(iter(self)))


def resolver_of_function(function: Any, *extra: Mapping[str, Any]) -> Resolver:
    """What the names of a function mean."""
    scopes = (*reads.bindings_of(function), Cells(function), function.__globals__, *extra)
    return Resolver(*scopes, builtins=function.__builtins__)


def resolver_of_class(cls: type, *extra: Mapping[str, Any]) -> Resolver:
    """What the names in the body of a class mean; its methods' closures know local names."""
    scopes: list[Mapping[str, Any]] = [{cls.__name__: cls}]
    for member in vars(cls).values():
        function = getattr(member, "__func__", member)
        if isinstance(member, property):
            function = member.fget
        if hasattr(function, "__code__") and hasattr(function, "__globals__"):
            scopes.append(Cells(function))
    module = sys.modules.get(cls.__module__)
    scopes.append(vars(module) if module is not None else {})
    return Resolver(*scopes, *extra)

"""Modules that hold others: Sequential, ModuleList, ModuleDict, ParameterList."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from weft._C import Tensor
from weft.nn.modules._registry import MODULE
from weft.nn.modules.module import Module, _addindent
from weft.nn.parameter import Parameter


class _Indexed(Module):
    """Children under the names "0", "1", ...; the common part of Sequential and ModuleList."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter([child for _, child in self._own(MODULE)])

    def _name_at(self, index: Any) -> str:
        names = list(self._modules)
        position = operator.index(index)
        if not -len(names) <= position < len(names):
            raise IndexError(
                f"{type(self).__name__}: expected an index in [-{len(names)}, {len(names)}), "
                f"got {position}"
            )
        return names[position]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [self._name_at(index)]:
            delattr(self, name)
        self._renumber()

    def _renumber(self) -> None:
        children = [child for _, child in self._own(MODULE)]
        for name in list(self._modules):
            delattr(self, name)
        for number, child in enumerate(children):
            self.add_module(str(number), child)

    def append(self, module: Module) -> Any:
        """Adds a module at the end; returns self."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Adds modules at the end; returns self."""
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Puts a module before `index`; returns self. IndexError for a place outside."""
        children = list(self)
        if not -len(children) <= index <= len(children):
            raise IndexError(
                f"{type(self).__name__}.insert: expected an index in [-{len(children)}, "
                f"{len(children)}], got {index}"
            )
        children.insert(index, module)
        for name in list(self._modules):
            delattr(self, name)
        return self.extend(children)

    def pop(self, key: int | slice) -> Any:
        """Removes and returns the module at the place `key`."""
        module = self[key]  # type: ignore[index]
        del self[key]
        return module


class Sequential(_Indexed):
    """Calls its modules one after the other: Sequential(a, b)(x) is b(a(x)).

    Takes modules, or one OrderedDict of names and modules.

    >>> weft.nn.Sequential(weft.nn.Linear(2, 4), weft.nn.ReLU())(weft.ones(3, 2)).shape
    torch.Size([3, 4])
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for number, module in enumerate(args):
                self.add_module(str(number), module)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(self._own(MODULE)[index]))
        return getattr(self, self._name_at(index))

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *_sequential(other))

    def __iadd__(self, other: Sequential) -> Sequential:
        return self.extend(_sequential(other))

    def __mul__(self, count: int) -> Sequential:
        return Sequential(*list(self) * _repeats(count))

    __rmul__ = __mul__

    def __imul__(self, count: int) -> Sequential:
        return self.extend(list(self) * (_repeats(count) - 1))

    def forward(self, input: Any) -> Any:
        attributes = self.__dict__
        for name, kind in attributes["_kinds"].items():
            if kind == MODULE:
                input = attributes[name](input)
        return input

    def _scripted_forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    # weft.jit compiles this one: programs have no __dict__.
    forward._jit_form = _scripted_forward  # type: ignore[attr-defined]


def _sequential(value: Any) -> Sequential:
    if not isinstance(value, Sequential):
        raise ValueError(f"Sequential: expected a Sequential to add, got {type(value).__name__}")
    return value


def _repeats(count: Any) -> int:
    if not isinstance(count, int):
        raise TypeError(f"Sequential: expected an int to multiply by, got {type(count).__name__}")
    if count <= 0:
        raise ValueError(f"Sequential: expected a factor above 0, got {count}")
    return count


class ModuleList(_Indexed):
    """A list whose modules count as children.

    >>> layers = weft.nn.ModuleList([weft.nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([child for _, child in self._own(MODULE)[index]])
        return getattr(self, self._name_at(index))

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __repr__(self) -> str:
        # Neighbours that print alike are printed once, with their count.
        runs: list[tuple[int, int, str]] = []
        for number, child in enumerate(self):
            text = repr(child)
            if runs and runs[-1][2] == text:
                runs[-1] = (runs[-1][0], number, text)
            else:
                runs.append((number, number, text))
        if not runs:
            return f"{self._get_name()}()"
        body = ""
        for first, last, text in runs:
            if first == last:
                body += f"\n  ({first}): {_addindent(text, 2)}"
            else:
                body += f"\n  ({first}-{last}): {last - first + 1} x {_addindent(text, 2)}"
        return f"{self._get_name()}({body}\n)"


class _Keyed(Module):
    """What holds others under names, in their order; `_held` has the names as keys."""

    def _held(self) -> Mapping[str, Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._held())

    def __iter__(self) -> Iterator[str]:
        return iter(self._held())

    def __contains__(self, key: object) -> bool:
        return key in self._held()

    def keys(self) -> Any:
        """The names, in order, as a dictionary shows them: a set that can be iterated."""
        return dict.fromkeys(self._held()).keys()

    def values(self) -> list[Any]:
        """What stands under the names, in order."""
        return [self[key] for key in self]  # type: ignore[index]

    def items(self) -> list[tuple[str, Any]]:
        """The pairs of a name and what stands under it, in order."""
        return [(key, self[key]) for key in self]  # type: ignore[index]

    def pop(self, key: str) -> Any:
        """Removes and returns what stands under `key`."""
        value = self[key]  # type: ignore[index]
        del self[key]
        return value

    def clear(self) -> None:
        """Removes all."""
        for key in list(self):
            self.pop(key)


class ModuleDict(_Keyed):
    """A dict whose modules count as children.

    >>> layers = weft.nn.ModuleDict({"a": weft.nn.Linear(2, 3)})
    >>> layers["b"] = weft.nn.ReLU()
    >>> list(layers)
    ['a', 'b']
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def _held(self) -> Mapping[str, Any]:
        return self._modules

    def update(self, modules: Any) -> None:
        """Adds the modules of a mapping or of (name, module) pairs."""
        pairs = modules.items() if isinstance(modules, Mapping | ModuleDict) else modules
        for name, module in pairs:
            self[name] = module


class ParameterList(Module):
    """A list whose tensors count as parameters; it holds other values as they are.

    >>> weights = weft.nn.ParameterList([weft.ones(2)])
    >>> _ = weights.append(weft.zeros(1))
    >>> list(weights.state_dict())
    ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(self._size)])

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, str(self._position(index)))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(self._position(index)), _as_parameter(value))

    def _position(self, index: int) -> int:
        position = operator.index(index)
        if not -self._size <= position < self._size:
            raise IndexError(
                f"ParameterList: expected an index in [-{self._size}, {self._size}), got {position}"
            )
        return position % self._size

    def append(self, value: Any) -> ParameterList:
        """Adds a value at the end, a tensor as a Parameter; returns self."""
        setattr(self, str(self._size), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds values at the end; returns self. TypeError for what has none, or is one tensor."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            got = type(values).__name__
            raise TypeError(f"ParameterList.extend: expected a list of values, got {got}")
        for value in list(values):
            self.append(value)
        return self

    __iadd__ = extend

    def extra_repr(self) -> str:
        lines = []
        for number, value in enumerate(self):
            text = f"Object of type: {type(value).__name__}"
            if isinstance(value, Tensor):
                sizes = "x".join(map(str, value.shape))
                text = f"Parameter containing: [{value.dtype} of size {sizes}]"
            lines.append(f"  ({number}): {text}")
        return "\n".join(lines)


class ParameterDict(_Keyed):
    """A dict whose tensors count as parameters.

    >>> weights = ParameterDict({"a": weft.ones(2)})
    >>> weights["b"] = weft.zeros(1)
    >>> list(weights.state_dict())
    ['a', 'b']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: expected a string as key, got {type(key).__name__}")
        if key not in self._keys and hasattr(self, key):
            raise KeyError(f"ParameterDict: expected an unused name, got the attribute {key!r}")
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def _held(self) -> Mapping[str, Any]:
        return self._keys

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter under `key`, or the default."""
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter under `key`, which is the default from now on if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def popitem(self) -> tuple[str, Any]:
        """Removes and returns the last pair."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def copy(self) -> ParameterDict:
        """Another dict of the same parameters."""
        return ParameterDict(dict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dict of the default under each key."""
        return ParameterDict(dict.fromkeys(keys, default))

    def update(self, parameters: Any) -> None:
        """Adds the parameters of a mapping or of (name, tensor) pairs. Of a plain dict in the order
        of the names, as PyTorch does: optimizers count parameters in this order."""
        if isinstance(parameters, OrderedDict | ParameterDict):
            pairs = list(parameters.items())
        else:
            pairs = sorted(parameters.items()) if isinstance(parameters, Mapping) else parameters
        for name, value in pairs:
            self[name] = value

    def __or__(self, other: Any) -> ParameterDict:
        return self.copy().__ior__(other)

    def __ror__(self, other: Any) -> Any:
        made = other.copy()
        made.update(self.items())
        return made

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def extra_repr(self) -> str:
        lines = []
        for name, value in self.items():
            if isinstance(value, Tensor):
                sizes = "x".join(map(str, value.shape))
                kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
                text = f"{kind} containing: [{value.type()} of size {sizes}]"
            else:
                text = f"Object of type: {type(value).__name__}"
            lines.append(f"  ({name}): {text}")
        return "\n".join(lines)


def _as_parameter(value: Any) -> Any:
    """A tensor as a Parameter; anything else as it is."""
    plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if plain else value

"""Everything that a program depends on, found from the function that it is compiled from.

A walk begins at a function and follows the names in its source: to the values, functions, classes
and modules that they mean, to defaults, closures, decorators and annotations, and to what those
hold. It may find more than the compiler reads, never less: `reads.py` compares. The objects are
numbered in the order in which they are met, so that a program kept by one process can name them
in another. weft's own functions, those of Python's library and types written in C are their names:
the versions of both are part of every key.
"""

from __future__ import annotations

import enum
import os
import re
import sys
import types
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard

from weft import _C
from weft._C import Tensor
from weft._runtime.annotations import OF_PYTHON, annotations_in
from weft._runtime.public import weft
from weft._tensor.tensor import unrecorded
from weft.jit import memo
from weft.jit.cache.files import sha256
from weft.version import __version__

_MOST = 20_000  # objects; what depends on more is not kept
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBERS = (int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented))
_DESCRIBED = (_C.dtype, _C.device, _C.layout, _C.memory_format)
_IN_CLASSES = frozenset(
    [
        *("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__slots__"),
        *("__abstractmethods__", "_abc_impl", "__match_args__"),
        *("__static_attributes__", "__firstlineno__", "__annotations__", *OF_PYTHON),
        memo.MARK,
    ]
)
_MADE = frozenset(("_weft_script_function", memo.MARK))  # what weft.jit leaves in functions


class NotKept(Exception):
    """The reason why a program cannot be kept."""


class Walk:
    """The walk from some objects, or from a text. `scopes`: where names of all of its functions are
    looked up behind their own globals: the variables of the caller of `script`.

    objects   in the order in which they were met
    spans     by file, the lines of functions that were met: (first, last), from 1
    bindings  by the identity of a function, what the names in its source mean; 0: of a text
    """

    def __init__(self, *scopes: Mapping[str, Any]) -> None:
        self.objects: list[Any] = []
        self.values: set[tuple[type, str]] = set()
        self.opaque: set[int] = set()
        self.spans: dict[str, list[tuple[int, int]]] = {}
        self.bindings: dict[int, dict[str, Any]] = {}
        self._scopes = scopes
        self._numbers: dict[int, int] = {}
        self._hash = sha256()
        self._files: dict[str, list[str] | None] = {}

    @property
    def digest(self) -> str:
        """Of everything that was met so far."""
        return self._hash.hexdigest()

    def number(self, obj: Any) -> int | None:
        """The number of an object that was met."""
        return self._numbers.get(id(obj))

    def knows(self, obj: Any) -> bool:
        """Whether the digest tells what this object is."""
        if type(obj) in _NUMBERS:
            return (type(obj), repr(obj)) in self.values
        if isinstance(obj, _DESCRIBED):
            return (type(obj), str(obj)) in self.values
        if isinstance(obj, types.ModuleType):  # nothing but its attributes
            return True
        return (id(obj) in self._numbers and id(obj) not in self.opaque) or _is_named(obj)

    @unrecorded
    def start(self, root: Any) -> None:
        """Walks from a function or a module; or from a text: then `scopes` are all that its names
        are looked up in."""
        self._root = root
        if isinstance(root, str):
            self._write("text", root)
            self._names(0, root, self._scopes)
        else:
            self._put(root)
        self._finish()

    def is_current(self) -> bool:
        """Whether the same walk would meet the same now."""
        again = Walk(*self._scopes)
        again.start(self._root)
        return again.digest == self.digest

    def _finish(self) -> None:
        done = 0
        while done < len(self.objects):
            if len(self.objects) > _MOST:
                raise NotKept("too many objects")
            self._open(self.objects[done])
            done += 1

    # What is written -----------------------------------------------------------------------------

    def _write(self, *parts: str) -> None:
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            self._hash.update(b"%d:" % len(data))
            self._hash.update(data)

    def _put(self, obj: Any) -> None:
        """Writes a value, or the number of an object, which is opened later."""
        kind = type(obj)
        if kind in _NUMBERS:
            text = repr(obj)
            self.values.add((kind, text))
            self._write(kind.__name__, text)
        elif isinstance(obj, _DESCRIBED):
            self.values.add((kind, str(obj)))
            self._write(kind.__name__, str(obj))
        elif _is_named(obj):
            self._write("named", *_name_of(obj))
        else:
            known = self._numbers.get(id(obj))
            if known is None:
                known = self._numbers[id(obj)] = len(self.objects)
                self.objects.append(obj)
            self._write("#", str(known))

    def _put_all(self, what: str, items: Iterable[Any]) -> None:
        held = list(items)
        self._write(what, str(len(held)))
        for item in held:
            self._put(item)

    def _put_dict(self, what: str, held: Mapping[Any, Any]) -> None:
        self._put_all(what, [part for pair in held.items() for part in pair])

    # What objects hold ---------------------------------------------------------------------------

    def _open(self, obj: Any) -> None:
        if isinstance(obj, types.FunctionType):
            self._function(obj)
        elif isinstance(obj, enum.Enum):
            self._put_all("member", (type(obj), obj.name, obj.value))
        elif isinstance(obj, type):
            self._class(obj)
        elif isinstance(obj, types.ModuleType):
            self._write("module", obj.__name__)  # what is read of it stands with the reader's names
        elif isinstance(obj, Tensor):
            self._tensor(obj)
        elif is_module(obj) and "_jit_info" not in vars(obj):  # a compiled one tells no more
            self._module(obj)
        elif isinstance(obj, dict):
            self._put(type(obj))  # and what the base says, not what a derived class does
            base: Any = OrderedDict if isinstance(obj, OrderedDict) else dict
            self._put_dict("dict", dict(base.items(obj)))
        elif isinstance(obj, (list, tuple)):
            base = list if isinstance(obj, list) else tuple
            self._put_all("items", (type(obj), *base.__iter__(obj)))
        elif isinstance(obj, (int, float, complex, str)):  # of a derived class
            self._put_all("derived", (type(obj), *_base_value(obj)))
        else:
            self._other(obj)

    def _tensor(self, tensor: Tensor) -> None:
        facts = (tensor.dtype, tensor.device, tensor.requires_grad, tuple(tensor.shape))
        self._put_all("tensor", (type(tensor), *facts, tensor.stride() if tensor.numel() else ()))

    def _module(self, module: Any) -> None:
        """A module's members are the program's: their kinds and types count, not what they hold."""
        self._put(type(module))
        for name, kind in module._kinds.items():
            value = vars(module)[name]
            self._write("member", name, kind)
            is_tensor = isinstance(value, Tensor)
            self._put_all(name, (type(value), value.dtype) if is_tensor else (value,))
        internal = sys.modules["weft.nn.modules.module"].INTERNAL
        held = {k: v for k, v in vars(module).items() if k not in internal and k != "training"}
        self._put_dict("attributes", {k: v for k, v in held.items() if k not in module._kinds})
        for hooks in ("_forward_pre_hooks", "_forward_hooks"):
            self._put_all(hooks, vars(module).get(hooks, {}).values())

    def _other(self, obj: Any) -> None:
        parts = _PARTS.get(type(obj)) or _parts_of_typing(obj)
        if parts is not None:
            self._put_all(type(obj).__name__, [getattr(obj, part, None) for part in parts])
            return
        key = getattr(obj, "_weft_key", None)  # of a compiled function
        if isinstance(key, str):
            self._write("program", key)
            return
        self.opaque.add(id(obj))
        self._write("object")
        self._put(type(obj))

    def _class(self, cls: Any) -> None:
        self._write("class", str(cls.__module__), cls.__qualname__)  # a descriptor, of some in C
        self._put_all("bases", cls.__mro__[1:])
        is_enum = issubclass(cls, enum.Enum)
        if is_enum:
            self._put_dict("members", {k: v.value for k, v in cls.__members__.items()})
        self._put_dict("annotations", annotations_in(cls))
        held = {k: v for k, v in vars(cls).items() if k not in _IN_CLASSES}
        for name, member in held.items():
            if not (is_enum and isinstance(member, cls)):
                self._write(name)
                self._put(member)

    def _function(self, function: types.FunctionType) -> None:
        code = function.__code__
        self._write("function", function.__module__ or "", function.__qualname__)
        self._write(code.co_filename, str(code.co_firstlineno), *code.co_names)
        text = self._text(code)
        if text is None or function.__name__ == "<lambda>":  # of which a line may have several
            self._write(code.co_code.hex())
            self._put_all("constants", [c for c in code.co_consts if type(c) in _NUMBERS])
        self._write(text or "")
        self._put_all("defaults", function.__defaults__ or ())
        self._put_dict("keywords", function.__kwdefaults__ or {})
        self._put_dict("annotations", annotations := annotations_in(function))
        self._put_dict("marks", {k: v for k, v in vars(function).items() if k not in _MADE})
        cells = dict(zip(code.co_freevars, function.__closure__ or ()))
        closure = {name: cell.cell_contents for name, cell in cells.items() if _is_set(cell)}
        written = (each for each in annotations.values() if isinstance(each, str))
        names = [text or "", *_names_in(code), *written]
        scopes = (closure, function.__globals__, *self._scopes)
        self._names(id(function), " ".join(names), scopes)
        self._overloads(function)

    def _overloads(self, function: types.FunctionType) -> None:
        """Signatures that stand for a function are in a table by its name."""
        module = sys.modules.get("weft.jit.frontend.language.generic")
        if module is not None and module.overloads_of(function):
            raise NotKept("overloads")

    def _names(self, owner: int, text: str, scopes: tuple[Mapping[str, Any], ...]) -> None:
        """What the names in a text mean, and what the text may read of modules that it names."""
        found = self.bindings[owner] = {}
        names = dict.fromkeys(_NAME.findall(text))
        for name in names:
            for scope in scopes:
                if name in scope:
                    found[name] = scope[name]
                    self._write(name)
                    self._put(scope[name])
                    self._members_of(scope[name], names, set())
                    break

    def _members_of(self, module: Any, names: Iterable[str], seen: set[int]) -> None:
        if not isinstance(module, types.ModuleType) or id(module) in seen:
            return
        seen.add(id(module))
        is_library = _is_library_name(module.__name__)
        for name in names:
            found = vars(module).get(name)
            if isinstance(found, types.ModuleType):
                self._members_of(found, names, seen)
            # What a library has of its own: which of it is there may depend on what was imported.
            elif name in vars(module) and not (is_library and _is_own(found)):
                self._write(module.__name__, name)
                self._put(found)

    # Sources -------------------------------------------------------------------------------------

    def _text(self, code: types.CodeType) -> str | None:
        """The lines of a function: those of its instructions, and all that stand further in behind
        them. The line that ends it is no part of it."""
        lines = self._lines(code.co_filename)
        start = code.co_firstlineno - 1
        if lines is None or not 0 <= start < len(lines):
            return None
        end = max(line for each in _nested(code) for *_, line in each.co_lines() if line)
        width = _indent(lines[start])
        while end < len(lines) and (_is_blank(lines[end]) or _indent(lines[end]) > width):
            end += 1
        self.spans.setdefault(code.co_filename, []).append((start + 1, end))
        return "".join(lines[start:end])

    def _lines(self, filename: str) -> list[str] | None:
        if filename not in self._files:
            self._files[filename] = _read(filename)
        return self._files[filename]


def is_module(obj: Any) -> bool:
    """Whether it is an nn.Module. Where nobody has imported weft.nn, nothing is."""
    nn = sys.modules.get("weft.nn")
    return nn is not None and isinstance(obj, nn.Module)


def _read(filename: str) -> list[str] | None:
    """The lines of a file, or of a notebook's cell."""
    try:
        with open(filename, encoding="utf-8") as file:
            return file.readlines()
    except (OSError, ValueError):
        held = getattr(sys.modules.get("linecache"), "cache", {}).get(filename)
        return list(held[2]) if held is not None and len(held) == 4 else None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_blank(line: str) -> bool:
    return line.lstrip()[:1] in ("", "#")


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _nested(value)


def _names_in(code: types.CodeType) -> Iterator[str]:
    for each in _nested(code):
        yield from each.co_names
        yield from each.co_freevars


def _is_set(cell: Any) -> bool:
    try:
        return bool([cell.cell_contents])
    except ValueError:
        return False


def _base_value(obj: Any) -> tuple[Any, ...]:
    kind: Any = next(each for each in (int, float, complex, str) if isinstance(obj, each))
    return kind, *kind.__getnewargs__(obj)  # whatever the derived class says of it


# What else can be opened, and what it is made of.
_PARTS: dict[type, tuple[str, ...]] = {
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    types.MethodType: ("__self__", "__func__"),
    types.GenericAlias: ("__origin__", "__args__"),
    types.UnionType: ("__args__",),
    types.MappingProxyType: (),
}


def _parts_of_typing(obj: Any) -> tuple[str, ...] | None:
    """List[int], Optional[T], a NewType, a TypeVar, a forward reference."""
    if type(obj).__module__ in ("typing", "annotationlib"):
        return (
            *("__origin__", "__args__", "__metadata__", "__supertype__", "__forward_arg__"),
            *("__name__", "_name", "__bound__", "__constraints__"),
        )
    if type(obj).__module__ == "functools" and hasattr(obj, "keywords"):
        return ("func", "args", "keywords")
    if type(obj).__module__ == "dataclasses":  # a field, or its parameters
        slots = getattr(type(obj), "__slots__", ())
        return tuple(name for name in slots if name not in ("metadata", "_field_type"))
    if type(obj).__name__ in ("_tuplegetter", "member_descriptor", "getset_descriptor"):
        return ()
    return None


# Libraries ---------------------------------------------------------------------------------------


def _is_library_name(module: Any) -> TypeGuard[str]:
    if not isinstance(module, str):
        return False
    top = module.partition(".")[0]
    if top == "weft":
        return True
    # A module of the user may have the name of one of Python's.
    file = getattr(sys.modules.get(top), "__file__", None)
    is_python = file is None or os.path.dirname(file).startswith(_PYTHON)
    return top in sys.stdlib_module_names and is_python and "site-packages" not in (file or "")


def _is_named(obj: Any) -> bool:
    """Whether an object is what stands under its name in weft or in Python's library, or a type or
    function written in C."""
    if isinstance(obj, type):
        return not obj.__flags__ & _HEAP_TYPE or _is_in_library(obj)
    if isinstance(obj, _C._Overridable):
        return _is_named(obj.__wrapped__)
    if isinstance(obj, types.FunctionType):
        return _is_in_library(obj)
    return isinstance(obj, _IN_C) or type(obj) is _C._OpFunction


_HEAP_TYPE = 1 << 9
_PYTHON = os.path.dirname(os.__file__)
_IN_C = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)


def _is_in_library(obj: Any) -> bool:
    module = getattr(obj, "__module__", None)
    if not _is_library_name(module):
        return False
    found: Any = sys.modules.get(module)
    for part in obj.__qualname__.split("."):
        found = getattr(found, part, None)
    if isinstance(found, _C._Overridable):
        found = found.__wrapped__
    return getattr(found, "__func__", found) is obj


def _is_own(obj: Any) -> bool:
    """Whether something in a library's module is of a library, or no object that a user made."""
    if isinstance(obj, (type, types.FunctionType)):
        return _is_library_name(getattr(obj, "__module__", None))
    return not isinstance(obj, Tensor)


def _name_of(obj: Any) -> tuple[str, str]:
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", "")
    return str(getattr(obj, "__module__", "")), name if isinstance(name, str) else repr(obj)


def version(folder: str = os.path.dirname(weft.__file__)) -> str:
    """What makes the same source another program: weft, Python, the machine."""
    sizes, times, waiting = 0, 0, [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name.endswith((".py", ".so")):
                    about = entry.stat()
                    sizes, times = sizes + about.st_size, times + about.st_mtime_ns
                elif entry.is_dir() and entry.name not in ("__pycache__", "include"):
                    waiting.append(entry.path)
    facts = (__version__, sys.version, sys.flags.optimize, _C._isa(), sizes, times)
    return "\0".join(map(str, facts))

"""Unpickler: reads pickles of tensors and plain containers, and can do nothing else.

An interpreter of the opcodes that such pickles need. A global is a name looked up in a fixed table
(globals.py), never an import; REDUCE calls only what that table has, or what the program allowed by
name (safe_globals.py). What is outside is refused by name. Work and memory stay in proportion to
the pickle: nesting is limited, and so is what may be a key, since hashing a nested tuple can take
exponential time.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from weft import _C
from weft._C import Tensor
from weft.serialization.errors import LoadError, shown
from weft.serialization.safe_globals import is_allowed_object

_MAX_NESTING = 1000  # of open marks and of tuples inside tuples
_MAX_STACK = 4_000_000
_MAX_NAME = 500
_MAX_KEY_PARTS = 64
_MAX_TUPLE_KEYS = 10_000
_DICT_TYPES = frozenset((dict, OrderedDict, Counter, defaultdict))
_KEY_TYPES = frozenset((str, float, bool, type(None), bytes))

# Malformed pickles run into these in the interpreter itself: a stack that is empty, a memo without
# the index, text that is no UTF-8, an operand of another type than the opcode works on.
_MALFORMED = (
    *(IndexError, KeyError, TypeError, ValueError, OverflowError, AttributeError),
    struct.error,
)


class Inert:
    """What a pickle mentions on the way to a value, and what cannot be part of the result."""

    __slots__ = ()

    def describe(self) -> str:
        """What it is, for a message."""
        return f"a bare {type(self).__name__}"


class Arguments(Inert, tuple):
    """A tuple with something inert inside: it can only be the argument of something."""


class Global(Inert):
    """A global by its name, and what it stands for."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: Callable[..., Any]) -> None:
        self.name = name
        self.value = value

    def describe(self) -> str:
        return f"the global {shown(self.name)}"


class Callee(Global):
    """One that REDUCE may call with the tuple of arguments.

    With `checks` its first argument is the function that checks keys, for those that hash. With
    `bare` its argument stands without a tuple, as the value of an enum's member does.
    """

    __slots__ = ("bare", "checks")

    def __init__(
        self, name: str, value: Callable[..., Any], checks: bool = False, bare: bool = False
    ) -> None:
        super().__init__(name, value)
        self.checks = checks
        self.bare = bare


class ObjectType(Global):
    """One whose value makes an object for NEWOBJ, without arguments."""

    __slots__ = ()

    def describe(self) -> str:
        return f"the class {shown(self.name)}"


class Allowed(Global):
    """A class or function of the program, which it allowed by add_safe_globals."""

    __slots__ = ()


class Own(Allowed):
    """A class of the library, of which only objects without arguments are made, or a function that
    is only mentioned."""

    __slots__ = ()


class Unpickler:
    """Reads one pickle after the other from `data`, starting at `position`.

    `find_global(module, name)` gives the value of a global or raises LoadError; `persistent(id)`
    gives what a persistent id stands for; `set_state(object, state)` does BUILD, and gives what
    stands in the object's place, or None. `encoding` is that of the text of Python 2, "bytes" to
    leave it as it is, None for UTF-8, or Latin-1 where it is not that.
    """

    def __init__(
        self,
        data: bytes,
        find_global: Callable[[str, str], Any],
        persistent: Callable[[Any], Any],
        set_state: Callable[[Any, Any], Any],
        encoding: str | None = None,
    ) -> None:
        self.position = 0
        self.encoding = encoding
        self._data = data
        self._find_global = find_global
        self._persistent = persistent
        self._set_state = set_state

    def load(self) -> Any:
        """The next object. LoadError for what is damaged or refused."""
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._depths: dict[int, int] = {}
        self._tuple_keys = 0
        data, opcodes = self._data, _OPCODES
        try:
            while True:
                code = data[self.position]
                self.position += 1
                if code == _STOP:
                    return _result(self._stack.pop())
                opcode = opcodes.get(code)
                if opcode is None:
                    raise LoadError(f"load: expected a known pickle opcode, got {code:#04x}")
                opcode(self)
        except _MALFORMED as error:
            text = shown(str(error))
            where = f"at byte {self.position} of {len(data)}"
            raise LoadError(f"load: expected an intact pickle, got {text} {where}") from error

    # ---- bytes of the pickle ----

    def _take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self._data):
            raise LoadError("load: expected an intact pickle, got one cut short")
        taken = self._data[self.position : end]
        self.position = end
        return taken

    def _int(self, count: int) -> int:
        return int.from_bytes(self._take(count), "little")

    def _line(self) -> str:
        end = self._data.find(b"\n", self.position, self.position + _MAX_NAME)
        if end < 0:
            raise LoadError(f"load: expected names of at most {_MAX_NAME} bytes in the pickle")
        line = self._data[self.position : end]
        self.position = end + 1
        return line.decode()

    # ---- the stack ----

    def _push(self, value: Any) -> None:
        if len(self._stack) >= _MAX_STACK:
            raise LoadError(f"load: expected at most {_MAX_STACK} open values in the pickle")
        self._stack.append(value)

    def _mark(self) -> None:
        if len(self._marks) >= _MAX_NESTING:
            raise LoadError(f"load: expected nesting of at most {_MAX_NESTING} in the pickle")
        self._marks.append(len(self._stack))

    def _since_mark(self) -> list[Any]:
        start = self._marks.pop()
        if start > len(self._stack):
            raise LoadError("load: expected an intact pickle, got a mark above the stack")
        values = self._stack[start:]
        del self._stack[start:]
        return values

    # ---- containers ----

    def _tuple(self, values: list[Any]) -> None:
        depth, inert = 1, False
        values = [value.value if isinstance(value, Allowed) else value for value in values]
        for value in values:
            if isinstance(value, tuple):
                depth = max(depth, 1 + self._depths.get(id(value), 1))
            inert = inert or isinstance(value, Inert)
        made = Arguments(values) if inert else tuple(values)
        if depth > _MAX_NESTING:
            raise LoadError(f"load: expected nesting of at most {_MAX_NESTING} in the pickle")
        if depth > 1:
            self._depths[id(made)] = depth
        elif made:
            self._depths.pop(id(made), None)
        self._push(made)

    def _short_tuple(self, count: int) -> None:
        values = self._stack[-count:]
        if len(values) != count:
            raise LoadError("load: expected an intact pickle, got too few values for a tuple")
        del self._stack[-count:]
        self._tuple(values)

    def _append(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) not in (list, deque) and not is_allowed_object(target):
            raise LoadError(f"load: expected a list to append to, got {type(target).__name__}")
        target.extend(map(_result, values))

    def _set_items(self, values: list[Any]) -> None:
        target = self._stack[-1]
        known = type(target) in _DICT_TYPES or is_allowed_object(target)
        if not known or len(values) % 2:
            raise LoadError(f"load: expected pairs for a dict, got {type(target).__name__}")
        for key, value in zip(values[::2], values[1::2]):
            self.check_key(key)
            target[key] = _result(value)

    def _add_items(self) -> None:
        values = self._since_mark()
        target = self._stack[-1]
        if type(target) is not set:
            raise LoadError(f"load: expected a set to add to, got {type(target).__name__}")
        for value in values:
            self.check_key(value)
            target.add(value)

    def check_key(self, key: Any) -> None:
        """LoadError for what may not be a key of a dict or an element of a set."""
        if type(key) in _KEY_TYPES:
            return
        if type(key) is tuple:
            self._tuple_keys += 1
            if self._tuple_keys > _MAX_TUPLE_KEYS:
                raise LoadError(f"load: expected at most {_MAX_TUPLE_KEYS} tuples as keys")
        if not _is_key(key, [_MAX_KEY_PARTS]):
            raise LoadError(f"load: expected a plain key of a dict or set, got {_kind(key)}")

    # ---- objects ----

    def _global(self, module: str, name: str) -> None:
        self._push(self._find_global(module, name))

    def _stack_global(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if type(name) is not str or type(module) is not str:
            raise LoadError("load: expected the names of a global")
        self._global(module, name)

    def _reduce(self) -> None:
        arguments = self._stack.pop()
        callee = self._stack.pop()
        if type(callee) is Allowed and type(arguments) is tuple:
            return self._push(callee.value(*arguments))
        if type(callee) is Callee and callee.bare:
            arguments = (_result(arguments),)
        if type(callee) is not Callee or type(arguments) not in (tuple, Arguments):
            raise LoadError(f"load: expected a call of a known function, got {_kind(callee)}")
        if callee.checks:
            arguments = (self.check_key, *arguments)
        self._push(callee.value(*arguments))

    def _new_object(self) -> None:
        arguments, made = self._stack.pop(), self._stack.pop()
        known = isinstance(made, Allowed) and isinstance(made.value, type)
        if known and (arguments == () or (type(made) is Allowed and type(arguments) is tuple)):
            return self._push(made.value.__new__(made.value, *arguments))
        if type(made) is not ObjectType or arguments != ():
            raise LoadError(f"load: expected a known class without arguments, got {_kind(made)}")
        self._push(made.value())

    def _build(self) -> None:
        state = self._stack.pop()
        made = self._set_state(self._stack[-1], state)
        if made is not None:
            self._stack[-1] = made

    def _float(self) -> None:
        self._push(struct.unpack(">d", self._take(8))[0])

    def _old_text(self, count: int) -> None:
        """The str of Python 2: text where it can be."""
        raw = self._take(count)
        if self.encoding is not None:
            self._push(raw if self.encoding == "bytes" else raw.decode(self.encoding))
            return
        try:
            self._push(raw.decode())
        except UnicodeDecodeError:
            self._push(raw.decode("latin-1"))

    def _text(self, count: int) -> None:
        self._push(self._take(count).decode("utf-8", "surrogatepass"))

    def _frame(self) -> None:
        self._take(8)  # a hint about buffering

    def _protocol(self) -> None:
        version = self._int(1)
        if not 2 <= version <= 5:
            raise LoadError(f"load: expected a pickle of protocol 2 to 5, got {version}")


def _result(value: Any) -> Any:
    """The value, if it can be part of a result."""
    if isinstance(value, Allowed):
        return value.value
    if isinstance(value, Inert):
        raise LoadError(f"load: expected only tensors and plain containers, got {_kind(value)}")
    return value


def _kind(value: Any) -> str:
    return value.describe() if isinstance(value, Inert) else f"a value of {type(value).__name__}"


def _is_key(key: Any, left: list[int]) -> bool:
    """Whether hashing and comparing the key is sure to be quick. `left` counts its parts down.

    Integers stay in 64 bits, as many larger ones have the same hash.
    """
    left[0] -= 1
    if left[0] < 0:
        return False
    if type(key) is int:
        return -(1 << 63) <= key < 1 << 64
    if isinstance(key, tuple):
        return all(_is_key(part, left) for part in key)
    return type(key) in _KEY_TYPES or isinstance(key, (Tensor, _C.dtype, _C.device))


def _signed(reader: Unpickler) -> int:
    return int.from_bytes(reader._take(4), "little", signed=True)


def _long(reader: Unpickler) -> int:
    return int.from_bytes(reader._take(reader._int(1)), "little", signed=True)


def _put(reader: Unpickler, index: int) -> None:
    reader._memo[index] = reader._stack[-1]


def _pop_pair(reader: Unpickler) -> list[Any]:
    value = reader._stack.pop()
    return [reader._stack.pop(), value]


_STOP = ord(".")
_OPCODES: dict[int, Callable[[Unpickler], None]] = {
    0x80: Unpickler._protocol,
    0x95: Unpickler._frame,
    ord("("): Unpickler._mark,
    ord("N"): lambda r: r._push(None),
    0x88: lambda r: r._push(True),
    0x89: lambda r: r._push(False),
    ord("J"): lambda r: r._push(_signed(r)),
    ord("K"): lambda r: r._push(r._int(1)),
    ord("M"): lambda r: r._push(r._int(2)),
    0x8A: lambda r: r._push(_long(r)),
    ord("G"): Unpickler._float,
    ord("X"): lambda r: r._text(r._int(4)),
    0x8C: lambda r: r._text(r._int(1)),
    0x8D: lambda r: r._text(r._int(8)),
    ord("T"): lambda r: r._old_text(r._int(4)),
    ord("U"): lambda r: r._old_text(r._int(1)),
    ord("B"): lambda r: r._push(r._take(r._int(4))),
    ord("C"): lambda r: r._push(r._take(r._int(1))),
    0x8E: lambda r: r._push(r._take(r._int(8))),
    0x96: lambda r: r._push(bytearray(r._take(r._int(8)))),
    ord(")"): lambda r: r._push(()),
    ord("t"): lambda r: r._tuple(r._since_mark()),
    0x85: lambda r: r._short_tuple(1),
    0x86: lambda r: r._short_tuple(2),
    0x87: lambda r: r._short_tuple(3),
    ord("]"): lambda r: r._push([]),
    ord("l"): lambda r: r._push([_result(value) for value in r._since_mark()]),
    ord("a"): lambda r: r._append([r._stack.pop()]),
    ord("e"): lambda r: r._append(r._since_mark()),
    ord("}"): lambda r: r._push({}),
    ord("s"): lambda r: r._set_items(_pop_pair(r)),
    ord("u"): lambda r: r._set_items(r._since_mark()),
    0x8F: lambda r: r._push(set()),
    0x90: Unpickler._add_items,
    ord("q"): lambda r: _put(r, r._int(1)),
    ord("r"): lambda r: _put(r, r._int(4)),
    0x94: lambda r: _put(r, len(r._memo)),
    ord("h"): lambda r: r._push(r._memo[r._int(1)]),
    ord("j"): lambda r: r._push(r._memo[r._int(4)]),
    ord("c"): lambda r: r._global(r._line(), r._line()),
    0x93: Unpickler._stack_global,
    ord("R"): Unpickler._reduce,
    0x81: Unpickler._new_object,
    ord("b"): Unpickler._build,
    ord("Q"): lambda r: r._push(r._persistent(r._stack.pop())),
}

"""The code of an archive: definitions by their qualified names. Nothing of it is ever executed."""

from __future__ import annotations

import ast
import re
import types as python_types
from collections.abc import Iterator
from itertools import accumulate

from weft.jit.archive.debug import ArchivedCode, Origins
from weft.jit.archive.managers import MANAGERS
from weft.jit.cache.files import sha256
from weft.jit.frontend.source.code import Code
from weft.serialization.errors import LoadError, shown
from weft.serialization.zip_reader import ZipReader

CODE = "code/"  # the folder of code
MAX_CODE = 1 << 28  # bytes of one file


def dotted(node: ast.AST) -> str:
    """The text of a name, or of names with points between; empty for other expressions.

    >>> dotted(ast.parse("a.b.c", mode="eval").body)
    'a.b.c'
    """
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


class ArchiveCode:
    """`code/__torch__/a/b.py` holds what is named `__torch__.a.b.name`; `root` is the folder. A
    file is parsed when one of its names is first asked for."""

    def __init__(self, archive: ZipReader, root: str = CODE) -> None:
        self._paths: dict[str, str] = {}
        self._texts: dict[str, bytes] = {}
        self._origins: dict[str, Origins] = {}
        self._prefixes: set[str] = set()
        self._files: dict[str, dict[str, ArchivedCode]] = {}
        self._hash = sha256()
        for path in archive.names():
            if path.startswith(root) and path.endswith(".py"):
                module = path[len(root) : -3].replace("/", ".")
                self.add(module, path, archive.read(path, MAX_CODE))
                if f"{path}.debug_pkl" in archive:
                    table = archive.read(f"{path}.debug_pkl", MAX_CODE)
                    self._origins[path] = Origins(table)
                    self._hash.update(sha256(table).digest())

    def add(self, module: str, path: str, text: bytes) -> None:
        """Adds a file whose definitions are named `module` and a name."""
        self._paths[module], self._texts[path] = path, text
        self._hash.update(sha256(path.encode()).digest() + sha256(text).digest())
        parts = module.split(".")
        self._prefixes |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)}

    def digest(self) -> str:
        """Of all files."""
        return self._hash.hexdigest()

    def has_prefix(self, name: str) -> bool:
        """Whether names of definitions begin with `name` and a point."""
        return name in self._prefixes

    def find(self, name: str) -> ArchivedCode | None:
        """The definition of that qualified name, the only one in its Code."""
        module, _, short = name.rpartition(".")
        if module not in self._paths:
            return None
        if module not in self._files:
            self._files[module] = self._parse(self._paths[module])
        return self._files[module].get(short)

    def parse_all(self) -> None:
        """Parses the files that nobody has asked for, so that malformed code is refused now."""
        for module, path in self._paths.items():
            if module not in self._files:
                self._files[module] = self._parse(path)

    def all_names(self) -> list[str]:
        """The qualified names of all definitions."""
        self.parse_all()
        return [f"{module}.{name}" for module, file in self._files.items() for name in file]

    def definitions(self) -> Iterator[ArchivedCode]:
        """All definitions, each the only one in its Code."""
        self.parse_all()
        for file in self._files.values():
            yield from file.values()

    def _parse(self, path: str) -> dict[str, ArchivedCode]:
        data = self._texts.pop(path)
        starts = list(accumulate((len(line) + 1 for line in data.split(b"\n")), initial=0))
        text, origins = data.decode("utf-8", "replace"), self._origins.pop(path, None)
        found = {}
        whole = ArchivedCode(text, path, 1, 0, origins, starts)
        check_names(whole)
        for node in whole.tree.body:
            if not isinstance(node, ast.ClassDef | ast.FunctionDef):
                if isinstance(node, ast.Assign) and dotted(node.targets[0]) == _VERSION:
                    continue
                raise LoadError(
                    f"load: expected definitions in {shown(path)}, got {ast.unparse(node)[:40]!r}"
                )
            found[node.name] = whole.part(node)
        for name in MANAGERS:
            module, _, short = name.rpartition(".")
            if self._paths.get(module) == path:
                found.pop(short, None)
        return found


_VERSION = "op_version_set"  # the first line of old files


# Methods that code may call by name. Others lead from objects of Python to everything there is.
_METHODS = (
    "init", "new", "call", "len", "getitem", "setitem", "delitem", "contains", "iter", "next",
    "enter", "exit", "str", "repr", "hash", "getstate", "setstate", "eq", "ne", "lt", "le", "gt",
    "ge", "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "neg", "and", "or",
    "xor", "lshift", "rshift", "invert", "bool", "int", "float", "post_init", "iadd", "isub",
    "imul", "itruediv", "radd", "rsub", "rmul", "rtruediv", "pos", "abs", "index",
)  # fmt: skip


_NAME = re.compile(r"__\w+__")
# Names of most files: as attributes, too, they lead to nothing but types. Where a file has no other
# ones its tree need not be searched; in text that is not ASCII a name may be written in many ways.
_HARMLESS = frozenset(f"__{name}__" for name in _METHODS) | {
    *("__torch__", "__parameters__", "__buffers__", "__annotations__", "__forward_pre_hooks__"),
    *("__forward_hooks__", "__is__", "__isnot__", "__not__"),
}


def check_names(code: Code) -> None:
    """LoadError for names of Python's own attributes, such as __globals__."""
    if code.text.isascii() and _HARMLESS.issuperset(_NAME.findall(code.text)):
        return
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.Attribute) or not node.attr[:2] == "__" == node.attr[-2:]:
            continue
        of_torch = isinstance(node.value, ast.Name) and node.value.id == "torch"
        is_operator = of_torch and not hasattr(python_types.ModuleType, node.attr)
        if node.attr[2:-2] not in _METHODS and not is_operator:
            raise LoadError(f"load: expected no attribute {shown(node.attr)} in code, got one")

"""Programs of archives whose casts lie about types, for tools/fuzz_archives.py.

A program makes values, casts them to types that they are not or no longer are, changes containers
through aliases of other types, and hands what it has to operators.
"""

from __future__ import annotations

import random

CLASSES = """class A:
  n : int
  t : Tensor
  xs : List[Tensor]
class B:
  text : str
class E(Enum):
  ONE = 1
  TWO = 2
class P(NamedTuple):
  t : Tensor
  n : int
"""
_HEAD = """class M(Module):
  training : bool
  def forward(self, x: Tensor) -> Any:
"""
_LITERALS = {
    "int": ("3", "0", "-1", "torch.len([1, 2])"),
    "float": ("2.5", "0.0", "1e300"),
    "bool": ("True", "False"),
    "str": ('"a"', '""', '"{}"'),
    "complex": ("torch.Complex(1., 2.)",),
    "Device": ('torch.device("cpu")',),
    "Tensor": ("x", "torch.ones([2, 3])", "torch.ones([3])", "torch.tensor(1.5)"),
    "NoneType": ("None",),
    "__torch__.E": ("__torch__.E.ONE",),
}
_PLAIN = (
    "int",
    "float",
    "bool",
    "str",
    "Tensor",
    "Tensor",
    "Tensor",
    "complex",
    "Device",
    "__torch__.E",
)
_CLASSES = {
    "__torch__.A": {"n": "int", "t": "Tensor", "xs": "List[Tensor]"},
    "__torch__.B": {"text": "str"},
}
# What takes values: by the types that it takes, the type that it gives, and its text.
_READS = [
    (("Tensor",), "Tensor", "torch.neg({})"),
    (("Tensor", "Tensor"), "Tensor", "torch.mul({}, {})"),
    (("Tensor", "float"), "Tensor", "torch.add({}, {})"),
    (("Tensor",), "int", "torch.dim({})"),
    (("Tensor",), "List[int]", "torch.size({})"),
    (("Tensor", "Optional[Tensor]"), "Tensor", "torch.clamp({0}, {1}, {0})"),
    (("Tensor", "List[Optional[Tensor]]"), "Tensor", "torch.index({}, {})"),
    (("Tensor", "List[int]"), "Tensor", "torch.sum({}, {}, True)"),
    (("Tensor", "Device"), "Tensor", "torch.to({}, {}, 6)"),
    (("List[Tensor]",), "Tensor", "torch.cat({})"),
    (("List[Tensor]",), "Tensor", "torch.stack({})"),
    (("List[Tensor]", "Tensor"), "bool", "torch.__contains__({}, {})"),
    (("List[int]",), "Tensor", "torch.tensor({})"),
    (("List[List[int]]",), "Tensor", "torch.tensor({})"),
    (("List[List[float]]",), "Tensor", "torch.tensor({})"),
    (("List[int]",), "int", "torch.sum({})"),
    (("List[float]",), "float", "torch.sum({})"),
    (("int", "int"), "int", "torch.add({}, {})"),
    (("int", "int"), "bool", "torch.lt({}, {})"),
    (("float", "int"), "float", "torch.mul({}, {})"),
    (("float",), "int", "torch.floor({})"),
    (("str", "str"), "str", "torch.add({}, {})"),
    (("str", "List[str]"), "str", "torch.join({}, {})"),
    (("str", "Any"), "str", "torch.format({}, {})"),
    (("str",), "int", "torch.len({})"),
    (("str", "str"), "List[str]", "torch.split({}, {})"),
    (("complex", "complex"), "complex", "torch.mul({}, {})"),
    (("__torch__.E",), "int", "({}).value"),
    (("__torch__.E",), "str", "({}).name"),
    (("__torch__.E", "__torch__.E"), "bool", "torch.eq({}, {})"),
    (("Any",), "bool", "isinstance({}, List[int])"),
    (("Any",), "bool", "isinstance({}, (Tensor, Dict[str, Tensor]))"),
    (("Optional[Tensor]",), "bool", "torch.__is__({}, None)"),
]  # fmt: skip
_OF_LISTS = [
    ("int", "torch.len({v})"),
    ("{e}", "{v}[0]"),
    ("{t}", "torch.add({v}, {w})"),
    ("{t}", "torch.slice({v}, 0, 1)"),
    ("{t}", "torch.mul({v}, 2)"),
    ("bool", "torch.eq({v}, {w})"),
    ("{t}", "torch.list({v})"),
    ("{e}", "torch.pop({v})"),
    ("", "torch.append({v}, {i})"),
    ("", "torch._set_item({v}, 0, {i})"),
    ("", "torch.insert({v}, 0, {i})"),
    ("", "torch.extend({v}, {w})"),
    ("", "torch.reverse({v})"),
    ("", "torch.sort({v}, False)"),
    ("bool", "torch.__contains__({v}, {i})"),
    ("int", "torch.count({v}, {i})"),
]
_OF_DICTS = [
    ("int", "torch.len({v})"),
    ("{e}", "{v}[{k}]"),
    ("List[{e}]", "torch.values({v})"),
    ("List[{key}]", "torch.keys({v})"),
    ("List[Tuple[{key}, {e}]]", "torch.items({v})"),
    ("Optional[{e}]", "torch.get({v}, {k})"),
    ("{e}", "torch.pop({v}, {k})"),
    ("", "torch._set_item({v}, {k}, {i})"),
    ("", "torch.update({v}, {w})"),
    ("bool", "torch.__contains__({v}, {k})"),
    ("{t}", "torch.copy({v})"),
]


def _split(text: str) -> list[str]:
    """The types between commas."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if letter == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]


def _parts(type: str) -> tuple[str, list[str]]:
    """("Dict", ["str", "int"]) of "Dict[str, int]"; no parts of what is no container."""
    head, bracket, rest = type.partition("[")
    return head, _split(rest[:-1]) if bracket else []


class Program:
    """One program under way."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.scopes: list[list[tuple[str, str]]] = [[("x", "Tensor")]]
        self.held: dict[str, str] = {}  # the type of a value that a variable holds as Any
        self.count = 0

    def type(self, depth: int = 2) -> str:
        """A type."""
        kind = self.rng.random()
        if depth == 0 or kind < 0.35:
            return self.rng.choice((*_PLAIN, "Any"))
        inner = self.type(depth - 1)
        if kind < 0.55:
            return f"List[{inner}]"
        if kind < 0.65:
            return (
                inner if inner.startswith(("Optional", "Any", "NoneType")) else f"Optional[{inner}]"
            )
        if kind < 0.75:
            return f"Dict[{self.rng.choice(('str', 'int', 'float', 'Tensor'))}, {inner}]"
        if kind < 0.87:
            return f"Tuple[{inner}, {self.type(depth - 1)}]"
        return self.rng.choice((*_CLASSES, "__torch__.P", "Union[int, str]", "Union[Tensor, int]"))

    def near(self, type: str) -> str:
        """A type like another, of which some part may be another."""
        head, parts = _parts(type)
        kind = self.rng.random()
        if kind < 0.3 or (not parts and kind < 0.6):
            return self.rng.choice(("Any", "Tensor", "int", self.type(1)))
        if not parts or kind > 0.85:
            return type
        at = self.rng.randrange(len(parts))
        parts[at] = self.near(parts[at])
        if head == "Optional" and parts[0].startswith(("Optional", "Any")):
            return parts[0]
        return f"{head}[{', '.join(parts)}]"

    def wider(self, type: str) -> str:
        """A type whose values the values of another are for now: an alias may write more to it."""
        head, parts = _parts(type)
        if parts and head != "Union" and self.rng.random() < 0.8:
            at = self.rng.randrange(len(parts))
            if not (head == "Dict" and at == 0):
                parts[at] = self.wider(parts[at])
            if not (head == "Optional" and parts[0].startswith(("Optional", "Any"))):
                return f"{head}[{', '.join(parts)}]"
        if head in ("Any", "Optional", "Union", "NoneType"):
            return "Any"
        return self.rng.choice(("Any", "Any", f"Optional[{type}]", f"Union[{type}, int]"))

    def add(self, line: str) -> None:
        self.lines.append("  " * len(self.scopes) + "  " + line)

    def keep(self, type: str, text: str) -> str:
        """A variable with the value of a text; returns its name."""
        self.count += 1
        name = f"v{self.count}"
        self.add(f"{name} = {text}")
        self.scopes[-1].append((name, type))
        return name

    def any_value(self) -> tuple[str, str]:
        """A name and its type."""
        found = [each for scope in self.scopes for each in scope]
        return self.rng.choice(found[-12:] if self.rng.random() < 0.7 else found)

    def value(self, type: str, depth: int = 3) -> str:
        """An expression of a type: a variable, or one made now."""
        found = [name for scope in self.scopes for name, t in scope if t == type]
        if found and self.rng.random() < 0.75:
            return self.rng.choice(found[-4:])
        if self.rng.random() < 0.08:
            return self.keep(type, f"uninitialized({type})")
        if type in _LITERALS:
            return self.rng.choice(_LITERALS[type])
        return self.made(type, depth)

    def made(self, type: str, depth: int) -> str:
        head, parts = _parts(type)
        if depth == 0 or type == "Any":
            return f"annotate({type}, {self.any_value()[0] if type == 'Any' else 'None'})"
        if head == "Optional":
            inner = "None" if self.rng.random() < 0.4 else self.value(parts[0], depth - 1)
            return f"annotate({type}, {inner})"
        if head == "List":
            items = [self.value(parts[0], depth - 1) for _ in range(self.rng.randrange(3))]
            return f"annotate({type}, [{', '.join(items)}])"
        if head == "Dict":
            items = [
                f"{self.value(parts[0], depth - 1)}: {self.value(parts[1], depth - 1)}"
                for _ in range(self.rng.randrange(3))
            ]
            return f"annotate({type}, {{{', '.join(items)}}})"
        if head == "Tuple":
            return f"({', '.join(self.value(part, depth - 1) for part in parts)})"
        if head == "Union":
            return f"annotate({type}, {self.value(self.rng.choice(parts), depth - 1)})"
        if type == "__torch__.P":
            return f"__torch__.P({self.value('Tensor')}, {self.value('int')})"
        name = self.keep(type, f"{type}.__new__({type})")
        for attribute, t in _CLASSES[type].items():
            if self.rng.random() < 0.85:
                self.add(f"{name}.{attribute} = {self.value(t, depth - 1)}")
        return name

    def cast(self) -> None:
        """A value under another type."""
        name, type = self.any_value()
        type = self.held.get(name, type)
        if name not in self.held and self.rng.random() < 0.8:
            held = self.keep("List[Any]", f"annotate(List[Any], [{name}])")
            name = self.keep("Any", f"{held}[0]")  # whose type no compiler knows
            self.held[name] = type
        change = self.rng.choice((self.near, self.wider, self.wider, str))
        if type == "Any" or self.rng.random() < 0.15:
            type = self.rng.choice([t for scope in self.scopes for _, t in scope])
        wanted = change(type)
        self.keep(wanted, f"unchecked_cast({wanted}, {name})")

    def read(self) -> None:
        """Something is done with a value."""
        name, type = self.any_value()
        head, parts = _parts(type)
        if head in ("List", "Dict") and self.rng.random() < 0.8:
            self.container(name, type, head, parts)
        elif head == "Tuple" and self.rng.random() < 0.7:
            names = [f"v{self.count + 1 + i}" for i in range(len(parts))]
            self.count += len(parts)
            self.add(f"{', '.join(names)}, = {name}")
            self.scopes[-1].extend(zip(names, parts))
        elif type in _CLASSES:
            attribute, t = self.rng.choice(list(_CLASSES[type].items()))
            if self.rng.random() < 0.4:
                self.add(f"{name}.{attribute} = {self.value(t)}")
            self.keep(t, f"{name}.{attribute}")
        elif type == "__torch__.P":
            self.keep("Tensor", f"{name}.t")
        else:
            takes, gives, text = self.rng.choice(_READS)
            self.keep(gives, text.format(*[self.value(t) for t in takes]))

    def container(self, name: str, type: str, head: str, parts: list[str]) -> None:
        gives, text = self.rng.choice(_OF_LISTS if head == "List" else _OF_DICTS)
        words = {"v": name, "t": type, "e": parts[-1], "key": parts[0]}
        for word, t in (("w", type), ("i", parts[-1]), ("k", parts[0])):
            if f"{{{word}}}" in text:
                words[word] = self.value(t)
        if gives:
            self.keep(gives.format(**words), text.format(**words))
        else:
            self.keep("int", f"torch.len({name})")
            self.add(
                f"_ = {text.format(**words)}" if self.rng.random() < 0.5 else text.format(**words)
            )

    def block(self, head: str) -> None:
        """Statements within a loop or a branch."""
        self.add(head)
        self.scopes.append([])
        for _ in range(self.rng.randrange(1, 4)):
            self.statement()
        names = [each for scope in self.scopes[:-1] for each in scope[1:]]
        if names and self.rng.random() < 0.6:  # what a loop carries, a branch gives
            name, type = self.rng.choice(names)
            self.add(f"{name} = {self.value(type)}")
        self.add("pass")
        self.scopes.pop()

    def statement(self) -> None:
        kind = self.rng.random()
        if kind < 0.3:
            self.cast()
        elif kind < 0.8:
            self.read()
        elif kind < 0.92 or len(self.scopes) > 2:
            type = self.type()
            self.keep(type, self.made(type, 3) if type not in _LITERALS else self.value(type))
        elif kind < 0.96:
            self.count += 1
            self.block(f"for i{self.count} in range({self.rng.randrange(1, 4)}):")
        else:
            self.block(f"if {self.value('bool')}:")

    def text(self) -> str:
        """The whole program."""
        for _ in range(self.rng.randrange(3, 16)):
            self.statement()
        name, _ = self.any_value()
        self.add(f"return annotate(Any, {name})")
        return _HEAD + "\n".join(self.lines) + "\n" + CLASSES


def program(rng: random.Random) -> str:
    """The code of an archive."""
    return Program(rng).text()

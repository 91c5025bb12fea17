"""Random programs as Python source: typed, with nested control flow, calls, containers, strings, tensors.

Every program is legal TorchScript and legal Python, so the same text runs eagerly, scripted as it is, and
optimised. Shapes are sub-shapes of (2, 3), so operands broadcast; where they do not, all runs raise alike. Nothing grows by more than a few items
in a step: a list that doubles in nested loops would take all memory, in Python as in a program.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

TENSOR, INT, FLOAT, BOOL, STR = "Tensor", "int", "float", "bool", "str"
INTS, TENSORS, DICT, PAIR, MAYBE = (
    "List[int]", "List[Tensor]", "Dict[str, int]", "Tuple[int, Tensor]", "Optional[Tensor]",
)  # fmt: skip
TYPES = [TENSOR, INT, FLOAT, BOOL, STR, INTS, TENSORS, DICT, PAIR, MAYBE]

# Templates by type of the result; {I} and the like are expressions of that type.
LETTERS = {
    "T": TENSOR, "I": INT, "F": FLOAT, "B": BOOL, "S": STR, "L": INTS, "X": TENSORS, "D": DICT,
    "P": PAIR, "M": MAYBE,
}  # fmt: skip
EXPRESSIONS: dict[str, list[str]] = {
    TENSOR: [
        "{T} + {T}", "{T} - {T}", "{T} * {T}", "{T} * {F}", "{T} + {I}", "{F} - {T}", "-{T}",
        "{T}.relu()", "torch.tanh({T})", "torch.sigmoid({T})", "{T}.clamp(-1.0, {F})",
        "torch.where({T} > {T}, {T}, {T})", "{T}.sum()", "{T}.mean(0, keepdim=True)", "{T}.abs()",
        "{T}[..., -1:]", "{T}[{I} % 2]", "torch.cat([{T}, {T}], 0)[:2]", "{T}.exp().log1p()",
        "torch.stack({X}).sum(0)", "{X}[0]", "{X}[{I}]", "({P})[1]", "({T} if {B} else {T})", "{T}.reshape(-1)",
        "{T}.t().t()", "torch.maximum({T}, {T})", "{T}.to(torch.float64).to(torch.float32)",
        "torch.zeros(2, 3) + {F}", "torch.ones({I} % 3, 3)", "{T}.clone()", "{T} / ({T}.abs() + 1.5)",
        "torch.softmax({T}, -1)", "{T} / ({T}.std(-1, keepdim=True) + 1.5)", "{T} - torch.logsumexp({T}, -1, keepdim=True)",
        "({T} - {T}.mean(-1, keepdim=True)) * torch.rsqrt({T}.var(-1, keepdim=True, unbiased=False) + 0.5)",
        "{T} / ({T}.norm(dim=-1, keepdim=True) + 0.5)", "{T} - {T}.amax(-1, keepdim=True)", "torch.var_mean({T}, -1)[0]",
        "({T} + {T}.detach())", "{T}.square().sqrt()", "other({T}, {I})", "pair({T}, {I})[1]",
        "{T} * {T}.t().contiguous().t()", "{T}.t().contiguous().t()",
    ],
    INT: [
        "{I} + {I}", "{I} - {I}", "({I} * {I}) % 1009", "{I} // 3", "{I} % 7", "{I} // {I}", "-{I}", "abs({I})",
        "min({I}, {I})", "max({I}, {I})", "len({L})", "{L}[-1]", "{L}[{I}]", "{D}[{S}]", "({P})[0]", "int({F})",
        "({I} if {B} else {I})", "{T}.dim()", "{T}.numel()", "sum({L})", "len({S})", "int({B})",
        "({I} & 7) << 2", "{I} ^ {I}", "{T}.size(0)", "len({X})", "len({D})", "int({T}.sum() > 0)",
        "pair({T}, {I})[0]",
    ],
    FLOAT: [
        "{F} + {F}", "{F} * {F}", "{F} - {I}", "{F} / 3.0", "{F} / {F}", "{I} / {I}", "-{F}", "float({I})",
        "abs({F})", "min({F}, {F})", "({F} if {B} else {F})", "math.sqrt(abs({F}))", "float({T}.sum())",
        "math.floor({F}) * 0.5", "{F} // {F}", "{F} % {F}", "math.tanh({F})", "float({T}.mean().item())",
    ],
    BOOL: [
        "{I} < {I}", "{I} == {I}", "{F} >= {F}", "({B} and {B})", "({B} or {B})", "(not {B})",
        "{I} in {L}", "{S} in {D}", "{S} == {S}", "{M} is None", "{M} is not None", "{L} == {L}",
        "bool({T}.sum() > {F})", "{I} <= {I} < {I}", "bool({I})", "{S} < {S}", "({S}).startswith('a')",
    ],
    STR: [
        "({S} + {S})[:12]", "str({I})", "f'{{{i}}}:{{{f}:.2f}}'", "'a' * ({I} % 3)", "({S}).upper()",
        "'-'.join([{S}, {S}])[:12]", "'%d %s' % ({I}, {B})", "({S} if {B} else {S})",
        "'{{}}/{{}}'.format({I}, {S})[:9]", "({S}).replace('a', 'bc')[:12]", "({S})[{I}:]",
    ],
    INTS: [
        "[{I}, {I}]", "({L} + {L})[:12]", "{L}[{I}:]", "[i * {I} for i in {L}]", "[i for i in {L} if {B}]",
        "list(range({I} % 5))", "sorted({L})", "{L}[::-1]", "({L} if {B} else {L})", "{L}[:4]",
        "[a - b for a, b in zip({L}, {L})]", "list({T}.shape)",
    ],
    TENSORS: ["[{T}, {T}]", "[{T}] + {X}[:2]", "[t * {F} for t in {X}]", "list({T}.unbind(0))"],
    DICT: ["{{'a': {I}, 'b': {I}}}", "{{str(i): i + {I} for i in {L}[:3]}}", "{{{S}: {I}}}"],
    PAIR: ["({I}, {T})", "({P} if {B} else {P})", "pair({T}, {I})"],
    MAYBE: ["({T} if {B} else None)", "None", "{T}"],
}  # fmt: skip
HELPERS = {"other": (TENSOR,), "pair": (INT, TENSOR)}  # what they give; they return early too
CALL = re.compile("|".join(rf"\b{name}\(" for name in HELPERS))
RESULTS = (TENSOR, INT, FLOAT, BOOL, STR, INTS)  # of the program
CONSTANTS = {
    INT: ["0", "1", "2", "-3", "7"], FLOAT: ["0.5", "-1.25", "3.0", "0.0"], BOOL: ["True", "False"],
    STR: ["'a'", "'ab c'", "''"], TENSOR: ["torch.ones(2, 3)", "torch.ones(3)"], INTS: ["[1, 2, 3]"],
    TENSORS: ["[torch.ones(3)]"], DICT: ["{'a': 1}"], PAIR: ["(1, torch.ones(3))"],
}  # fmt: skip


class Program:
    """One program. `writes`: tensors may be written in place (then gradients are not asked for)."""

    def __init__(self, random: Random, writes: bool) -> None:
        self.random = random
        self.writes = writes
        self.lines: list[str] = []
        self.names = 0
        self.budget = 0
        self.loops = 0
        self.calls = False  # may call the helpers
        self.results: tuple[str, ...] = ()
        self.scope: list[tuple[str, str]] = []

    def text(self) -> str:
        """The source: the helpers and the program `main`."""
        self.lines = []
        for name, results in HELPERS.items():
            self.start(f"{name}(t: Tensor, k: int)", results, self.random.randint(1, 5))
            self.scope = [("t", TENSOR), ("k", INT)]
            self.body(1, at_most=3)
            self.lines += ["    " + self.finish(2), ""]
        self.calls = True
        self.start(
            "main(x: Tensor, y: Tensor, m: int, n: int, f: float, b: bool)",
            RESULTS,
            self.random.randint(4, 22),
        )
        self.scope = [
            ("x", TENSOR),
            ("y", TENSOR),
            ("m", INT),
            ("n", INT),
            ("f", FLOAT),
            ("b", BOOL),
        ]
        if self.writes:
            self.lines.append("    x, y = x.clone(), y.clone()")
        for type in (STR, INTS, TENSORS, DICT, PAIR, MAYBE):
            value = self.expression(type, 1)
            self.line(1, f"{self.new(type)}: {type} = {value}")
        self.body(1, at_most=9)
        self.lines.append("    " + self.finish(1))
        return "\n".join(self.lines) + "\n"

    def start(self, head: str, results: tuple[str, ...], budget: int) -> None:
        """The first line of a function of so many statements."""
        self.budget = budget
        self.names, self.loops, self.results = 0, 0, results
        type = results[0] if len(results) == 1 else f"Tuple[{', '.join(results)}]"
        self.lines.append(f"def {head} -> {type}:")

    def finish(self, depth: int) -> str:
        return "return " + ", ".join(self.expression(t, depth) for t in self.results)

    # ---- expressions ----

    def expression(self, type: str, depth: int) -> str:
        """A name in scope, a constant, or an operator over such expressions."""
        names = [name for name, t in self.scope if t == type]
        if depth <= 0 or self.random.random() < 0.25:
            if names and (type == MAYBE or self.random.random() < 0.93):
                return names[-1] if self.random.random() < 0.4 else self.random.choice(names)
            if type != MAYBE:
                return self.random.choice(CONSTANTS[type])
        choices = [e for e in EXPRESSIONS[type] if self.calls or not CALL.search(e)]
        if type == MAYBE:
            # A literal None or a tensor has a narrower type: in an expression only what stays optional.
            choices = choices[:1]
        return self.fill(self.random.choice(choices), depth - 1)

    def fill(self, template: str, depth: int) -> str:
        """The template with expressions in its places; doubled braces become braces."""
        place = re.compile(r"\{\{|\}\}|\{([A-Za-z])\}")
        return place.sub(lambda m: self.operand(m[1], depth) if m[1] else m[0][0], template)

    def operand(self, letter: str, depth: int) -> str:
        """An expression, in brackets where it needs them; a name or constant for a small letter."""
        type = LETTERS[letter.upper()]
        text = self.expression(type, depth if letter.isupper() else 0)
        return text if text.isidentifier() or letter.islower() else f"({text})"

    # ---- statements ----

    def body(self, depth: int, at_most: int) -> None:
        """Statements of one block; at least one, and names made within stay within."""
        before, start = list(self.scope), len(self.lines)
        for _ in range(self.random.randint(1, at_most)):
            self.budget -= 1
            if self.budget < 0:
                break
            choices: list[Callable[[int], None]] = (
                [self.assign] * 5 + [self.update] * 2 + [self.change, self.unpack, self.discard]
            )
            if depth < 4:
                choices += [self.branch] * 2 + [self.for_range, self.for_list, self.while_loop]
                choices += [self.narrow]
            self.random.choice(choices)(depth)
        if len(self.lines) == start:
            self.assign(depth)
        if depth > 1:
            self.leave(depth)
            self.scope = before

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def leave(self, depth: int) -> None:
        """At the end of an inner block, sometimes: out of the loop or of the function."""
        chance = self.random.random()
        if self.loops and chance < 0.1:
            self.line(depth, self.random.choice(["break", "continue"]))
        elif chance < (0.17 if self.calls else 0.5):
            self.line(depth, self.finish(1))
        elif self.calls and chance < 0.19:
            self.line(depth, f"raise ValueError({self.expression(STR, 1)})")

    def new(self, type: str) -> str:
        self.names += 1
        self.scope.append((name := f"v{self.names}", type))
        return name

    def assign(self, depth: int) -> None:
        type = self.random.choice(TYPES + [TENSOR] * 4 + [INT] * 2)
        value = self.expression(type, 3)
        name = self.new(type)
        self.line(depth, f"{name}: {type} = {value}")

    def update(self, depth: int) -> None:
        """A name that is there gets another value of its type."""
        plain = [(name, t) for name, t in self.scope if t in (TENSOR, INT, FLOAT, BOOL, STR, INTS)]
        name, type = self.random.choice(plain)
        self.line(depth, f"{name} = {self.expression(type, 3)}")

    def unpack(self, depth: int) -> None:
        """Both items of a pair get names; often one is never read."""
        value = self.expression(PAIR, 2)
        self.line(depth, f"{self.new(INT)}, {self.new(TENSOR)} = {value}")

    def discard(self, depth: int) -> None:
        """A value that nobody reads."""
        self.line(depth, self.expression(self.random.choice(TYPES[:6]), 3))

    def change(self, depth: int) -> None:
        """A container, or a tensor where that is allowed, is written to."""
        targets = [(name, t) for name, t in self.scope if t in (INTS, TENSORS, DICT)]
        if self.writes:
            targets += [(name, t) for name, t in self.scope if t == TENSOR]
        if not targets:
            return self.assign(depth)
        name, type = self.random.choice(targets)
        forms = {
            INTS: [f"{name}.append({{I}})", f"{name}[{{I}}] = {{I}}", f"{name} += ({{L}})[:3]", f"{name}.pop()"],
            TENSORS: [f"{name}.append({{T}})", f"{name}[0] = {{T}}"],
            DICT: [f"{name}[{{S}}] = {{I}}", f"{name}.update({{D}})"],
            TENSOR: [f"{name}.add_({{T}})", f"{name}[0] = {{F}}", f"{name} *= {{F}}",
                     f"{name}[..., :1].mul_({{F}})", f"{name}.t().copy_({name}.t() + {{F}})"],
        }  # fmt: skip
        self.line(depth, self.fill(self.random.choice(forms[type]), 2))

    def branch(self, depth: int) -> None:
        self.line(depth, f"if {self.expression(BOOL, 3)}:")
        self.body(depth + 1, 3)
        if self.random.random() < 0.3:
            self.line(depth, f"elif {self.expression(BOOL, 2)}:")
            self.body(depth + 1, 2)
        if self.random.random() < 0.6:
            self.line(depth, "else:")
            self.body(depth + 1, 3)

    def narrow(self, depth: int) -> None:
        """What is known not to be None is a tensor in the branch."""
        optional = [name for name, t in self.scope if t == MAYBE]
        if not optional:
            return self.assign(depth)
        name = self.random.choice(optional)
        self.line(depth, f"if {name} is not None:")
        before = list(self.scope)
        self.scope = [(n, TENSOR if n == name else t) for n, t in before]
        self.writes, writes = False, self.writes
        self.body(depth + 1, 2)
        self.writes, self.scope = writes, before

    def loop(self, depth: int, header: str, name: str, type: str) -> None:
        before = list(self.scope)
        self.line(depth, header)
        self.scope.append((name, type))
        self.loops += 1
        self.body(depth + 1, 3)
        self.loops -= 1
        self.scope = before

    def for_range(self, depth: int) -> None:
        self.names += 1
        name = f"i{self.names}"
        stop = self.fill(self.random.choice(["3", "2", "{I} % 4", "{I} % 3, -2, -1"]), 1)
        self.loop(depth, f"for {name} in range({stop}):", name, INT)

    def for_list(self, depth: int) -> None:
        self.names += 1
        name = f"i{self.names}"
        self.loop(depth, self.fill("for " + name + " in {L}[:4]:", 2), name, INT)

    def while_loop(self, depth: int) -> None:
        """A loop with a condition of its own, and a counter that ends it for sure."""
        self.names += 1
        name = f"w{self.names}"
        self.line(depth, f"{name} = 0")
        self.line(depth, self.fill("while " + name + " < 4 and {B}:", 2))
        self.line(depth + 1, f"{name} += 1")
        self.loops += 1
        self.body(depth + 1, 3)
        self.loops -= 1

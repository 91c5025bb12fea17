"""Code of archives that lies about types ends in errors, never in the process."""

from __future__ import annotations

import subprocess
import sys
import typing
from typing import Any

import pytest
from tests.jit.archive_writer import ROOT, archive

import weft
from weft import jit

CLASSES = """class A:
  n : int
  m : int
class B:
  text : str
class E(Enum):
  ONE = 1
"""


def program(result: str, x: str, *lines: str) -> Any:
    body = "".join(f"    {line}\n" for line in lines)
    text = f"class M(Module):\n  training : bool\n  def forward(self, x: {x}) -> {result}:\n"
    return jit.load(archive({"__torch__": f"{text}{body}{CLASSES}"}, ROOT))


# The type of x, the type that it never is.
NEVER = [
    ("Tensor", "List[int]"),
    ("List[int]", "Tensor"),
    ("int", "Tensor"),
    ("Tensor", "int"),
    ("float", "int"),
    ("str", "List[str]"),
    ("List[int]", "List[Tensor]"),
    ("List[Tensor]", "Optional[List[int]]"),
    ("Optional[Tensor]", "List[int]"),
    ("Union[int, str]", "Tensor"),
    ("Tuple[int, Tensor]", "Tuple[Tensor, int]"),
    ("Dict[str, int]", "Dict[str, Tensor]"),
    ("Any", "Future[Tensor]"),
    ("Any", "List[Future[int]]"),
    ("Tensor", "__torch__.A"),
]


@pytest.mark.parametrize("given, wanted", NEVER)
def test_casts_to_what_a_value_never_is_are_refused(given, wanted):
    with pytest.raises(jit.FrontendError, match=r"unchecked_cast: expected a value that may be"):
        program(wanted, given, f"return unchecked_cast({wanted}, x)")(None)


# The type of x, the type that it is cast to, values that are of it, values that are not.
SOMETIMES: list[tuple[str, str, list[Any], list[Any]]] = [
    ("Any", "List[int]", [[1, 2]], [weft.ones(2), 3, "x", [1.0], ["x"], None, {"a": 1}, (1,)]),
    ("Any", "Tensor", [weft.ones(())], [[1, 2], 3, None, "text", [weft.ones(1)]]),
    ("Any", "int", [3], [3.0, "x", [3], None, weft.ones(1)]),
    ("Any", "float", [3.5], [3, "x", [3.5]]),
    ("Any", "str", ["x"], [3, weft.ones(1), ["x"]]),
    ("Any", "Dict[str, int]", [{"a": 1}], [{"a": "b"}, {1: 2}, [1], 3]),
    ("Any", "List[List[str]]", [[["a"]]], [[[1]], [["a"], [2]], ["a"]]),
    ("Any", "Tuple[int, str]", [(1, "a")], [("a", 1), (1, "a", 2), [1, 2], 3]),
    ("Any", "Optional[str]", ["a", None], [1, ["a"]]),
    ("Optional[Tensor]", "Tensor", [weft.ones(())], [None]),
    ("Optional[int]", "int", [3], [None]),
    ("Optional[List[str]]", "List[str]", [["a"]], [None]),
    ("Optional[Union[int, str]]", "Union[int, str]", [1, "a"], [None]),
    ("Union[int, str, Tensor]", "int", [1], ["a", weft.ones(1)]),
    ("Union[int, str, Tensor]", "Union[int, Tensor]", [1, weft.ones(())], ["a"]),
    ("Union[List[int], List[str]]", "List[str]", [["a"]], [[1]]),
    ("Tuple[Optional[int], Any]", "Tuple[int, str]", [(1, "a")], [(None, "a"), (1, 2)]),
]


@pytest.mark.parametrize("given, wanted, good, bad", SOMETIMES)
def test_casts_are_checked_when_the_program_runs(given, wanted, good, bad):
    module = program(wanted, given, f"y = unchecked_cast({wanted}, x)", "return y")
    again = jit.load(module.save_to_buffer())
    third = jit.load(again.save_to_buffer())
    assert f"unchecked_cast({wanted}, x)" in module.code and "isinstance" not in module.code
    assert again.code == third.code and again.save_to_buffer() == third.save_to_buffer()
    assert again.code == module.code or given == f"Optional[{wanted}]"  # PyTorch wants a branch
    for each in (module, third):
        for _ in range(3):  # optimised from some run on
            for value in good:
                assert each(value) == value
            for value in bad:
                with pytest.raises(RuntimeError, match=r"unchecked_cast: expected .*, got "):
                    each(value)


def test_a_cast_that_nobody_reads_is_checked():
    module = program("int", "Any", "y = unchecked_cast(List[int], x)", "return 3")
    assert module([1]) == 3
    with pytest.raises(RuntimeError, match=r"expected List\[int\], got another Any"):
        module("text")


def test_objects_of_other_classes():
    lines = ("a = __torch__.B.__new__(__torch__.B)", 'a.text = "text"')
    module = program(
        "int",
        "int",
        *lines,
        "b = annotate(List[Any], [a])",
        "return unchecked_cast(__torch__.A, b[0]).m",
    )
    with pytest.raises(RuntimeError, match=r"unchecked_cast: expected .*A, got another Any"):
        module(1)


@pytest.mark.parametrize("test", ["torch.__isnot__(x, None)", "isinstance(x, Tensor)"])
def test_casts_behind_tests(test):
    branch = ("if ok:", "  y = unchecked_cast(Tensor, x)", "else:", "  y = torch.ones([2])")
    module = program("Tensor", "Optional[Tensor]", f"ok = {test}", *branch, "return y")
    assert module(None).tolist() == [1, 1] and module(weft.zeros(1)).tolist() == [0]
    again = jit.load(module.save_to_buffer())
    third = jit.load(again.save_to_buffer())
    assert again(None).tolist() == [1, 1] and again(weft.zeros(1)).tolist() == [0]
    assert again.code == third.code and again.save_to_buffer() == third.save_to_buffer()


def test_a_cast_of_none_in_a_branch_that_never_runs():
    module = program("int", "bool", "if x:", "  y = unchecked_cast(int, None)", "else:", "  y = 3", "return y")  # fmt: skip
    assert module(False) == 3
    with pytest.raises(RuntimeError, match="unchecked_cast: expected int, got another None"):
        module(True)


UNREAD: dict[str, Any] = {
    "int": 0, "float": 0.0, "bool": False, "complex": 0j, "str": "", "List[int]": [],
    "List[Tensor]": [], "Dict[str, int]": {}, "Optional[Tensor]": None, "Tuple[int, str]": (0, ""),
    "Union[int, str]": 0, "Tuple[List[int], Tuple[float, Optional[int]]]": ([], (0.0, None)),
    "Device": weft.device("cpu"), "Any": None,
}  # fmt: skip


@pytest.mark.parametrize("type", UNREAD)
def test_uninitialized_values_that_are_read(type):
    module = program(type, "int", f"y = uninitialized({type})", "return y")
    again = jit.load(module.save_to_buffer())
    assert f"uninitialized({type})" in module.code and again.code == module.code
    for each in (module, again, module, again):
        found = each(1)
        assert found == UNREAD[type] and found.__class__ is UNREAD[type].__class__


def test_uninitialized_tensors():
    assert program("Tensor", "int", "return uninitialized(Tensor)")(1).shape == (0,)


# By what reads it: the type, the result, what is read of y.
READS = [
    ("__torch__.A", "int", "return y.m"),
    ("__torch__.A", "int", "y.m = 3", "return y.n"),
    ("Future[Tensor]", "Tensor", "return torch.wait(y)"),
    ("Future[int]", "int", "return torch.wait(y)"),
    ("__torch__.E", "int", "return ops.prim.value(y)"),
    ("__torch__.E", "str", "return ops.prim.name(y)"),
    ("__torch__.E", "bool", "return torch.eq(y, __torch__.E.ONE)"),
    ("Tuple[__torch__.A, int]", "int", "a, b, = y", "return a.m"),
    ("Tensor", "Tensor", "return torch.add(torch.ones([2]), y)"),
    ("List[Tensor]", "Tensor", "return y[0]"),
    ("List[__torch__.A]", "int", "return y[0].m"),
    ("Dict[str, Tensor]", "Tensor", 'return y["a"]'),
]
IN_A_LOOP = ("z = uninitialized({0})", "for i in range(3):", "  y = z", "  if torch.gt(i, 4):",
             "    z = y", "  else:", "    z = uninitialized({0})", "y = z")  # fmt: skip


def read_all() -> None:
    """Runs what reads values that are not set; prints what did not refuse it."""
    for type, result, *reads in READS:
        for start in ([f"y = uninitialized({type})"], [each.format(type) for each in IN_A_LOOP]):
            module = program(result, "int", *start, *reads)
            for _ in range(3):
                try:
                    print(type, reads, module(1))
                except (RuntimeError, TypeError, LookupError, AttributeError) as error:
                    assert "internal" not in str(error), error
    print("done")


def test_reads_of_uninitialized_values():
    """In a process of its own: what ends it would end the tests."""
    code = "from tests.jit.test_archive_casts import read_all; read_all()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    equal = "__torch__.E ['return torch.eq(y, __torch__.E.ONE)'] False"
    assert done.stdout.splitlines() == [equal] * 6 + ["done"]


# Lists and dicts changed through an alias of another type: the type of x, the result, and what
# reads what does not belong there. `a` is x under a type that lets anything in.
ALIASED = [
    ("List[Tuple[Tensor, int]]", "List[Any]", "(None, 1)", "Tensor", "return torch.cat([x[0][0]])"),
    ("List[Tuple[Tensor, int]]", "List[Any]", "(None, 1)", "Tensor",
     "t = annotate(List[Tensor], [])", "_ = torch.append(t, x[0][0])", "return torch.stack(t)"),
    ("List[Tuple[Tensor, int]]", "List[Any]", "(None, 1)", "Tensor",
     "t = [torch.ones([2])]", "_ = torch._set_item(t, 0, x[0][0])", "return torch.cat(t)"),
    ("List[Tuple[Tensor, int]]", "List[Any]", "(None, 1)", "Tensor",
     "t = [torch.ones([2])]", "torch.insert(t, 0, x[0][0])", "return torch.cat(t)"),
    ("List[List[Tensor]]", "List[Any]", "annotate(List[Optional[Tensor]], [None])", "Tensor",
     "return torch.cat(torch.add([torch.ones([2])], x[0]))"),
    ("List[List[Optional[Tensor]]]", "List[Any]", "[torch.ones([2])]", "bool",
     "_ = torch.append(x[0], None)", "return True"),
    ("Dict[int, Tensor]", "Dict[int, Any]", "None", "Tensor", "return torch.cat(torch.values(x))"),
    ("Dict[int, int]", "Dict[int, Any]", '"a"', "int", "return torch.add(x[0], 1)"),
    ("List[str]", "List[Any]", "3", "str", 'return torch.join(",", x)'),
    ("List[str]", "List[Any]", "3", "str", 'return torch.add(x[0], "b")'),
    ("List[List[int]]", "List[Any]", '"a"', "List[int]", "return torch.add(x[0], x[0])"),
    ("List[List[int]]", "List[Any]", '"a"', "int", "return x[0][0]"),
    ("List[__torch__.E]", "List[Any]", "3", "str", "return (x[0]).name"),
    ("List[__torch__.A]", "List[Any]", "3", "int", "return x[0].n"),
    ("List[Tuple[str, int]]", "List[Any]", "3", "Dict[str, int]", "return torch.dict(x)"),
]  # fmt: skip


def read_aliases() -> None:
    """Runs what reads through aliases; prints what did not refuse it."""
    for given, alias, item, result, *reads in ALIASED:
        empty = "[]" if given.startswith("List") else "{}"
        add = "torch.insert(a, 0, it)" if empty == "[]" else "torch._set_item(a, 0, it)"
        module = program(
            result,
            "int",
            f"x = annotate({given}, {empty})",
            "other = annotate(List[Any], [x])",
            f"a = unchecked_cast({alias}, other[0])",
            f"items = annotate(List[Any], [{item}])",
            "it = items[0]",
            add,
            *reads,
        )
        for _ in range(3):
            try:
                print(given, reads, module(1))
            except (RuntimeError, TypeError, LookupError, AttributeError) as error:
                assert "internal" not in str(error), error
    print("done")


# What a list that holds itself ends in: the result, what is done with x.
ENDLESS = [
    ("Any", "return x"),
    ("str", 'return torch.format("{}", x)'),
    ("bool", "return torch.eq(x, y)"),
    ("bool", "return torch.lt(x, y)"),
    ("Tensor", "return torch.tensor(x)"),
    ("int", "print(x)", "return 3"),
    ("Any", "for i in range(100000):", "  y = annotate(List[Any], [y])", "return y"),
]


def read_endless() -> None:
    """Runs what walks through lists that hold themselves."""
    for result, *reads in ENDLESS:
        lists = [f"{name} = annotate(List[Any], [])" for name in "xy"]
        module = program(
            result, "int", *lists, "_ = torch.append(x, x)", "_1 = torch.append(y, y)", *reads
        )
        for _ in range(3):
            try:
                print(reads, module(1))
            except (ValueError, TypeError) as error:
                assert "nested at most 200 deep" in str(error) or "at most 64 dims" in str(error)
    print("done")


@pytest.mark.parametrize("reads", ["read_aliases", "read_endless"])
def test_containers_that_hold_what_their_types_do_not_tell(reads):
    """In a process of its own: what ends it would end the tests."""
    code = f"from tests.jit.test_archive_casts import {reads}; {reads}()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["done"]


def test_text_casts_where_the_type_is_known():
    """What is known behind an early return is known in one branch only."""

    def size(x: list[int] | int | None, again: bool) -> int:
        if x is None:
            return 0
        if again and isinstance(x, int):
            return 1
        if isinstance(x, int):
            return 2
        return len(x)

    again = jit.load(jit.script(size).save_to_buffer())
    for _ in range(3):
        found = [again(x, flag) for x in (None, 7, [1, 2, 3]) for flag in (True, False)]
        assert found == [0, 0, 1, 2, 3, 3]


def test_casts_of_programs_are_checked():
    def lists(x: weft.Tensor):
        return typing.cast(list[int], x)

    def anything(x: Any):
        return typing.cast(list[int], x)

    def optional(x: int | None):
        return typing.cast(int, x)

    for wrong in (lists, anything, optional):
        with pytest.raises(jit.FrontendError, match="expected"):
            jit.script(wrong)(None)

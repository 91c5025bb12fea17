"""What each instruction does, from graphs written as text."""

from __future__ import annotations

import enum
import gc
import threading
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import pytest

import weft
from weft import _C
from weft.jit.codegen import compile_program
from weft.jit.execution import executable
from weft.jit.ir import Function, Source, SourceRange, parse_ir
from weft.jit.ir import types as ty

OUT = ty.OptionalType(ty.TENSOR)


def function(
    text: str,
    name: str = "f",
    classes: dict[str, Any] | None = None,
    functions: dict[str, Function] | None = None,
    **defaults: Any,
) -> Function:
    graph = parse_ir(text, classes or {}, functions or {})
    return Function(name, graph, [value.name for value in graph.inputs], defaults)


def load(*functions: Function, **options: Any) -> Callable[..., Any]:
    return compile_program(functions, **options).function(functions[0].name)


def run(text: str, *args: Any) -> Any:
    return load(function(text))(*args)


# ---- scalars, branches, loops ----


def test_sum_of_a_loop() -> None:
    text = """
    graph(%n : int):
      %true : bool = prim::Constant[value=True]()
      %zero : int = prim::Constant[value=0]()
      %s : int = prim::Loop(%n, %true, %zero)
        block0(%i : int, %acc : int):
          %next : int = aten::add.int(%acc, %i)
          -> (%true, %next)
      return (%s)
    """
    assert [run(text, n) for n in (0, 1, 5, 100, -3)] == [0, 0, 10, 4950, 0]


def test_carried_values_that_change_places() -> None:
    text = """
    graph(%n : int):
      %true : bool = prim::Constant[value=True]()
      %zero : int = prim::Constant[value=0]()
      %one : int = prim::Constant[value=1]()
      %a : int, %b : int = prim::Loop(%n, %true, %zero, %one)
        block0(%i : int, %x : int, %y : int):
          %z : int = aten::add.int(%x, %y)
          -> (%true, %y, %z)
      return (%a)
    """
    assert run(text, 30) == 832040


def test_while_loop_that_does_not_start() -> None:
    text = """
    graph(%x : Tensor, %go : bool):
      %forever : int = prim::Constant[value=9223372036854775807]()
      %false : bool = prim::Constant[value=False]()
      %r : Tensor = prim::Loop(%forever, %go, %x)
        block0(%i : int, %y : Tensor):
          %z : Tensor = aten::neg(%y)
          -> (%false, %z)
      return (%r)
    """
    x = weft.ones(2)
    assert run(text, x, False) is x
    assert run(text, x, True).tolist() == [-1.0, -1.0]


def test_scalar_errors_have_the_class_of_python() -> None:
    text = """
    graph(%a : int, %b : int):
      %r : int = aten::floordiv.int(%a, %b)
      return (%r)
    """
    assert run(text, -7, 2) == -4
    with pytest.raises(ZeroDivisionError):
        run(text, 1, 0)
    text = text.replace("floordiv", "mul")
    with pytest.raises(OverflowError):
        run(text, 1 << 62, 4)


# ---- calls ----

FIB = """
graph(%n : int):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %small : bool = aten::lt.int(%n, %two)
  %r : int = prim::If(%small)
    block0():
      -> (%n)
    block1():
      %a : int = aten::sub.int(%n, %one)
      %b : int = aten::sub.int(%n, %two)
      %x : int = prim::CallFunction[function=@fib](%a)
      %y : int = prim::CallFunction[function=@fib](%b)
      %s : int = aten::add.int(%x, %y)
      -> (%s)
  return (%r)
"""


def recursive(text: str, name: str) -> Function:
    """A function that calls itself: its own graph is parsed with a stand-in for it."""
    made = Function(
        name,
        parse_ir("graph():\n  %0 : NoneType = prim::Constant[value=None]()\n  return (%0)"),
        [],
    )
    made.graph = parse_ir(text, {}, {name: made})
    made.arg_names = [value.name for value in made.graph.inputs]
    return made


def test_recursion() -> None:
    assert load(recursive(FIB, "fib"))(20) == 6765


def test_recursion_without_end() -> None:
    text = """
    graph(%n : int):
      %r : int = prim::CallFunction[function=@deep](%n)
      return (%r)
    """
    deep = load(recursive(text, "deep"))
    for _ in range(2):
        with pytest.raises(RecursionError, match="maximum recursion depth exceeded") as caught:
            deep(1)
        assert "calls more" in str(caught.value)


def test_one_value_given_twice() -> None:
    """Only its last mention moves it."""
    inner = function(
        """
    graph(%t : Tensor, %u : Tensor):
      %one : int = prim::Constant[value=1]()
      %s : Tensor = aten::add.Tensor(%t, %u, %one)
      return (%s)
    """,
        "inner",
    )
    outer = function(
        """
    graph(%x : Tensor):
      %one : int = prim::Constant[value=1]()
      %t : Tensor = aten::add.Tensor(%x, %x, %one)
      %r : Tensor = prim::CallFunction[function=@inner](%t, %t)
      return (%r)
    """,
        "outer",
        functions={"inner": inner},
    )
    assert load(outer)(weft.ones(2)).tolist() == [4.0, 4.0]


def test_methods_by_class_and_by_interface() -> None:
    animal = ty.InterfaceType("Animal")
    classes: dict[str, Any] = {"Animal": animal}
    for name, legs in (("Dog", 4), ("Bird", 2)):
        cls = ty.ClassType(name, {"legs": ty.Attribute(ty.INT)})
        classes[name] = cls
        cls.methods["count"] = function(
            f"""
        graph(%self : {name}, %more : int):
          %legs : int = prim::GetAttr[name="legs"](%self)
          %k : int = prim::Constant[value={legs}]()
          %a : int = aten::add.int(%legs, %more)
          %b : int = aten::mul.int(%a, %k)
          return (%b)
        """,
            f"{name}.count",
            classes,
        )
    args = (ty.Argument("more", ty.INT),)
    animal.methods["count"] = ty.FunctionSchema("count", args, ty.INT)
    ask = function(
        """
    graph(%who : Animal):
      %one : int = prim::Constant[value=1]()
      %r : int = prim::CallMethod[name="count"](%who, %one)
      return (%r)
    """,
        "ask",
        classes,
    )
    program = compile_program([ask], [classes["Dog"], classes["Bird"]])
    for name, wanted in (("Dog", 44), ("Bird", 22), ("Dog", 44)):
        animal_object = program.class_(name).new()
        animal_object.legs = 10
        assert program.function("ask")(animal_object) == wanted
    with pytest.raises(TypeError, match="expected value of type Animal"):
        program.function("ask")(3)
    # A class that was there before its methods were compiled gets them with the program.
    early = compile_program([], [ty.ClassType("Dog", classes["Dog"].attributes)]).class_("Dog")
    dog = early.new()
    dog.legs = 0
    with pytest.raises(TypeError, match="expected value of type Animal"):
        program.function("ask")(dog)
    later = compile_program([ask], [classes["Dog"]], {"Dog": early})
    assert later.function("ask")(dog) == 4


KEYS = [("str", "abc"), ("int", 3), ("float", 1.5), ("bool", True), ("Tuple[int, str]", (1, "a"))]


@pytest.mark.parametrize(("type", "key"), KEYS)
@pytest.mark.parametrize("body", ["x = d[k]", "x = d.pop(k)", "del d[k]"])
def test_a_key_error_has_the_key(type: str, key: Any, body: str) -> None:
    text = f"def f(d: Dict[{type}, int], k: {type}):\n    {body}\ndef g(d: Dict[{type}, int], k: {type}):\n    f(d, k)"
    with pytest.raises(KeyError) as caught:
        weft.jit.CompilationUnit(text).g({}, key)
    assert caught.value.args == (key,)
    if hasattr(caught.value, "add_note"):
        (note,) = caught.value.__notes__
        assert f"expected a key of the dict, got {key!r}" in note and note.count("<--- HERE") == 2


def test_keywords_and_defaults() -> None:
    f = load(
        function(
            """
    graph(%a : int, %b : int, %c : int):
      %ab : int = aten::mul.int(%a, %b)
      %r : int = aten::sub.int(%ab, %c)
      return (%r)
    """,
            b=3,
            c=1,
        )
    )
    assert (f(2), f(2, 5), f(2, c=4), f(c=0, a=7), f(b=1, a=1)) == (5, 9, 2, 21, 0)
    for args, names, words in (
        ((), {}, "a value for argument 'a', got none"),
        ((1, 2, 3, 4), {}, "at most 3 arguments, got 4"),
        ((1,), {"d": 1}, "known argument names, got 'd'"),
        ((1,), {"a": 1}, "argument 'a' once, got it twice"),
        (("x",), {}, "value of type int for argument 'a' in position 0, but got str"),
        ((1.5,), {}, "value of type int for argument 'a' in position 0, but got float"),
        ((True,), {}, "value of type int for argument 'a' in position 0, but got bool"),
    ):
        with pytest.raises(TypeError) as caught:
            f(*args, **names)
        assert f"f() expected {words}; declaration: f(int a, int b=3, int c=1) -> int" == str(
            caught.value
        )


def test_python_functions() -> None:
    seen = []

    def callback(x: Any, items: list[int]) -> float:
        seen.append(items)
        if len(items) == 0:
            raise LookupError("no items")
        return x.sum().item()

    callee = parse_ir(
        "graph(%x : Tensor, %l : int[]):\n  %r : float = prim::CallPython(%x, %l)\n  return (%r)\n"
    )
    next(iter(callee.walk())).attrs["callable"] = callback
    f = load(Function("f", callee, ["x", "l"]))
    assert f(weft.ones(4), [1, 2]) == 4.0 and seen == [[1, 2]]
    with pytest.raises(LookupError, match="no items") as caught:
        f(weft.ones(1), [])
    if hasattr(caught.value, "add_note"):
        assert "Traceback of TorchScript" in caught.value.__notes__[0]
    next(iter(callee.walk())).attrs["callable"] = lambda x, items: "text"
    f = load(Function("f", callee, ["x", "l"]))
    with pytest.raises(TypeError, match="returns a value of type float, got str"):
        f(weft.ones(1), [])


# ---- containers and objects ----


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("int[]", [1, 2, 3]),
        ("float[]", [0.5, 2.0]),
        ("bool[]", [True, False]),
        ("str[]", ["a", "é\0b", ""]),
        ("int[][]", [[1], [], [2, 3]]),
        ("Dict(str, int)", {"b": 1, "a": 2}),
        ("Dict(int, float[])", {3: [1.0], -1: []}),
        ("(int, str, float?)", (1, "x", None)),
        ("int?", None),
        ("int?", 5),
        ("Union(int, str)", "s"),
        ("Union(float, int)", 3),
        ("Scalar", 2.5),
        ("complex", 1 + 2j),
        ("dtype", weft.float16),
        ("Device", weft.device("cuda:1")),
        ("Any", {"k": [1, (2.0, "z", None)]}),
    ],
)  # fmt: skip
def test_values_cross_the_border(annotation: str, value: Any) -> None:
    got = run(f"graph(%x : {annotation}):\n  return (%x)\n", value)
    assert got == value and type(got) is type(value)


def test_tensors_keep_their_identity() -> None:
    x, y = weft.ones(2), weft.zeros(3, requires_grad=True)
    got = run("graph(%x : Tensor?[]):\n  return (%x)\n", [x, None, y])
    assert got[0] is x and got[1] is None and got[2] is y


@pytest.mark.parametrize(
    ("annotation", "value"),
    [("int[]", [1, "a"]), ("int[]", 3), ("(int, int)", (1,)), ("Dict(str, int)", {1: 1}),
     ("Tensor", None), ("str", b"x"), ("Device", 3), ("bool", 1)],
)  # fmt: skip
def test_values_that_do_not_fit(annotation: str, value: Any) -> None:
    with pytest.raises(TypeError, match="expected value of type"):
        run(f"graph(%x : {annotation}):\n  return (%x)\n", value)


def test_lists_are_shared_inside_a_program() -> None:
    text = """
    graph(%n : int):
      %a : int[] = prim::ListConstruct(%n)
      %d : Dict(str, int[]) = prim::DictConstruct(%k, %a)
      %b : int[] = aten::append.t(%a, %n)
      %r : (int[], Dict(str, int[])) = prim::TupleConstruct(%b, %d)
      return (%r)
    """.replace("      %a :", '      %k : str = prim::Constant[value="k"]()\n      %a :', 1)
    assert run(text, 3) == ([3, 3], {"k": [3, 3]})


def test_unpacking() -> None:
    text = """
    graph(%t : (int, Tensor), %l : int[]):
      %a : int, %x : Tensor = prim::TupleUnpack(%t)
      %b : int, %c : int = prim::ListUnpack(%l)
      %i : int = prim::TupleIndex[index=0](%t)
      %s : int = aten::add.int(%a, %b)
      %u : int = aten::add.int(%s, %c)
      %v : int = aten::add.int(%u, %i)
      return (%v)
    """
    assert run(text, (1, weft.ones(1)), [10, 100]) == 112
    with pytest.raises(
        ValueError, match=r"not enough values to unpack from a list \(expected 2, got 1\)"
    ):
        run(text, (1, weft.ones(1)), [10])


def test_named_tuples_and_enums() -> None:
    point = ty.TupleType((ty.INT, ty.TENSOR), "__torch__.Point", ("n", "x"))
    color = ty.EnumType("__torch__.Color", ty.INT, (("RED", 1), ("BLUE", 7)))

    class Color(enum.Enum):
        RED = 1
        BLUE = 7

    graph = parse_ir("""
    graph(%n : int, %x : Tensor):
      %r : (int, Tensor) = prim::TupleConstruct(%n, %x)
      return (%r)
    """)
    graph.returns[0].type = point
    f = load(Function("f", graph, ["n", "x"]))
    got = f(3, weft.ones(1))
    assert type(got).__name__ == "Point" and got.n == 3 and got._fields == ("n", "x")
    _C._jit_types["__torch__.Point"] = mine = namedtuple("Point", ["n", "x"])
    assert type(f(3, weft.ones(1))) is mine

    text = "graph(%c : __torch__.Color):\n  return (%c)\n"
    same = load(function(text, classes={"__torch__.Color": color}))
    with pytest.raises(TypeError):
        same(Color.RED)
    _C._jit_types["__torch__.Color"] = Color
    assert same(Color.BLUE) is Color.BLUE
    with pytest.raises(TypeError):
        same(1)
    text = """
    graph(%c : __torch__.Color):
      %name : str = prim::EnumName(%c)
      %value : int = prim::EnumValue(%c)
      %r : (str, int) = prim::TupleConstruct(%name, %value)
      return (%r)
    """
    assert load(function(text, classes={"__torch__.Color": color}))(Color.BLUE) == ("BLUE", 7)


COUNTER = ty.ClassType(
    "__torch__.Counter",
    {"n": ty.Attribute(ty.INT), "x": ty.Attribute(OUT), "l": ty.Attribute(ty.ListType(ty.INT))},
)
CLASSES = {"__torch__.Counter": COUNTER}
STEP = function(
    """
graph(%self : __torch__.Counter, %x : Tensor?):
  %one : int = prim::Constant[value=1]()
  %n : int = prim::GetAttr[name="n"](%self)
  %m : int = aten::add.int(%n, %one)
  prim::SetAttr[name="n"](%self, %m)
  prim::SetAttr[name="x"](%self, %x)
  %old : int[] = prim::GetAttr[name="l"](%self)
  %l : int[] = aten::append.t(%old, %m)
  return (%m)
""",
    "Counter.step",
    CLASSES,
)


def test_objects_are_shared_with_python() -> None:
    program = compile_program([STEP])
    step, counter = program.function("Counter.step"), program.class_("__torch__.Counter").new()
    counter.n, counter.l = 5, []
    x = weft.ones(1)
    assert step(counter, x) == 6 and counter.n == 6 and counter.x is x and counter.l == [6]
    assert step(counter, None) == 7 and counter.x is None and counter.l == [6, 7]
    with pytest.raises(AttributeError, match="'Counter' object has no attribute 'y'"):
        counter.y  # noqa: B018
    with pytest.raises(TypeError, match=r"Counter.n: expected a value of type int, got str"):
        counter.n = "a"
    # Another program that knows the class works on the same objects; one that does not refuses them.
    classes = {"__torch__.Counter": program.class_("__torch__.Counter")}
    assert compile_program([STEP], known=classes).function("Counter.step")(counter, None) == 8
    with pytest.raises(TypeError, match="expected value of type Counter"):
        compile_program([STEP]).function("Counter.step")(counter, None)
    # And one that was told other types of its attributes could take one value for another.
    other = ty.ClassType("__torch__.Counter", {"x": ty.Attribute(ty.INT)})
    like = ty.ClassType("__torch__.Counter", {"x": ty.Attribute(ty.STR)})
    known = {"__torch__.Counter": compile_program([], [other]).class_("__torch__.Counter")}
    with pytest.raises(
        ValueError, match="Counter with the attributes it has elsewhere, got others"
    ):
        compile_program([], [like], known)


def test_objects_made_inside() -> None:
    f = load(
        function(
            """
    graph(%n : int):
      %o : __torch__.Counter = prim::CreateObject()
      prim::SetAttr[name="n"](%o, %n)
      %l : int[] = prim::ListConstruct()
      prim::SetAttr[name="l"](%o, %l)
      return (%o)
    """,
            classes=CLASSES,
        )
    )
    made = f(4)
    assert (made.n, made.l, made.x) == (4, [], None) and repr(
        made
    ) == "<JitObject of __torch__.Counter>"
    assert made != f(4)


def test_isinstance() -> None:
    for types, values in (
        ("[type(int)]", [(1, True), (1.0, False), (True, False), ([1], False)]),
        ("[type(int[]), type(str)]", [([1], True), ([1.0], False), ("s", True)]),
        ("[type(Dict(str, Tensor))]", [({"a": weft.ones(1)}, True), ({"a": 1}, False)]),
        ("[type(Tensor?)]", [(None, True), (weft.ones(1), True), (0, False)]),
    ):
        text = (
            f"graph(%x : Any):\n  %r : bool = prim::isinstance[types={types}](%x)\n  return (%r)\n"
        )
        for value, wanted in values:
            assert run(text, value) is wanted, (types, value)


# ---- errors ----

PYTHON = """\
def inner(x, y):
    z = x @ y
    return z

def outer(x, y):
    return inner(x, y)
"""


def failing() -> Callable[..., Any]:
    source = Source(PYTHON, "net.py", 10)
    inner = function(
        "graph(%x : Tensor, %y : Tensor):\n  %z : Tensor = aten::mm(%x, %y)\n  return (%z)\n",
        "inner",
    )
    outer = function(
        "graph(%x : Tensor, %y : Tensor):\n"
        "  %z : Tensor = prim::CallFunction[function=@inner](%x, %y)\n  return (%z)\n",
        "outer",
        functions={"inner": inner},
    )
    for f, words in ((inner, "x @ y"), (outer, "inner(x, y)\n")):
        start = PYTHON.rindex(words)
        range = SourceRange(source, start, start + len(words.rstrip()))
        next(iter(f.graph.walk())).range = range
    return load(outer)


def test_errors_show_the_source() -> None:
    f = failing()
    for _ in range(2):
        with pytest.raises(RuntimeError) as caught:
            f(weft.ones(2, 3), weft.ones(2, 3))
        text = str(caught.value)
        assert text.startswith("mm: expected")
        assert text.endswith("""

Traceback of TorchScript (most recent call last):
  File "net.py", line 15, in outer
        return inner(x, y)
               ~~~~~~~~~~~ <--- HERE
  File "net.py", line 11, in inner
        z = x @ y
            ~~~~~ <--- HERE""")
    assert f(weft.ones(2, 3), weft.ones(3, 2)).tolist() == [[3.0, 3.0], [3.0, 3.0]]


def test_errors_in_inlined_code_show_every_call() -> None:
    source = Source(PYTHON.replace("x @ y", "é(x @ y)"), "net.py", 10)
    text, graph = source.text, parse_ir(
        "graph(%x : Tensor):\n  %z : Tensor = aten::mm(%x, %x)\n  return (%z)\n"
    )  # fmt: skip
    assert text is not None
    call = SourceRange(source, text.index("inner(x, y)\n"), text.index("inner(x, y)\n") + 11)
    start = text.index("x @ y")
    next(iter(graph.walk())).range = SourceRange(source, start, start + 5, call)
    with pytest.raises(RuntimeError) as caught:
        load(Function("outer", graph, ["x"]))(weft.ones(2, 3))
    assert str(caught.value).endswith("""
  File "net.py", line 15, in outer
        return inner(x, y)
               ~~~~~~~~~~~ <--- HERE
  File "net.py", line 11, in inner
        z = é(x @ y)
              ~~~~~ <--- HERE""")


@pytest.mark.parametrize(
    ("name", "cls"),
    [("ValueError", ValueError), ("AssertionError", AssertionError), ("KeyError", KeyError),
     ("__torch__.Unknown", RuntimeError), ("print", RuntimeError), ("UnicodeDecodeError", RuntimeError)],
)  # fmt: skip
def test_raise(name: str, cls: type[BaseException]) -> None:
    text = f"""
    graph(%m : str):
      prim::RaiseException[exception="{name}"](%m)
      %none : NoneType = prim::Constant[value=None]()
      return (%none)
    """
    with pytest.raises(cls) as caught:
        run(text, "what went wrong")
    assert type(caught.value) is cls and "what went wrong" in str(caught.value)


def test_raise_of_a_class_of_the_user() -> None:
    class Lost(LookupError):
        pass

    _C._jit_types["__torch__.Lost"] = Lost
    text = """
    graph(%m : str):
      prim::RaiseException[exception="__torch__.Lost"](%m)
      %none : NoneType = prim::Constant[value=None]()
      return (%none)
    """
    with pytest.raises(Lost, match="the key"):
        run(text, "the key")
    with pytest.raises(KeyError) as caught:
        run(text.replace("__torch__.Lost", "KeyError"), "the key")
    # It shows its argument by repr(), so the lines of the program are a note.
    assert caught.value.args == ("the key",)
    if hasattr(caught.value, "add_note"):
        assert "Traceback of TorchScript" in caught.value.__notes__[0]


def test_operators_that_do_not_exist() -> None:
    text = """
    graph(%x : Tensor, %b : bool):
      %r : Tensor = prim::If(%b)
        block0():
          %y : Tensor = nowhere::op.Tensor(%x)
          -> (%y)
        block1():
          -> (%x)
      return (%r)
    """
    f = function(text)
    program = compile_program([f])
    assert program.missing_operators() == ["nowhere::op.Tensor"]
    x = weft.ones(1)
    assert program.function("f")(x, False) is x
    with pytest.raises(RuntimeError, match="expected an operator that this version of weft has"):
        program.function("f")(x, True)


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    run("graph(%a : int, %b : str[]):\n  prim::Print(%a, %b)\n"
        "  %n : NoneType = prim::Constant[value=None]()\n  return (%n)\n", 1, ["x"])  # fmt: skip
    assert capsys.readouterr().out == "1 ['x']\n"


# ---- gradients ----


def test_operators_record() -> None:
    text = """
    graph(%x : Tensor, %w : Tensor):
      %y : Tensor = aten::mul.Tensor(%x, %w)
      %z : Tensor = aten::tanh(%y)
      return (%z)
    """
    x, w = weft.randn(3), weft.randn(3, requires_grad=True)
    f = load(function(text))
    f(x, w).sum().backward()
    got, w.grad = w.grad, None
    weft.tanh(x * w).sum().backward()
    assert weft.equal(got, w.grad)


MODES = """
graph(%x : Tensor, %i : int):
  %one : int = prim::Constant[value=1]()
  %l : int[] = prim::ListConstruct(%one)
  prim::EnterGradMode[mode=False]()
  %a : Tensor = aten::add.Tensor(%x, %x, %one)
  prim::EnterGradMode[mode=True]()
  %b : Tensor = aten::add.Tensor(%x, %x, %one)
  prim::ExitGradMode()
  %k : int = aten::__getitem__.t(%l, %i)
  prim::ExitGradMode()
  %c : Tensor = aten::add.Tensor(%x, %x, %one)
  %r : (Tensor, Tensor, Tensor) = prim::TupleConstruct(%a, %b, %c)
  return (%r)
"""


def test_grad_modes_end_with_their_block_and_with_errors() -> None:
    f, x = load(function(MODES)), weft.ones(1, requires_grad=True)
    assert [t.requires_grad for t in f(x, 0)] == [False, True, True]
    with weft.no_grad():
        assert [t.requires_grad for t in f(x, 0)] == [False, True, False]
    with pytest.raises(IndexError):
        f(x, 5)
    assert weft.is_grad_enabled()


def test_grad_inside() -> None:
    text = """
    graph(%x : Tensor):
      %none : NoneType = prim::Constant[value=None]()
      %true : bool = prim::Constant[value=True]()
      %false : bool = prim::Constant[value=False]()
      %y : Tensor = aten::mul.Tensor(%x, %x)
      %s : Tensor = aten::sum(%y, %none)
      %out : Tensor[] = prim::ListConstruct(%s)
      %in : Tensor[] = prim::ListConstruct(%x)
      %g : Tensor?[] = aten::grad(%out, %in, %none, %none, %true, %false)
      return (%g)
    """
    x = weft.tensor([1.0, -3.0], requires_grad=True)
    (grad,) = run(text, x)
    assert grad.tolist() == [2.0, -6.0] and grad.requires_grad
    text = """
    graph(%x : Tensor):
      %none : NoneType = prim::Constant[value=None]()
      %false : bool = prim::Constant[value=False]()
      %y : Tensor = aten::mul.Tensor(%x, %x)
      %s : Tensor = aten::sum(%y, %none)
      aten::backward(%s, %none, %none, %false, %none)
      return (%none)
    """
    run(text, x)
    assert x.grad.tolist() == [2.0, -6.0]


# ---- threads ----


def test_fork_and_wait() -> None:
    work = function(
        "graph(%x : Tensor, %k : int):\n"
        "  %y : Tensor = aten::mul.Scalar(%x, %k)\n  return (%y)\n", "work"
    )  # fmt: skip
    text = """
    graph(%x : Tensor, %n : int):
      %true : bool = prim::Constant[value=True]()
      %one : int = prim::Constant[value=1]()
      %fs : Future(Tensor)[] = prim::ListConstruct()
      prim::Loop(%n, %true)
        block0(%i : int):
          %f : Future(Tensor) = prim::fork[function=@work](%x, %i)
          %l : Future(Tensor)[] = aten::append.t(%fs, %f)
          -> (%true)
      %r : Tensor = prim::Loop(%n, %true, %x)
        block0(%j : int, %acc : Tensor):
          %g : Future(Tensor) = aten::__getitem__.t(%fs, %j)
          %y : Tensor = aten::wait(%g)
          %next : Tensor = aten::add.Tensor(%acc, %y, %one)
          -> (%true, %next)
      return (%r)
    """
    f = load(function(text, functions={"work": work}))
    x = weft.ones(2, requires_grad=True)
    got = f(x, 100)
    assert got.tolist() == [4951.0, 4951.0]
    got.sum().backward()
    assert x.grad.tolist() == [4951.0, 4951.0]
    with weft.no_grad():
        assert not f(x, 3).requires_grad


def test_forks_that_fork_and_wait_do_not_block() -> None:
    text = """
    graph(%n : int):
      %one : int = prim::Constant[value=1]()
      %zero : int = prim::Constant[value=0]()
      %end : bool = aten::le.int(%n, %zero)
      %r : int = prim::If(%end)
        block0():
          -> (%one)
        block1():
          %m : int = aten::sub.int(%n, %one)
          %a : Future(int) = prim::fork[function=@tree](%m)
          %b : Future(int) = prim::fork[function=@tree](%m)
          %x : int = aten::wait(%a)
          %y : int = aten::wait(%b)
          %s : int = aten::add.int(%x, %y)
          -> (%s)
      return (%r)
    """
    assert load(recursive(text, "tree"))(9) == 512


def test_a_forked_error_is_raised_by_wait() -> None:
    work = function(
        "graph(%l : int[], %i : int):\n"
        "  %y : int = aten::__getitem__.t(%l, %i)\n  return (%y)\n", "work"
    )  # fmt: skip
    text = """
    graph(%l : int[], %i : int):
      %f : Future(int) = prim::fork[function=@work](%l, %i)
      %y : int = aten::wait(%f)
      return (%y)
    """
    f = load(function(text, functions={"work": work}))
    assert f([5], 0) == 5
    with pytest.raises(IndexError, match="in work"):
        f([5], 2)


def test_futures_in_python() -> None:
    work = function("graph(%n : int):\n  return (%n)\n", "work")
    text = "graph(%n : int):\n  %f : Future(int) = prim::fork[function=@work](%n)\n  return (%f)\n"
    future = load(function(text, functions={"work": work}))(7)
    assert future.wait() == 7 and future.done() and future.wait() == 7


def test_many_threads_run_one_program() -> None:
    fib, results = load(recursive(FIB, "fib")), []
    threads = [threading.Thread(target=lambda: results.append(fib(15))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [610] * 8


# ---- memory ----


def test_tensors_are_freed_by_their_last_use() -> None:
    """A chain of operators holds two results at a time, as eager code does."""
    lines = ["graph(%x0 : Tensor):"]
    lines += [f"  %x{i + 1} : Tensor = aten::neg(%x{i})" for i in range(20)]
    f = load(function("\n".join([*lines, "  return (%x20)", ""])))
    x = weft.ones(1 << 16)
    f(x)
    gc.collect()
    allocator = weft.memory.get_allocator()

    def most() -> int:
        allocator.reset_peak()
        before = allocator.stats()["bytes_in_use"]
        f(x)
        return allocator.stats()["peak_bytes_in_use"] - before

    # Other threads of the process may hold memory for a moment: the least of some runs counts.
    assert min(most() for _ in range(5)) < 2.5 * (1 << 18)  # three results would be 3


def test_nothing_leaks() -> None:
    f = failing()
    x, y = weft.ones(64, 64), weft.ones(3, 3)

    def burst() -> int:
        for _ in range(50):
            with pytest.raises(RuntimeError):
                f(x, y)
            f(x, x)
        gc.collect()
        return weft.memory.get_allocator().stats()["bytes_in_use"]

    burst()
    first = burst()
    assert burst() <= first  # less where something older went meanwhile


def test_a_cast_behind_a_branch_that_left() -> None:
    """What a narrowed name means is read there too, and may be of the other type."""
    unit = weft.jit.CompilationUnit("""
def f(n: Union[int, Tensor], xs: List[int]) -> int:
    w = 1
    for x in xs:
        if isinstance(n, Tensor):
            break
        for y in xs:
            w += n + x
    return w

def g(m: Optional[Tensor], most: int) -> int:
    w = 0
    while w < most and m is None:
        w += 1
    return w
""")
    for level in (0, 2):
        f = executable(unit.f.function, level=level)
        assert [f(weft.ones(2), [1, 2]), f(3, [1, 2])] == [1, 19]
        g = executable(unit.g.function, level=level)
        assert [g(weft.ones(2), 4), g(None, 4)] == [0, 4]


def test_what_is_known_stays_known_in_a_loop() -> None:
    """A narrowed name that a loop assigns the narrow type; a comprehension whose test is False."""
    unit = weft.jit.CompilationUnit("""
def f(x: Optional[Tensor], n: int) -> Tensor:
    if x is not None:
        for i in range(n):
            x = x * 2.0
        return x + 1.0
    return torch.zeros(1)

def g(n: int) -> List[int]:
    return ([i for i in range(n) if False])[:1] + [n]
""")
    assert unit.f(weft.ones(1), 3).item() == 9.0
    assert unit.g(4) == [4]


@pytest.mark.parametrize(
    "call",
    [
        "torch.stack([torch.ones(2, 3), torch.ones(3), x])",
        "torch.nn.functional.linear(x, torch.ones(2, 3).sum())",
        "torch.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2), None, [0, 0])",
    ],
)
def test_what_would_raise_compiles_where_it_is_not_run(call: str) -> None:
    unit = weft.jit.CompilationUnit(f"""
def f(n: int) -> Tensor:
    x = torch.ones(3)
    if n > 0:
        x = {call}
    return x
""")
    assert unit.f(0).tolist() == [1.0] * 3
    with pytest.raises(RuntimeError):
        unit.f(1)

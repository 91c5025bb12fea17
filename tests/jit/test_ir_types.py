"""Types of the IR: text, relations, and joining."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.jit import ir
from weft.jit.ir import FLOAT, INT, NONE, NUMBER, STR, TENSOR, ListType, TupleType, TypeVar

PAIR = TupleType((INT, TENSOR), "__torch__.Pair", ("count", "data"))
COLOR = ir.EnumType("__torch__.Color", INT, (("RED", 1), ("BLUE", 2)))
CLASSES = {
    "__torch__.Color": COLOR,
    "__torch__.net.M": ir.ClassType("__torch__.net.M", is_module=True),
}

TEXTS = [
    ("Tensor", "Tensor"),
    ("int[]", "List[int]"),
    ("Tensor?[]", "List[Optional[Tensor]]"),
    ("int[]?", "Optional[List[int]]"),
    ("Dict(str, Tensor?)", "Dict[str, Optional[Tensor]]"),
    ("(int, Tensor)", "Tuple[int, Tensor]"),
    ("(int,)", "Tuple[int]"),
    ("()", "Tuple[()]"),
    ("(int, (float, str[]))[]", "List[Tuple[int, Tuple[float, List[str]]]]"),
    ("__torch__.Pair(count: int, data: Tensor)", "__torch__.Pair"),
    ("__torch__.Empty()", "__torch__.Empty"),
    ("Union(int, float, NoneType)", "Union[int, float, None]"),
    ("Future(Tensor)", "Future[Tensor]"),
    ("t[]", "List[t]"),
    ("Dict(Key, tVar)", None),
    ("Scalar", "Union[int, float, complex, bool]"),
    ("dtype?", "Optional[torch.dtype]"),
    ("__torch__.Color[]", "List[__torch__.Color]"),
    ("__torch__.net.M", "__torch__.net.M"),
]


@pytest.mark.parametrize(("text", "annotation"), TEXTS)
def test_text_and_annotation(text, annotation):
    if annotation is None:
        with pytest.raises(ir.IRSyntaxError, match="expected the name of a known type"):
            ir.parse_type(text, CLASSES)
        return
    read = ir.parse_type(text, CLASSES)
    assert (str(read), read.annotation) == (text, annotation)
    assert ir.parse_type(str(read), CLASSES) == read
    assert hash(ir.parse_type(str(read), CLASSES)) == hash(read)


def test_schema_spellings_are_read():
    assert ir.parse_type("int[2]?") == ir.optional_of(ListType(INT))
    assert ir.parse_type("ScalarType") == ir.DTYPE


@pytest.mark.parametrize(
    "text", ["", "int[", "Dict(int)", "(int", "int]", "Union()", "Foo", "A(b int)", "int int"]
)
def test_malformed_text(text):
    with pytest.raises(ir.IRSyntaxError, match=r"column \d+: expected .*, got"):
        ir.parse_type(text)


SUBTYPES = [
    ("int", "int", True),
    ("int", "Scalar", True),
    ("bool", "Scalar", True),
    ("Scalar", "int", False),
    ("int", "float", False),
    ("int", "int?", True),
    ("NoneType", "int?", True),
    ("int?", "int", False),
    ("int", "Scalar?", True),
    ("int?", "Scalar?", True),
    ("Scalar", "Union(int, float, complex, bool)", True),
    ("int?", "Union(int, float, NoneType)", True),
    ("Union(int, NoneType)", "int?", True),
    ("Union(int, str)", "Union(str, int, float)", True),
    ("Union(int, str)", "Union(int, float)", False),
    ("int[]", "Scalar[]", False),
    ("int[]", "int?[]", False),
    ("(int, int)", "(Scalar, int?)", True),
    ("(int, int)", "(int, int, int)", False),
    ("P(a: int)", "(int,)", True),
    ("(int,)", "P(a: int)", False),
    ("P(a: int)", "Q(a: int)", False),
    ("Future(int)", "Future(int?)", True),
    ("Dict(str, int)", "Dict(str, int?)", False),
    ("Dict(str, int)", "Any", True),
    ("Any", "int", False),
]


@pytest.mark.parametrize(("a", "b", "expected"), SUBTYPES)
def test_subtypes(a, b, expected):
    assert ir.is_subtype(ir.parse_type(a), ir.parse_type(b)) is expected


UNIFIED = [
    ("int", "int", "int"),
    ("int", "NoneType", "int?"),
    ("NoneType", "int?", "int?"),
    ("int?", "int", "int?"),
    ("int", "float", None),
    ("(int, NoneType)", "(NoneType, Tensor)", "(int?, Tensor?)"),
    ("(int, NoneType)?", "(int, int)", "(int, int?)?"),
    ("int[]", "float[]", None),
    ("int", "Scalar", "Scalar"),
    ("Union(int, str)", "str", "Union(int, str)"),
    ("Union(int, str)", "NoneType", "Union(int, str, NoneType)"),
]


@pytest.mark.parametrize(("a", "b", "expected"), UNIFIED)
def test_unify(a, b, expected):
    a, b = ir.parse_type(a), ir.parse_type(b)
    wanted = None if expected is None else ir.parse_type(expected)
    assert ir.unify(a, b) == wanted
    assert ir.unify(b, a) == wanted


LEAVES = st.sampled_from([INT, FLOAT, TENSOR, STR, NONE, NUMBER, ir.BOOL, ir.DTYPE, COLOR])
TYPES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(ListType, inner),
        st.builds(ir.DictType, st.sampled_from([STR, INT]), inner),
        st.builds(lambda parts: TupleType(tuple(parts)), st.lists(inner, max_size=3)),
        st.builds(ir.optional_of, inner),
        st.builds(ir.union_of, st.lists(inner, min_size=1, max_size=3)),
        st.builds(ir.FutureType, inner),
    ),
    max_leaves=8,
)


@given(TYPES)
def test_every_type_reads_its_own_text(t):
    assert ir.parse_type(str(t), CLASSES) == t


@given(TYPES, TYPES)
def test_unified_type_holds_both(a, b):
    joined = ir.unify(a, b)
    if joined is not None:
        assert ir.is_subtype(a, joined) and ir.is_subtype(b, joined)
    elif ir.is_subtype(a, b):
        pytest.fail(f"{a} is a subtype of {b}, but they do not unify")


@given(TYPES, TYPES, TYPES)
def test_subtyping_is_transitive(a, b, c):
    if ir.is_subtype(a, b) and ir.is_subtype(b, c):
        assert ir.is_subtype(a, c)


@given(TYPES)
def test_optional_and_non_none(t):
    assert ir.is_subtype(NONE, ir.optional_of(t))
    assert ir.optional_of(ir.optional_of(t)) == ir.optional_of(t)
    if t != NONE:
        assert ir.optional_of(ir.non_none(t)) == ir.optional_of(t)


def test_class_types_are_nominal_and_fit_interfaces():
    graph = ir.parse_ir(
        "graph(%self : M, %x : int):\n  return (%x)\n", {"M": (m := ir.ClassType("M"))}
    )
    m.methods["twice"] = ir.Function("M.twice", graph, ["self", "x"])
    schema = ir.FunctionSchema("twice", (ir.Argument("x", INT),), ir.optional_of(INT))
    interface = ir.InterfaceType("I", {"twice": schema})
    assert ir.is_subtype(m, interface)
    assert not ir.is_subtype(ir.ClassType("M"), interface)
    assert ir.ClassType("M") != m
    wrong = ir.FunctionSchema("twice", (ir.Argument("x", STR),), INT)
    assert not ir.is_subtype(m, ir.InterfaceType("J", {"twice": wrong}))


def test_type_variables():
    formal = ir.parse_type("Dict(str, t)")
    bound = {}
    assert ir.bind(formal, ir.parse_type("Dict(str, Tensor)"), bound) and bound == {"t": TENSOR}
    assert not ir.bind(TypeVar("t"), INT, bound)
    assert ir.substitute(ir.parse_type("(str, t)[]"), bound) == ir.parse_type("(str, Tensor)[]")
    assert not ir.bind(formal, ir.parse_type("Dict(int, Tensor)"), {})
    bound = {}
    assert ir.bind(ir.parse_type("t?"), NONE, bound) and bound == {}


def test_constructors_refuse_what_is_not_normal():
    with pytest.raises(ValueError, match="expected a type without None"):
        ir.OptionalType(NONE)
    with pytest.raises(ValueError, match="expected 1 fields"):
        TupleType((INT,), "P", ())
    with pytest.raises(ValueError, match="at least one type"):
        ir.union_of([])

"""What programs written for torch.jit expect where PyTorch's compiler has an answer of its own."""

import pytest

import weft
from weft import Tensor, jit
from weft.compat.overlay._jit_internal import BroadcastingList2, BroadcastingList3


def test_flag_or_tensor_is_a_bool_where_one_is_declared():
    def decide(flag: bool, x: Tensor) -> bool:
        return flag or (x > 1)

    def count(flags: list[bool], x: Tensor) -> int:
        done: bool = flags[0] and x > 1
        flags.append(flags[0] or x > 1)
        return int(done) + len(flags)

    program = jit.script(decide)
    answers = [program(flag, weft.tensor(v)) for flag in (False, True) for v in (1.0, 2.0)]
    assert answers == [False, True, True, True]
    assert jit.script(count)([True], weft.tensor(2.0)) == 3


def numbers(n: int, x: float, b: bool, c: complex):
    return n, x, b, c


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_tensor_of_one_element_may_be_given_for_a_number(shape):
    program = jit.script(numbers)
    given = [weft.tensor(value).reshape(shape) for value in (3, 2.5, True, 1j)]
    assert program(*given) == (3, 2.5, True, 1j)
    other = [weft.tensor(value).reshape(shape) for value in (3.75, 2, 0.5, 2)]
    assert repr(program(*other)) == "(3, 2.0, True, (2+0j))"
    assert program(n=given[0], x=given[1], b=True, c=2) == (3, 2.5, True, 2)


def test_other_tensors_are_refused_for_numbers():
    def optional(n: int | None, xs: list[float]):
        return n, xs

    def union(x: int | float):
        return x

    def either(x: int | Tensor):
        return x

    assert jit.script(optional)(weft.tensor(3), [weft.tensor(2.0), 1]) == (3, [2.0, 1.0])
    kept = weft.tensor(3)
    assert jit.script(either)(kept) is kept
    program = jit.script(numbers)
    wrong = [
        (weft.tensor([3, 4]), 1, True, 1),
        (weft.tensor(1j), 1, True, 1),
        (1, weft.ones(0), True, 1),
    ]
    for args in wrong:
        with pytest.raises(TypeError, match=r"expected value of type (int|float) for argument"):
            program(*args)
    with pytest.raises(TypeError, match=r"expected value of type Union\[int, float\]"):
        jit.script(union)(weft.tensor(3))


def test_an_int_tensor_is_a_float_where_a_program_wants_one():
    def half(x: float) -> float:
        return x / 2

    def f(x: Tensor) -> float:
        return half(x)

    assert jit.script(f)(weft.tensor(3)) == 1.5
    with pytest.raises(RuntimeError, match="expected a tensor of a real dtype where a float"):
        jit.script(f)(weft.tensor(1j))


def test_a_number_may_be_given_for_a_broadcasting_list():
    def sums(x: float, pair: BroadcastingList2[int], many: BroadcastingList3[float] = 0.5):
        return pair, many

    def inner(x: float):
        return sums(x, 4), sums(x, [1, 2], 2.0)

    program = jit.script(sums)
    assert program(1.0, 3) == ([3, 3], [0.5, 0.5, 0.5])
    assert program(1.0, [1, 2], many=1) == ([1, 2], [1.0, 1.0, 1.0])
    assert jit.script(inner)(1.0) == (([4, 4], [0.5] * 3), ([1, 2], [2.0] * 3))
    assert repr(BroadcastingList3) == "BroadcastingList3"

    class M(weft.nn.Module):
        def forward(self, x: float, pair: BroadcastingList2[int]):
            return pair

    scripted = jit.script(M().eval())
    assert scripted(1.0, 3) == jit.freeze(scripted)(1.0, 3) == [3, 3]
    with pytest.raises(TypeError, match="at most 3 arguments, got 4"):
        program(1.0, 3, 1.0, 2)


def test_signatures_have_the_names_of_pytorch():
    def f(x: Tensor, n: int = 3) -> tuple[Tensor, int]:
        return x, n

    schema = jit.script(f).schema
    assert (schema.name, schema.overload_name) == ("f", "")
    told = [(a.name, str(a.type), a.default_value, a.has_default_value()) for a in schema.arguments]
    assert told == [("x", "Tensor", None, False), ("n", "int", 3, True)]
    assert [a.kwarg_only for a in schema.arguments] == [False, False]
    assert [str(each.type) for each in schema.returns] == ["(Tensor, int)"]
    assert schema == jit.script(f).schema and "int n=3" in str(schema)

    class M(weft.nn.Module):
        schema = 3

        def forward(self, x):
            return x

    scripted = jit.script(M())
    assert [a.name for a in scripted.forward.schema.arguments] == ["self", "x"]
    assert scripted.schema == 3


def test_older_names():
    def double(x):
        return x * 2

    def f(x):
        if weft._C._get_tracing_state():
            return x
        return jit._wait(jit._fork(double, x))

    x = weft.ones(2)
    assert weft._C._get_tracing_state() is None
    assert f(x).tolist() == jit.script(f)(x).tolist() == [2, 2]
    assert jit.trace(f, x, check_trace=False)(x).tolist() == [1, 1]


def test_the_text_of_a_unit_may_be_indented():
    unit = jit.CompilationUnit("""
        def f(x: int) -> int:
            return x + 1

        def g(x: int) -> int:
            return f(x) * 2
    """)
    assert unit.g(2) == 6


@jit._overload
def halved(x: int) -> int: ...


@jit._overload
def halved(x: Tensor) -> Tensor: ...  # noqa: F811


def halved(x):  # noqa: F811
    return x.relu()


@jit._overload
def shifted(x: int, by: float = 5) -> float: ...


@jit._overload
def shifted(x: Tensor, by: float = ...) -> Tensor: ...  # noqa: F811


def shifted(x, by=5):  # noqa: F811
    return x + by


@jit._overload
def wrongly_shifted(x: int, by: int = 2) -> int: ...


def wrongly_shifted(x, by=5):  # noqa: F811
    return x + by


class Overloaded(weft.nn.Module):
    @jit._overload_method
    def shift(self, x: int) -> int: ...

    @jit._overload_method
    def shift(self, x: Tensor) -> Tensor: ...  # noqa: F811

    def shift(self, x):  # noqa: F811
        return x.relu()

    def forward(self, x: Tensor):
        return self.shift(x)


def test_every_overload_is_compiled():
    def f(x: Tensor):
        return halved(x)

    for program in (f, Overloaded()):
        with pytest.raises(RuntimeError, match="expected an attribute of int, got 'relu'"):
            jit.script(program)


def test_overloads_have_the_defaults_of_their_implementation():
    def f(n: int, x: Tensor):
        return shifted(n), shifted(x), shifted(n, 1)

    def wrong(n: int):
        return wrongly_shifted(n)

    result = jit.script(f)(1, weft.ones(1))
    assert repr(result) == "(6.0, tensor([6.]), 2.0)"
    with pytest.raises(
        RuntimeError, match="by: expected the default of the implementation, 5, got 2"
    ):
        jit.script(wrong)

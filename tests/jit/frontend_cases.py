"""Functions of the language with inputs: scripted and eager must give the same.

Each entry is (function, *inputs); the tests run both and compare values and types.
"""

# ruff: noqa: UP006, UP007, UP031, UP035, UP045, C400, C406, C416, C419, SIM300

import math
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import weft as torch
from weft import Tensor, jit

CASES = []


def case(*inputs):
    """Registers a function with one set of inputs."""

    def register(function):
        CASES.append((function, inputs))
        return function

    return register


def t(*shape):
    """A tensor of known contents."""
    return torch.arange(math.prod(shape), dtype=torch.float32).reshape(shape) - 2.0


# ---- numbers and control flow ----


@case(t(3), 5)
def loop_with_branch(x, n: int):
    for i in range(n):
        if i % 2 == 0:
            x = x + i
        else:
            x = x * 2.0
    return x


@case(7)
@case(0)
def early_return(n: int) -> int:
    if n == 0:
        return -1
    total = 0
    for i in range(n):
        if i == 5:
            return total
        total += i
    return total * 2


@case(3)
@case(30)
def return_from_nested_loops(n: int) -> int:
    for i in range(n):
        for j in range(i):
            if i * j > 20:
                return i * 100 + j
            if j > 4:
                break
    return -1


@case(10)
def break_and_continue(n: int):
    total = 0
    for i in range(n):
        if i % 3 == 0:
            continue
        if i > 7:
            break
        total += i
    return total


@case(10)
@case(3)
def while_else(n: int):
    i = 0
    while i < n:
        i += 1
        if i == 5:
            break
    else:
        i = -i
    return i


@case(4)
@case(40)
def for_else(n: int):
    found = 0
    for i in range(2, n):
        if i * i == 25:
            found = i
            break
    else:
        found = -1
    return found


@case(5)
def while_true(n: int):
    while True:
        n = n * 2
        if n > 100:
            return n


@case(3)
@case(-3)
def elif_chain(n: int) -> str:
    if n > 2:
        s = "big"
    elif n > 0:
        s = "small"
    else:
        return "negative"
    return s + "!"


@case(3, 4)
def arithmetic(a: int, b: int):
    return (a + b, a - b, a * b, a / b, a // b, a % b, a**3, -a, a & b, a | b, a ^ b, a << b, ~a)


@case(2.5, 3)
def mixed_arithmetic(a: float, b: int):
    return (a + b, b - a, a * b, b / a, a // b, a % b, a**b, a < b, a == b, a != b)


@case(3, 5, 7)
@case(9, 5, 7)
def chained(a: int, b: int, c: int):
    return a < b < c, a < b > c, a == 3 == a


@case(True, False)
@case(True, True)
@case(False, False)
def logic(a: bool, b: bool):
    return a and b, a or b, not a, (a and not b) or (b and not a)


@case(0, 4)
@case(3, 4)
def value_logic(a: int, b: int):
    return a or b, a and b


@case(5)
@case(-5)
def ternary(n: int):
    return (n if n > 0 else -n), ("a" if n > 0 else "b")


@case(10)
def unused_result(n: int):
    n + 1
    pass
    ...
    return n


@case(4.7)
def conversions(x: float):
    return int(x), float(3), bool(x), str(x), int("12"), float("1.5"), round(x), abs(-x)


@case(3.7, 2)
def math_functions(x: float, n: int):
    return (math.sqrt(x), math.floor(x), math.ceil(x), math.exp(x), math.log(x), math.pow(x, n),
            math.sin(x), math.pi, math.isnan(x), math.gcd(12, 18), math.factorial(5))  # fmt: skip


@case([3, 1, 2])
def list_builtins(xs: List[int]):
    return (len(xs), min(xs), max(xs), sum(xs), sorted(xs), sorted(xs, reverse=True),
            any([x > 2 for x in xs]), all([x > 2 for x in xs]), list(reversed(xs)))  # fmt: skip


@case(3, 8)
def min_max(a: int, b: int):
    return min(a, b), max(a, b), min(a, b, 1), max(1.5, 2.5), divmod(b, a)


@case(12)
def ranges(n: int):
    a = [i for i in range(n)]
    b = [i for i in range(2, n, 3)]
    c = [i for i in range(n, 0, -4)]
    d = list(range(3))
    e = [i for i in reversed(range(1, n, 2))]
    return a, b, c, d, e


@case([1, 2, 3], [4.0, 5.0, 6.0])
def zips(xs: List[int], ys: List[float]):
    total = 0.0
    for i, (x, y) in enumerate(zip(xs, ys)):
        total += i * x * y
    for i, x in enumerate(xs, 10):
        total += i * x
    return total


@case(1.0)
@case(9.0)
def walrus(x: float):
    if (y := x * 2) > 10:
        return y
    return y + x


@case(3)
def nested_functions(n: int):
    def double(x: int) -> int:
        return x * 2

    add = lambda a, b: a + b  # noqa: E731
    return double(n) + add(n, 1)


@case(6)
def recursion(n: int) -> int:
    return _factorial(n)


def _factorial(n: int) -> int:
    if n <= 1:
        return 1
    return n * _factorial(n - 1)


SCALE = 3
NAMES = ["a", "b"]
TABLE = {"x": 1, "y": 2}


@case("x")
@case("y")
def globals_(key: str):
    return SCALE * TABLE[key], key in TABLE, "a" in NAMES, len(NAMES)


@case(2)
def keywords(n: int):
    return _helper(n, scale=3), _helper(n), _helper(x=n, flag=False), _helper(n, 2, False)


def _helper(x: int, scale: int = 10, flag: bool = True) -> int:
    if flag:
        return x * scale
    return x + scale


@case((1, 2), 3)
def star_call(pair: Tuple[int, int], z: int):
    return _three(*pair, z), _three(*(z, z), 1)


def _three(a: int, b: int, c: int):
    return a * 100 + b * 10 + c


# ---- lists, dicts, tuples ----


@case([1, 2, 3, 4])
def list_methods(xs: List[int]):
    ys = xs.copy()
    ys.append(9)
    ys.extend([7, 8])
    ys.insert(0, -1)
    last = ys.pop()
    ys.remove(9)
    ys.reverse()
    ys[0] = 100
    del ys[1]
    ys += [5]
    return ys, last, ys[-1], ys[1:3], ys[::2], ys.index(5), ys.count(5), 5 in ys, xs == ys, ys * 2


@case(3)
def list_aliasing(n: int):
    xs = [n]
    ys = xs
    ys.append(n + 1)
    xs += [n + 2]
    zs = xs + ys
    return xs, ys, zs


@case(4)
def empty_list_takes_type(n: int):
    xs = []
    for i in range(n):
        xs.append(i * 1.5)
    return xs


@case([[1, 2], [3]])
def nested_lists(xs: List[List[int]]):
    flat = [x for row in xs for x in row if x != 2]
    return flat, [[y * 2 for y in row] for row in xs], [len(row) for row in xs]


@case({"a": 1, "b": 2})
def dict_methods(d: Dict[str, int]):
    d = d.copy()
    d["c"] = 3
    total = 0
    for k in d:
        total += d[k]
    for k, v in d.items():
        total += v * len(k)
    x = d.get("zz", 7)
    y = d.pop("a")
    e = {k: v * 2 for k, v in d.items() if v > 2}
    d.update({"q": 5})
    del d["b"]
    return d, total, x, y, e, "q" in d, "a" not in d, len(d), list(d.keys()), list(d.values())


@case(3)
def dict_of_lists(n: int):
    d: Dict[int, List[int]] = {}
    for i in range(n):
        if i not in d:
            d[i] = []
        d[i].append(i * i)
        d[i] += [1]
    return d


@case((1, 2.0, "c"))
def tuples(p: Tuple[int, float, str]):
    a, b, c = p
    (d, e), f = (a, b), c
    q = p + (a,)
    return (
        p[0],
        p[-1],
        p[1:],
        d,
        e,
        f,
        q,
        len(p),
        p == (1, 2.0, "c"),
        (a, b) != (1, 2.0),
        2 in (1, 2),
    )


@case((1, 2, 3, 4))
def starred(p: Tuple[int, int, int, int]):
    first, *rest = p
    a, *b, c = p
    return first, rest, a, b, c, [*rest, 9]


@case([5, 6])
def unpack_list(xs: List[int]):
    a, b = xs
    return a * b


@case(2)
@case(0)
def tuple_by_runtime_index(i: int):
    return (10, 20, 30)[i]


class Point(NamedTuple):
    x: int
    y: float = 2.5


@case(3)
def named_tuple(n: int):
    p = Point(n)
    q = Point(x=n, y=1.0)
    a, b = p
    return p.x + q.y, a, b, p[0], q


# ---- optional and union ----


@case(None)
@case(4)
def optional(x: Optional[int]) -> int:
    if x is None:
        return 0
    y = x + 1
    if x is not None and x > 3:
        y += x
    return y


@case(None)
@case(2)
def optional_default(x: Optional[int] = None):
    if x is None:
        x = 10
    return x + 1


@case(None, 3)
@case(2, None)
@case(2, 3)
@case(None, None)
def two_optionals(a: Optional[int], b: Optional[int]):
    if a is not None and b is not None:
        return a + b
    elif a is None and b is None:
        return -1
    if a is not None:
        return a
    assert b is not None
    return b


@case(5)
def optional_in_loop(n: int):
    best: Optional[int] = None
    for i in range(n):
        if best is None or i * i % 7 > best:
            best = i * i % 7
    return best


@case(3)
def optional_without_declaration(n: int):
    last = None
    for i in range(n):
        if last is not None:
            last = last + i
        else:
            last = i
    return last


@case(1)
@case("a")
def union(x: Union[int, str]) -> str:
    if isinstance(x, int):
        return str(x + 1)
    return x + "!"


@case(1)
@case(2.5)
def int_or_float(x: int | float):
    if isinstance(x, float):
        return x * 2.0
    return float(x)


@case([1, 2])
def jit_isinstance(xs: List[int]):
    if jit.isinstance(xs, List[int]):
        return 1
    return 2


@case(t(2))
@case(None)
def or_default(x: Optional[Tensor]):
    y = x if x is not None else torch.zeros(2)
    return y + 1


# ---- strings ----


@case("Hello World", 3)
def string_methods(s: str, n: int):
    return (s.upper(), s.lower(), s.split(" "), "-".join(["a", "b"]), s.replace("o", "0"), s[0],
            s[-1], s[1:4], s.find("W"), s.startswith("He"), len(s), s + "!", s * 2, "W" in s,
            s.strip(), [c for c in s], s == "x", s < "z")  # fmt: skip


@case("a", 3, 2.5)
def formatting(s: str, n: int, x: float):
    return (f"{s}-{n}:{x}", f"{s} {n}", "%s %d" % (s, n), f"{{{n}}}", f"{x:.3f}|{n:05d}",
            f"{s!r}", f"{n=}", f"a{1}", "%d" % n)  # fmt: skip


# ---- tensors ----


@case(t(3, 4))
def tensor_operators(x):
    return (x + 1, 1 - x, 2 * x, x / 2, 1 / (x + 9), x // 2, 7 // (x + 10), x % 3, 7 % (x + 10), x**2,
            2**x, -x, x > 0, 1 < x, x == 1, x != 1, (x > 0) & (x < 3), ~(x > 0), x @ x.t(), abs(x))  # fmt: skip


@case(t(3, 4))
def tensor_in_place(x):
    y = x.clone()
    z = y
    y += 1
    y *= 2
    y -= x
    y /= 2
    y //= 1
    z[0] = 5
    z[1, 2] = x[0, 0]
    z[:, 1:2] += 10
    z[x > 5] = 0
    return y, z


@case(t(3, 4, 2))
def tensor_indexing(x):
    i = torch.tensor([0, 2])
    return (x[0], x[-1, 1], x[:, 1], x[1:], x[::2], x[..., 0], x[0, ..., 1], x[None], x[:, None, 1:3],
            x[i], x[:, i], x[i, 1], x[x > 3], x[..., None], x[[0, 1]], x[0:2, ..., :1], x[..., -1, :])  # fmt: skip


@case(t(4, 2), 1, 3)
def dynamic_slices(x, a: int, b: int):
    return x[a:b], x[a], x[:, a - 1 : b], x[b - 4]


@case(t(2, 3))
def tensor_attributes(x):
    return x.shape, x.dtype == torch.float32, x.ndim, x.size(0), x.T, x.numel(), x.dim(), x.is_cuda


@case(t(2, 3))
def tensor_iteration(x):
    total = torch.zeros(3)
    for row in x:
        total = total + row
    a, b = x
    return total, a, b, len(x)


@case(t(2, 3))
def shapes(x):
    n, m = x.shape
    y = x.view(m, n).reshape([n * m]).unsqueeze(0)
    z = torch.zeros(n, m) + torch.ones([n, m]) + torch.full((n, m), 2.0)
    return y, z, x.permute(1, 0), x.expand(2, 2, 3), x.transpose(0, 1).contiguous().view(-1)


@case(t(2, 3))
def reductions(x):
    v, i = x.max(1)
    m = x.max(dim=0)
    return (
        x.sum(),
        x.mean(1),
        x.sum(0, keepdim=True),
        v,
        i,
        m.values,
        m[1],
        x.max(),
        torch.cat([x, x], 1),
    )


@case(t(2, 3))
def tensor_to_number(x):
    n = int(x.sum())
    y = float(x[0, 0])
    s = x.sum().item()
    if x.sum() > 0:
        y += 1
    if bool(x[0, 0] < 0) and x.mean() < 10:
        y += 2
    return n, y, s


@case(t(2, 3))
def dtypes(x):
    y = x.to(torch.float64)
    z = x.to(dtype=torch.int64)
    w = torch.zeros(2, dtype=torch.int32, device=x.device)
    return y, z, w, x.double(), x.long(), y.dtype == torch.float64, x.type_as(y)


@case(t(3))
def tensor_lists(x):
    xs = [x, x + 1]
    xs.append(x * 2)
    return torch.stack(xs), torch.cat(xs), [y.sum() for y in xs], sum(xs)


@case(t(3))
def dict_of_tensors(x):
    d = {"a": x, "b": x + 1}
    d["c"] = d["a"] * d["b"]
    total = torch.zeros(3)
    for v in d.values():
        total += v
    return d, total


@case(t(4))
def grad_modes(x):
    with torch.no_grad():
        y = x * 2
    with torch.enable_grad():
        z = y + 1
    return y, z


@case(t(2, 2))
def functional(x):
    import_free = torch.nn.functional.relu(x)
    y = torch.nn.functional.softmax(x, dim=-1)
    z = torch.nn.functional.layer_norm(x, (2,))
    return import_free, y, z, torch.nn.functional.gelu(x), torch.relu(x), torch.sigmoid(x)


@case(t(2, 2))
def annotations(x: "Tensor") -> "List[Tensor]":
    xs: List[Tensor] = []
    ys = jit.annotate(List[Tensor], [])
    xs.append(x)
    ys.append(x + 1)
    return xs + ys


@case(t(2, 2), 3)
def type_comments(x, n):
    # type: (Tensor, int) -> Tensor
    y = []  # type: List[int]
    y.append(n)
    return x * y[0]


@case(3)
def assertions(n: int):
    assert n > 0
    assert n < 10, "n is too big: " + str(n)
    return n


@case(2)
def delete(n: int):
    x = n
    y = x + 1
    del x
    return y


@case(8)
def swap(n: int):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a, b


@case(t(2))
def static_unroll(x):
    for f in (torch.relu, torch.sigmoid):
        x = f(x)
    for i, s in enumerate((1, 2.5)):
        x = x * s + i
    return x


@case([3, 1, 2])
def min_by_loop(xs: List[int]):
    best = xs[0]
    where = 0
    for i, x in enumerate(xs):
        if x < best:
            best, where = x, i
    return best, where


@case(4)
def nested_comprehension(n: int):
    return [(i, j) for i in range(n) for j in range(i) if (i + j) % 2], {
        str(i): i for i in range(n)
    }


@case(5)
def generators(n: int):
    return (sum(i * i for i in range(n)), any(i > 3 for i in range(n)), all(i < 3 for i in range(n)),
            list(i for i in range(n)), max(i % 3 for i in range(n)))  # fmt: skip


@case(1, 2)
def conditional_definition(a: int, b: int):
    if a < b:
        msg = "less"
        k = 1
    else:
        raise ValueError("no")
    return msg, k


@case(3)
def none_result(n: int):
    if n > 100:
        return
    n += 1


@case(2)
def hasattr_getattr(n: int):
    p = Point(n)
    if hasattr(p, "x"):
        n = p.x + 1
    if hasattr(p, "zz"):
        n = p.zz
    return n


@case(1 + 2j)
def complex_numbers(z: complex):
    return z + 1, z * z, abs(z), z.real, z.imag, z == 1j


@case(True)
@case(False)
def continue_in_unrolled_loop(flag: bool):
    total = 0
    for k in (1, 2, 3):
        if flag and k == 2:
            continue
        total += k
        if not flag and k == 2:
            break
    else:
        total += 100
    return total


@case(3)
def first_step_returns(n: int):
    a, b = 0, 1
    for _ in range(n):
        return a, b
    return b, a


@case(4.0)
def same_value_on_both_paths(x: float):
    y = x * 2
    if y > 10:
        return y
    return y


@case(2.5)
@case(4)
@case(0.5)
def truth_of_a_union(x: int | float):
    if x % 2.0:
        return 1
    return 2 if not x else 3


@case(3)
def while_over_constants(n: int):
    i = 0
    going = True
    steps = 0
    while i < 10:
        i += n
    while going:
        steps += 1
        going = steps < 4
    return i, steps


@case(3)
@case(9)
def while_optional(n: int):
    x: Optional[int] = n
    total = 0
    while x is not None:
        total += x
        x = x - 1 if x > 5 else None
    return total, x is None


@case(3)
@case("abc")
@case(2.5)
def any_type(x: Any):
    if isinstance(x, int):
        return x + 1
    if isinstance(x, str):
        return len(x)
    return -1


@case([1, 2, 3, 4])
def starred_list(xs: List[int]):
    a, *b, c = xs
    first, *rest = xs
    return a, b, c, first, rest


@case(["b", "a"], [1, 2])
def dict_of_zip(keys: List[str], values: List[int]):
    return dict(zip(keys, values)), dict([("x", 1), ("y", 2)])


@case(t(2))
def to_device(x):
    d = torch.device("cpu")
    return x.to(d), x.to("cpu", torch.float64), x.device == d, str(d), x.device.type


@case(t(2, 2))
def einsum(x):
    return torch.einsum("ij,jk->ik", x, x), torch.einsum("ij->j", [x])


@case([5])
@case([5, 7])
def list_or_tuple(size: List[int]):
    if len(size) == 1:
        size = (size[0], size[0])
    high, wide = size
    return high - 1, wide


@case(t(1, 2, 3, 4), "bilinear", True)
@case(t(1, 2, 3, 4), "bicubic", False)
@case(t(1, 2, 3, 4), "nearest", False)
def resampled_by_a_mode_of_the_call(x, mode: str, antialias: bool):
    return torch.nn.functional.interpolate(x, size=[5, 2], mode=mode, antialias=antialias)


@case([5, 6], 3)
def pair_of(sizes: List[int], size: int):
    first, second = torch.nn.modules.utils._pair(size), torch.nn.modules.utils._pair(sizes)
    return first[0] + second[1]

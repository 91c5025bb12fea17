"""Programs that are refused, and what the compiler says, word for word."""

# ruff: noqa: W293

REFUSALS = [
    (
        """\
def f(x):
    return x + 'a'
""",
        """\
+: expected types it is defined for, got Tensor and str
  File "<string>", line 2
    def f(x):
        return x + 'a'
               ~~~~~~~ <--- HERE""",
    ),
    (
        """\
def f(x: int):
    return x.foo
""",
        """\
expected an attribute of int, got 'foo', which it has not
  File "<string>", line 2
    def f(x: int):
        return x.foo
               ~~~~~ <--- HERE""",
    ),
    (
        """\
def f(x):
    return x.foo()
""",
        """\
expected an attribute of Tensor, got 'foo', which it has not
  File "<string>", line 2
    def f(x):
        return x.foo()
               ~~~~~ <--- HERE""",
    ),
    (
        """\
def f(x):
    return y
""",
        """\
expected a name that is defined, got 'y'
  File "<string>", line 2
    def f(x):
        return y
               ~ <--- HERE""",
    ),
    (
        """\
def f(x, n: int):
    if n > 0:
        y = x
    return y
""",
        """\
y: expected a value on every path, got none from the false branch
  File "<string>", line 4
    def f(x, n: int):
        if n > 0:
            y = x
        return y
               ~ <--- HERE
Write instead: y = ... before the if""",
    ),
    (
        """\
def f(x, n: int):
    if n > 0:
        y = x
    else:
        y = n
    return y
""",
        """\
y: expected one type on both paths, got Tensor from the true branch and int from the false branch
  File "<string>", line 6
            y = x
        else:
            y = n
        return y
               ~ <--- HERE
Write instead: a declaration before the if, as x: Union[Tensor, int]""",
    ),
    (
        """\
def f(n: int) -> str:
    return n
""",
        """\
return: expected a value of type str, got int
  File "<string>", line 2
    def f(n: int) -> str:
        return n
        ~~~~~~~~ <--- HERE""",
    ),
    (
        """\
def f(n: int) -> str:
    if n > 0:
        return 'a'
""",
        """\
f: expected a return on every path, since it returns str, got a path without
  File "<string>", line 1
    def f(n: int) -> str:
    ~~~~~~~~~~~~~~~~~~~~~ <--- HERE
Write instead: a return or raise at the end""",
    ),
    (
        """\
def f(n: int):
    t = 0
    for i in range(n):
        t = t + 0.5
    return t
""",
        """\
t: expected the same type at each step of the loop, got int before it and float behind a step
  File "<string>", line 4
    def f(n: int):
        t = 0
        for i in range(n):
            t = t + 0.5
                ~ <--- HERE
Write instead: a float before the loop, as t = 0.0""",
    ),
    (
        """\
def f(x: Optional[int]):
    return x + 1
""",
        """\
+: expected types it is defined for, got Optional[int] and int
  File "<string>", line 2
    def f(x: Optional[int]):
        return x + 1
               ~~~~~ <--- HERE
Write instead: assert x is not None first, or a test of x is not None around it""",
    ),
    (
        """\
def f(x: Optional[Tensor]):
    return x.sum()
""",
        """\
expected a value of type Tensor to take 'sum' of, got Optional[Tensor]
  File "<string>", line 2
    def f(x: Optional[Tensor]):
        return x.sum()
               ~~~~~ <--- HERE
Write instead: a test of x is not None around it, or assert x is not None before it; of an attribute self.x, x = self.x first""",
    ),
    (
        """\
def f(x):
    return torch.cat(x, 1, 2, 3)
""",
        """\
cat: expected arguments that fit one of these, got (Tensor, int, int, int):
  cat(Tensor[] tensors, int dim=0) -> Tensor: argument 'tensors': expected a value of type List[Tensor], got Tensor
  cat.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!): argument 'tensors': expected a value of type List[Tensor], got Tensor
  File "<string>", line 2
    def f(x):
        return torch.cat(x, 1, 2, 3)
               ~~~~~~~~~~~~~~~~~~~~~ <--- HERE""",
    ),
    (
        """\
def f(x):
    return torch.relu(x, 1)
""",
        """\
relu: expected at most 1 positional arguments, got 2; it takes relu(Tensor self) -> Tensor
  File "<string>", line 2
    def f(x):
        return torch.relu(x, 1)
                             ~ <--- HERE""",
    ),
    (
        """\
def f(x):
    return torch.nosuch(x)
""",
        """\
weft: expected a name it has, got 'nosuch'
  File "<string>", line 2
    def f(x):
        return torch.nosuch(x)
               ~~~~~~~~~~~~ <--- HERE""",
    ),
    (
        """\
def f(xs: List[int]):
    xs.append('a')
""",
        """\
append: expected a value of type int, got str
  File "<string>", line 2
    def f(xs: List[int]):
        xs.append('a')
                  ~~~ <--- HERE""",
    ),
    (
        """\
def f(d: Dict[str, int]):
    return d[1]
""",
        """\
key: expected a value of type str, got int
  File "<string>", line 2
    def f(d: Dict[str, int]):
        return d[1]
               ~~~~ <--- HERE""",
    ),
    (
        """\
def f(x: Foo):
    return x
""",
        """\
annotation: expected the name of a type, got the unknown name 'Foo'
  File "<string>", line 1
    def f(x: Foo):
             ~~~ <--- HERE""",
    ),
    (
        """\
def f(x: list):
    return x
""",
        """\
annotation: expected the types inside a list, got none
  File "<string>", line 1
    def f(x: list):
             ~~~~ <--- HERE
Write instead: List[int]""",
    ),
    (
        """\
def f(x: Tuple[int, ...]):
    return x
""",
        """\
annotation: expected a tuple of fixed length, got tuple[..., ...]
  File "<string>", line 1
    def f(x: Tuple[int, ...]):
             ~~~~~~~~~~~~~~~ <--- HERE
Write instead: List[T], or a tuple type with every element""",
    ),
    (
        """\
def f(x):
    try:
        return x
    except ValueError:
        return x
""",
        """\
expected syntax of the language, got try
  File "<string>", line 2
    def f(x):
        try:
        ~~~~ <--- HERE
            return x
        except ValueError:
            return x
Write instead: an if that tests for the case, or a function marked @weft.jit.ignore""",
    ),
    (
        """\
def f(x, *args):
    return x
""",
        """\
expected syntax of the language, got *args in a definition
  File "<string>", line 1
    def f(x, *args):
              ~~~~ <--- HERE
Write instead: one list argument""",
    ),
    (
        """\
def f(x):
    return {1: x, 'a': x}
""",
        """\
dict: expected keys of type int, float, bool, complex, str, Tensor, device, an enum, or a tuple of these but Tensor, \
got Union[int, str]
  File "<string>", line 2
    def f(x):
        return {1: x, 'a': x}
               ~~~~~~~~~~~~~~ <--- HERE""",
    ),
    (
        """\
def f(n: int):
    return f(n - 1)
""",
        """\
expected syntax of the language, got recursion without a return annotation
  File "<string>", line 2
    def f(n: int):
        return f(n - 1)
               ~~~~~~~~ <--- HERE
Write instead: def f(n: int) -> int: ...""",
    ),
    (
        """\
def g(x: int) -> int:
    return x + 's'

def f(x: int):
    return g(x)
""",
        """\
+: expected types it is defined for, got int and str
  File "<string>", line 2
    def g(x: int) -> int:
        return x + 's'
               ~~~~~~~ <--- HERE""",
    ),
    (
        """\
def g(x: int) -> int:
    return x

def f(x):
    return g('a')
""",
        """\
g: argument 'x': expected a value of type int, got str; it takes (x: int)
  File "<string>", line 5
        return x
    
    def f(x):
        return g('a')
                 ~~~ <--- HERE""",
    ),
    (
        """\
def g(x: int) -> int:
    return x

def f(x):
    return g(1, 2, z=3)
""",
        """\
g: expected at most 1 positional arguments, got 2; it takes (x: int)
  File "<string>", line 5
        return x
    
    def f(x):
        return g(1, 2, z=3)
                    ~ <--- HERE""",
    ),
    (
        """\
def f(x):
    break
""",
        """\
break: expected it inside a loop
  File "<string>", line 2
    def f(x):
        break
        ~~~~~ <--- HERE""",
    ),
    (
        """\
def f(n: int):
    for i in n:
        pass
""",
        """\
for: expected a list, tuple, dict, str, tensor, range, or list of modules, got int
  File "<string>", line 2
    def f(n: int):
        for i in n:
                 ~ <--- HERE
Write instead: range(n)""",
    ),
    (
        """\
def f(p: Tuple[int, str], i: int):
    return p[i]
""",
        """\
tuple: expected an index known while compiling, got one that is not
  File "<string>", line 2
    def f(p: Tuple[int, str], i: int):
        return p[i]
               ~~~~ <--- HERE""",
    ),
    (
        """\
def f(p: Tuple[int, str]):
    return p[5]
""",
        """\
tuple: expected an index in [-2, 2), got 5
  File "<string>", line 2
    def f(p: Tuple[int, str]):
        return p[5]
               ~~~~ <--- HERE""",
    ),
    (
        """\
def f(x):
    a, b = (1, 2, 3)
    return a
""",
        """\
assignment: expected 2 values, got 3
  File "<string>", line 2
    def f(x):
        a, b = (1, 2, 3)
               ~~~~~~~~~ <--- HERE""",
    ),
    (
        """\
def f(x):
    x.y = 3
""",
        """\
expected an object whose attribute 'y' can be set, got Tensor
  File "<string>", line 2
    def f(x):
        x.y = 3
        ~~~ <--- HERE""",
    ),
    (
        """\
def f(x):
    return len(3)
""",
        """\
len: expected a list, dict, str, tuple or tensor, got int
  File "<string>", line 2
    def f(x):
        return len(3)
               ~~~~~~ <--- HERE""",
    ),
    (
        """\
def f(x):
    return x[::-1]
""",
        """\
[]: expected a step above 0 in the slice of a tensor, got -1
  File "<string>", line 2
    def f(x):
        return x[::-1]
               ~~~~~~~ <--- HERE
Write instead: x.flip(dim)""",
    ),
    (
        """\
def f(x):
    return 99999999999999999999
""",
        """\
expected an int of 64 bits, got 99999999999999999999
  File "<string>", line 2
    def f(x):
        return 99999999999999999999
               ~~~~~~~~~~~~~~~~~~~~ <--- HERE""",
    ),
    (
        """\
def f(x:
""",
        """\
expected Python source, got '(' was never closed
  File "<string>", line 1
    def f(x:
         ~ <--- HERE""",
    ),
    (
        """\
def f(x):
    return open('a')
""",
        """\
open: expected a function of the language, got open()
  File "<string>", line 2
    def f(x):
        return open('a')
               ~~~~~~~~~ <--- HERE""",
    ),
    (
        """\
def f(x):
    z = zip(x, x)
    return list(z), list(z)
""",
        """\
for: expected a zip to be walked through once, got a second walk: Python uses it up by the first
  File "<string>", line 3
    def f(x):
        z = zip(x, x)
        return list(z), list(z)
                        ~~~~~~~ <--- HERE
Write instead: a list, as xs = list(zip(...))""",
    ),
    (
        """\
def f(x, k=3):
    return x * k
""",
        """\
k: expected a default of type Tensor, got int
  File "<string>", line 1
    def f(x, k=3):
             ~ <--- HERE
Write instead: k: int = ...""",
    ),
    (
        """\
def f(x):
    raise 3
""",
        """\
raise: expected an exception, got a value of type int
  File "<string>", line 2
    def f(x):
        raise 3
        ~~~~~~~ <--- HERE""",
    ),
    (
        """\
def f(x):
    with x:
        pass
""",
        """\
with: expected an object with __enter__ and __exit__, got a value of type Tensor
  File "<string>", line 2
    def f(x):
        with x:
             ~ <--- HERE""",
    ),
]

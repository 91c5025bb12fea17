"""The operator table: one `op(...)` call is one operator.

What a row says is said nowhere else: from it come the C++ function with its in-place and out forms,
the boxed call, the autograd node, the Python function and method, the stub, and the kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any, NoReturn, TypeVar

from weft._ops.deferred import Deferred, Importing
from weft._ops.schema import Arg, Schema, parse

Body = TypeVar("Body", bound=Callable[..., Any])
KINDS = ("pointwise", "reduce", "rowwise", "view", "compose", "native", "random")
# Arguments of row programs that choose the row rather than take part in the arithmetic.
STRUCTURAL = frozenset(("dim", "keepdim", "dtype"))
VARIANTS = ("fm", "f", "m", "nn", "")
TAGS = frozenset(
    (
        "nondifferentiable",  # no gradient flows through it
        "composite",  # a native body made of differentiable operators: the gradient follows
        "commutative",
        "random",
        "factory",  # makes a tensor from no tensor: takes requires_grad in Python
        "backward",  # exists for gradient formulas
        "relayout",  # writes sizes and strides of its first argument, and no element
        "partial_grads",  # its formula takes missing gradients as None
        "view_dtype",  # a view in another dtype
        "part",  # a view of distinct elements: the engine adds its gradient in their places
        "may_give_input",  # where there is nothing to do, the result is the first argument itself
        "writes_statistics",  # in training, though the schema does not say so: arguments running_*
        "total",  # cannot raise, whatever the arguments of its types are
        "checks_dims",  # raises only where its dimensions do not fit the rank
        "checks_order",  # raises only where its list is no order of all dimensions
        "checks_matrix",  # raises only for more than two dimensions
        "checks_format",  # raises only where a memory format wants another rank
        "adds_dim",  # its result has one dimension more
        "bitwise",  # of masks gives a mask
        "number_first",  # its function takes a number for its first tensor: add(2, x)
        "two_numbers",  # and numbers alone: add(2, 3)
        "numbers_between",  # takes its keywords between its tensors as well: add(x, alpha, y)
        "depends_on_dtype",  # the same numbers in a wider dtype give another result
        "no_masks",  # takes no bools, beside other numbers neither
        "exact_number",  # its right operand is not rounded to 16 bits where it is one number
        "converts_number",  # a number is cut off to an integer where the tensor holds integers
        "any_integers",  # are taken as they are: other operators may refuse some
        "row_major",  # gives a row-major result, whatever the layout of its tensors
        "exact_out",  # on elements, or a reduction: out= has the dtype of the result
        "casts_out",  # of another kind: out= may have another dtype that holds the result
        "each_of_none",  # a reduction that over no dimensions, an empty list, asks each element
        "fills_out",  # out= keeps its shape where it has as many elements as the result
        "distinct_out",  # out= shares no memory with its tensors
        "cheap",  # takes less time than to read and write its tensors
        "layer",  # its second and third arguments are a weight and a bias
        "normalizes",  # rows to mean 0 and variance 1, then a weight and a bias
        "one_walk",  # over the elements of its first argument, whose dtype its result has
        "convolution",
        "keeps_layout",  # its results lie as its first argument does
        "by_channels",  # of images whose channels lie together gives such ones
        "fusible",  # a step of fusion groups, over all elements or the last dimension
        "fusible_rows",  # the same, over the last dimension only
        "spreads",  # gives its first argument in the sizes that it is told, repeated
        "picks",  # each element of its result is one of its first argument
        "reshapes",  # gives its first argument in the sizes that it is told
        "autocast_lower",  # under autocast: in the lower precision
        "autocast_float32",  # under autocast: in float32
        "autocast_widest",  # under autocast: in the widest dtype among its tensors
        "autocast_given",  # under autocast: as without it, though its body calls others
    )
)

# What an overload with a number in the place of a tensor has not.
_OF_TENSORS = {"commutative", "number_first", "two_numbers", "numbers_between"}
INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
NUMBERS = INTEGERS + FLOATS + COMPLEX

TABLE: list[Row] = []
_keys: set[str] = set()  # of the rows in TABLE
importing = Importing()
_deferred = Deferred()  # families and arguments of `op`


class _Auto:
    """`inplace=` and `out=` left to the default of the row's kind."""


AUTO = _Auto()
# Compose bodies written as Python functions reach free operators as `ops.where(...)`.
ops: Any = None


class TableError(ValueError):
    """A row that contradicts itself; the message starts with the row's schema key."""


class Row:
    """One operator. `body` is the kernel function, the compose body, or the C++ name. No dataclass:
    importing those takes longer than a family of rows."""

    schema: Schema
    kind: str
    body: Any
    doc: str
    family: str
    promotion: str
    result: tuple[str, ...]
    dtypes: tuple[str, ...]
    bool_inputs: tuple[str, ...]
    int_inputs: tuple[str, ...]
    weak: tuple[str, ...]
    dims: str | None
    grad: Mapping[tuple[str, ...], str]
    inplace_grad: Mapping[tuple[str, ...], str]
    inplace_grad_when: str
    constants: tuple[str, ...]
    tags: frozenset[str]
    variants: str
    inplace: str | None
    out: str | None
    inplace_variants: str
    validate: str | None
    per_row: tuple[str, ...]
    shape: str

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Row: expected not to be changed, got {name}")

    def __repr__(self) -> str:
        return f"<Row {self.key}>"

    @property
    def name(self) -> str:
        """The operator's name without the overload."""
        return self.schema.name

    @property
    def overload(self) -> str:
        """The overload's name, often empty."""
        return self.schema.overload

    @property
    def key(self) -> str:
        """ "add.Tensor", or "exp" where the overload has no name."""
        return self.schema.key

    @property
    def id(self) -> str:
        """The row as a C identifier: `add_Tensor`, `sum`, `softmax_int`."""
        return self.key.replace(".", "_")

    @property
    def operands(self) -> tuple[str, ...]:
        """Tensor arguments of the body, in schema order."""
        return tuple(arg.name for arg in self.schema.args if arg.is_tensor)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Numbers the body takes, in schema order: the attribute slots of the kernel."""
        return tuple(arg.name for arg in self.schema.args if _is_attribute(arg, self.kind))

    @property
    def is_program(self) -> bool:
        """Whether the row has kernels: pointwise, reduce and rowwise."""
        return self.kind in ("pointwise", "reduce", "rowwise")

    @property
    def autocast(self) -> str | None:
        """What autocast does to its tensors: "lower", "float32", "widest" or "given"."""
        found = [tag.removeprefix("autocast_") for tag in self.tags if tag.startswith("autocast_")]
        return found[0] if found else None

    @property
    def exact_out(self) -> bool:
        """Whether `out=` has the dtype of the result (for "truth": or uint8), not one that the
        result is converted to."""
        if self.kind in ("pointwise", "reduce"):
            return "exact_out" in self.tags
        return "casts_out" not in self.tags

    @property
    def writes(self) -> bool:
        """Whether the row itself writes to its first argument (`copy_`)."""
        return bool(self.schema.args) and self.schema.args[0].is_written

    @property
    def differentiable(self) -> tuple[str, ...]:
        """Arguments with a gradient formula, in schema order: the edges of the node."""
        wanted = {name for names in self.grad for name in names}
        return tuple(arg.name for arg in self.schema.args if arg.name in wanted)


def op(
    *schemas: str,
    doc: str | Sequence[str],
    pointwise: Callable[..., Any] | None = None,
    reduce: Callable[..., Any] | None = None,
    rowwise: Callable[..., Any] | None = None,
    view: str | None = None,
    compose: str | Callable[..., Any] | None = None,
    native: str | None = None,
    random: str | None = None,
    promotion: str = "common",
    result: str | Sequence[str] = "compute",
    dtypes: Sequence[str] = (),
    bool_inputs: Sequence[str] = (),
    int_inputs: Sequence[str] = (),
    weak: Sequence[str] = (),
    dims: str | None = None,
    grad: Mapping[str, str] | None = None,
    inplace_grad: Mapping[str, str] | None = None,
    inplace_grad_when: str = "True",
    constants: Sequence[str] = (),
    no_gradient: Sequence[str] = (),
    tags: Sequence[str] = (),
    variants: str | None = None,
    inplace: str | _Auto | None = AUTO,
    out: str | bool | _Auto | None = AUTO,
    inplace_variants: str | None = None,
    validate: str | None = None,
    per_row: Sequence[str] = (),
    shape: str | None = None,
    like: str | None = None,
) -> None:
    """Appends one operator to TABLE, or one for each of several schemas: those are overloads, or
    operators that are alike. Each has its own `doc` where there is a sequence of them, and those of
    the formulas that are of its tensors. Names of `inplace` and `out` are of the first one.

    One body: `pointwise` (a function over symbolic scalars), `reduce` or `rowwise` (over a row),
    `view`, `native`, `random` (the name of a C++ function, or a call in which "..." stands for the
    arguments that it does not name), `compose` (an expression or a function over other rows).
    Without one, `native` by the operator's own name.

    - promotion: how input dtypes give the compute dtype: "common", "floating" or "sum".
    - result: dtype of each result: "compute", "bool", "int64", "real" or "truth" (bool, but uint8
      for uint8); of rows without kernels, the argument that has it, where it is one's.
    - dtypes: restricts the compute dtypes that kernels exist for.
    - bool_inputs, int_inputs: masks and indices, which take no part in promotion.
    - weak: numbers that take no part in promotion (int, float and bool arguments never do).
    - dims: an expression for the dimensions of a row, where no argument `dim` says them.
    - grad: gradient formula by argument; "a, b" with a formula that gives a tuple, beside which
      those of "a" and "b" are what fusion groups take.
    - inplace_grad: formulas of the in-place form that read its result, not what it overwrites; used
      where the condition inplace_grad_when holds of the other arguments. Otherwise a node keeps a
      copy of what is overwritten.
    - constants: tensor arguments without gradient that are not named as indices or masks are.
    - no_gradient: tensor arguments whose gradient nobody wrote: backward raises.
    - variants: where Python sees it: "f" function, "m" method, "nn" weft.nn.functional, "" nowhere.
    - inplace_variants: where Python sees the in-place form; by default a method, and a function as
      well where the row has one operand and no numbers.
    - inplace, out: overload names of the derived forms; None where PyTorch has no such form. Rows
      without kernels have an `out` only where they say so (True: under the usual name).
    - validate: of a pointwise row, a function of csrc/ops/argument_validation.h that sees the
      arguments first and raises for values that kernels cannot refuse.
    - per_row: of a rowwise row, the operands and results ("result1") that have one element for
      each row.
    - shape: the sizes of the results, an expression over the sizes of tensors and the other
      arguments, with the words of weft/jit/passes/shape_words.py; where the results have several
      sizes, or those follow from elements, it is left out. Operators on elements broadcast and
      reductions reduce over `dim` without it. Of a list of tensors: how many there are.
    - like: the argument whose shape and dtype the result has, for `shape` and `result`.

    Raises TableError when the row contradicts itself.
    """
    given = dict(locals())
    if like is not None:
        given.update(shape=like, result=like)
    family = _caller_family()
    docs = [doc] * len(schemas) if isinstance(doc, str) else doc
    unused = set(_by_names(grad))
    for place, (schema, text) in enumerate(zip(schemas, docs, strict=True)):
        own = {**given, "schema": schema, "doc": text}
        if place:
            own.update({name: AUTO for name in ("inplace", "out") if isinstance(own[name], str)})
        if importing.trusted:
            _deferred.keep(schema[: schema.index("(")].replace(".", "_"), family, own)
            continue
        from inspect import cleandoc  # which takes longer to import than a family of rows

        from weft._ops.row_checks import check

        row = _row(family, {**own, "doc": cleandoc(text)})
        check(row, _keys)
        unused -= set(_add(row).grad)
    if unused and not importing.trusted:
        fail(parse(schemas[0]), "gradients of tensors", sorted(unused))


def _add(row: Row) -> Row:
    _keys.add(row.key)
    TABLE.append(row)
    return row


def find(id: str) -> Row | None:
    """The row of that id, if its family has been imported."""
    made = _deferred.make(id, _row, _add)
    return made or next((row for row in TABLE if row.id == id), None)


def complete() -> None:
    """Makes the rows that nobody has asked for."""
    for id in _deferred:
        find(id)


def _row(family: str, given: Mapping[str, Any]) -> Row:
    """The row that the arguments of `op` say."""
    schema = parse(given["schema"])
    bodies = {kind: given[kind] for kind in KINDS if given[kind] is not None}
    if len(bodies) > 1:
        fail(schema, "at most one body", sorted(bodies))
    ((kind, body),) = (bodies or {"native": schema.name}).items()
    takes_self = bool(schema.args) and schema.args[0].name == "self" and schema.args[0].is_tensor
    numbers = [a.name for a in schema.args if a.type in ("float", "int", "bool")]
    weak, grad, tags = tuple(given["weak"]), _by_names(given["grad"]), frozenset(given["tags"])
    grads = ", ".join(f"grads[{i}]" for i in range(len(schema.returns)))
    for name in given["no_gradient"]:
        grad[name,] = f"_no_gradient([{grads}], '{schema.name.lstrip('_')}', '{name}')"
    if len(given["schemas"]) > 1:
        tensors = {a.name for a in schema.args if a.is_tensor}
        weak = tuple(name for name in weak if name not in tensors)
        own = {names: text for names, text in grad.items() if tensors.issuperset(names)}
        tags, grad = tags if len(own) == len(grad) else tags - _OF_TENSORS, own
    inplace, result = given["inplace"], given["result"]
    if isinstance(inplace, _Auto):
        inplace = schema.overload if kind == "pointwise" and takes_self else None
    variants, inplace_variants = given["variants"], given["inplace_variants"]
    if variants is None:
        variants = _default_variants(schema, takes_self)
    if inplace_variants is None:
        inplace_variants = _default_inplace_variants(schema, kind, variants)
    return Row(
        schema=schema,
        kind=kind,
        body=body,
        doc=given["doc"],
        family=family,
        promotion=given["promotion"],
        result=(result,) * len(schema.returns) if isinstance(result, str) else tuple(result),
        dtypes=tuple(given["dtypes"]),
        bool_inputs=tuple(given["bool_inputs"]),
        int_inputs=tuple(given["int_inputs"]),
        weak=weak + tuple(name for name in numbers if name not in weak),
        dims=given["dims"],
        grad=grad,
        inplace_grad=_by_names(given["inplace_grad"]),
        inplace_grad_when=given["inplace_grad_when"],
        constants=tuple(given["constants"]),
        tags=tags,
        variants=variants,
        inplace=inplace,
        out=_out_overload(schema, kind, given["out"]),
        inplace_variants=inplace_variants,
        validate=given["validate"],
        per_row=tuple(given["per_row"]),
        shape=_default_shape(schema, kind) if given["shape"] is None else given["shape"],
    )


def backward_op(*schemas: str, tags: Sequence[str] = (), **rest: Any) -> None:
    """A row that only gradient formulas call: no place in Python, no derived forms. A native one
    that is given `grad_output` has its dtype and, where it is told, `input_size`."""
    rest = {"inplace": None, "out": None, "variants": "", **rest}
    native = rest.keys().isdisjoint(KINDS)
    if native and "(Tensor grad_output" in schemas[0] and schemas[0].endswith("-> Tensor"):
        sized = {"shape": "input_size"} if "int[] input_size" in schemas[0] else {}
        rest = {"result": "grad_output", **sized, **rest}
    op(*schemas, tags=("backward", *tags), **rest)


def body_of(
    schema: str, kind: str = "compose", *, declare: Callable[..., None] = op, **rest: Any
) -> Callable[[Body], Body]:
    """Decorates the body of a row, a function of its own: the docstring is the row's `doc`."""

    def register(body: Body) -> Body:
        doc = " ".join((body.__doc__ or "").split())
        declare(schema, doc=doc, **{kind: body}, **rest)
        return body

    return register


def backward_of(schema: str, kind: str = "compose", **rest: Any) -> Callable[[Body], Body]:
    """As `body_of`, of a row that only gradient formulas call."""
    return body_of(schema, kind, declare=backward_op, **rest)


def fail(schema: Schema, expected: str, got: object) -> NoReturn:
    """Raises TableError."""
    raise TableError(f"{schema.key}: expected {expected}, got {got}")


def _caller_family() -> str:
    """The module that wrote the row: the nearest frame outside this file."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).rpartition(".")[2] if frame else ""


def _by_names(formulas: Mapping[str, str] | None) -> dict[tuple[str, ...], str]:
    """The key "a, b" of a formula as ("a", "b")."""
    return {tuple(map(str.strip, key.split(","))): text for key, text in (formulas or {}).items()}


def _default_variants(schema: Schema, takes_self: bool) -> str:
    if schema.name.startswith(("_", "linalg_", "special_")):  # hidden, or of packages
        return ""
    return ("m" if schema.args[0].is_written else "fm") if takes_self else "f"


def _default_inplace_variants(schema: Schema, kind: str, variants: str) -> str:
    if variants in ("nn", "", "m"):
        return variants
    alone = sum(arg.is_tensor for arg in schema.args) == 1
    numbers = any(_is_attribute(arg, kind) for arg in schema.args)
    return "fm" if alone and not numbers else "m"


def _default_shape(schema: Schema, kind: str) -> str:
    names = [arg.name for arg in schema.args]
    tensors = [arg.name for arg in schema.args if arg.is_tensor]
    if kind == "pointwise":
        return f"broadcast({', '.join(tensors)})"
    if kind == "reduce":
        given = [tensors[0], *(name for name in ("dim", "keepdim") if name in names)]
        return f"reduced({', '.join(given)})" if "dim" in names else "[]"
    return ""


def _is_attribute(arg: Arg, kind: str) -> bool:
    """Whether an argument of a row of a kind is a number that its body takes."""
    if kind in ("reduce", "rowwise") and arg.name in STRUCTURAL:
        return False
    return arg.type in ("Scalar", "float", "int", "bool")


def _out_overload(schema: Schema, kind: str, given: str | bool | _Auto | None) -> str | None:
    if given is None or isinstance(given, str):
        return given
    writes = bool(schema.args) and schema.args[0].is_written
    program = kind in ("pointwise", "reduce", "rowwise") and len(schema.returns) == 1
    if writes or not (given is True or program):
        return None
    return f"{schema.overload}_out" if schema.overload else "out"

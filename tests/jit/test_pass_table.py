"""What analyses say of operators, for every sample of the operator table: alias and write marks, and
the shapes of results."""

from collections import Counter
from pathlib import Path

import pytest
from op_cases import CASES, calling
from op_cases.realise import realise, to_library

import weft
from weft.jit import ir, schemas
from weft.jit.ir import Graph, ShapeInfo
from weft.jit.passes import shape, shape_words

KEYS = [key for key in CASES if key in calling.ROWS]


def tensors_of(value):
    if isinstance(value, weft.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_of(item)]
    return []


def bound(operator, sample):
    """The arguments of a sample in order of the schema, defaults filled in; None if they are those
    of another overload."""
    values = []
    for index, arg in enumerate(operator.args):
        if index < len(sample.args) and not arg.kwarg_only:
            values.append(sample.args[index])
        elif arg.name in sample.kwargs:
            values.append(sample.kwargs[arg.name])
        elif arg.has_default:
            values.append(arg.default)
        else:
            return None
    return values


def samples(key):
    case = CASES[key]
    for dtype in case.dtypes[:1] + case.dtypes[-1:]:
        for index, sample in enumerate(case.samples):
            yield to_library(realise(sample, case, dtype, index), weft, dtype)


def address(tensor):
    return tensor.untyped_storage().data_ptr()


@pytest.mark.parametrize("key", KEYS)
def test_marks(key):
    operator = schemas.of(f"aten::{key}")
    for sample in samples(key):
        inputs = tensors_of([*sample.args, *sample.kwargs.values()])
        before = [tensor.detach().clone() for tensor in inputs]
        result = calling.call(key, sample)
        if any(result.alias for result in operator.returns):
            continue
        shared = {address(t) for t in inputs if t.numel()} & {
            address(t) for t in tensors_of(result) if t.numel()
        }
        assert not shared, f"{operator.text} gives memory of its arguments, but says nothing of it"
        if not operator.writes:
            for old, new in zip(before, inputs):
                assert old.shape == new.shape and bool(((old == new) | (old != old)).all())


def one_node(operator, values):
    """A graph of one node; the shapes of its tensors are known, everything else is constant."""
    graph, inputs = Graph(), []
    for arg, value in zip(operator.args, values):
        if isinstance(value, weft.Tensor):
            inputs.append(graph.add_input(ir.TENSOR))
            inputs[-1].shape = ShapeInfo(value.dtype, tuple(value.shape))
        elif isinstance(value, (list, tuple)) and tensors_of(value):
            items = []
            for item in value:
                if not isinstance(item, weft.Tensor):
                    return None
                items.append(graph.add_input(ir.TENSOR))
                items[-1].shape = ShapeInfo(item.dtype, tuple(item.shape))
            inputs.append(graph.emit("prim::ListConstruct", items, [ir.ListType(ir.TENSOR)]).output)
        else:
            plain = list(value) if isinstance(value, (tuple, weft.Size)) else value
            inputs.append(graph.constant(plain, arg.type))
    node = graph.emit(operator.kind, inputs, [result.type for result in operator.returns])
    graph.block.set_returns(node.outputs)
    return graph


@pytest.mark.parametrize("key", KEYS)
def test_shapes(key):
    operator = schemas.of(f"aten::{key}")
    for sample in samples(key):
        values = bound(operator, sample)
        graph = one_node(operator, values) if values is not None else None
        if graph is None:
            continue
        shape.run(graph)
        result = calling.call(key, sample)
        results = list(result) if isinstance(result, tuple) else [result]
        for value, tensor in zip(graph.returns, results):
            if value.type != ir.TENSOR or value.shape is None:
                continue
            real = ShapeInfo(tensor.dtype, tuple(tensor.shape))
            assert value.shape.dtype in (None, real.dtype), (
                f"{operator.text}: {real}, not {value.shape}"
            )
            if value.shape.sizes is not None:
                assert len(value.shape.sizes) == len(real.sizes), (
                    f"{operator.text}: {real}, not {value.shape}"
                )
                for size, true in zip(value.shape.sizes, real.sizes):
                    assert size in (None, true), f"{operator.text}: {real}, not {value.shape}"


@pytest.mark.parametrize("key", KEYS)
def test_formulas_name_arguments_and_words(key):
    operator = schemas.of(f"aten::{key}")
    names = set(compile(operator.row.shape or "0", key, "eval").co_names)
    assert names <= {arg.name for arg in operator.args} | shape_words.WORDS.keys()


def told(key):
    """What shape analysis says of the results of an operator's samples, and of how many."""
    operator = schemas.of(f"aten::{key}")
    levels = Counter()
    for sample in samples(key):
        values = bound(operator, sample)
        graph = one_node(operator, values) if values is not None else None
        if graph is None:
            continue
        shape.run(graph)
        for value in graph.returns:
            if value.type == ir.TENSOR:
                levels[level(value.shape)] += 1
    return levels


def level(found):
    if found is None:
        return "nothing"
    if found.sizes is None:
        return "nothing" if found.dtype is None else "dtype"
    known = sum(size is not None for size in found.sizes)
    word = "sizes" if known == len(found.sizes) else "some sizes" if known else "rank"
    return word if found.dtype is not None else f"{word} without dtype"


def test_what_shapes_tell():
    """A rule that goes missing is seen: tests/jit/untold_shapes.txt has every operator of whose results
    the analysis does not tell dtype and sizes. `python tests/jit/test_pass_table.py` writes it."""
    assert untold() == UNTOLD.read_text()


UNTOLD = Path(__file__).with_name("untold_shapes.txt")


def untold():
    lines = []
    for key in KEYS:
        levels = told(key)
        if set(levels) - {"sizes"}:
            counts = ", ".join(f"{count} {name}" for name, count in sorted(levels.items()))
            lines.append(f"{key}: {counts}\n")
    return "".join(lines)


# Operators that do nothing for some arguments, and then give an argument itself.
IDLE = [
    ("aten::type_as", lambda x: (x, x)),
    ("aten::dropout", lambda x: (x, 0.5, False)),
    ("aten::dropout", lambda x: (x, 0.0, True)),
    ("aten::diff", lambda x: (x, 0)),
    ("aten::_reduced", lambda x: (x, 0)),
    ("aten::flip", lambda x: (x, [])),
    ("aten::roll", lambda x: (x, [0], [0])),
    ("aten::tile", lambda x: (x, [])),
    ("aten::cat", lambda x: ([x], 0)),
    ("aten::rot90", lambda x: (x, 0, [0, 1])),
    ("aten::matrix_power", lambda x: (x, 1)),
    ("aten::nan_to_num", lambda x: (x,)),
    ("aten::diag_embed", lambda x: (x,)),
    ("aten::block_diag", lambda x: ([x],)),
    ("aten::repeat_interleave", lambda x: (x, 1, 0)),
]


@pytest.mark.parametrize(("name", "arguments"), IDLE)
def test_operators_that_may_give_their_argument(name, arguments):
    x = weft.randn(3, 3)
    result = getattr(weft._C._aten, name[6:])(*arguments(x))
    marked = any(r.alias for o in schemas.candidates(name) for r in o.returns)
    tagged = any(o.may_give_input for o in schemas.candidates(name))
    assert (address(result) == address(x)) <= (marked or tagged)
    assert tagged <= (result is x)


if __name__ == "__main__":
    UNTOLD.write_text(untold())

"""Random programs: every pass, and the whole pipeline, keep what a program does, bit for bit."""

from unittest import mock

import pytest
from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

import weft
from jit.evaluate import Evaluator
from jit.programs import graphs, outcome
from weft.jit import ir, pipeline, schemas
from weft.jit.passes import effects, shape
from weft.jit.passes.aliasing import AliasAnalysis
from weft.jit.passes.options import Options

# A night's run sets it to thousands.
seeds = st.integers(0, 11)


def run(graph, seed, gradients=True, evaluator=None):
    try:
        return outcome(graph, seed, evaluator, gradients)
    except TimeoutError:
        return None


@pytest.mark.parametrize("name", [each.name for each in pipeline.PASSES])
@given(graph=graphs(), seed=seeds)
@examples(20)
def test_one_pass(name, graph, seed):
    (each,) = (p for p in pipeline.PASSES if p.name == name)
    before, text = run(graph, seed), str(graph)
    changed = each.run(graph, Options())
    ir.verify(graph, schemas.of)
    assert changed or str(graph) == text
    if before is not None:
        assert run(graph, seed) == before


@given(graph=graphs())
@examples(30)
def test_what_passes_say_of_themselves(graph):
    """Without the nodes a pass works on it changes nothing, nor, if it is done, the second time."""
    for each in pipeline.PASSES:
        if each.works_on and not graph.may_have(each.works_on):
            text = str(graph)
            assert not each.file.run(graph, Options()) and str(graph) == text, each.name
        if each.is_done:
            each.file.run(graph, Options())
            assert not each.file.run(graph, Options()), each.name


@given(graph=graphs())
@examples(30)
def test_graphs_know_which_kinds_they_may_have(graph):
    kinds = {node.kind for node in graph.walk()}
    for each in (graph, graph.copy(), ir.parse_ir(str(graph))):
        assert all(each.may_have(frozenset((kind,))) for kind in kinds)
    assert not graph.may_have(frozenset(("prim::NoSuch",)))


@given(graph=graphs(), seed=seeds, gradients=st.booleans())
@examples(60)
def test_pipeline(graph, seed, gradients):
    before = run(graph, seed, gradients)
    pipeline.optimize_graph(
        graph, 2, Options(gradients=gradients), lambda _, g: ir.verify(g, schemas.of)
    )
    if before is not None:
        assert run(graph, seed, gradients) == before


@given(graph=graphs())
@examples(20)
def test_text_is_a_fixed_point(graph):
    text = str(graph)
    assert str(ir.parse_ir(text)) == text == str(graph.copy())


@given(graph=graphs(size=25))
@examples(20)
def test_pipeline_ends_where_nothing_changes(graph):
    local = [each for each in pipeline.PASSES if each.name != "fusion"]  # it leaves work behind
    with mock.patch.object(pipeline, "PASSES", local):
        pipeline.optimize_graph(graph)
        text = str(graph)
        pipeline.optimize_graph(graph)
    assert str(graph) == text


class Truth(Evaluator):
    """Checks what analyses say against what happens."""

    def __init__(self, graph):
        super().__init__()
        self.aliases = AliasAnalysis(graph)
        self.memory = {}
        self.kept = []

    def node(self, node, args, values):
        try:
            results = super().node(node, args, values)
        except TimeoutError:
            raise
        except Exception as error:
            assert node.blocks or effects.may_raise(node), f"{node!r} raised {error}"
            raise
        for value, result in zip(node.outputs, results):
            self.look(value, result)
        return results

    def block(self, block, values):
        for param in block.params:
            self.look(param, values[param])
        return super().block(block, values)

    def look(self, value, result):
        if isinstance(result, weft.Tensor):
            self.kept.append(result)
            self.memory.setdefault(value, set()).add(result.untyped_storage().data_ptr())
            self.shape(value, result)
        elif isinstance(result, list):
            self.kept.append(result)
            self.memory.setdefault(value, set()).add(id(result))

    def shape(self, value, tensor):
        known = value.shape
        if known is None:
            return
        assert known.dtype in (None, tensor.dtype), (
            f"{value!r} has dtype {tensor.dtype}, not {known}"
        )
        if known.sizes is not None:
            assert len(known.sizes) == tensor.dim(), (
                f"{value!r} has sizes {tensor.shape}, not {known}"
            )
            for size, real in zip(known.sizes, tensor.shape):
                assert size == real or not isinstance(size, int), (
                    f"{value!r} has sizes {tensor.shape}, not {known}"
                )
            symbols = {}
            for size, real in zip(known.sizes, tensor.shape):
                if isinstance(size, str):
                    assert symbols.setdefault(size, real) == real, f"{value!r}: {known}"


@given(graph=graphs(), seed=seeds)
@examples(60)
def test_analyses_tell_the_truth(graph, seed):
    shape.run(graph)
    truth = Truth(graph)
    run(graph, seed, evaluator=truth)
    found = list(truth.memory.items())
    for index, (a, at_a) in enumerate(found):
        for b, at_b in found[index + 1 :]:
            if at_a & at_b:
                assert truth.aliases.may_alias(a, b), f"{a!r} and {b!r} share memory\n{graph}"

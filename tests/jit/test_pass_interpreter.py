"""Random programs by three ways: the oracle, the interpreter, the interpreter after all passes."""

from drawing import examples
from hypothesis import given
from hypothesis import strategies as st

from jit.programs import INPUTS, graphs, outcome
from weft.jit import ir, pipeline
from weft.jit.codegen import compile_program
from weft.jit.passes.options import Options


class Compiled:
    """Runs graphs as programs of the interpreter."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options
        self.printed: list[str] = []

    def run(self, graph, args):
        function = ir.Function("program", graph, [name for name, _ in INPUTS])
        if self.options is not None:
            function = pipeline.optimize(function, 2, self.options)
        return (compile_program([function]).function("program")(*args),)


@given(graph=graphs(prints=False), seed=st.integers(0, 11), gradients=st.booleans())
@examples(60)
def test_three_ways(graph, seed, gradients):
    try:
        expected = outcome(graph, seed, None, gradients, copies=True)
    except TimeoutError:
        return
    plain = outcome(graph, seed, Compiled(), gradients, copies=True)
    assert plain == expected
    best = outcome(graph, seed, Compiled(Options(gradients=gradients)), gradients, copies=True)
    assert best == expected

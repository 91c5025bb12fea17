"""Names that programs for torch.jit set its compiler by."""

from __future__ import annotations

import pytest

import weft
from weft import jit


@jit.script_if_tracing
def _powers(x, n: int):
    for i in range(n):
        x = x * (i + 1)
    return x


def test_script_if_tracing_keeps_control_flow_in_traces():
    traced = jit.trace(lambda x: _powers(x, x.shape[0]), weft.ones(2))
    for n in (1, 4):
        assert traced(weft.ones(n)).tolist() == _powers(weft.ones(n), n).tolist()
    assert _powers(weft.ones(1), 3).tolist() == [6.0]
    assert jit.script(lambda x: _powers(x, 3))(weft.ones(1)).tolist() == [6.0]


def test_fusion_strategy_gives_the_one_before():
    before = jit.set_fusion_strategy([("DYNAMIC", 3)])
    assert jit.set_fusion_strategy(before) == [("DYNAMIC", 3)]
    with pytest.raises(RuntimeError, match="expected pairs of 'STATIC' or 'DYNAMIC' and an int"):
        jit.set_fusion_strategy([("SOMETIMES", 3)])


def test_contexts_without_effect():
    script = jit.script(lambda x: x * 2 + 1)
    with jit.fuser("fuser1"), jit.optimized_execution(False):
        assert script(weft.ones(1)).tolist() == [3.0]
    with pytest.raises(ValueError, match="fuser: expected one of fuser0"), jit.fuser("best"):
        pass
    jit.enable_onednn_fusion(True)
    assert not jit.onednn_fusion_enabled()


def test_operators_of_a_module():
    net = jit.script(weft.nn.Sequential(weft.nn.Linear(2, 2), weft.nn.ReLU()))
    assert jit.export_opnames(net) == ["aten::linear", "aten::relu"]


def test_an_error_of_a_program_is_an_error():
    @jit.script
    def fail(n: int) -> int:
        raise KeyError("no")

    with pytest.raises(jit.Error):
        fail(1)


def test_the_graph_of_a_call_is_optimised():
    def f(x):
        return weft.tanh(x * 2.0) + 1.0

    program = jit.script(f)
    assert "weft::Fused" in str(program.graph_for(weft.ones(3)))
    assert "weft::Fused" not in str(program.graph)
    net = jit.script(weft.nn.Sequential(weft.nn.Linear(2, 2), weft.nn.ReLU()))
    x = weft.ones(1, 2)
    for graph in (net.graph_for(x), net.forward.graph_for(x)):
        assert "aten::linear" in str(graph) and "prim::CallMethod" not in str(graph)


@pytest.mark.parametrize("name", ["last_executed_optimized_graph", "strict_fusion"])
def test_what_is_absent_says_what_to_use(name):
    with pytest.raises(AttributeError, match=f"weft.jit has no {name}: .*"):
        getattr(jit, name)
    assert not hasattr(jit, name)


@pytest.mark.parametrize("name", ["get_debug_state"])
def test_what_programs_lack_says_what_to_use(name):
    function = jit.script(lambda x: x * 2)
    module = jit.script(weft.nn.Sequential(weft.nn.ReLU()))
    for program in (function, module):
        with pytest.raises(AttributeError, match=rf"{name!r}: graph_for"):
            getattr(program, name)

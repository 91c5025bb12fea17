"""A variance and a mean in one call as the two operators that it is, which groups can have.

    %v, %m = aten::var_mean.dim(%x, %dims, %unbiased, %keepdim)
        =>  %v = aten::var.dim(%x, %dims, %unbiased, %keepdim)
            %m = aten::mean.dim(%x, %dims, %keepdim, None)

Exact: the operator's body says the same, and autograd records the two.
"""

from __future__ import annotations

from weft.jit.ir import NONE, TENSOR, Node
from weft.jit.passes.rewriting import Rewriter, Rule, alone

_NAMES = {"aten::var_mean": "aten::var", "aten::std_mean": "aten::std"}


def rule_of(kind: str) -> Rule | None:
    return _split if kind.partition(".")[0] in _NAMES else None


def _split(node: Node, work: Rewriter) -> bool:
    graph, inputs = node.graph, list(node.inputs)
    name, dot, overload = node.kind.partition(".")
    with graph.inserting(before=node), graph.at_range(node.range):
        first = graph.emit(f"{_NAMES[name]}{dot}{overload}", inputs, [TENSOR]).output
        no_dtype = graph.constant(None, NONE)
        if overload:
            mean_inputs = [inputs[0], inputs[1], inputs[3], no_dtype]
            second = graph.emit("aten::mean.dim", mean_inputs, [TENSOR]).output
        else:
            second = graph.emit("aten::mean", [inputs[0], no_dtype], [TENSOR]).output
    node.replace_outputs_with([first, second])
    node.destroy()
    return True


run = alone(rule_of)

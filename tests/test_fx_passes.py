"""weft.fx.passes: modules split into parts, and passes in a row."""

import importlib
from typing import Any

import pytest

import weft
from weft import fx
from weft.fx.passes.graph_drawer import FxGraphDrawer
from weft.fx.passes.infra.pass_base import PassBase, PassResult
from weft.fx.passes.infra.pass_manager import (
    PassManager,
    pass_result_wrapper,
    this_before_that_pass_constraint,
)
from weft.fx.passes.shape_prop import ShapeProp
from weft.fx.passes.split_module import split_module


def model(torch: Any = weft) -> Any:
    class Branches(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.inner = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU())
            self.scale = torch.nn.Parameter(torch.rand(3, 4))

        def forward(self, x, y=None):
            z = self.inner(x + self.scale).clamp(min=0.0, max=1.0)
            w = self.inner(x * 2)
            return {"sum": z + w, "parts": (z, x, self.scale)}

    return Branches()


def turns(count: int) -> Any:
    """A part by the place of a node: each node in another one than the last."""
    return lambda node: list(node.graph.nodes).index(node) % count


def by_rank(node) -> int:
    """A part by how deep a node lies: no part needs a later one."""
    inputs = [by_rank(each) for each in node.all_input_nodes]
    return 1 + max(inputs, default=0) if node.op != "placeholder" else 0


def by_place(node) -> int:
    """Stages of three nodes, as pipelines have them."""
    return list(node.graph.nodes).index(node) // 3


BY_RANK: dict[str, Any] = {"split_callback": by_rank}
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "original order": {"keep_original_order": True, "split_callback": by_place},
    "names of nodes": {"keep_original_node_name": True, "partition_affix": "pp"},
    "names of inputs": {"keep_original_input_name": False},
    "tuples": {"tuple_return": True},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_parts_compute_the_whole(name):
    whole = fx.symbolic_trace(model())
    names: dict[str, str] = {}
    made = split_module(whole, whole, qualname_map=names, **BY_RANK | OPTIONS[name])
    x = weft.rand(3, 4)
    for a, b in zip(made(x)["parts"], whole(x)["parts"]):
        assert weft.equal(a, b)
    assert weft.equal(made(x)["sum"], whole(x)["sum"])
    assert set(names.values()) == {"inner.0", "inner.1"}
    assert made.meta["partition_names"] == {n for n, _ in made.named_children()}


def test_parts_that_need_each_other():
    whole = fx.symbolic_trace(lambda x: weft.relu(x + 1) * 2)
    with pytest.raises(RuntimeError, match="cycle exists between partitions"):
        split_module(whole, whole, turns(2))


@pytest.mark.parity
@pytest.mark.parametrize("name", OPTIONS)
def test_parts_are_pytorchs(name):
    torch = pytest.importorskip("torch", reason="PyTorch is the reference of this test")
    texts = []
    their_split = importlib.import_module("torch.fx.passes.split_module").split_module
    for library, split in ((weft, split_module), (torch, their_split)):
        traced = importlib.import_module(f"{library.__name__}.fx").symbolic_trace(model(library))
        names: dict[str, str] = {}
        made = split(traced, traced, qualname_map=names, **BY_RANK | OPTIONS[name])
        parts = {each: getattr(made, each).code for each in made.meta["partition_names"]}
        texts.append((made.code, parts, names))
    assert texts[0] == texts[1]


# ---- passes in a row ----


class Doubles(PassBase):
    """Adds one node to a graph until it has six."""

    def requires(self, graph_module):
        graph_module.graph.lint()

    def call(self, graph_module):
        if len(graph_module.graph.nodes) >= 6:
            return PassResult(graph_module, False)
        output = graph_module.graph.output_node()
        with graph_module.graph.inserting_before(output):
            made = graph_module.graph.call_function(weft.add, (output.args[0], output.args[0]))
        output.args = (made,)
        return PassResult(graph_module, True)


def test_passes_run_until_nothing_changes():
    traced = fx.symbolic_trace(lambda x: x + 1)
    checked = []
    manager = PassManager([Doubles()], steps=9, run_checks_after_each_pass=True)
    manager.add_checks(checked.append)
    done = manager(traced)
    assert done.modified and len(checked) == 5
    assert done.graph_module(weft.tensor(1.0)).item() == 16


def test_passes_are_sorted():
    def first(module):
        return None

    def second(module):
        return module

    manager = PassManager([pass_result_wrapper(each) for each in (second, first)])
    b, a = manager.passes
    manager.add_constraint(this_before_that_pass_constraint(a, b))
    with pytest.raises(RuntimeError, match="constraint violated"):
        manager.validate_constraints()
    assert manager(weft.nn.ReLU()).modified and manager.passes == [a, b]
    manager.add_constraint(this_before_that_pass_constraint(b, a))
    with pytest.raises(RuntimeError, match="Circular dependency"):
        manager.solve_constraints()


def test_errors_of_passes():
    with pytest.raises(Exception, match="when running the 'eval' pass"):
        PassManager([weft.nn.Module.eval])(weft.nn.ReLU())
    with pytest.raises(TypeError, match="function of one argument"):
        PassManager().add_checks(lambda: None)


def test_drawings_of_graphs(tmp_path):
    class Net(weft.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = fx.symbolic_trace(weft.nn.ReLU())
            self.scale = weft.nn.Parameter(weft.ones(2))

        def forward(self, x):
            return weft.add(self.inner(x) * self.scale, 1)

    class Keeping(fx.Tracer):
        def is_leaf_module(self, m, name):
            return isinstance(m, fx.GraphModule) or super().is_leaf_module(m, name)

    net = Net()
    traced = fx.GraphModule(net, Keeping().trace(net))
    ShapeProp(traced).propagate(weft.ones(3, 2))
    drawer = FxGraphDrawer(traced, "net")
    text = drawer.get_dot_graph().to_string()
    for edge in ("x -> inner", "inner -> mul", "scale -> mul", "mul -> add", "add -> output"):
        one, other = edge.split(" -> ")
        assert f'"{one}" -> "{other}";' in text
    assert r"args=(1,)\l" in text and r"dtype=torch.float32, shape=(3, 2)\l" in text
    assert list(drawer.get_all_dot_graphs()) == ["net", "net_inner"]
    assert '"relu"' in drawer.get_submod_dot_graph("inner").to_string()
    without = FxGraphDrawer(traced, "net", ignore_getattr=True).get_main_dot_graph()
    assert "scale" not in without.to_string()
    without.write_raw(tmp_path / "net.dot")
    assert (tmp_path / "net.dot").read_text() == without.to_string()


def test_drawings_go_through_dot(tmp_path, monkeypatch):
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\necho $1; cat")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    drawing = FxGraphDrawer(fx.symbolic_trace(lambda x: {"a|b": x}), "f").get_dot_graph()
    assert drawing.create_svg().decode() == "-Tsvg\n" + drawing.to_string()
    drawing.write_png(tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes().startswith(b"-Tpng")
    assert not hasattr(drawing, "draw_svg")

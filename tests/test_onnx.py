"""weft.onnx.export: each model runs in onnxruntime and gives what the module gives."""

import doctest
import importlib

import pytest

import weft
from weft import nn

pytestmark = pytest.mark.parity  # onnx and onnxruntime are among the extras of parity tests
pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def tensors_of(value):
    """The tensors in a result, in order."""
    if isinstance(value, (tuple, list)):
        return [tensor for each in value for tensor in tensors_of(each)]
    if isinstance(value, dict):
        return tensors_of(list(value.values()))
    return [] if value is None else [weft.as_tensor(value)]


def check(model, args, others=(), rtol=1e-4, atol=1e-5, **options):
    """The exported model, after its results for the arguments and for others were compared."""
    program = weft.onnx.export(model, args, **options)
    for given in (args, *others):
        with weft.no_grad():
            wanted = tensors_of(model(*given))
        got = program(*tensors_of(given))
        assert len(got) == len(wanted)
        for mine, other in zip(got, wanted):
            assert mine.shape == other.shape and mine.dtype == other.dtype
            weft.testing.assert_close(mine, other, rtol=rtol, atol=atol, equal_nan=True)
    return program


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4 * 16, 5)

    def forward(self, x):
        x = nn.functional.max_pool2d(self.norm(self.conv(x)).relu(), 2)
        return self.head(x.reshape(x.shape[0], -1)).softmax(-1)


def test_a_traced_module():
    model = Convolutional().eval()
    program = check(model, (weft.randn(2, 3, 8, 8),), input_names=["image"], output_names=["p"])
    graph = program.model_proto.graph
    assert [each.name for each in graph.input] == ["image"]
    assert [each.name for each in graph.output] == ["p"]
    assert {"conv.weight", "norm.running_var", "head.bias"} <= {e.name for e in graph.initializer}


@pytest.mark.parametrize("opset", range(17, 22))
def test_sizes_with_names(opset):
    model = Convolutional().eval()
    program = check(
        model,
        (weft.randn(2, 3, 8, 8),),
        [(weft.randn(5, 3, 8, 8),)],
        dynamic_axes={"x": {0: "batch"}},
        opset_version=opset,
    )
    shape = program.model_proto.graph.output[0].type.tensor_type.shape
    assert shape.dim[0].dim_param == "batch" and shape.dim[1].dim_value == 5


def test_control_flow_of_a_scripted_function():
    @weft.jit.script
    def steps(x, n: int):
        found = []
        for _ in range(n):
            if bool(x.sum() > 3):
                x = x * 2
            else:
                x = x + 1
            found.append(x)
        x[0] = 3
        return x, weft.stack(found)

    program = check(steps, (weft.zeros(2, 2), 4))
    assert "If" in {node.op_type for node in program.model_proto.graph.node}


@pytest.mark.parametrize("name", ["_export", "_program"])
def test_examples_of_docstrings(name):
    module = importlib.import_module(f"weft.onnx.{name}")
    results = doctest.testmod(module, extraglobs={"weft": weft})
    assert results.attempted and not results.failed

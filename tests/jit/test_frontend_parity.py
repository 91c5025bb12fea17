"""The same source scripted by PyTorch; run by Python over PyTorch where its compiler does otherwise."""

from __future__ import annotations

import copy
import importlib.util
import sys
import warnings
from pathlib import Path

import pytest
from tests.jit import frontend_cases

import weft
from weft import jit

pytestmark = pytest.mark.parity
torch = pytest.importorskip("torch")

# Where weft follows Python and PyTorch's compiler does not: a part of what it says or gives.
OTHERWISE = {
    "arithmetic": "aten::bitwise_not(Tensor self)",
    "complex_numbers": "'complex' object has no attribute or method 'real'",
    "continue_in_unrolled_loop": "else branches of for loops aren't supported",
    "conversions": "'4.7000000000000002', 12, 1.5, 5.0",
    "dict_methods": "Comprehension ifs are not supported yet",
    "dict_of_lists": "Could not match type Dict[int, List[int]] to List[t]",
    "empty_list_takes_type": "previously matched to type Tensor is matched to type float",
    "for_else": "else branches of for loops aren't supported",
    "formatting": "Don't support formatting in JoinedStr",
    "globals_": "python value of type 'int' cannot be used as a value",
    "grad_modes": "Unknown builtin op: aten::enable_grad",
    "list_builtins": "Keyword argument reverse unknown",
    "nested_comprehension": "Only a single generator is currently supported",
    "nested_functions": "function definitions aren't supported",
    "nested_lists": "Only a single generator is currently supported",
    "optional_without_declaration": "previously had type NoneType",
    "ranges": "range cannot be used as a value",
    "recursion": "Recursive calls are not supported",
    "starred_list": "cannot statically infer the expected size of a list",
    "static_unroll": "builtin cannot be used as a value",
    "string_methods": "but instead found type 'str'",
    "tensor_in_place": "unsupported kind of augmented assignment: FloorDiv",
    "tensor_iteration": "cannot be used as a tuple",
    "tensor_lists": "aten::sum.dim_IntList",
    "tensor_operators": "Cannot input a tensor of dimension other than 0 as a scalar argument",
    "truth_of_a_union": "Could not cast value of type Union[float, int] to bool",
    "tuples": "aten::eq.Tensor",
    "type_comments": "not found on multiline type annotation",
    "unused_result": "Cannot emit expr for: (dots)",
    "value_logic": "[True, ",
    "walrus": "NamedExpr aren't supported",
    "while_else": "incompatible constructor arguments",
    "while_optional": "aten::add.Tensor(Tensor self, Tensor other",
}


@pytest.fixture(scope="module")
def torch_cases(tmp_path_factory):
    """The functions of frontend_cases, over PyTorch."""
    text = Path(frontend_cases.__file__).read_text()
    text = text.replace("import weft as torch\nfrom weft import Tensor, jit\n",
                        "import torch\nfrom torch import Tensor, jit\n")  # fmt: skip
    path = tmp_path_factory.mktemp("cases") / "torch_cases.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("torch_cases", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch_cases"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["torch_cases"]


def plain(value):
    """Tensors as lists, dtypes and sizes as text, tuples and lists as lists."""
    if isinstance(value, (weft.Tensor, torch.Tensor)):
        return [str(value.dtype), list(value.shape), value.tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def to_torch(value):
    """The inputs of a case, for PyTorch."""
    if isinstance(value, weft.Tensor):
        return torch.tensor(value.tolist()).reshape(tuple(value.shape))
    return copy.deepcopy(value)


def same(a, b):
    """Equal, but for the last digits of floats."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 1e-5 * max(1.0, abs(a))
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


def of_torchscript(function, inputs):
    """The result, or the text of what is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(torch.jit.script(function)(*map(to_torch, inputs)))
        except Exception as error:
            return str(error)


@pytest.mark.parametrize(
    ("function", "inputs"), frontend_cases.CASES, ids=lambda v: getattr(v, "__name__", "")
)
def test_same_as_torchscript(function, inputs, torch_cases):
    name = function.__name__
    other = getattr(torch_cases, name)
    expected = of_torchscript(other, inputs)
    if name in OTHERWISE:
        assert OTHERWISE[name] in str(expected)
        expected = plain(other(*map(to_torch, inputs)))
    got = plain(jit.script(function)(*copy.deepcopy(inputs)))
    assert same(expected, got), f"{got!r} for {expected!r}"


def test_every_difference_has_a_case():
    assert set(OTHERWISE) <= {function.__name__ for function, _ in frontend_cases.CASES}

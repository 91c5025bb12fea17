"""Programs in the manner of real ones (tests/jit/corpus): Python's result, the scripted program's
and the unoptimised program's are the same to the last bit, state included, gradients up to the
order of addition; PyTorch's result for the same source is close, and its compiler takes the source too."""

from __future__ import annotations

import copy
import enum
import importlib
import importlib.util
import io
import sys
import warnings
from pathlib import Path

import pytest

import weft
from weft import jit
from weft.jit.execution import executable
from weft.jit.frontend.types.modules import classes_below
from weft.jit.module_methods import compiled_method

FAMILIES = [
    "conv",
    "sequences",
    "transformers",
    "detection",
    "speech",
    "graphs",
    "programs",
    "language",
    "decoding",
    "physics",
]
FILES = {name: importlib.import_module(f"{__package__}.corpus.{name}") for name in FAMILIES}
CASES = [(family, name) for family, file in FILES.items() for name in file.CASES]

# Sources that run under PyTorch in Python, but that its compiler does not take.
NOT_TORCHSCRIPT: dict[str, str] = {
    "experts": "PyTorch has no continue in a loop over a module list",
    "grid decoder": "PyTorch has no round(x, digits) of floats",
    "gated waves": "PyTorch's int ** int is a float",
    "graph net": "PyTorch does not unpack a tensor",
    "kalman": "PyTorch does not narrow an Optional after continue",
    "pack": "PyTorch has no sorted(..., reverse=True)",
    "parse options": "PyTorch takes the empty dict given to a dict for one of tensors",
    "tree lstm": "PyTorch takes the empty list given to a dict for a list of tensors",
}
# Modules that draw random numbers in training.
RANDOM = {"autoencoder", "graph net", "encoder", "causal encoder, norms first"}
# Modules whose result has no gradient: numbers and texts.
WITHOUT_GRADIENT = {"anchors", "beam search", "life"}
MODULES = [
    (family, name)
    for family, name in CASES
    if name not in NOT_TORCHSCRIPT and isinstance(FILES[family].CASES[name][0], type)
]
CALLS = 3  # the runtime makes native code after some calls; state goes on from call to call


def leaves(value):
    """The tensors in a value, in order."""
    if hasattr(value, "requires_grad"):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return []


def plain(value):
    """The value as lists, whose repr tells values apart to the last bit."""
    if hasattr(value, "requires_grad"):
        data = value.detach()
        return [str(data.dtype).partition(".")[2], list(data.shape), data.tolist()]
    if isinstance(value, dict):
        return ["dict", [[plain(k), plain(v)] for k, v in value.items()]]
    if isinstance(value, (list, tuple)):
        return ["list" if isinstance(value, list) else "tuple", [plain(item) for item in value]]
    if isinstance(value, enum.Enum):
        return str(value)
    return value


def observe(call, module, inputs, training, torch=weft, calls=CALLS):
    """Results, gradients of inputs and parameters, and state, of some calls one after another."""
    seen = []
    for number in range(calls):
        torch.manual_seed(7 + number)
        args = copy.deepcopy(inputs)
        tensors = leaves(args)  # the program may change the lists it is given
        for leaf in tensors:
            leaf.requires_grad_(training and leaf.is_floating_point())
        with torch.set_grad_enabled(training):
            result = call(*args)
        record = {"result": plain(result)}
        losses = [weigh(t, torch) for t in leaves(result) if t.requires_grad]
        assert training or not losses
        if losses:
            sum(losses).backward()
        record["inputs"] = [(plain(leaf), plain(leaf.grad)) for leaf in tensors]
        if hasattr(module, "named_parameters"):
            record["gradients"] = {k: plain(p.grad) for k, p in module.named_parameters()}
            record["state"] = {k: plain(v) for k, v in module.state_dict().items()}
        seen.append(record)
    return seen


def weigh(tensor, torch):
    """A sum in which each element counts otherwise."""
    weights = torch.arange(tensor.numel(), dtype=tensor.dtype).add(1).cos()
    return (tensor * weights.reshape(tensor.shape)).sum()


def prepare(family, name):
    """The module or function of a case, and its inputs."""
    make, inputs = FILES[family].CASES[name]
    weft.manual_seed(3)
    return make(), inputs()


def is_module(obj):
    """Modules have parameters and a mode, functions have not."""
    return hasattr(obj, "named_parameters")


def scripted(obj, training):
    """A copy of the module, compiled; or the function, compiled."""
    if not is_module(obj):
        return jit.script(obj)
    return jit.script(copy.deepcopy(obj).train(training))


def unoptimised(program):
    """The program as a callable, without any pass."""
    if isinstance(program, jit.ScriptFunction):
        return executable(program.function, level=0)
    info = program._jit_info
    run = executable(compiled_method(info, "forward").function, classes_below(info), level=0)
    return lambda *args: run(program._jit_object, *args)


def check_same(expected, got):
    """Equal to the last bit, gradients up to the order of addition (a short message where not)."""
    for number, (a, b) in enumerate(zip(expected, got)):
        for part in a:
            same = repr(a[part]) == repr(b[part])
            same = same or (part in ("inputs", "gradients") and close(a[part], b[part]))
            assert same, f"call {number}: {part}"
    assert len(expected) == len(got)


MODES = pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])


@MODES
@pytest.mark.parametrize(("family", "name"), CASES)
def test_script_equals_python(family, name, training):
    obj, inputs = prepare(family, name)
    program, plainly = scripted(obj, training), scripted(obj, training)
    if is_module(obj):
        obj.train(training)
    expected = observe(obj, obj, inputs, training)
    check_same(expected, observe(program, program, inputs, training))
    check_same(expected, observe(unoptimised(plainly), plainly, inputs, training))


def test_training_cases_have_gradients():
    """Guards the comparison: nearly all cases must have a gradient that is not zero."""
    without = []
    for family, name in CASES:
        obj, inputs = prepare(family, name)
        if is_module(obj):
            first = observe(obj, obj, inputs, True, calls=1)[0]
            grads = [*first["gradients"].values(), *(grad for _, grad in first["inputs"])]
            if not any(weft.tensor(g[2]).abs().sum() > 0 for g in grads if g is not None):
                without.append(name)
    assert set(without) == WITHOUT_GRADIENT, without


def wrong_calls():
    """Programs of the corpus with arguments that they refuse, and a part of the message."""
    conv, speech, detection, language, programs = (FILES[name] for name in ("conv", "speech", "detection", "language", "programs"))  # fmt: skip
    x = weft.ones(3)
    return {
        "value": (
            programs.parse_options,
            (["a = 1", "b"],),
            ValueError,
            "line 1: expected name = value, got b",
        ),
        "value of an argument": (speech.hertz_to_mel, (5.0, "bark"), ValueError, "kind must be"),
        "assertion": (
            detection.match_boxes,
            (x, x, 0.1, 0.2),
            AssertionError,
            "low must not be above high",
        ),
        "runtime": (
            FILES["graphs"].DeepSets("sum"),
            ([weft.ones(2, 2)],),
            RuntimeError,
            "pool: sum",
        ),
        "called method": (
            language.Checked(3),
            (weft.ones(1, 3), x),
            ValueError,
            "y: expected 2 dimensions, got 1",
        ),
        "module": (
            detection.Anchors([[1.0]], [1.0]),
            ([(1, 1), (2, 2)], 4),
            ValueError,
            "expected 1 grids, got 2",
        ),
        "empty list": (programs.calculate, ("+", x), IndexError, "list"),
        "shapes in a module": (
            programs.Router(),
            (weft.ones(2, 2), ["size"]),
            RuntimeError,
            "linear",
        ),
        "operator": (conv.channel_shuffle, (weft.ones(1, 3, 2, 2), 2), RuntimeError, "view"),
    }


@pytest.mark.parametrize("name", wrong_calls())
def test_same_errors(name):
    obj, args, error, text = wrong_calls()[name]
    with pytest.raises(error, match=text):
        obj(*args)
    with pytest.raises(error, match=text):
        scripted(obj, False)(*args)


# With PyTorch.


@pytest.fixture(scope="module")
def torch_files(tmp_path_factory):
    """The files of the corpus over PyTorch."""
    pytest.importorskip("torch")
    folder, loaded = tmp_path_factory.mktemp("corpus"), {}
    for family, file in FILES.items():
        text = Path(file.__file__).read_text().replace("import weft as torch", "import torch")
        path = folder / f"corpus_{family}.py"
        path.write_text(text.replace("from weft", "from torch"))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        loaded[family] = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec.loader.exec_module(loaded[family])
    yield loaded
    for family in FILES:
        del sys.modules[f"corpus_{family}"]


def to_torch(value):
    """Inputs and state of weft for PyTorch."""
    import torch

    if isinstance(value, weft.Tensor):
        dtype = getattr(torch, str(value.dtype).partition(".")[2])
        return torch.tensor(value.tolist(), dtype=dtype).reshape(tuple(value.shape))
    if isinstance(value, dict):
        return {key: to_torch(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(to_torch(item) for item in value)
    return value


def close(a, b):
    """Equal, but for the last digits of floats."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= 2e-5 * max(1.0, abs(a))
    if isinstance(a, complex) and isinstance(b, complex):
        return abs(a - b) <= 2e-5 * max(1.0, abs(a))
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(close(a[key], b[key]) for key in a)
    return type(a) is type(b) and a == b


def ready(name, module):
    """The module in the mode in which it draws no numbers: PyTorch draws others."""
    return module.train(name not in RANDOM) if is_module(module) else module


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
@pytest.mark.parametrize(("family", "name"), CASES)
def test_same_as_pytorch(family, name, torch_files):
    import torch

    obj, inputs = prepare(family, name)
    other = torch_files[family].CASES[name][0]()
    if is_module(obj):
        other.load_state_dict(to_torch(dict(obj.state_dict())))
    program = ready(name, scripted(obj, False))
    other, args = ready(name, other), to_torch(inputs)
    fresh = copy.deepcopy(other)
    expected = observe(other, other, args, True, torch, calls=1)[0]
    got = observe(program, program, inputs, True, calls=1)[0]
    for part in expected:
        assert close(expected[part], got[part]), (part, expected[part], got[part])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in NOT_TORCHSCRIPT:
            with pytest.raises(RuntimeError):
                torch.jit.script(fresh)(*args)
            return
        compiled = torch.jit.script(fresh)
        again = observe(compiled, compiled, args, True, torch, calls=1)[0]
    if is_module(obj):  # compiled modules of PyTorch also save what is not persistent
        again["state"] = {key: again["state"][key] for key in got["state"]}
    for part in expected:
        assert close(again[part], got[part]), (part, again[part], got[part])


@pytest.mark.parity
@pytest.mark.parametrize(("family", "name"), MODULES)
def test_archives_of_pytorch(family, name, torch_files):
    import torch

    obj, inputs = prepare(family, name)
    other = torch_files[family].CASES[name][0]()
    other.load_state_dict(to_torch(dict(obj.state_dict())))
    file = io.BytesIO()
    # Without PyTorch's own formulas of gradients, which take no complex numbers.
    with warnings.catch_warnings(), torch.jit.optimized_execution(False):
        warnings.simplefilter("ignore")
        compiled = torch.jit.script(ready(name, other))
        torch.jit.save(compiled, file)
        file.seek(0)
        expected = observe(compiled, compiled, to_torch(inputs), True, torch, calls=1)[0]
    program = jit.load(file)
    got = observe(program, program, inputs, True, calls=1)[0]
    for part in expected:
        assert close(expected[part], got[part]), (part, expected[part], got[part])


# Traced.


class Bound(weft.nn.Module):
    """A case as a trace takes it: its arguments that are no tensors are part of it, and it returns
    the tensors of its result."""

    def __init__(self, obj, inputs):
        super().__init__()
        self.inner = obj
        self.inputs = inputs

    def forward(self, *tensors):
        return tuple(leaves(self.inner(*fill(self.inputs, iter(tensors)))))


def fill(value, tensors):
    """The value with other tensors."""
    if isinstance(value, weft.Tensor):
        return next(tensors)
    if isinstance(value, dict):
        return {key: fill(item, tensors) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(fill(item, tensors) for item in value)
    return value


def longer(tensor):
    """Another size along the first dimension."""
    return weft.cat([tensor, tensor], 0) if tensor.dim() else tensor


# Without a tensor among arguments or results there is nothing to trace.
NO_TENSORS = {
    "anchors", "any", "any, list", "beam search", "cached decoder", "components", "ctc collapse",
    "edit distance", "filter bank", "kalman", "parse options", "recommender",
    "recommender, parts missing", "relative bias", "tokenizer", "version class",
}  # fmt: skip


def traced_case(family, name, training):
    """A case, its trace, its tensors, and what the trace warned of."""
    obj, inputs = prepare(family, name)
    bound = Bound(obj, inputs).train(training)
    before = copy.deepcopy(bound)
    with warnings.catch_warnings(record=True) as caught, weft.set_grad_enabled(training):
        warnings.simplefilter("always")
        tensors = tuple(copy.deepcopy(leaves(inputs)))
        for leaf in tensors:
            leaf.requires_grad_(training and leaf.is_floating_point())
        traced = jit.trace(copy.deepcopy(before), tensors, check_trace=False)
    traced.load_state_dict(before.state_dict())
    warned = {str(w.message) for w in caught if w.category is jit.TracerWarning}
    return bound, traced, leaves(inputs), warned


@MODES
@pytest.mark.parametrize(("family", "name"), [c for c in CASES if c[1] not in NO_TENSORS])
def test_trace_equals_python(family, name, training):
    bound, traced, tensors, _ = traced_case(family, name, training)
    expected = observe(bound, bound, tensors, training)
    check_same(expected, observe(traced, traced, tensors, training))


def test_traces_hold_for_other_sizes():
    """Where a trace did not warn, it gives Python's result for twice the rows, or says that weft
    would decide otherwise; never another result."""
    equal, refused = [], []
    for family, name in CASES:
        if name in NO_TENSORS:
            continue
        bound, traced, tensors, warned = traced_case(family, name, False)
        more = [longer(tensor) for tensor in tensors]
        try:
            expected = observe(bound, bound, more, False, calls=1)
        except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
            continue  # the program itself is for these sizes only
        if warned:
            continue
        try:
            check_same(expected, observe(traced, traced, more, False, calls=1))
            equal.append(name)
        except (RuntimeError, ValueError) as error:
            refused.append((name, str(error)))
    assert len(equal) >= 30, (equal, refused)
    assert not refused, refused

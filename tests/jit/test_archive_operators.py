"""The operators that the code of archives calls: those of old versions, those that weft has not, and
those on other devices."""

from __future__ import annotations

import inspect
import io
import re

import pytest
from tests.jit.archive_writer import ROOT, Called, Object, archive, forward

import weft
import weft.nn.functional as F
from weft import jit
from weft.jit.archive import functions
from weft.jit.archive.known import BY_KEYWORD
from weft.jit.archive.operators import _takes_tensor, candidates
from weft.jit.archive.same import WRITTEN, find
from weft.jit.module_methods import compiled_method
from weft.jit.pipeline import optimize
from weft.serialization import LoadError


@pytest.mark.parametrize(
    "name", ["save", "load", "from_file", "set_num_threads", "compile", "_find", "fft_takes_out"]
)
def test_code_reaches_no_function_of_weft_but_operators(name, tmp_path):
    path = tmp_path / "file"
    call = f'torch.{name}("{path}", x)'
    with pytest.raises(NotImplementedError, match=f"aten::{name}: expected an operator of weft"):
        jit.load(archive(forward(call), ROOT))(weft.ones(1))
    assert not path.exists()


def test_arguments_of_other_overloads_are_no_dtypes():
    """Behind `end` the overload without `start` takes its dtype, by keyword alone."""
    size = "torch.numel(x)"
    text = f"torch.arange(0, {size}, {size}, dtype=ops.prim.dtype(x), layout=None)"
    program = jit.load(archive(forward(text), ROOT))
    assert str(program.graph).count("prim::numbered_dtype") == 1
    found = program(weft.zeros(12, dtype=weft.int16))  # 12 is the number of no dtype
    assert found.tolist() == [0] and found.dtype == weft.int16


def test_dtypes_that_are_known_at_run_time_cost_no_branches():
    text = "torch.to(torch.add(x, 1), ops.prim.dtype(torch.mul(x, 2)))"
    program = jit.load(archive(forward(text), ROOT))
    function = compiled_method(program._jit_info, "forward").function
    kinds = {node.kind for node in optimize(function).graph.walk()}
    assert not kinds & {"prim::If", "prim::Loop", "prim::dtype_number", "prim::numbered_dtype"}
    assert program(weft.ones(2, dtype=weft.int16)).dtype == weft.int16


def test_layouts_are_numbers():
    for text, expected in (
        ("torch.mul(x, int(torch.eq(ops.prim.layout(x), 0)))", [1.0, 1.0]),
        ("torch.zeros([1], dtype=None, layout=ops.prim.layout(x))", [0.0]),
    ):
        program = jit.load(archive(forward(text), ROOT))
        again = jit.load(program.save_to_buffer())
        assert program(weft.ones(2)).tolist() == again(weft.ones(2)).tolist() == expected
        assert again.code == program.code and "ops.prim.layout(x)" in program.code


def test_products_of_another_dtype_are_those_of_other_devices():
    """As PyTorch's: programs that branch to them on a GPU are read, and written again."""
    for name, operands in (
        ("mm", "x, x"),
        ("bmm", "x, x"),
        ("addmm", "x, x, x"),
        ("baddbmm", "x, x, x"),
    ):
        program = jit.load(archive(forward(f"torch.{name}({operands}, 6)"), ROOT))
        assert f"torch.{name}({operands}, 6)" in jit.load(program.save_to_buffer()).code
        text = rf"{name}: expected no out_dtype for products on the CPU, got float32"
        with pytest.raises(NotImplementedError, match=text):
            program(weft.ones(2, 2))
        with pytest.raises(NotImplementedError, match=text):
            getattr(weft, name)(*[weft.ones(2, 2)] * len(operands.split()), out_dtype=weft.float32)


# Calls of operators that weft composes, and the same by weft's functions; x is [1, 4, 6].
COMPOSED = {
    "torch.kl_div(x, x, 2, log_target=True)": lambda x: F.kl_div(x, x, reduction="sum", log_target=True),
    "torch.kl_div(x, torch.abs(x))": lambda x: F.kl_div(x, x.abs()),
    "torch.smooth_l1_loss(x, torch.neg(x), 0, 0.5)": lambda x: F.smooth_l1_loss(x, -x, reduction="none", beta=0.5),
    "torch.huber_loss(x, torch.neg(x), 2, 0.5)": lambda x: F.huber_loss(x, -x, "sum", 0.5),
    "torch.soft_margin_loss(x, torch.sign(x), 2)": lambda x: F.soft_margin_loss(x, x.sign(), reduction="sum"),
    "torch.poisson_nll_loss(x, x, True, False, 1e-8, 0)": lambda x: F.poisson_nll_loss(x, x, reduction="none"),
    "torch.upsample_nearest1d(x, [9], None)": lambda x: F.interpolate(x, [9]),
    "torch.upsample_nearest1d(x, [9])": lambda x: F.interpolate(x, [9]),
    "torch.upsample_nearest1d(x, [9], 1.6)": lambda x: F.interpolate(x, scale_factor=1.6),
    "torch._upsample_nearest_exact2d(torch.unsqueeze(x, 0), [8, 3], None, None)": lambda x: F.interpolate(x[None], (8, 3), mode="nearest-exact"),
    "torch.upsample_bilinear2d(torch.unsqueeze(x, 0), [7, 9], True, 1.9, 1.6)": lambda x: F.interpolate(x[None], scale_factor=(1.9, 1.6), mode="bilinear", align_corners=True),
    "torch.upsample_trilinear3d(torch.view(x, [1, 1, 2, 2, 6]), [4, 1, 9], False)": lambda x: F.interpolate(x.view(1, 1, 2, 2, 6), (4, 1, 9), mode="trilinear"),
    "torch.__interpolate(x, [9], None, \"linear\", True)": lambda x: F.interpolate(x, [9], mode="linear", align_corners=True),
    "torch.__interpolate(torch.unsqueeze(x, 0), None, 2.5)": lambda x: F.interpolate(x[None], None, 2.5),
    "torch.__upsample(torch.unsqueeze(x, 0), 3, None, \"bilinear\", False)": lambda x: F.interpolate(x[None], 3, mode="bilinear"),
    "torch.__upsample_nearest(x, None, 2)": lambda x: F.interpolate(x, None, 2),
    "torch.__upsample_bilinear(torch.unsqueeze(x, 0), None, [2, 3])": lambda x: F.interpolate(x[None], None, (2, 3), "bilinear", True),
    "torch._cast_Double(x, True)": lambda x: x.double(),
    "torch.chalf(x)": lambda x: x.chalf(),
    "torch._unique(x)[0]": lambda x: x.flatten(),
    "torch._unique(x)[1]": lambda x: weft.empty(0, dtype=weft.int64),
    "torch._unique(torch._cast_Long(x), True, True)[1]": lambda x: weft.unique(x.long(), True, True)[1],
    "torch.to(x, annotate(Optional[Device], None), 7, False, False)": lambda x: x.double(),
    "torch.to(x, False, True)": lambda x: x,
    "torch.special_softmax(x, 1, 7)": lambda x: x.double().softmax(1),
    "torch.rrelu(x, 0.125, 0.375, False, None)": lambda x: F.leaky_relu(x, 0.25),
    "torch.rrelu_(torch.clone(x), 0.125, 0.375, False, None)": lambda x: F.leaky_relu(x, 0.25),
    "torch.index_reduce_(torch.clone(x), 1, torch.tensor([2]), torch.slice(x, 1, 0, 1), \"amax\", include_self=False)": lambda x: x.index_copy(1, weft.tensor([2]), x[:, :1]),
    "torch.add(x, int(torch.is_pinned(x, None)))": lambda x: x,
    "torch.index_put(x, annotate(List[Tensor], [torch.tensor([0])]), torch.neg(x), True)": lambda x: x * 0,
    "torch.upsample_linear1d(x, None, True, [1.5])": lambda x: F.interpolate(x, scale_factor=1.5, mode="linear", align_corners=True),
    "torch.col2im(x, [3, 4], [2, 2], [1, 1], [0, 0], [1, 1])": lambda x: F.fold(x, (3, 4), 2),
    "torch.reflection_pad1d(x, [2, 1])": lambda x: F.pad(x, (2, 1), "reflect"),
    "torch.replication_pad2d(x, [2, 1, 0, 1])": lambda x: F.pad(x, (2, 1, 0, 1), "replicate"),
    "torch.feature_dropout(x, 0.5, False)": lambda x: x,
    "torch.cat(torch.unsafe_chunk(x, 2, -1))": lambda x: weft.cat(x.chunk(2, -1)),
    "torch._weight_norm(x, x, 2)": lambda x: x * (x / x.norm(dim=(0, 1), keepdim=True)),
    "torch.norm_except_dim(x, 2, -1)": lambda x: x.norm(),
    "torch.threshold_(torch.clone(x), 0.5, 7.)": lambda x: F.threshold(x, 0.5, 7.0),
    "torch.histogram(x, 3, range=[0., 2.], density=True)[0]": lambda x: weft.histogram(x, 3, range=(0.0, 2.0), density=True).hist,
    "torch.histogram(x, torch.tensor([0., 1., 3.]), weight=torch.abs(x))[1]": lambda x: weft.tensor([0.0, 1.0, 3.0]),
    "torch._lu_with_info(torch.slice(torch.sin(torch.mul(x, x)), 2, 0, 4))[0]":
        lambda x: weft.linalg.lu_factor((x * x).sin()[..., :4])[0],
    "torch.matrix_H(torch.select(x, 0, 0))": lambda x: x[0].H,
    "torch.special_zeta(torch.add(torch.abs(x), 2), 3)": lambda x: weft.special.zeta(x.abs() + 2, 3),
    "torch.special_xlog1py(x, 2)": lambda x: weft.special.xlog1py(x, 2),
    "torch.abs(torch.fft_rfft(x, 5))": lambda x: weft.fft.rfft(x, 5).abs(),
    "torch.add(x, 1 if torch.is_autocast_cpu_enabled() else 2)": lambda x: x + 2,
}  # fmt: skip


@pytest.mark.parametrize("text", COMPOSED)
def test_composed_operators(text):
    """They are called by PyTorch's arguments, and have their names when the program is saved again."""
    program = jit.load(archive(forward(text), ROOT))
    x = weft.arange(24.0).sub(7).div(5).reshape(1, 4, 6)
    assert weft.equal(program(x), COMPOSED[text](x))
    again = jit.load(program.save_to_buffer())
    assert weft.equal(again(x), COMPOSED[text](x)) and again.code == program.code
    names = re.findall(r"torch\.(\w+)\(", text)
    assert {f"torch.{name}(" for name in names} <= {
        f"torch.{n}(" for n in re.findall(r"torch\.(\w+)\(", again.code)
    }


OPTIONS = 'dtype=7, layout=0, device=torch.device("cpu"), pin_memory=False'  # 7 is float64

# As above, by functions and methods of weft themselves.
CALLED = {
    "torch.abs(torch.polar(x, x))": lambda x: weft.polar(x, x).abs(),
    "torch.igamma(torch.abs(x), torch.abs(x))": lambda x: weft.igamma(x.abs(), x.abs()),
    "torch.special_gammaincc(torch.abs(x), torch.abs(x))": lambda x: weft.igammac(x.abs(), x.abs()),
    "torch.sum_to_size(x, [1, 1, 6])": lambda x: x.sum_to_size(1, 1, 6),
    "torch.multiply_(torch.clone(x), x)": lambda x: x * x,
    "torch.subtract_(torch.clone(x), x, alpha=2)": lambda x: -x,
    "torch.divide_(torch.clone(x), x, rounding_mode=\"floor\")": lambda x: x.div(x, rounding_mode="floor"),
    "torch.less_(torch.clone(x), 1)": lambda x: (x < 1).float(),
    "torch.not_equal_(torch.clone(x), x)": lambda x: (x != x).float(),
    "torch.swapdims(x, 1, 2)": lambda x: x.transpose(1, 2),
    "torch.segment_reduce(x, \"max\", lengths=torch.tensor([[2, 2]]), axis=1)": lambda x: x.view(1, 2, 2, 6).amax(2),
    f"torch.hann_window(4, {OPTIONS})": lambda x: weft.hann_window(4, dtype=weft.float64),
    f"torch.kaiser_window(4, False, {OPTIONS})": lambda x: weft.kaiser_window(4, False, dtype=weft.float64),
    f"torch.fft_fftfreq(4, 0.5, {OPTIONS})": lambda x: weft.fft.fftfreq(4, 0.5, dtype=weft.float64),
    f"torch.fft_rfftfreq(5, {OPTIONS})": lambda x: weft.fft.rfftfreq(5, dtype=weft.float64),
    f"torch.logspace(0, 2, 4, {OPTIONS})": lambda x: weft.logspace(0, 2, 4, dtype=weft.float64),
    f"torch.range(0, 2, 0.5, {OPTIONS})": lambda x: weft.arange(5, dtype=weft.float64) / 2,
    "torch.linalg_norm(x, \"nuc\", [1, 2], True)": lambda x: weft.linalg.matrix_norm(x, "nuc", keepdim=True),
    "torch.linalg_norm(x, dtype=7)": lambda x: x.double().norm(),
    "torch.abs(torch.linalg_pinv(torch.complex(x, x)))": lambda x: weft.linalg.pinv(weft.complex(x, x)).abs(),
    "torch.nuclear_norm(x)": lambda x: weft.nuclear_norm(x),
    "torch.igamma_(torch.abs(x), torch.abs(x))": lambda x: weft.igamma(x.abs(), x.abs()),
    "torch.mvlgamma_(torch.add(torch.abs(x), 1), 2)": lambda x: weft.mvlgamma(x.abs() + 1, 2),
    "torch.cumsum_(torch.clone(x), 2)": lambda x: x.cumsum(2),
    "torch.polygamma_(torch.add(torch.abs(x), 1), 1)": lambda x: weft.polygamma(1, x.abs() + 1),
    "torch.arctan2_(torch.clone(x), x)": lambda x: x.atan2(x),
    "torch.mul(x, int(torch.is_contiguous(torch.unsqueeze(x, 0), 2)))": lambda x: x,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:range is deprecated")
@pytest.mark.parametrize("text", CALLED)
def test_operators_that_are_functions_of_weft(text):
    x = weft.arange(24.0).sub(7.5).div(5).reshape(1, 4, 6)
    assert weft.equal(jit.load(archive(forward(text), ROOT))(x), CALLED[text](x))


_PROFILER = """class record_function:
  name : str
  record : Optional[__torch__.torch.classes.profiler._RecordFunction]
  def __init__(self: __torch__.torch.autograd.profiler.record_function, name: str) -> NoneType:
    self.name = name
    self.record = None
    return None
  def __enter__(self: __torch__.torch.autograd.profiler.record_function) -> NoneType:
    self.record = ops.profiler._record_function_enter_new(self.name, None)
    return None
  def __exit__(self: __torch__.torch.autograd.profiler.record_function, type: Any, value: Any,
    trace: Any) -> NoneType:
    record = self.record
    if torch.__isnot__(record, None):
      ops.profiler._record_function_exit(record)
    else:
      pass
    return None
"""


def test_autocast():
    """PyTorch's compiler looks at the class; its code does nothing."""
    name = "__torch__.torch.amp.autocast_mode.autocast"
    body = f"""class M(Module):
  training : bool
  def forward(self, x: Tensor) -> Tuple[int, int, int]:
    _0 = {name}.__new__({name})
    _1 = (_0).__init__("cpu", 15, True, None, )
    with _0:
      y = torch.mm(x, x)
    _2 = {name}.__new__({name})
    _3 = (_2).__init__("cpu", None, False, None, )
    with _2:
      z = torch.mm(x, x)
    _4 = {name}.__new__({name})
    _5 = (_4).__init__("cuda", 5, True, None, )
    with _4:
      w = torch.mm(x, x)
    return (ops.prim.dtype(y), ops.prim.dtype(z), ops.prim.dtype(w))
"""
    text = """class autocast:
  fast_dtype : int
  def __init__(self: __torch__.torch.amp.autocast_mode.autocast, device_type: str,
    dtype: Optional[int]=None, enabled: bool=True, cache_enabled: Optional[bool]=None) -> NoneType:
    if torch.__is__(dtype, None):
      _0 = torch.get_autocast_dtype(device_type)
    else:
      _0 = unchecked_cast(int, dtype)
    self.fast_dtype = _0
    return None
"""
    program = jit.load(
        archive({"__torch__": body, "__torch__.torch.amp.autocast_mode": text}, ROOT)
    )
    assert program(weft.ones(2, 2)) == (15, 6, 6)  # the numbers of bfloat16 and float32


def test_names_for_the_profiler_are_passed_over():
    """PyTorch writes the class of record_function, which calls its profiler, into archives."""
    name = "__torch__.torch.autograd.profiler.record_function"
    body = f"""class M(Module):
  training : bool
  def forward(self, x: Tensor) -> Tensor:
    _0 = {name}.__new__({name})
    _1 = (_0).__init__("a part", )
    with _0:
      y = torch.add(x, 1)
    return y
"""
    code = {"__torch__": body, "__torch__.torch.autograd.profiler": _PROFILER}
    program = jit.load(archive(code, ROOT))
    again = jit.load(io.BytesIO(program.save_to_buffer()))
    assert program(weft.ones(1)).item() == again(weft.ones(1)).item() == 2


#: Operators that weft has in Python only: for what no archive does, and of sparse tensors.
ELSEWHERE = (
    "as_strided_ ccol_indices coalesce col_indices crow_indices cuda dense_dim "
    "hash_tensor histogramdd indices is_coalesced is_distributed is_set_to linspace output_nr "
    "random record_stream resize resize_as retains_grad row_indices smm sparse_compressed_tensor "
    "sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor sparse_dim sparse_mask "
    "to_padded_tensor to_sparse to_sparse_csc to_sparse_csr"
)


@pytest.mark.parity
def test_archives_reach_the_operators_that_weft_has():
    torch = pytest.importorskip("torch")
    of_tensors = {
        schema.name.removeprefix("aten::")
        for schema in torch._C._jit_get_all_schemas()
        if schema.arguments and "Tensor" in str(schema.arguments[0].type)
    }
    public = {name for name in of_tensors if hasattr(weft, name) or hasattr(weft.Tensor, name)}
    unknown = {name for name in public if not name.startswith("_") and not is_of_tensors(name)}
    assert sorted(unknown - {"save"}) == ELSEWHERE.split()


def is_of_tensors(name):
    kind = f"aten::{name}"
    known = kind in functions.COMPOSED or find(kind) is not None
    return known or any(map(_takes_tensor, candidates(kind)))


@pytest.mark.parity
def test_composed_operators_take_the_arguments_of_torch():
    torch = pytest.importorskip("torch")
    theirs: dict[str, list[list[tuple[bool, bool]]]] = {}
    for schema in torch._C._jit_get_all_schemas():
        parameters = [(a.kwarg_only, a.has_default_value()) for a in schema.arguments]
        theirs.setdefault(schema.name, []).append(parameters)
    written = [*WRITTEN.items(), *((k, f) for k, fs in functions.COMPOSED.items() for f in fs)]
    wrong = []
    for kind, function in written:
        parameters = inspect.signature(function).parameters.values()
        own = [
            (
                each.kind is each.KEYWORD_ONLY or each.name in BY_KEYWORD,
                each.default is not each.empty,
            )
            for each in parameters
            if each.name != "out"
        ]
        if kind.startswith("aten::") and own not in theirs[kind]:
            wrong.append(kind)
    several_forms = {"aten::to", "aten::to_mkldnn", "aten::linalg_pinv"}
    assert set(wrong) <= several_forms, wrong


def test_unknown_operators_are_all_named_at_once():
    calls = [f"ops.mylib.op{i}(x, {i})" for i in range(30)]
    text = f"torch.add(ops.quantized.absent(x), torch.nonsense(x, [{', '.join(calls)}]))"
    with pytest.raises(NotImplementedError) as error:
        jit.load(archive(forward(text), ROOT))(weft.ones(1))
    lines = str(error.value).split("\n")
    assert lines[0] == (
        "quantized::absent: expected an operator of weft, got one it has not: weft has not this one "
        "of the quantised operators; save the module unquantised"
    )
    assert lines[1] == "The archive's code names these operators that weft has not:"
    assert lines[2] == "  aten::nonsense at code/__torch__.py:4:46" and "  and 12 more" in lines[22]


def test_overloads_that_weft_has_not_matter_where_they_are_called():
    with pytest.raises(NotImplementedError, match=r"relu: expected .*at most 1 positional"):
        jit.load(archive(forward("torch.relu(x, 1, 2)"), ROOT))(weft.ones(1))


def test_registered_operators():
    code = forward("ops.testlib.scaled(ops.testlib.counted(x), 3)")

    @jit.register_operator("testlib::scaled")
    def scaled(x: weft.Tensor, by: int) -> weft.Tensor:
        return x * by

    calls = []

    @jit.ignore
    def counted(x: weft.Tensor) -> weft.Tensor:
        calls.append(x)
        return x + 1

    jit.register_operator("testlib::counted", counted)
    x = weft.ones(2, requires_grad=True)
    y = jit.load(archive(code, ROOT))(x)
    y.sum().backward()
    assert y.tolist() == [6.0, 6.0] and x.grad.tolist() == [3.0, 3.0] and len(calls) == 1
    jit.register_operator("testlib::counted", scaled)
    for name, function, error in (
        ("scaled", scaled, ValueError), ("aten::add", scaled, ValueError), ("a::b", 3, TypeError),
        ("torchvision::nms", scaled, ValueError),
    ):  # fmt: skip
        with pytest.raises(error, match="register_operator: expected"):
            jit.register_operator(name, function)


def test_classes_of_pytorch_are_refused_by_name():
    packed = "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase"
    code = {
        "__torch__": f"class M(Module):\n  p : {packed}\n",
        "__torch__.torch.classes.quantized": "\n",
    }
    with pytest.raises(LoadError, match=r"PyTorch's own '?__torch__.torch.classes.quantized.Embed"):
        jit.load(archive(code, Object("__torch__.M", {"p": Object(packed, {})})))
    with pytest.raises(LoadError, match=r"EmbeddingPackedParamsBase'?: weft has not this one"):
        jit.load(archive(forward("x"), ROOT, [Object(packed, {})]))  # as frozen modules hold them
    with pytest.raises(NotImplementedError, match="it has not: weft has not this one"):
        jit.load(archive(forward("torch.q_scale(ops.quantized.q(x))"), ROOT))(weft.ones(1))


WHERE = {
    "device": ("cpu", True),
    "object": (weft.device("cpu"), True),
    "dict": ({"cuda:1": "cpu"}, True),
    "none": (None, False),
    "others": ({"cuda:0": "cpu"}, False),
}


@pytest.mark.parametrize("name", WHERE)
def test_map_location_moves_devices_that_the_code_names(name):
    to, works = WHERE[name]
    code = forward("""torch.add(torch.to(x, torch.device("cuda:1")),
      torch.ones([1], dtype=6, device=torch.device("cuda", 1)))""")
    attribute = "  where : Device\n  def device(self) -> Device:\n    return self.where\n"
    code["__torch__"] += attribute
    saved = {"where": Called("torch.device", ("cuda:1",))}
    program = jit.load(archive(code, Object("__torch__.M", saved)), map_location=to)
    assert str(program.device()) == ("cpu" if works else "cuda:1")
    if works:
        assert program(weft.ones(1)).tolist() == [2.0]
    else:
        with pytest.raises(AssertionError, match="expected device cpu, got cuda"):
            program(weft.ones(1))


def test_map_location_moves_calls_of_cuda():
    program = jit.load(archive(forward("torch.cuda(x)"), ROOT), map_location="cpu")
    assert program(weft.ones(1)).tolist() == [1.0]
    with pytest.raises(AssertionError, match="expected device cpu, got cuda"):
        jit.load(archive(forward("torch.cuda(x)"), ROOT))(weft.ones(1))


FORMER = {
    "torch.div(x, 2)": (3, [0, 1, -1], [0.5, 1.5, -1.5]),
    "torch.div(x, x)": (3, [1, 1, 1], [1.0, 1.0, 1.0]),
    "torch.div(x, 2.)": (3, [0.5, 1.5, -1.5], [0.5, 1.5, -1.5]),
    'torch.div(x, 2, rounding_mode="floor")': (3, [0, 1, -2], [0, 1, -2]),
    "torch.full([2], 3)": (4, [3.0, 3.0], [3, 3]),
    "torch.full([1], True, dtype=6)": (4, [1.0], [1.0]),
    "torch.size(torch.linspace(0, 1))": (7, [100], None),
    "torch.linspace(0, 1, 2, dtype=7)": (7, [0.0, 1.0], [0.0, 1.0]),
    "torch.size(torch.logspace(0, 1, None))": (8, [100], None),
    "torch.div_(x, 3)": (3, [0, 1, -1], None),
    "torch.full([1], 3, out=torch.zeros([1], dtype=4))": (4, [3], [3]),
    "torch.linspace(0, 1, 2, out=torch.zeros([2]))": (7, [0.0, 1.0], [0.0, 1.0]),
    "torch.size(torch.linspace(0, 1, None, out=torch.zeros([100])))": (7, [100], None),
    "torch.size(torch.logspace(0, 1, None, 2., out=torch.zeros([100])))": (8, [100], None),
    "torch.div(torch.mul(x, 2), x, out=torch.zeros([3], dtype=4))": (3, [2, 2, 2], None),
    "torch.div(x, x, out=torch.zeros([3]))": (3, [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]),
    "torch.div_(x, 2.)": (3, None, None),
    "torch.size(torch.logspace(0, 1, None, 2., out=torch.zeros([2, 2])))": (8, [100], None),
    "torch.gelu(torch.mul(x, 0.))": (9, [0.0, 0.0, -0.0], [0.0, 0.0, -0.0]),
}


def _former(text: str, version: int) -> io.BytesIO:
    returns = "List[int]" if "torch.size" in text else "Tensor"
    code = forward(text, returns)["__torch__"].replace("self,", "self: __torch__.M,")
    code = code.replace("M(Module):", "M(Module):\n  __parameters__ = []\n  __buffers__ = []")
    record = "version" if version < 6 else ".data/version"  # where PyTorch writes it
    return archive({"__torch__": code}, ROOT, **{"version": None, record: str(version).encode()})


@pytest.mark.parametrize("text", FORMER)
def test_operators_mean_what_they_meant(text):
    last, before, behind = FORMER[text]
    for version, expected in ((last, before), (last + 1, behind)):
        program = jit.load(_former(text, version))
        if expected is None:
            with pytest.raises(RuntimeError):
                program(weft.tensor([1, 3, -3]))
            continue
        found = program(weft.tensor([1, 3, -3]))
        found = found if isinstance(found, list) else found.tolist()
        assert found == expected and list(map(type, found)) == list(map(type, expected))


@pytest.mark.parity
@pytest.mark.parametrize("text", FORMER)
def test_operators_mean_what_they_meant_to_pytorch(text):
    torch = pytest.importorskip("torch")
    last, before, behind = FORMER[text]
    for version, expected in ((last, before), (last + 1, behind)):
        if expected is None:
            with pytest.raises(RuntimeError):
                torch.jit.load(_former(text, version))(torch.tensor([1, 3, -3]))
        else:
            found = torch.jit.load(_former(text, version))(torch.tensor([1, 3, -3]))
            assert (found if isinstance(found, list) else found.tolist()) == expected

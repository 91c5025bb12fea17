"""weft.onnx.export: each model runs in onnxruntime and gives what the module gives."""

import doctest
import importlib
import io

import pytest
from op_cases import CASES
from op_cases.calling import ROWS, function_of
from op_cases.realise import realise, to_library

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


# Layers: traced with the sizes of the example, and scripted with a name for the first one.
SEQUENCE = (5, 2, 3)
LAYERS = [
    (lambda: nn.Conv1d(3, 4, 3, stride=2, padding=1), (2, 3, 9)),
    (lambda: nn.Conv2d(4, 4, 3, groups=2, dilation=2, padding="same"), (2, 4, 9, 9)),
    (lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), (2, 3, 6, 6)),
    (lambda: nn.Conv3d(2, 3, 2, padding=1), (2, 2, 4, 4, 4)),
    (lambda: nn.ConvTranspose1d(3, 4, 3, stride=2), (2, 3, 5)),
    (lambda: nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), (2, 3, 5, 5)),
    (lambda: nn.ConvTranspose3d(2, 3, 2), (1, 2, 3, 3, 3)),
    (lambda: nn.Linear(3, 4), (2, 5, 3)),
    (lambda: nn.Bilinear(3, 4, 5), [(2, 3), (2, 4)]),
    (lambda: nn.BatchNorm1d(3), (4, 3)),
    (lambda: nn.BatchNorm3d(3), (2, 3, 2, 2, 2)),
    (lambda: nn.GroupNorm(2, 4), (2, 4, 3, 3)),
    (lambda: nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 4)),
    (lambda: nn.LayerNorm([3, 4]), (2, 3, 4)),
    (lambda: nn.RMSNorm(4), (2, 4)),
    (lambda: nn.LocalResponseNorm(2), (2, 4, 3, 3)),
    (lambda: nn.MaxPool1d(2), (2, 3, 6)),
    (lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), (2, 3, 7, 7)),
    (lambda: nn.MaxPool2d(2, return_indices=True), (2, 3, 4, 4)),
    (lambda: nn.MaxPool3d(2), (1, 2, 4, 4, 4)),
    (lambda: nn.AvgPool1d(2), (2, 3, 6)),
    (lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), (2, 3, 7, 7)),
    (lambda: nn.AvgPool3d(2), (1, 2, 4, 4, 4)),
    (lambda: nn.AdaptiveAvgPool1d(3), (2, 3, 7)),
    (lambda: nn.AdaptiveAvgPool2d((3, 2)), (2, 3, 7, 5)),
    (lambda: nn.AdaptiveAvgPool2d(1), (2, 3, 7, 5)),
    (lambda: nn.AdaptiveMaxPool2d(2), (2, 3, 6, 6)),
    (lambda: nn.LPPool2d(2, 2), (1, 3, 4, 4)),
    (lambda: nn.ZeroPad2d(1), (1, 2, 3, 3)),
    (lambda: nn.ReflectionPad2d(1), (1, 2, 3, 3)),
    (lambda: nn.ReplicationPad2d(1), (1, 2, 3, 3)),
    (lambda: nn.CircularPad2d(1), (1, 2, 3, 3)),
    (lambda: nn.Upsample(scale_factor=2), (1, 2, 3, 3)),
    (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), (1, 2, 3, 3)),
    (lambda: nn.Upsample(size=(5, 6), mode="bilinear", align_corners=True), (1, 2, 3, 3)),
    (lambda: nn.Upsample(size=(5, 7)), (1, 2, 3, 3)),
    (lambda: nn.Upsample(size=7, mode="nearest-exact"), (1, 2, 3)),
    (lambda: nn.Upsample(scale_factor=2.0, mode="bicubic"), (1, 2, 4, 4)),
    (lambda: nn.Upsample(scale_factor=2, mode="trilinear"), (1, 2, 3, 3, 3)),
    (lambda: nn.PixelShuffle(2), (1, 8, 3, 3)),
    (lambda: nn.PixelUnshuffle(2), (1, 2, 4, 4)),
    (lambda: nn.Unfold(2), (2, 3, 4, 4)),
    (lambda: nn.Fold((4, 4), 2, stride=2), (2, 12, 4)),
    (lambda: nn.Flatten(), (2, 3, 4)),
    (lambda: nn.Unflatten(1, (2, 3)), (2, 6)),
    (lambda: nn.LSTM(3, 4), SEQUENCE),
    (lambda: nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True, bias=False), SEQUENCE),
    (lambda: nn.GRU(3, 4, bidirectional=True), SEQUENCE),
    (lambda: nn.RNN(3, 4, nonlinearity="relu"), SEQUENCE),
    (lambda: nn.RNN(3, 4), (5, 3)),
    (lambda: nn.LSTMCell(3, 4), (2, 3)),
    (lambda: nn.GRUCell(3, 4), (2, 3)),
    (lambda: nn.RNNCell(3, 4), (2, 3)),
    (lambda: nn.MultiheadAttention(8, 2, batch_first=True), [(2, 5, 8)] * 3),
    (lambda: nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", norm_first=True), (2, 5, 8)),
    (lambda: nn.TransformerDecoderLayer(8, 2, 16), [(5, 2, 8), (5, 2, 8)]),
    (lambda: nn.CosineSimilarity(), [(2, 3), (2, 3)]),
    (lambda: nn.MSELoss(), [(2, 3), (2, 3)]),
    (lambda: nn.SmoothL1Loss(), [(2, 3), (2, 3)]),
    (lambda: nn.KLDivLoss(reduction="sum"), [(2, 3), (2, 3)]),
]
ACTIVATIONS = (
    "ReLU ReLU6 ELU SELU CELU GELU SiLU Mish Hardswish Hardsigmoid Hardtanh LeakyReLU LogSigmoid "
    "PReLU RReLU Sigmoid Softplus Softshrink Hardshrink Softsign Tanh Tanhshrink GLU Dropout "
    "AlphaDropout Softmax2d"
)
LAYERS += [(getattr(nn, name), (2, 4, 3, 2)) for name in ACTIVATIONS.split()]
LAYERS += [(lambda: nn.Softmax(-1), (2, 3)), (lambda: nn.Threshold(0.1, 2.0), (2, 3))]


@pytest.mark.parametrize("index", range(len(LAYERS)))
def test_layers(index):
    make, shapes = LAYERS[index]
    weft.manual_seed(index)
    layer = make().eval()
    args = tuple(weft.randn(shape) for shape in (shapes if isinstance(shapes, list) else [shapes]))
    check(layer, args)
    names = [f"x{i}" for i in range(len(args))]
    others = [tuple(weft.cat([each, each]) for each in args)] if args[0].dim() > 2 else []
    axes = {name: {0: "n"} for name in names}
    check(weft.jit.script(layer), args, others, input_names=names, dynamic_axes=axes)


@pytest.mark.parametrize(
    "layer, kind", [(nn.Upsample(scale_factor=2), "Resize"), (nn.Conv3d(3, 1, 1), "Conv")]
)
def test_functions_of_weft_that_onnx_has_as_operators(layer, kind):
    program = weft.onnx.export(weft.jit.script(layer), weft.ones(1, 3, 2, 2, 2))
    assert [node.op_type for node in program.model_proto.graph.node] == [kind]


# Operators, by the cases of the operator table.
UNMAPPED = frozenset(
    [
        "_sample_grid",
        "grid_sampler_3d",
        "block_diag",
        "mvlgamma",
        "view_as_real",
        "imag",
        "view_as_complex",
        "bincount",
        "histc",
        "unique_dim",
        "unique_consecutive",
        "tensor_split.tensor_indices_or_sections",
        "nll_loss_forward",
        "logaddexp2",
        "bitwise_left_shift.Tensor",
        "bitwise_left_shift.Tensor_Scalar",
        "bitwise_left_shift.Scalar_Tensor",
        "bitwise_right_shift.Tensor",
        "bitwise_right_shift.Tensor_Scalar",
        "bitwise_right_shift.Scalar_Tensor",
        "kron",
        "matrix_power",
        "linalg_inv",
        "linalg_inv_ex",
        "inverse",
        "linalg_slogdet",
        "slogdet",
        "logdet",
        "linalg_solve",
        "linalg_solve_triangular",
        "linalg_cholesky",
        "linalg_cholesky_ex",
        "cholesky",
        "cholesky_solve",
        "cholesky_inverse",
        "linalg_eigvalsh",
        "linalg_svdvals",
        "cumprod",
        "cummax",
        "cummin",
        "nanmedian",
        "nanmedian.dim",
        "mode",
        "lgamma",
        "digamma",
        "igamma",
        "igammac",
        "polygamma",
        "erfinv",
        "i0",
        "special_i1",
        "special_i0e",
        "special_i1e",
        "special_erfcx",
        "special_log_ndtr",
        "special_ndtri",
        "special_zeta",
        "nextafter",
        "frexp.Tensor",
        "gcd",
        "lcm",
        "_fft",
        "_fft_half",
        "_fft_real",
    ]
)
# Of these ONNX has some forms only, or the example is no tensor.
PARTIAL = frozenset(
    ["scatter_reduce.two", "equal", "allclose", "where", "repeat_interleave.self_int"]
)


def operator_cases(key):
    """The function of an operator, and arguments that it takes: tensors among them."""
    case, function = CASES[key], function_of(key)
    dtype = "float32" if "float32" in case.dtypes else case.dtypes[0]
    for index, sample in enumerate(case.samples[:3]):
        given = to_library(realise(sample, case, dtype, index), weft, dtype)
        try:
            function(*given.args, **given.kwargs)
        except (RuntimeError, IndexError, TypeError, ValueError):
            continue
        if tensors_given((*given.args, *given.kwargs.values())):
            yield function, given.args, given.kwargs


def tensors_given(value):
    """The tensors among arguments, in order."""
    if isinstance(value, (tuple, list)):
        return [tensor for each in value for tensor in tensors_given(each)]
    return [value] if isinstance(value, weft.Tensor) else []


KEYS = [
    key
    for key in CASES
    if key in ROWS
    and not key.partition(".")[0].endswith(("_", "backward"))
    and ROWS[key].kind != "random"
    and not key.startswith(("_special", "_recurrent", "_conv2d_sum"))  # of finished programs
    and not key.startswith(("linalg_eig", "linalg_svd", "linalg_qr"))
    and key not in PARTIAL
]


@pytest.mark.parametrize("key", [key for key in KEYS if key not in UNMAPPED])
def test_operators(key):
    for function, args, kwargs in operator_cases(key):

        def run(*args, function=function, **kwargs):
            return function(*args, **kwargs)

        wanted = tensors_of(run(*args, **kwargs))
        got = weft.onnx.export(run, args, kwargs=kwargs)(*tensors_given((*args, *kwargs.values())))
        for mine, other in zip(got, wanted):
            assert mine.shape == other.shape and mine.dtype == other.dtype
            weft.testing.assert_close(mine, other, rtol=2e-3, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("key", sorted(UNMAPPED))
def test_operators_without_a_mapping_are_named(key):
    for function, args, kwargs in operator_cases(key):
        with pytest.raises(
            weft.onnx.UnsupportedOperatorError, match=r"aten::\w+.* at .*test_onnx.py:\d+"
        ):
            weft.onnx.export(lambda *a, f=function, **k: f(*a, **k), args, kwargs=kwargs)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(mode, padding):
    def sampled(x, grid):
        return weft.nn.functional.grid_sample(x, grid, mode, padding, align_corners=False)

    given = weft.randn(2, 3, 5, 4), weft.rand(2, 3, 6, 2) * 2.4 - 1.2
    for opset in (18, 20):
        (got,) = weft.onnx.export(sampled, given, opset_version=opset)(*given)
        weft.testing.assert_close(got, sampled(*given), rtol=1e-4, atol=1e-4)
    if mode != "bicubic":
        given = weft.randn(2, 3, 5, 4, 3), weft.rand(2, 3, 6, 2, 3) * 2.4 - 1.2
        (got,) = weft.onnx.export(sampled, given, opset_version=20)(*given)
        weft.testing.assert_close(got, sampled(*given), rtol=1e-4, atol=1e-4)
        with pytest.raises(weft.onnx.OnnxExporterError, match="an opset of at least 20"):
            weft.onnx.export(sampled, given, opset_version=18)


# Sizes that only the model knows --------------------------------------------------------------------


def windows(x):
    return x.unfold(0, 2, 1).sum(-1), x[1:-1].diagonal(), x.roll(1, 0), x.chunk(2, 1)


def shapes(x):
    n, m = x.shape
    half = x.view(n, m // 2, 2).transpose(0, 1).reshape(-1, n)
    return half, x.new_zeros(n + 1, m), weft.arange(n) * 2, x.flatten().expand(n, -1), x / m**0.5


def indices(x):
    rows = weft.arange(x.size(0)).flip(0)
    mask = x > 0
    return (
        x[rows, 0],
        x[mask],
        x[:, [0, 2]],
        x[..., None, -1],
        x.masked_fill(mask, 0),
        mask.nonzero(),
    )


def orders(x):
    values, places = x.topk(2, -1)
    return (
        values,
        places,
        x.sort(0, descending=True)[0],
        x.gather(1, places),
        x.cumsum(0),
        x.argmax(1),
    )


def sums(x):
    return weft.einsum("ij,kj->ik", x, x), x.var(0), x.norm(dim=1), x.logsumexp(1), x.amax((0, 1))


@pytest.mark.parametrize("function", [windows, shapes, indices, orders, sums])
def test_sizes_of_other_calls(function):
    check(
        function,
        (weft.randn(4, 6),),
        [(weft.randn(5, 4),), (weft.randn(3, 8),)],
        dynamic_axes={"x": {0: "n", 1: "m"}},
    )


def test_dynamic_shapes_by_argument():
    class Both(nn.Module):
        def forward(self, x, pair):
            return x.sum() + pair[0] @ pair[1]

    args = (weft.ones(2), (weft.ones(2, 3), weft.ones(3)))
    other = (weft.ones(5), (weft.ones(4, 3), weft.ones(3)))
    given = {"x": {0: "a"}, "pair": ({0: "b"}, None)}
    check(Both(), args, [other], dynamic_shapes=given)
    check(Both(), args, [other], dynamic_shapes=tuple(given.values()))


# Writes in place ------------------------------------------------------------------------------------


def write_rows(x):
    x = x.clone()
    x[0] = 1
    x[:, 1:].mul_(2)
    x.t()[2] += x[1, 0]
    view = x.view(-1)
    view[weft.tensor([0, 3])] = 7.0
    x[x > 6] = -1
    return x, view


def write_argument(x):
    x += 1
    y = x.relu_()
    return x.fill_diagonal_(0) if False else y.zero_().add_(x)


@pytest.mark.parametrize("function", [write_rows, write_argument])
@pytest.mark.parametrize("program", [weft.jit.script, lambda function: function])
def test_writes_become_values(function, program):
    x = weft.randn(3, 4)
    wanted = tensors_of(function(x.clone()))
    got = weft.onnx.export(program(function), (x.clone(),), dynamic_axes={"x": [0]})(x)
    for mine, other in zip(got, wanted):
        weft.testing.assert_close(mine, other)


# Control flow ---------------------------------------------------------------------------------------


def collects(x):
    found = []
    for i in range(x.size(0)):
        if bool(x[i].sum() > 0):
            found.append(x[i] * i)
        else:
            found.append(-x[i])
    return weft.stack(found)


def doubles(x):
    steps = 0
    while bool(x.abs().max() < 100):
        x = x * 2
        steps += 1
    return x, steps


def early(x):
    if bool(x.sum() > 0):
        return x + 1
    y = x - 1
    if bool(y.sum() > -10):
        return y
    return y * 2


def writes(x):
    y = x.clone()
    for i in range(y.size(0)):
        if bool(y[i].sum() > 0):
            y[i] = 0
        else:
            y[i] += i
    return y


def nested(x):
    total = weft.zeros(1)
    for i in range(x.size(0)):
        for j in range(i):
            total = total + x[i, 0] * j
    return total, x.size(0) > 2


@pytest.mark.parametrize("function", [collects, doubles, early, writes, nested])
def test_branches_and_loops(function):
    scripted = weft.jit.script(function)
    others = [(weft.randn(n, 3) + shift,) for n, shift in ((1, 0), (5, 1), (4, -1), (6, -9))]
    check(scripted, (weft.ones(3, 3),), others, dynamic_axes={"x": {0: "n"}})


def test_known_loops_are_unrolled_and_known_branches_taken():
    @weft.jit.script
    def powers(x, n: int, flag: bool):
        found = []
        for i in range(n):
            found.append(x**i if flag else x)
        return weft.cat(found), len(found)

    program = check(powers, (weft.ones(2), 3, True))
    kinds = {node.op_type for node in program.model_proto.graph.node}
    assert "Loop" not in kinds and "If" not in kinds


# What a caller may say ------------------------------------------------------------------------------


def test_arguments_that_are_no_tensors_and_arguments_by_name():
    class Scale(nn.Module):
        def forward(self, x, by, *, shift=None, mask=None):
            x = x * by if shift is None else x * by + shift
            return x if mask is None else {"x": x, "none": None, "mask": mask & (x > 0)}

    x, mask = weft.randn(3), weft.tensor([True, False, True])
    program = weft.onnx.export(Scale(), (x, 2.5, {"shift": x, "mask": mask}))
    names = [each.name for each in program.model_proto.graph.input]
    assert names[1:] == ["shift", "mask"]
    weft.testing.assert_close(program(x, x, mask)[0], x * 2.5 + x)


@pytest.mark.parametrize(
    "options, inputs, initializers",
    [({}, 1, 2), ({"export_params": False}, 3, 0), ({"keep_initializers_as_inputs": True}, 3, 2)],
)
def test_parameters(options, inputs, initializers):
    graph = weft.onnx.export(nn.Linear(2, 2), weft.ones(1, 2), **options).model_proto.graph
    assert (len(graph.input), len(graph.initializer)) == (inputs, initializers)


def test_training_and_constant_folding():
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    kinds = {}
    for mode in weft.onnx.TrainingMode:
        proto = weft.onnx.export(model, weft.ones(2, 3), training=mode).model_proto
        kinds[mode.name] = {node.op_type for node in proto.graph.node}
        assert model.training
    assert "Dropout" in kinds["TRAINING"] and kinds["TRAINING"] == kinds["PRESERVE"]
    assert kinds["EVAL"] == {"Gemm", "BatchNormalization"}
    tall = nn.Linear(3, 4)
    for fold in (True, False):
        proto = weft.onnx.export(tall, weft.ones(2, 5, 3), do_constant_folding=fold).model_proto
        assert ("Transpose" in {node.op_type for node in proto.graph.node}) is not fold


def test_files(tmp_path):
    import onnx

    x, model = weft.ones(2, 64), nn.Linear(64, 64)
    assert weft.onnx.export(model, x, tmp_path / "one.onnx", dynamo=False) is None
    file = io.BytesIO()
    weft.onnx.export(model, x, file)
    weft.onnx.export(model, x, tmp_path / "two.onnx", external_data=True)
    assert (tmp_path / "two.onnx.data").stat().st_size >= 64 * 65 * 4
    assert (tmp_path / "two.onnx").stat().st_size < 4096
    whole = onnx.load(tmp_path / "one.onnx")
    assert whole == onnx.load_from_string(file.getvalue())
    assert len(onnx.load(tmp_path / "two.onnx").graph.initializer) == len(whole.graph.initializer)


def test_operators_of_programs():
    @weft.library.custom_op("onnxtest::scaled", mutates_args=())
    def scaled(x: weft.Tensor, by: float) -> weft.Tensor:
        return x * by

    scaled.register_fake(lambda x, by: x)

    def run(x):
        return scaled(x, 3.0) + weft.special.i0(x)

    with pytest.raises(weft.onnx.UnsupportedOperatorError) as caught:
        weft.onnx.export(run, weft.ones(2))
    assert "onnxtest::scaled" in str(caught.value) and "aten::i0" in str(caught.value)
    weft.onnx.register_custom_op_symbolic(
        "onnxtest::scaled",
        lambda g, x, by: g.op("Mul", x, g.op("Constant", value_t=weft.tensor(by))),
    )
    weft.onnx.register_custom_op_symbolic(
        "aten::i0", lambda g, x: g.op("mine::Bessel", x, order_i=0).setType(x.type())
    )
    try:
        proto = weft.onnx.export(run, weft.ones(2), custom_opsets={"mine": 3}).model_proto
    finally:
        weft.onnx.unregister_custom_op_symbolic("onnxtest::scaled")
        weft.onnx.unregister_custom_op_symbolic("aten::i0")
    assert {each.domain: each.version for each in proto.opset_import} == {"": 18, "mine": 3}
    assert [node.op_type for node in proto.graph.node] == ["Constant", "Mul", "Bessel", "Add"]


def test_names_of_pytorch_for_mappings():
    from weft.onnx import operators, symbolic_helper

    @symbolic_helper.parse_args("v", "i")
    def mapped(g, x, by):
        return g.op("Mul", x, g.constant(by + 0.5, x.dtype))

    with pytest.raises(weft.onnx.SymbolicValueError, match="parse_args: expected a whole number"):
        mapped(None, None, "x")
    weft.onnx.register_custom_op_symbolic("aten::i0", lambda g, x: mapped(g, x, 2))
    try:
        weft.testing.assert_close(
            weft.onnx.export(weft.special.i0, weft.ones(2))(weft.ones(2))[0], weft.full((2,), 2.5)
        )
    finally:
        weft.onnx.unregister_custom_op_symbolic("aten::i0")

    def doubled(x):
        return operators.shape_as_tensor(x) * 2

    check(doubled, (weft.ones(2, 3),), [(weft.ones(4, 1),)], dynamic_axes={"x": [0, 1]})


def test_is_in_onnx_export():
    seen = []

    class Asks(nn.Module):
        def forward(self, x):
            seen.append(weft.onnx.is_in_onnx_export())
            return x + 1

    weft.onnx.export(Asks(), weft.ones(1))
    assert seen and all(seen) and not weft.onnx.is_in_onnx_export()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: weft.onnx.export(nn.ReLU(), weft.ones(1), opset_version=9), "17 to 21, got 9"),
        (lambda: weft.onnx.export(nn.ReLU(), weft.ones(1), custom_translation_table={1: 2}), "custom_translation"),
        (lambda: weft.onnx.export(weft.jit.script(nn.Linear(1, 1)), ()), "argument input, got none"),
        (lambda: weft.onnx.register_custom_op_symbolic("scaled", None), "got 'scaled'"),
        (
            lambda: weft.onnx.export(lambda x: x.split(2), weft.ones(4), input_names=["x"], dynamic_axes={"x": [0]}),
            r"aten::split.Tensor at .*test_onnx.py:\d+:\d+, got split: expected a known number of pieces",
        ),
    ],
)  # fmt: skip
def test_errors(call, message):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        call()


@pytest.mark.parametrize("name", ["_export", "_program"])
def test_examples_of_docstrings(name):
    module = importlib.import_module(f"weft.onnx.{name}")
    results = doctest.testmod(module, extraglobs={"weft": weft})
    assert results.attempted and not results.failed

"""torch::nn, torch::optim and torch::data of C++: programs compiled against the package train."""

from __future__ import annotations

import pathlib
import re
import struct

import numpy
import pytest
from cpp_programs import SOURCES, run

import weft
import weft.nn.functional as F
from weft import nn, optim


class Net(nn.Module):
    """The network of training.cpp."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 4, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.lstm = nn.LSTM(4, 5)
        self.head = nn.Linear(5, 3)
        self.scale = nn.Parameter(weft.ones(1))

    def forward(self, x):
        x = F.leaky_relu(self.norm(self.convolution(x)), 0.1)
        x = F.dropout(F.max_pool2d(x, 2), 0.25, self.training)
        steps, _ = self.lstm(x.flatten(2).permute(2, 0, 1))
        return self.head(steps[-1]) * self.scale


OPTIMIZERS = {
    "sgd": lambda p: optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "adam": lambda p: optim.Adam(p, 0.05, betas=(0.8, 0.95), amsgrad=True),
    "adamw": lambda p: optim.AdamW(p),
    "rmsprop": lambda p: optim.RMSprop(p, 0.02, momentum=0.5, centered=True),
    "adagrad": lambda p: optim.Adagrad(p, 0.1),
}


def losses_in_python() -> list[tuple[str, float]]:
    found = []
    for name, make in OPTIMIZERS.items():
        weft.manual_seed(3)
        net = Net()
        optimizer = make(net.parameters())
        for _ in range(5):
            images, classes = weft.randn(6, 1, 8, 8), weft.randint(0, 3, (6,))
            optimizer.zero_grad()
            loss = F.cross_entropy(net(images), classes)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            found.append((name, loss.item()))
    return found


def losses_of(program: pathlib.Path) -> list[tuple[str, float]]:
    pairs = (line.split() for line in run(program, "training").splitlines())
    return [(name, float(loss)) for name, loss in pairs]


def check_losses(found: list[tuple[str, float]], expected: list[tuple[str, float]]) -> None:
    assert [name for name, _ in found] == [name for name, _ in expected]
    numpy.testing.assert_allclose(
        [loss for _, loss in found], [loss for _, loss in expected], rtol=2e-5
    )


def test_training_gives_the_losses_of_python(libtorch_programs) -> None:
    check_losses(losses_of(libtorch_programs), losses_in_python())


@pytest.mark.parity
def test_training_gives_the_losses_of_libtorch(libtorch_programs, pytorch_programs) -> None:
    check_losses(losses_of(libtorch_programs), losses_of(pytorch_programs))


def test_modules_say_what_they_are(libtorch_programs) -> None:
    assert run(libtorch_programs, "module_texts").splitlines() == [
        "module_texts::BlockImpl(",
        "  (layers): torch::nn::Sequential(",
        "    (linear): torch::nn::Linear(in_features=2, out_features=2, bias=true)",
        "    (norm): torch::nn::BatchNorm1d(2, eps=1e-05, momentum=0.1, affine=true, "
        "track_running_stats=true)",
        "    (act): torch::nn::Functional()",
        "  )",
        ")",
        "layers.linear.weight layers.linear.bias layers.norm.weight layers.norm.bias seen "
        "layers.norm.running_mean layers.norm.running_var layers.norm.num_batches_tracked ",
        "top top.layers top.layers.linear top.layers.norm top.layers.act ",
        "falsefalsefalsefalsefalsetruefalse",
        "truefalse",
        "88",
        "[4, 1, 3]",
        "torch::nn::ModuleList(",
        "  (0): torch::nn::Conv1d(1, 2, kernel_size=3, stride=1)",
        "  (1): torch::nn::MaxPool2d(kernel_size=[2, 3], stride=[1, 1], padding=[0, 0], "
        "dilation=[1, 1], ceil_mode=false)",
        "  (2): torch::nn::Upsample(scale_factor=[2], mode=kNearest)",
        ")",
        *["0.01 *", "-5.0000", " 1.5000", "[ CPUFloatType{2} ]"],
        *[" 0  1", " 2  3", "[ CPULongType{2,2} ]"],
        *[" 1.0000e+06  5.0000e-01", "[ CPUFloatType{1,2} ]", "0.1", "[ CPUDoubleType{} ]"],
        "long int float",
        "register_module: expected a name without dots, got 'a.b'",
        "forward: expected an argument of type at::Tensor, got int",
    ]


NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


def check_lines(printed: str, expected: str) -> None:
    """The same text, but for numbers, which are rounded to three digits behind the point."""
    for line, wanted in zip(printed.splitlines(), expected.splitlines(), strict=True):
        assert NUMBER.sub("#", line) == NUMBER.sub("#", wanted)
        found, given = ([float(each) for each in NUMBER.findall(text)] for text in (line, wanted))
        numpy.testing.assert_allclose(found, given, rtol=1e-3, atol=2.5e-3, err_msg=line)


def test_layers_give_what_libtorch_gives(libtorch_programs) -> None:
    check_lines(run(libtorch_programs, "layers"), (SOURCES / "layers.txt").read_text())


@pytest.mark.parity
def test_layers_of_libtorch(pytorch_programs) -> None:
    check_lines(run(pytorch_programs, "layers"), (SOURCES / "layers.txt").read_text())


def write_idx(path: pathlib.Path, items: numpy.ndarray) -> None:
    head = struct.pack(f">{items.ndim + 1}I", 0x800 + items.ndim, *items.shape)
    path.write_bytes(head + items.astype(numpy.uint8).tobytes())


def test_batches(libtorch_programs, tmp_path) -> None:
    images = numpy.arange(3 * 28 * 28).reshape(3, 28, 28) % 256
    write_idx(tmp_path / "train-images-idx3-ubyte", images)
    write_idx(tmp_path / "train-labels-idx1-ubyte", numpy.array([5, 0, 4]))
    lines = run(libtorch_programs, "batches", tmp_path).splitlines()
    assert lines[0] == "3"
    sums = [((images[at] / 255 - 0.5) / 0.25).sum() for at in (slice(0, 2), slice(2, 3))]
    for line, shape, total, label in zip(lines[1:3], ("[2, 1, 28, 28]", "[1, 1, 28, 28]"), sums,
                                         ("5", "4")):  # fmt: skip
        assert line.startswith(shape) and line.endswith(" " + label)
        assert float(line.removeprefix(shape).split()[0]) == pytest.approx(total, rel=1e-4)
    weft.manual_seed(5)
    weft.randperm(7)  # which the sampler draws when it is made
    orders = [weft.randperm(7).tolist() for _ in range(2)]
    pairs = [(order[at], order[at + 1]) for order in orders for at in (0, 2, 4)]
    expected = "".join(f"{first}-{second**2} " for first, second in pairs)
    assert lines[3:5] == [expected, expected]
    assert lines[5] == "30"


def test_archives_are_read_again(libtorch_programs, tmp_path) -> None:
    assert run(libtorch_programs, "archives", tmp_path, tmp_path).splitlines() == [
        "1 1 1 1 3 3 1",
        "read: expected a value 'weight' in the archive, got none",
        "load: expected an archive of libtorch, got no zip file",
        "load: expected an archive of libtorch, got no zip file",
    ]
    loaded = weft.jit.load(tmp_path / "net.pt")
    assert [name for name, _ in loaded.named_parameters()] == [
        "0.weight", "0.bias", "1.weight", "1.bias", "4.weight"
    ]  # fmt: skip


@pytest.mark.parity
def test_archives_are_those_of_libtorch(libtorch_programs, pytorch_programs, tmp_path) -> None:
    folders = tmp_path / "ours", tmp_path / "theirs"
    for program, folder in zip((libtorch_programs, pytorch_programs), folders):
        folder.mkdir()
        run(program, "archives", folder, folder)
    read = "1 1 1 1 3 3 1\n"
    assert run(libtorch_programs, "archives", *folders).startswith(read)
    assert run(pytorch_programs, "archives", *reversed(folders)).startswith(read)

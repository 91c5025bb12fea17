"""Programs of libtorch, built over weft's headers: they print what PyTorch's own library prints."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from cpp_programs import SOURCES, run, weft_command

import weft
from weft import Tensor, nn
from weft.export._packages import aoti_compile_and_package

ROOT = Path(__file__).parents[1]


class Host(nn.Module):
    fixed: weft.jit.Final[int]
    kinds: list[str]

    def __init__(self) -> None:
        super().__init__()
        self.fixed, self.scale, self.kinds = 7, 2.5, ["H", "O"]
        self.register_buffer("r_max", weft.tensor(4.5))
        self.linear = nn.Linear(3, 2)
        with weft.no_grad():
            self.linear.weight.copy_(weft.arange(6.0).reshape(2, 3) / 8)
            self.linear.bias.fill_(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return weft.tanh(self.linear(x)) * self.scale

    @weft.jit.export
    def energy(self, x: Tensor, factor: float = 1.0) -> Tensor:
        return (weft.tanh(self.linear(x)) ** 2).sum() * factor

    @weft.jit.export
    def mixed(
        self,
        named: dict[str, Tensor],
        numbers: list[int],
        text: str,
        pair: tuple[float, bool],
        none: Tensor | None,
    ) -> tuple[Tensor, dict[str, int], list[str], Tensor | None, float, list[Tensor], list[int]]:
        total = weft.zeros(2)
        for value in named.values():
            total = total + value
        counts = {"sum": sum(numbers), "length": len(numbers)}
        left = float(none is None)
        return total, counts, [text, text + "!"], none, pair[0] + left, [total, total], numbers


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with a compiled program, as both libraries read it."""
    folder = tmp_path_factory.mktemp("host")
    plain, compiled = folder / "plain.pt", folder / "host.pt"
    weft.jit.save(weft.jit.script(Host()), plain, _extra_files={"config.json": '{"a": 1}'})
    weft_command("compile", str(plain), "-o", str(compiled))
    return compiled


def expected(name: str) -> str:
    return (SOURCES / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", ["tensors", "memory", "bindings", "modules"])
def test_it_prints_what_pytorch_prints(name: str, libtorch_programs: Path, archive: Path) -> None:
    assert run(libtorch_programs, name, archive) == expected(name)


def test_gradients_of_functions(libtorch_programs: Path) -> None:
    assert run(libtorch_programs, "functions").split() == ["9", "12", "12"]


def test_functions_that_weft_lacks_raise_when_they_are_called(libtorch_programs: Path) -> None:
    names = [line.partition(":")[0] for line in run(libtorch_programs, "absent").splitlines()]
    without_hosts = ["_add_relu", "_fused_dropout", "_foreach_add", "coalesce", "q_scale"]
    assert names == [*without_hosts, "_version", "get_state", "compile", "Generator"]


def test_no_function_that_is_written_by_hand_is_listed_as_absent() -> None:
    """Such a name would be taken before the function itself."""
    listed = (ROOT / "tools/gen/libtorch_absent.txt").read_text().replace("*", "").split()
    written = "".join(each.read_text() for each in (ROOT / "csrc/libtorch").glob("*.h"))
    defined = re.findall(r"^inline .*? [&*]?(?:Tensor::)?(\w+)\((?:const )?Tensor", written, re.M)
    assert len(listed) > 500 and len(defined) > 20 and not set(defined).intersection(listed)


def test_a_file_that_is_not_compiled_says_how(libtorch_programs: Path, tmp_path: Path) -> None:
    weft.jit.save(weft.jit.script(nn.ReLU()), tmp_path / "relu.pt")
    printed = run(libtorch_programs, "modules", tmp_path / "relu.pt")
    assert "`weft compile` makes one of it" in printed


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.register_buffer("offset", weft.tensor([1.0, 2.0]))
        with weft.no_grad():
            self.linear.weight.fill_(0.5)
            self.linear.bias.fill_(1.0)

    def forward(self, inputs: dict[str, Tensor], *, by: float) -> dict[str, Tensor]:
        return {"sum": self.linear(inputs["x"]) * by + self.offset, "scale": inputs["scale"] + 1}


def test_packages(libtorch_programs: Path, archive: Path, tmp_path: Path) -> None:
    inputs = {"x": weft.ones(2, 3), "scale": weft.ones(1)}
    program = weft.export.export(Pair(), (inputs,), {"by": 2.0})
    configs = {"aot_inductor.metadata": {"kind": "a pair"}}
    package = tmp_path / "pair.pt2"
    aoti_compile_and_package(program, package_path=package, inductor_configs=configs)
    assert run(libtorch_programs, "packages", package, archive).splitlines() == [
        "2 [2, 2][1] 0 a pair",
        '[1, {"type": "builtins.tuple",',
        '[1, {"type": "builtins.dict", ',
        "linear.bias linear.weight offset 44 116 156 196",
        "load_constants: expected values for 3 constants by their names, got 1, of which it has 1 ",
        "load_constants: expected use_inactive=false, as constants have one set of values, got true ",
        "load_constants: expected [2] of Float for linear.bias, got [1] of Float ",
        "load_constants: expected values for 3 constants by their names, got 1, of which it has 0 ",
        "forward: expected a value for argument 'inputs_scale', got none",
        f"AOTIModelPackageLoader: expected a package that weft's aoti_compile_and_package made, got '{archive}' ",
    ]


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake")
def test_find_package(tmp_path: Path) -> None:
    """In C++20, as the other programs are in C++17."""
    source = f'#include "{SOURCES / "tensors.cpp"}"\nint main() {{ tensors::program({{}}); }}\n'
    (tmp_path / "host.cpp").write_text(source)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.21)\nproject(host CXX)\n"
        "find_package(Torch 2.0 REQUIRED)\n"
        "add_executable(host host.cpp)\n"
        'target_link_libraries(host "${TORCH_LIBRARIES}")\n'
        "set_property(TARGET host PROPERTY CXX_STANDARD 20)\n"
    )
    prefix = weft_command("--libtorch-prefix")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build" / "host") == expected("tensors")


@pytest.mark.parity
@pytest.mark.parametrize("name", ["tensors", "memory", "bindings", "modules", "functions"])
def test_pytorch_prints_the_same(name: str, pytorch_programs: Path, archive: Path) -> None:
    text = "9 12 12\n" if name == "functions" else expected(name)
    assert run(pytorch_programs, name, archive) == text

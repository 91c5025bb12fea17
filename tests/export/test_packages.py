"""Packages of compiled programs give what the exported modules do, by the same arguments."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from typing import Any

import pytest

import weft
from weft.export._packages import aoti_compile_and_package, aoti_load_package

from .modules import cases
from .test_export import exported, results, same

CASES = cases(weft)


@pytest.mark.parametrize("freezing", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_packages_give_what_programs_do(name: str, freezing: bool, tmp_path: Any) -> None:
    case = CASES[name]
    program = exported(case)
    configs = {"freezing": freezing}
    path = aoti_compile_and_package(
        program, package_path=tmp_path / "a.pt2", inductor_configs=configs
    )
    wanted = results(program.module(), case.args, case.kwargs)
    got = results(aoti_load_package(path), case.args, case.kwargs)
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted):
        if freezing and isinstance(one, weft.Tensor) and one.dtype.is_floating_point:
            weft.testing.assert_close(one, other, equal_nan=True)  # batch norms are folded
        else:
            assert same([one], [other])
    assert not any(each.requires_grad for each in got if isinstance(each, weft.Tensor))


class Nested(weft.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = weft.nn.Linear(4, 3)
        self.register_buffer("count", weft.zeros(()))

    def forward(self, inputs: Any, other: Any = None, *, by: float = 2.0) -> Any:
        self.count += 1
        y = self.linear(inputs["x"]) * by
        return {"y": y, "rest": (inputs["z"], None if other is None else other + self.count)}


@pytest.fixture
def nested() -> tuple[Any, Any, Any]:
    inputs = {"x": weft.randn(2, 4), "z": weft.ones(3)}
    args, kwargs = (inputs, weft.ones(2)), {"by": 3.0}
    shapes = {"inputs": {"x": {0: weft.export.Dim("batch")}, "z": None}, "other": None, "by": None}
    module = Nested()
    return weft.export.export(module, args, kwargs, dynamic_shapes=shapes), args, kwargs


def test_arguments_are_those_of_the_export(nested: Any, tmp_path: Any) -> None:
    program, args, kwargs = nested
    path = tmp_path / "nested.pt2"
    assert aoti_compile_and_package(program, package_path=path) is path
    package = aoti_load_package(path, run_single_threaded=True)
    first, second = package(*args, **kwargs), package(*args, **kwargs)
    assert second["rest"][1].tolist() == [3.0, 3.0] and first["rest"][1].tolist() == [2.0, 2.0]
    more = {"x": weft.randn(5, 4), "z": weft.ones(3)}
    wanted = program.module()(more, args[1], **kwargs)
    assert weft.equal(package(more, args[1], by=3.0)["y"], wanted["y"])
    for wrong in ((more,), (more, args[1], 3.0), ([weft.ones(2, 4), weft.ones(3)], args[1])):
        with pytest.raises(ValueError, match="expected arguments of the structure"):
            package(*wrong)
    with pytest.raises(ValueError, match="expected arguments of the structure"):
        package(more, args[1], by=3.0, other=1)


def test_constants_are_replaced(nested: Any) -> None:
    program, args, kwargs = nested
    buffer = io.BytesIO()
    package = aoti_load_package(aoti_compile_and_package(program, package_path=buffer))
    assert sorted(package.get_constant_fqns()) == ["count", "linear.bias", "linear.weight"]
    zeros = {name: weft.zeros_like(each) for name, each in program.state_dict.items()}
    package.load_constants(zeros, check_full_update=True)
    assert package(*args, **kwargs)["y"].abs().sum() == 0
    zeros["linear.bias"] += 1  # the package has copies
    assert package(*args, **kwargs)["y"].abs().sum() == 0
    bias = weft.ones(3)
    package.load_constants({"linear.bias": bias}, check_full_update=False, user_managed=True)
    bias += 1
    assert package(*args, **kwargs)["y"].unique().tolist() == [6.0]
    for values, full in (({"other": bias}, False), ({"linear.bias": bias}, True)):
        with pytest.raises(RuntimeError, match="load_constants: expected values for"):
            package.load_constants(values, check_full_update=full)
    for value in (weft.ones(1), weft.ones(3).double()):
        with pytest.raises(RuntimeError, match=r"expected \(3,\) of torch.float32 for linear.bias"):
            package.load_constants({"linear.bias": value}, check_full_update=False)


def test_metadata(nested: Any, tmp_path: Any) -> None:
    told = {"": "empty", "name": "a model\nof two lines", "none": ""}
    path = aoti_compile_and_package(
        nested[0], package_path=tmp_path / "a.pt2", inductor_configs={"aot_inductor.metadata": told}
    )
    assert aoti_load_package(path).get_metadata() == {"AOTI_DEVICE_KEY": "cpu", **told}


def test_what_is_refused(nested: Any, tmp_path: Any) -> None:
    program = nested[0]
    with pytest.raises(
        TypeError, match=r"expected an ExportedProgram of weft[.]export, got Nested"
    ):
        aoti_compile_and_package(Nested())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"expected a path that ends in [.]pt2, got 'model.so'"):
        aoti_compile_and_package(program, package_path="model.so")
    weft.export.save(program, tmp_path / "exported.pt2")
    with pytest.raises(RuntimeError, match="expected a package that weft's"):
        aoti_load_package(tmp_path / "exported.pt2")


def test_damaged_packages_raise(nested: Any, tmp_path: Any) -> None:
    program, args, kwargs = nested
    buffer = io.BytesIO()
    aoti_compile_and_package(program, package_path=buffer)
    with zipfile.ZipFile(buffer) as archive:
        records = {each: archive.read(each) for each in archive.namelist()}
    wanted = aoti_load_package(io.BytesIO(buffer.getvalue()))(*args, **kwargs)
    for name in ("in_spec", "out_spec", "inputs", "metadata"):
        text = records[f"archive/extra/{name}"]
        for changed in (b"", text[: len(text) // 2], text.replace(b"1", b"0"), b"\xff" + text):
            made = io.BytesIO()
            with zipfile.ZipFile(made, "w") as archive:
                for each, data in records.items():
                    archive.writestr(each, changed if each == f"archive/extra/{name}" else data)
            made.seek(0)
            if changed == text:
                continue
            try:
                got = aoti_load_package(made)(*args, **kwargs)
            except (RuntimeError, TypeError):
                continue
            assert name == "metadata" and weft.equal(got["y"], wanted["y"])


@pytest.mark.parametrize(
    "name, text, wanted",
    [
        ("weft/version", b"\xd9", r"version 1 to 3, got '\\xd9'"),
        ("weft/inference", b"", "records of a package"),
        ("extra/inputs", b"1", "expected 4 inputs, got 1"),
        ("extra/in_spec", b"[" * 100_000, "records of a package"),
        ("extra/in_spec", b'[1, {"type": null}]', "records of a package"),
        ("extra/metadata", b"\xff", "records of a package"),
    ],
)
def test_damaged_records_are_told(
    nested: Any, tmp_path: Any, name: str, text: bytes, wanted: str
) -> None:
    path = aoti_compile_and_package(nested[0], package_path=tmp_path / "a.pt2")
    with zipfile.ZipFile(path) as archive:
        records = {each: archive.read(each) for each in archive.namelist()}
    records[next(each for each in records if each.endswith(name))] = text
    with zipfile.ZipFile(path, "w") as archive:
        for each, data in records.items():
            archive.writestr(each, data)
    with pytest.raises(weft.serialization.LoadError, match=wanted):
        aoti_load_package(path)


PROGRAM = """
import torch
import torch._inductor

program = torch.export.export(torch.nn.Linear(2, 3), (torch.ones(4, 2),))
path = torch._inductor.aoti_compile_and_package(program)
print(path)
print(torch._inductor.aoti_load_package(path)(torch.ones(4, 2)).shape)
"""


def test_by_the_name_of_torch(tmp_path: Any) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "weft", "run", "program.py"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    path, shape = done.stdout.splitlines()
    assert os.path.samefile(path, tmp_path / "model.pt2") and shape == "torch.Size([4, 3])"

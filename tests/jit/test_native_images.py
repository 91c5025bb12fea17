"""Object files become images without a linker: what relocations make of the code."""

from __future__ import annotations

import os
import struct
import subprocess
import sys

import pytest

import weft
from weft._kernels.target import AARCH64, X86
from weft.jit.native import compose, image, llvm

binding = pytest.importorskip("llvmlite.binding")

ARM = "aarch64-unknown-linux-gnu"
INTEL = "x86_64-unknown-linux-gnu"
NUMBERS = (0.1, -2.5e300, 3.75e-7, 11.0, -0.3, 5.5, 6.25e9, 7.125)


def object_of(text: str, triple: str, cpu: str = "generic") -> bytes:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    target = binding.Target.from_triple(triple)
    machine = target.create_target_machine(cpu=cpu, opt=2, reloc="pic", codemodel="default")
    return machine.emit_object(binding.parse_assembly(f'target triple = "{triple}"\n{text}'))


class Arm:
    """Reads an image for AArch64 as its processor does, as far as addresses go."""

    def __init__(self, data: bytes) -> None:
        _, _, self.entry, size, count = struct.unpack_from("<5I", data, 8)
        at = 28
        self.cells: dict[int, str] = {}
        for _ in range(count):
            cell, length = struct.unpack_from("<2I", data, at)
            self.cells[cell] = data[at + 8 : at + 8 + length].decode()
            at += 8 + length
        self.code = data[at:]
        assert len(self.code) == size

    def words(self) -> list[int]:
        """The instructions; constants and stubs stand behind the last return."""
        end = self.code.rindex(b"\xc0\x03\x5f\xd6") + 4
        return [word for (word,) in struct.iter_unpack("<I", self.code[:end])]

    def addresses(self) -> set[int]:
        """Where pairs of adrp and a load or an addition of the same register point."""
        pages: dict[int, int] = {}
        found = set()
        for index, word in enumerate(self.words()):
            if word & 0x9F000000 == 0x90000000:  # adrp
                immediate = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
                immediate -= (immediate & 1 << 20) << 1
                pages[word & 31] = (index * 4 & ~0xFFF) + (immediate << 12)
                continue
            base, offset = word >> 5 & 31, word >> 10 & 0xFFF
            if base not in pages:
                continue
            # add, immediate; ldr of a float, of a double, of 16 bytes
            for code, size in ((0x91000000, 1), (0xBD400000, 4), (0xFD400000, 8), (0x3DC00000, 16)):
                if word & 0xFFC00000 == code:
                    found.add(pages.pop(base) + offset * size)
                    break
        return found

    def called(self) -> list[str]:
        """The functions that branches with link arrive at, through their stubs."""
        names = []
        for index, word in enumerate(self.words()):
            if word & 0xFC000000 != 0x94000000:  # bl
                continue
            distance = word & 0x3FFFFFF
            distance -= (distance & 1 << 25) << 1
            stub = index * 4 + distance * 4
            load, branch = struct.unpack_from("<2I", self.code, stub)
            assert branch == 0xD61F0200  # br x16
            assert load & 0xFF00001F == 0x58000010  # ldr x16, [pc + ...]
            names.append(self.cells[stub + (load >> 5 & 0x7FFFF) * 4])
        return names


def test_constants_of_arm_code_are_found_where_adrp_and_a_load_point():
    pairs = list(zip(NUMBERS[::2], NUMBERS[1::2]))
    lines = []
    for i, pair in enumerate(pairs):
        parts = ", ".join(f"double 0x{struct.pack('>d', n).hex().upper()}" for n in pair)
        lines.append(f"  %s{i + 1} = fmul <2 x double> %s{i}, <{parts}>")
    lines.append(f"  ret <2 x double> %s{len(pairs)}")
    text = "define <2 x double> @weft_fused(<2 x double> %s0) {\n" + "\n".join(lines) + "\n}"
    arm = Arm(image.make(object_of(text, ARM), "weft_fused", 0))
    addresses = arm.addresses()
    assert {struct.unpack_from("<2d", arm.code, at) for at in addresses} == set(pairs)
    assert not arm.cells


def test_calls_of_arm_code_go_through_a_stub_for_each_function():
    text = """
declare double @sin(double)
declare double @cos(double)
define double @weft_fused(double %x) {
  %a = call double @sin(double %x)
  %b = call double @cos(double %a)
  %c = call double @sin(double %b)
  %d = fadd double %c, %a
  ret double %d
}"""
    arm = Arm(image.make(object_of(text, ARM), "weft_fused", 0))
    assert arm.called() == ["sin", "cos", "sin"]
    assert sorted(arm.cells.values()) == ["cos", "sin"]
    assert all(cell % 8 == 0 and arm.code[cell : cell + 8] == bytes(8) for cell in arm.cells)


def test_tables_of_arm_code_keep_their_distance():
    """Addresses of a table in an image beyond the first page, and the entries of a jump table."""
    cases = "\n".join(f"    i64 {i}, label %c{i}" for i in range(12))
    blocks = "\n".join(
        f"c{i}:\n  %v{i} = call double @llvm.fma.f64(double %x, double {i}.5, double {i}.25)\n"
        f"  call void @note{i % 3}(double %v{i})\n  br label %end"
        for i in range(12)
    )
    filler = ", ".join(f"double {i}.125" for i in range(1024))
    declared = "\n".join(f"declare void @note{i}(double)" for i in range(3))
    text = f"""
@table = private constant [1024 x double] [{filler}]
declare double @llvm.fma.f64(double, double, double)
{declared}
define double @weft_fused(double %x, i64 %n) {{
entry:
  switch i64 %n, label %end [
{cases}
  ]
{blocks}
end:
  %at = getelementptr [1024 x double], ptr @table, i64 0, i64 %n
  %value = load double, ptr %at
  ret double %value
}}"""
    arm = Arm(image.make(object_of(text, ARM), "weft_fused", 0))
    doubles = struct.pack("<1024d", *(i + 0.125 for i in range(1024)))
    at = arm.code.index(doubles)
    assert at in arm.addresses()
    assert set(arm.called()) == {"note0", "note1", "note2"}


def test_kernels_for_arm_become_images():
    rows = ("exp", "sigmoid", "sin", "lgamma", "log", "erf")
    for compute in ("float32", "float64"):
        steps = [(row, [("step", i - 1) if i else ("input", 0)], []) for i, row in enumerate(rows)]
        kernel = compose.kernel(compose.Group([], steps, [len(steps) - 1]), compute, 0)
        text = compose.text(kernel, AARCH64, ARM)
        data = llvm.object_of(text, ARM, AARCH64)
        arm = Arm(image.make(data, compose.SYMBOL, 0))
        assert arm.entry < len(arm.code)
        assert all(0 <= at < len(arm.code) for at in arm.addresses())
        assert set(arm.called()) == set(arm.cells.values())


def test_a_relocation_that_is_not_known_is_refused():
    text = "@there = external thread_local global i64\ndefine i64 @weft_fused() {\n"
    text += "  %v = load i64, ptr @there\n  ret i64 %v\n}"
    for triple in (ARM, INTEL):
        with pytest.raises(image.ImageError, match="expected a relative relocation, got type"):
            image.make(object_of(text, triple), "weft_fused", 0)


def test_other_machines_are_refused():
    text = "define double @weft_fused(double %x) {\n  ret double %x\n}"
    data = bytearray(object_of(text, INTEL))
    data[18] = 243  # RISC-V
    with pytest.raises(image.ImageError, match="expected an x86-64 or AArch64 object, got machine"):
        image.make(bytes(data), "weft_fused", 0)


HOT = """
import time
import weft as torch
from weft.jit.native import compiler
chain = torch.jit.CompilationUnit('''
def chain(x, y):
    return torch.sigmoid(x * y + 1.0) * torch.tanh(x - y) + x * 0.5
''').chain
x, y = torch.ones(64), torch.ones(64)
end = time.perf_counter() + 60
while not compiler.compiled and not compiler.failures and time.perf_counter() < end:
    chain(x, y)
assert compiler.compiled, compiler.failures
compiler.stop()
"""


def test_native_code_comes_while_a_program_calls_without_a_pause(tmp_path):
    environment = {**os.environ, "WEFT_CACHE": str(tmp_path)}
    subprocess.run([sys.executable, "-c", HOT], check=True, env=environment)


def test_levels_of_the_machine_are_those_of_the_kernels():
    assert weft._C._isa() in range(len(X86))

"""Lines of the product by purpose, each against its budget.

    python tools/house.py

A purpose is a mechanism that somebody reads as a whole. Its budget is the goal; where the tree is
above it, a limit holds what was reached. Exits with 1 where lines exceed both, or where a file
belongs to no purpose. Lower a limit whenever its lines fell; a capability that comes new brings a
row of its own. Tests count nowhere, nor do examples in docstrings.
"""

from __future__ import annotations

import sys
from collections import Counter
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TESTS = ("*_test.cpp", "*_testing.h", "*/testing.*", "*/testing_*", "*/test_nodes.h")


class Purpose(NamedTuple):
    """What some files are for. `budget` and `limit` are lines; a file belongs to the first purpose
    of which it matches a pattern."""

    name: str
    budget: int
    limit: int
    patterns: str


PURPOSES = (
    Purpose("frontend of programs", 9_000, 12_604, "src/weft/jit/frontend/*"),
    Purpose(
        "Python's builtins in programs",
        4_000,
        4_173,
        "src/weft/_ops/builtins/* csrc/runtime/builtins* csrc/runtime/characters.* "
        "csrc/runtime/format_spec.* csrc/runtime/exact_sums.* csrc/bindings/jit_builtin.cpp",
    ),
    Purpose("programs and machine code on disk", 900, 916, "src/weft/jit/cache/*"),
    Purpose(
        "operators of torchvision and torchaudio",
        650,
        657,
        "src/weft/jit/archive/vision.py src/weft/library/_provided.py src/weft/library/_images.py "
        "src/weft/library/_vision.py src/weft/library/_audio.py",
    ),
    Purpose(
        "exported programs",
        3_240,
        3_582,
        "src/weft/export/* src/weft/jit/archive/exported.py",
    ),
    Purpose(
        "quantised networks, words of small numbers",
        2_000,
        2_536,
        "csrc/ops/quantized* csrc/ops/byte_quads.h csrc/ops/packed_words.* "
        "src/weft/_ops/quantized.py "
        "src/weft/jit/archive/quantized* src/weft/jit/passes/quantized.py",
    ),
    Purpose("archives", 4_845, 5_659, "src/weft/jit/archive/*"),
    Purpose(
        "operators of the library for hosts",
        450,
        450,
        "csrc/capi/library_operator.cpp csrc/capi/composed_operator.cpp "
        "csrc/capi/operator_handle.h tools/gen/composed.py",
    ),
    Purpose(
        "programs without Python",
        4_000,
        5_256,
        "csrc/capi/* csrc/runtime/zip_reader.* csrc/runtime/compiled_module.* "
        "csrc/runtime/custom_operator.* csrc/runtime/operator_schema.* "
        "csrc/bindings/jit_host_operators.cpp "
        "csrc/runtime/machine_code.* csrc/runtime/argument.* csrc/bindings/jit_compiled.cpp "
        "src/weft/jit/aot/* src/weft/_command/*",
    ),
    Purpose(
        "bindings of other languages over libtorch's C++",
        2_400,
        2_434,
        "csrc/libtorch/autocast.h csrc/libtorch/foreign.h csrc/libtorch/generator.h "
        "csrc/libtorch/graph.h csrc/libtorch/module_file.h csrc/libtorch/node.h "
        "csrc/libtorch/nn_packed.h csrc/libtorch/nn_transformer.h csrc/libtorch/storage.h "
        "csrc/libtorch/random.h csrc/libtorch/types.h csrc/libtorch/zip.h",
    ),
    Purpose(
        "training in libtorch's C++",
        1_800,
        4_223,
        "csrc/libtorch/nn* csrc/libtorch/optim* csrc/libtorch/data.h csrc/libtorch/serialize*",
    ),
    Purpose(
        "libtorch's C++ over the library", 4_000, 6_147, "csrc/libtorch/* tools/gen/libtorch*.py"
    ),
    Purpose("backends", 600, 600, "csrc/core/backend* csrc/core/stream*"),
    Purpose(
        "the device meta",
        430,
        431,
        "csrc/core/meta.* csrc/bindings/meta.* src/weft/jit/meta_device.py",
    ),
    Purpose(
        "sparse tensors and gradients",
        1_939,
        1_900,
        "src/weft/sparse/* csrc/autograd/sparse.h csrc/bindings/sparse.cpp "
        "src/weft/optim/sparse_adam.py",
    ),
    Purpose(
        "nested tensors; what they share with sparse ones",
        1_300,
        1_351,
        "src/weft/nested/* src/weft/serialization/nested.py src/weft/_tensor/values_tensor.py",
    ),
    Purpose("products in AMX registers", 200, 200, "csrc/ops/amx.*"),
    Purpose(
        "attention",
        490,
        509,
        "csrc/ops/attention.* csrc/autograd/attention.cpp csrc/autograd/double_backward.*",
    ),
    Purpose(
        "factors of matrices",
        1_200,
        1_200,
        "csrc/ops/lapack.h csrc/ops/matrices.h csrc/ops/factorization.cpp "
        "src/weft/_ops/factorizations.py src/weft/_functions/factorizations.py "
        "src/weft/_functions/lu.py",
    ),
    Purpose(
        "fusion",
        3_500,
        3_453,
        "csrc/runtime/fused* csrc/bindings/jit_fused.cpp src/weft/jit/passes/fusion.py "
        "src/weft/jit/passes/var_mean.py src/weft/jit/passes/patterns.py "
        "src/weft/jit/codegen/derivative.py src/weft/jit/codegen/rows.py "
        "src/weft/jit/codegen/steps.py src/weft/jit/codegen/tiles.py",
    ),
    Purpose(
        "tracing; shapes in Python",
        2_500,
        3_314,
        "src/weft/jit/tracing/* src/weft/jit/passes/shape*",
    ),
    Purpose("IR, passes, code generation, programs in Python", 10_000, 13_203, "src/weft/jit/*"),
    Purpose(
        "interpreter, values, their bindings", 5_000, 6_968, "csrc/runtime/* csrc/bindings/jit*"
    ),
    Purpose(
        "operator table, kernel language, generators",
        12_500,
        15_581,
        "src/weft/_ops/* src/weft/_kernels/* tools/gen/* tools/gen.py tools/build_kernels.py",
    ),
    Purpose("tile driver", 3_700, 3_763, "csrc/ops/tile_* csrc/ops/tile.* csrc/ops/programs.h"),
    Purpose("hand-written kernels", 10_000, 18_753, "csrc/ops/*"),
    Purpose(
        "shared memory, processes, data loading",
        6_000,
        6_632,
        "csrc/core/shared* csrc/core/parent_watch* csrc/core/mapped* "
        "csrc/bindings/shared* csrc/bindings/semaphore.cpp "
        "csrc/bindings/mapped* src/weft/multiprocessing/* src/weft/utils/data/* "
        "src/weft/storage.py src/weft/_tensor/storage_methods.py src/weft/_tensor/mapped.py "
        "src/weft/_runtime/fork_lock.py",
    ),
    Purpose("core and autograd", 7_000, 7_171, "csrc/core/* csrc/autograd/*"),
    Purpose(
        "overriding operators: __torch_function__",
        1_000,
        1_201,
        "csrc/bindings/torch_function.* csrc/bindings/hooked.h csrc/bindings/arguments.h "
        "src/weft/_runtime/torch_function.py src/weft/overrides.py",
    ),
    Purpose("passes over graphs of modules", 480, 600, "src/weft/fx/passes/*"),
    Purpose("graphs of modules: fx", 2_500, 2_772, "src/weft/fx/*"),
    Purpose("tensors in Python, arguments, interop", 5_300, 7_369, "csrc/bindings/*"),
    Purpose(
        "scans, and where operators that take functions stand",
        170,
        170,
        "src/weft/func/_scans.py src/weft/compat/overlay/_higher_order_ops/*",
    ),
    Purpose(
        "weft under the name torch",
        1_210,
        1_598,
        "src/weft/compat/* src/weft/hub.py src/weft/futures.py "
        "src/weft/nn/modules/utils.py src/weft/nn/modules/syncbatchnorm.py",
    ),
    Purpose(
        "objects in files",
        300,
        300,
        "src/weft/serialization/safe_globals.py src/weft/serialization/names.py "
        "src/weft/serialization/reduced.py src/weft/nn/modules/_layout.py",
    ),
    Purpose("exports to ONNX", 2_500, 4_348, "src/weft/onnx/*"),
    Purpose("counts of operations", 420, 420, "src/weft/utils/*flop*"),
    Purpose("event files for TensorBoard", 680, 936, "src/weft/utils/tensorboard/*"),
    Purpose(
        "stores of processes",
        680,
        680,
        "src/weft/distributed/_table.py src/weft/distributed/*store*.py",
    ),
    Purpose("calls between processes: rpc", 1_200, 1_200, "src/weft/distributed/rpc/*"),
    Purpose(
        "tensors over several processes",
        900,
        2_334,
        "src/weft/distributed/tensor/* src/weft/distributed/_tensor/*",
    ),
    Purpose(
        "groups of processes over MPI",
        3_500,
        5_686,
        "src/weft/distributed/* src/weft/nn/parallel/*",
    ),
    Purpose(
        "distributions, their samplers and special functions",
        4_500,
        4_500,
        "src/weft/distributions/* src/weft/_functions/variates.py "
        "src/weft/_functions/incomplete_gamma.py",
    ),
    Purpose("reductions of what a mask keeps", 400, 400, "src/weft/masked.py"),
    Purpose(
        "transforms of functions",
        1_600,
        2_943,
        "src/weft/func/* src/weft/autograd/forward_ad.py",
    ),
    Purpose(
        "the Array API standard",
        1_200,
        1_295,
        "src/weft/array_api/*",
    ),
    Purpose(
        "operators that programs define",
        1_650,
        1_843,
        "src/weft/library/* src/weft/ops.py",
    ),
    Purpose(
        "profiles and benchmarks of programs",
        1_100,
        1_123,
        "src/weft/profiler/* src/weft/autograd/profiler.py src/weft/utils/benchmark/*",
    ),
    Purpose(
        "normalised, parametrized, pruned and lazy layers",
        1_850,
        1_850,
        "src/weft/nn/utils/parametriz* src/weft/nn/utils/*prun*.py src/weft/nn/utils/*_norm.py "
        "src/weft/nn/modules/lazy*",
    ),
    Purpose("functions of torch in Python", 2_400, 2_750, "src/weft/_functions/*"),
    Purpose("networks as operators: torch.lstm", 800, 800, "src/weft/nn/_operators/*"),
    Purpose("layers, optimizers, files, small packages", 15_000, 26_614, "src/weft/*"),
)
"""In the order in which they take files."""


def purpose_of(path: str) -> Purpose | None:
    """The purpose of a file of the product; None for one that has none."""
    for purpose in PURPOSES:
        if any(fnmatch(path, pattern) for pattern in purpose.patterns.split()):
            return purpose
    return None


def files() -> dict[str, int]:
    """The files of the product by path, and their lines."""
    found = {}
    for pattern in (
        "csrc/**/*.h",
        "csrc/**/*.hpp",
        "csrc/**/*.cpp",
        "src/**/*.py",
        "tools/gen/*.py",
        "tools/*.py",
    ):
        for path in sorted(ROOT.glob(pattern)):
            name = path.relative_to(ROOT).as_posix()
            if not any(fnmatch(name, test) for test in TESTS) and is_product(name):
                found[name] = count(path.read_text(encoding="utf-8"))
    return found


def count(text: str) -> int:
    """The lines of a file. An example ends at an empty line or the closing quotes."""
    lines, example = 0, False
    for line in map(str.strip, text.splitlines()):
        example = line.startswith(">>> ") or (example and line not in ("", '"""'))
        lines += not example
    return lines


def is_product(path: str) -> bool:
    """Whether a file becomes a part of weft; of the tools, the generators do."""
    return (
        not path.startswith("tools/")
        or path in ("tools/gen.py", "tools/build_kernels.py")
        or (path.startswith("tools/gen/"))
    )


def main() -> int:
    """Prints the table and returns the exit status."""
    lines: Counter[str] = Counter()
    offences = []
    for path, count in files().items():
        purpose = purpose_of(path)
        if purpose is None:
            offences.append(f"{path}: expected a purpose in tools/house.py, got none")
        else:
            lines[purpose.name] += count
    print(f"{'lines':>8} {'budget':>8} {'limit':>8}  purpose")
    for each in PURPOSES:
        limit = max(each.budget, each.limit)
        print(f"{lines[each.name]:8,} {each.budget:8,} {limit:8,}  {each.name}")
        if lines[each.name] > limit:
            offences.append(f"{each.name}: expected at most {limit} lines, got {lines[each.name]}")
    print(f"{sum(lines.values()):8,} {sum(each.budget for each in PURPOSES):8,} {'':8}  in all")
    for offence in offences:
        print(offence)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())

"""Packages of compiled programs: what torch._inductor's aoti_compile_and_package makes of exported
ones, for aoti_load_package and C++. A package is a file of weft.jit.aot_compile whose program takes
and gives tensors one by one; its extra records say how a call's arguments are nested.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, TypeAlias

from weft import _C
from weft._C import Tensor
from weft.autograd.grad_mode import no_grad
from weft.export._records import refuses_damage
from weft.export._signatures import check_arguments
from weft.export._unlift import flat_module, leaves_of
from weft.export.exported_program import ExportedProgram
from weft.export.graph_signature import ConstantArgument, InputKind
from weft.jit.aot.compile import aot_compile
from weft.jit.archive.load import extra_files
from weft.jit.frozen import freeze
from weft.jit.script import script
from weft.serialization.errors import LoadError
from weft.utils._pytree import (
    tree_flatten,
    tree_unflatten,
    treespec_dumps,
    treespec_loads,
)

FileLike: TypeAlias = "str | os.PathLike[str] | IO[bytes]"
_METADATA = "aot_inductor.metadata"
# How arguments and results are nested, which leaves of the arguments the program takes ("1" or "0"
# each), and names and texts in turn, with zeros between them.
_RECORDS = {"in_spec", "out_spec", "inputs", "metadata"}


def aoti_compile_and_package(
    exported_program: ExportedProgram,
    _deprecated_unused_args: Any = None,
    _deprecated_unused_kwargs: Any = None,
    *,
    package_path: FileLike | None = None,
    inductor_configs: Mapping[str, Any] | None = None,
) -> FileLike:
    """Compiles an exported program into a package, with machine code for calls like the example.

    package_path: a file whose name ends in .pt2, or one that can be written; by default model.pt2
    in the current folder. Of `inductor_configs` two settings mean something: "freezing" makes the
    parameters constants, which `load_constants` cannot change, and folds batch norms into them;
    "aot_inductor.metadata" has texts by name for `get_metadata`. The result is the path, or
    the file at its start.
    ValueError for a path of another ending; TypeError for a program that was not exported.

    >>> import pathlib, tempfile
    >>> program = weft.export.export(weft.nn.Linear(2, 3), (weft.ones(4, 2),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "linear.pt2")
    ...     _ = aoti_compile_and_package(program, package_path=path)
    ...     aoti_load_package(path)(weft.ones(4, 2)).shape
    torch.Size([4, 3])
    """
    what = "aoti_compile_and_package"
    if not isinstance(exported_program, ExportedProgram):
        got = type(exported_program).__name__
        raise TypeError(f"{what}: expected an ExportedProgram of weft.export, got {got}")
    configs = dict(inductor_configs or {})
    path = package_path if package_path is not None else os.path.abspath("model.pt2")
    if isinstance(path, (str, os.PathLike)):
        if not os.fspath(path).endswith(".pt2"):
            raise ValueError(f"{what}: expected a path that ends in .pt2, got {os.fspath(path)!r}")
        _compile(exported_program, os.fspath(path), configs)
        return path
    with _temporary() as made:
        _compile(exported_program, made, configs)
        with open(made, "rb") as source:
            shutil.copyfileobj(source, path)
    path.seek(0)
    return path


def aoti_load_package(
    path: FileLike, run_single_threaded: bool = False, device_index: int = -1
) -> AOTICompiledModel:
    """The program of a package, ready to be called with the arguments of the module that was
    exported. The other arguments are accepted, without effect.

    RuntimeError for a damaged file and one of another kind: packages that PyTorch made have machine
    code for its own library. Machine code in a package is trusted as that of a shared library is.
    """
    if isinstance(path, (str, os.PathLike)):
        return AOTICompiledModel(os.fspath(path))
    with _temporary() as copy:
        with open(copy, "wb") as target:
            shutil.copyfileobj(path, target)
        return AOTICompiledModel(copy)


class AOTICompiledModel:
    """A compiled program in a package. Calls record no gradients."""

    def __init__(self, path: str) -> None:
        extra = extra_files(path)
        if not extra.keys() >= _RECORDS:
            raise RuntimeError(
                "aoti_load_package: expected a package that weft's aoti_compile_and_package made, "
                f"got {path!r}; compile the exported program again"
            )
        with refuses_damage("aoti_load_package", "the records of a package"):
            self.loader = _C.CompiledModule(path)
            self._read({name: extra[name].decode() for name in _RECORDS})

    def _read(self, told: dict[str, str]) -> None:
        self._in_spec, self._out_spec = (treespec_loads(told[n]) for n in ("in_spec", "out_spec"))
        check_arguments(self._in_spec)
        self._taken = [each == "1" for each in told["inputs"]]
        if len(self._taken) != self._in_spec.num_leaves:
            raise LoadError(
                f"aoti_load_package: expected {self._in_spec.num_leaves} inputs, "
                f"got {len(self._taken)}"
            )
        texts = told["metadata"].split("\0")
        self._metadata = dict(zip(texts[::2], texts[1::2]))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results for arguments of the structure of the export; ValueError for others."""
        leaves = leaves_of(self._in_spec, args, kwargs)
        inputs = [each for each, is_taken in zip(leaves, self._taken) if is_taken]
        with no_grad():
            return tree_unflatten(self.loader.call("forward", *inputs), self._out_spec)

    def get_metadata(self) -> dict[str, str]:
        """Texts that the package was made with, and the device."""
        return dict(self._metadata)

    def get_constant_fqns(self) -> list[str]:
        """The names of the parameters, buffers and constants that the package holds."""
        return list(self._held())

    def load_constants(
        self,
        constants_map: Mapping[str, Tensor],
        *,
        check_full_update: bool,
        user_managed: bool = False,
    ) -> None:
        """Gives constants new values by their names; with `user_managed` they share the memory of
        those that are given. RuntimeError for unknown names, and with `check_full_update` for
        names that are missing, and for other sizes and dtypes."""
        held = self._held()
        unknown = sorted(constants_map.keys() - held.keys())
        missing = sorted(held.keys() - constants_map.keys()) if check_full_update else []
        if unknown or missing:
            raise RuntimeError(
                f"load_constants: expected values for {', '.join(held) or 'no constants'}; "
                f"got others for {unknown}, and none for {missing}"
            )
        for name, value in constants_map.items():
            if (value.shape, value.dtype) != (held[name].shape, held[name].dtype):
                raise RuntimeError(
                    f"load_constants: expected {tuple(held[name].shape)} of {held[name].dtype} for "
                    f"{name}, got {tuple(value.shape)} of {value.dtype}"
                )
        with no_grad():
            for name, value in constants_map.items():
                if user_managed:
                    held[name].data = value.detach()
                else:
                    held[name].copy_(value)

    def _held(self) -> dict[str, Tensor]:
        return {**self.loader.parameters(), **self.loader.buffers()}


def _compile(program: ExportedProgram, path: str, configs: dict[str, Any]) -> None:
    """Writes the package. The example's inputs say what machine code is made for."""
    module: Any = script(flat_module(program))
    if configs.get("freezing"):
        module = freeze(module)
    taken = [
        not isinstance(each.arg, ConstantArgument)
        for each in program.graph_signature.input_specs
        if each.kind is InputKind.USER_INPUT
    ]
    examples = []
    if program.example_inputs is not None:
        leaves, _ = tree_flatten(program.example_inputs)
        examples = [tuple(each for each, is_taken in zip(leaves, taken) if is_taken)]
    metadata = {"AOTI_DEVICE_KEY": "cpu", **configs.get(_METADATA, {})}
    extra = {
        "in_spec": treespec_dumps(program.call_spec.in_spec),
        "out_spec": treespec_dumps(program.call_spec.out_spec),
        "inputs": "".join("01"[each] for each in taken),
        "metadata": "\0".join(f"{name}\0{text}" for name, text in metadata.items()),
    }
    aot_compile(module, path, examples=examples, extra_files=extra)


@contextmanager
def _temporary() -> Iterator[str]:
    """A file of a package that goes again."""
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, "model.pt2")


__all__ = ["AOTICompiledModel", "aoti_compile_and_package", "aoti_load_package"]

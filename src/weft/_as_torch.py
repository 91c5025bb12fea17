"""weft under the name torch, for programs and libraries that say `import torch` themselves."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import weft


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds torch.nn as weft.nn: the same module, so that classes are the same."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith("torch."):
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module("weft" + spec.name.removeprefix("torch"))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__  # that of the second name, which importing has set
        module.__spec__ = spec.loader_state


def install_as_torch() -> None:
    """Makes `import torch`, here and in every library, mean weft for the rest of the process.

    Modules are found under both names, and `type(x).__module__` of tensors, parameters, dtypes and
    devices begins with "torch", by which some libraries know them. Pickles of this process name
    torch, too: what reads them needs this call as well. A second call does nothing.

    RuntimeError when PyTorch itself is imported already.

    >>> weft.install_as_torch()  # doctest: +SKIP
    >>> import torch.nn.functional as F  # doctest: +SKIP
    """
    known = sys.modules.get("torch")
    if known is weft:
        return
    if known is not None:
        raise RuntimeError("install_as_torch: expected torch not to be imported yet, got PyTorch")
    sys.modules["torch"] = weft
    sys.meta_path.insert(0, _Finder())
    for module in (weft, weft.nn.parameter):
        for value in list(vars(module).values()):
            if isinstance(value, type) and value.__module__ == module.__name__:
                value.__module__ = "torch" + module.__name__.removeprefix("weft")

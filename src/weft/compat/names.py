"""The table of PyTorch's public names, module by module, which tools/torch_names.py writes."""

from __future__ import annotations

import functools
import pkgutil


@functools.cache
def _lines() -> dict[str, str]:
    """The lines of the table by module; each is split when its module is asked for."""
    data = pkgutil.get_data("weft.compat", "names.txt")
    lines = (data or b"").decode().splitlines()
    return {
        module: names
        for module, _, names in (line.partition(":") for line in lines if line[:1] != "#")
    }


def modules() -> list[str]:
    """All modules of the table, sorted."""
    return list(_lines())


def is_module(name: str) -> bool:
    """Whether PyTorch has the module, or it is private and programs use it."""
    return name in _lines()


@functools.cache
def _children() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for module in modules():
        package, _, child = module.rpartition(".")
        found.setdefault(package, []).append(child)
    return found


def children(package: str) -> list[str]:
    """The modules right below a package, by their last names."""
    return _children().get(package, [])


@functools.cache
def _locations() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for module in modules():
        for name, home in names(module).items():
            if home != f"{module}.{name}":
                found.setdefault(home, []).append(f"{module}.{name}")
    return found


def locations(home: str) -> list[str]:
    """The other places of the object whose shortest place is `home`."""
    return _locations().get(home, [])


@functools.cache
def names(module: str) -> dict[str, str]:
    """The names of a module, each with its shortest place, which is often the module itself.

    >>> names("torch.nn.modules.linear")["Linear"]
    'torch.nn.Linear'
    """
    found = {}
    for word in _lines().get(module, "").split():
        name, _, home = word.partition("=")
        found[name] = home or f"{module}.{name}"
    return found

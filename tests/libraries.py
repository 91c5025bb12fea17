"""Programs that run in both libraries: `lib` is weft, and in parity runs PyTorch as well."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import weft

LIBRARIES = [
    pytest.param("weft", id="weft"),
    pytest.param("torch", id="torch", marks=pytest.mark.parity),
]


@pytest.fixture
def lib(request: pytest.FixtureRequest) -> Any:
    """The library that `both` names."""
    return weft if request.param == "weft" else pytest.importorskip(request.param)


both = pytest.mark.parametrize("lib", LIBRARIES, indirect=True)


def seed_the_cpu_only() -> None:
    """PyTorch's manual_seed keeps its caller's stack as text for each kind of device, absent ones too: two fifths of
    the time of its samples of operators."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.random._manual_seed_impl = torch.default_generator.manual_seed

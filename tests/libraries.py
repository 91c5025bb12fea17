"""Programs that run in both libraries: `lib` is weft, and in parity runs PyTorch as well."""

from __future__ import annotations

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

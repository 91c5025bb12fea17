"""The faults that tools/seeded_faults.py seeds are places of the tree as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
ROOT = Path(__file__).resolve().parent.parent
FILES = sorted((ROOT / "tools" / "faults").glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_faults_are_found_in_the_tree(file: Path) -> None:
    for fault in tomllib.loads(file.read_text())["fault"]:
        source = (ROOT / fault["file"]).read_text()
        assert source.count(fault["text"].strip("\n")) == 1, fault["text"]
        assert fault["replacement"] != fault["text"]
        assert all((ROOT / test.partition("::")[0]).exists() for test in fault.get("tests", ()))

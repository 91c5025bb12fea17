"""No operator passes fewer samples of PyTorch's op_db than tests/parity/expected.txt says."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is the reference of these tests")
pytest.importorskip("expecttest", reason="PyTorch's operator samples need expecttest")
pytestmark = pytest.mark.parity


def test_no_operator_passes_fewer_samples_than_expected() -> None:
    from parity import outcome, runner

    version, expected = outcome.read_expected()
    if torch.__version__.partition("+")[0] != version:
        pytest.skip(f"the samples were counted with torch {version}")
    outcomes = runner.run(list(expected))
    assert outcome.drops(outcomes, expected) == []


def test_expected_file_is_sorted_and_names_each_operator_once() -> None:
    from parity.outcome import EXPECTED

    lines = EXPECTED.read_text().splitlines()
    names = [line.split()[0] for line in lines if not line.startswith("#")]
    assert names == sorted(set(names))

"""No operator passes fewer samples of PyTorch's op_db than tests/parity/expected.txt says."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is the reference of these tests")
pytest.importorskip("expecttest", reason="PyTorch's operator samples need expecttest")
pytestmark = pytest.mark.parity


PARTS = 8  # so that workers share them


@pytest.mark.parametrize("part", range(PARTS))
def test_no_operator_passes_fewer_samples_than_expected(part: int) -> None:
    from parity import outcome, runner

    version, expected = outcome.read_expected()
    if torch.__version__.partition("+")[0] != version:
        pytest.skip(f"the samples were counted with torch {version}")
    mine = {name: expected[name] for name in list(expected)[part::PARTS]}
    assert outcome.drops(runner.run(list(mine)), mine) == []


def test_expected_file_is_sorted_and_names_each_operator_once() -> None:
    from parity.outcome import EXPECTED

    lines = EXPECTED.read_text().splitlines()
    names = [line.split()[0] for line in lines if not line.startswith("#")]
    assert names == sorted(set(names))

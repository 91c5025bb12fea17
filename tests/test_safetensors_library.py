"""The package safetensors on weft under the name torch: its public interface for PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
from weft.serialization import safetensors as own

folder = sys.argv[1]
DTYPES = "float64 float32 float16 bfloat16 float8_e4m3fn int64 int32 int16 int8 uint8 bool"


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        self.second.weight = self.first.weight


def same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        got = other[name]
        assert isinstance(got, torch.Tensor) and got.dtype == value.dtype and got.shape == value.shape, name
        assert torch.equal(got.float(), value.float()), name


state = {name: torch.arange(-2, 10).reshape(3, 4).to(getattr(torch, name)) for name in DTYPES.split()}
state |= {"none": torch.empty(0, 2), "number": torch.tensor(2.5), "of a view": torch.ones(4, 4)[1:3]}
path = folder + "/state.safetensors"
save_file(state, path, {"format": "pt"})
same(state, load_file(path))
same(state, load(save(state)))
same(state, own.load_file(path))
own.save_file(state, path, {"format": "pt"})
same(state, load_file(path))

with safe_open(path, framework="pt") as file:
    assert sorted(file.keys()) == sorted(state) and file.metadata() == {"format": "pt"}
    part = file.get_slice("float32")
    assert part.get_shape() == [3, 4] and torch.equal(part[1:, :2], state["float32"][1:, :2])

torch.manual_seed(0)
model, other = Tied(), Tied()
with pytest.raises(RuntimeError, match="share memory"):
    save_file(model.state_dict(), path)
with pytest.raises(ValueError, match="non contiguous"):
    save_file({"x": torch.ones(2, 3).t()}, path)
save_model(model, path)
assert load_model(other, path) == (set(), [])
same(model.state_dict(), other.state_dict())
assert other.first.weight is other.second.weight
print("passed")
"""


@pytest.mark.parity
def test_states_go_through_safetensors(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "weft", "run", str(program), str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.stdout.endswith("passed\n"), done.stdout + done.stderr

"""weft under the name torch, in a process of its own: what is installed stays."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import weft

PROGRAM = """
    import weft

    weft.install_as_torch()
    weft.install_as_torch()
    import copy, io, pickle
    import torch, torch.nn as nn, torch.nn.functional as F
    from torch.optim.lr_scheduler import StepLR
    from torch.utils.data import DataLoader

    assert torch is weft and nn is weft.nn and F is weft.nn.functional
    assert StepLR is weft.optim.lr_scheduler.StepLR and DataLoader is weft.utils.data.DataLoader
    assert nn.__spec__.name == nn.__name__ == "weft.nn"
    x = torch.ones(2)
    values = [x, nn.Parameter(x), nn.Buffer(x), torch.float32, torch.device("cpu"), x.shape,
              torch.Generator(), torch.strided, torch.preserve_format]
    print({type(value).__module__ for value in values}, torch.FloatTensor.__module__)
    print(repr(type(x)), torch.typename(x))

    values = [x, nn.Parameter(x), torch.Tensor, torch.float32, torch.device("cpu"), nn.Linear(1, 1)]
    for again in (pickle.loads(pickle.dumps(values)), copy.deepcopy(values)):
        assert again[0].tolist() == [1, 1] and again[2] is torch.Tensor
        assert [type(value) for value in again] == [type(value) for value in values]
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    assert torch.load(file)["x"].tolist() == [1, 1]

    def f(x: torch.Tensor, layer: float = 2.0) -> torch.Tensor:
        return F.relu(x) * layer

    for made in (torch.jit.script(f), torch.jit.trace(f, x), torch.jit.script(nn.Linear(2, 2))):
        assert made(x).shape == (2,)
    try:
        import torch.nonsense
    except ModuleNotFoundError as error:
        print(error)
"""


def test_programs_import_weft_as_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    names, shown, missing = done.stdout.splitlines()
    assert names in (
        "{'torch', 'torch.nn.parameter'} torch",
        "{'torch.nn.parameter', 'torch'} torch",
    )
    assert shown == "<class 'torch.Tensor'> torch.FloatTensor"
    assert missing == "No module named 'weft.nonsense'"


def test_pytorch_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", sys)
    with pytest.raises(RuntimeError, match="expected torch not to be imported yet, got PyTorch"):
        weft.install_as_torch()
    assert weft.Tensor.__module__ == "weft"

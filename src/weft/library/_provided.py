"""Libraries in PyTorch's C++ interface whose operators weft has in their place."""

from __future__ import annotations

import importlib
from pathlib import Path

from weft.library._operator import OPERATORS, PROVIDED

#: by package and library the module that makes the operators
_LIBRARIES = {
    ("torchvision", "_C"): "_vision",
    ("torchvision", "image"): "_images",
    ("torchaudio", "_torchaudio"): "_audio",
    ("torchaudio", "libtorchaudio"): "_audio",
}


def provide(place: str) -> bool:
    """Makes the operators of a library, by its path; False for a library that has no stand-in
    here. OSError where a package that they need is missing, as for a library that is not there.
    """
    path = Path(place)
    package = path.parent.parent if path.parent.name == "lib" else path.parent
    module = _LIBRARIES.get((package.name, path.name.partition(".")[0]))
    if module is None:
        return False
    before = set(OPERATORS)
    try:
        importlib.import_module(f"weft.library.{module}")
    except ImportError as error:
        raise OSError(f"ops.load_library: expected what {package.name} needs: {error}") from error
    PROVIDED.update(OPERATORS.keys() - before)
    return True

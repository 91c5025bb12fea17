"""The public package as an object: programs have it among their names, and tables are made of what
it shows. Modules of the package import names from where they are defined, never it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import weft as weft
else:
    weft = sys.modules["weft"]

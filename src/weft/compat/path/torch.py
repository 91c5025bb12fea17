"""Found before PyTorch where this folder is on PYTHONPATH, as it is for children of `weft run`."""

import weft.compat.torch  # noqa: F401  (puts weft in this module's place)

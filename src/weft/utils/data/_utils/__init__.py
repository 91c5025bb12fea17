"""Where PyTorch keeps collating; programs import from here too."""

from weft.utils.data._utils import collate as collate

"""Event files for TensorBoard. Needs the package tensorboard (`pip install weft[tensorboard]`).

>>> with SummaryWriter(log_dir) as writer:  # doctest: +SKIP
...     writer.add_scalar("loss", 0.5, global_step=1)
"""

from weft.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]

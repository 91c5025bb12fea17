"""weft.xpu: says that this build has none of Intel's GPUs."""

from weft._runtime.absent import device_count as device_count
from weft._runtime.absent import empty_cache as empty_cache
from weft._runtime.absent import is_available as is_available
from weft._runtime.absent import manual_seed as manual_seed
from weft._runtime.absent import manual_seed_all as manual_seed_all

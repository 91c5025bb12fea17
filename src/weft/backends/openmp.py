"""OpenMP, which this build does not use."""

from weft._runtime.absent import is_available as is_available

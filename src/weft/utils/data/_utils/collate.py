"""See weft.utils.data.collate."""

from weft.utils.data.collate import default_collate, default_convert

__all__ = ["default_collate", "default_convert"]

"""See weft.utils.data.worker."""

from weft.utils.data.worker import _generate_state as _generate_state

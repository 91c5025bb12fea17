"""Errors of groups of processes."""


class DistError(RuntimeError):
    """A group of processes cannot go on."""


class DistBackendError(DistError):
    """A process of the group is lost or late, or MPI reports an error."""


class DistNetworkError(DistError):
    """Processes cannot reach each other. MPI's own errors are DistBackendErrors."""


class DistStoreError(DistError):
    """A store lacks a key."""


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty."""

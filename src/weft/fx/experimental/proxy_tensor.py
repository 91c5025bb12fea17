"""What libraries ask of tracing with tensors that are proxies, which weft has not: is it on?"""

from __future__ import annotations

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """None: no such tracing is under way.

    >>> weft.fx.experimental.proxy_tensor.get_proxy_mode() is None
    True
    """

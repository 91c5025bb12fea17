"""How many examples a drawn test draws.

The same ones in every run, so that a red run is a fault of the change and not the luck of the draw. With
WEFT_EXAMPLES=n each test draws n times as many, others every time: tools/nightly does that.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, Phase, settings

SCALE = int(os.environ.get("WEFT_EXAMPLES", "1"))


def examples(count: int, **options: Any) -> settings:
    """The settings of a test that draws `count` examples, however long one takes to draw."""
    checks = list(HealthCheck)
    return settings(
        max_examples=count * SCALE, deadline=None, suppress_health_check=checks, **options
    )


#: for tests that draw nothing but a seed, which does not shrink
UNSHRUNK = [Phase.explicit, Phase.generate]

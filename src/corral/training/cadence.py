"""Every how many steps something happens that happens now and then: saving, logging, evaluating."""

import math


def steps_between(strategy: str, steps: float, *, total: int, steps_per_epoch: float) -> int:
    """How many optimiser steps lie between two times; 0: it never happens.

    Args:
        strategy: "no", "steps" or "epoch".
        steps: With "steps": their number, or below 1 their share of all steps, rounded up.
        total: Optimiser steps of the whole run.
        steps_per_epoch: Optimiser steps in one pass over the data.
    """
    if strategy == "no":
        return 0
    if strategy == "epoch":
        return max(1, round(steps_per_epoch))
    return math.ceil(steps * total) if steps < 1 else round(steps)

"""Terms of rewards as formulas, and reward functions made of them. No torch.

An environment builds its ``reward_parts`` of terms; a trainer takes functions as ``reward_funcs``::

    class Maze:
        @property
        def reward_parts(self) -> dict[str, float]:
            return {"reached": share(self.rooms, 9), "bumps": -excess(self.bumps, each=0.1)}

    reward_funcs = [get_soft_overlong_punishment(max_completion_len=512, soft_punish_cache=64)]
"""

from corral.rewards.functions import for_class, get_soft_overlong_punishment
from corral.rewards.terms import excess, repetition, share, soft_overlong, weighted_sum

__all__ = [
    "excess",
    "for_class",
    "get_soft_overlong_punishment",
    "repetition",
    "share",
    "soft_overlong",
    "weighted_sum",
]

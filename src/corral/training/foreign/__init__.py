"""Settings that TRL and transformers have and Corral has not: what each is told when it is given.

Tables, one for each trainer. A name is here or a field of the configuration, never both.
"""

from corral.training.foreign.grpo import GRPO_SETTINGS
from corral.training.foreign.setting import ForeignSetting, Reading
from corral.training.foreign.sft import SFT_SETTINGS

__all__ = ["GRPO_SETTINGS", "SFT_SETTINGS", "ForeignSetting", "Reading"]

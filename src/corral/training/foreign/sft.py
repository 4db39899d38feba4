"""Settings of TRL's SFTConfig that Corral's has not."""

from collections.abc import Mapping

from corral.training.foreign.common import COMMON_SETTINGS
from corral.training.foreign.setting import ForeignSetting, Reading

_SET_ON_TOKENIZER = "Set it on the tokenizer, and pass that as processing_class."

_FIELDS = {"train_sampling_strategy"}
"""Settings that SFTConfig has, unlike other configurations."""

SFT_SETTINGS: Mapping[str, ForeignSetting] = {
    **{name: setting for name, setting in COMMON_SETTINGS.items() if name not in _FIELDS},
    "dataloader_drop_last": ForeignSetting(
        default=False,
        reason="the last step of an epoch learns from the rows that are left",
        instead="Leave rows out of the dataset, so that whole batches divide it.",
    ),
    "remove_unused_columns": ForeignSetting(
        default=True,
        harmless=(False,),
        reason="columns that are not learned from are passed over",
        instead="Leave it out.",
    ),
    "dataset_kwargs": ForeignSetting(
        default=None,
        harmless=({},),
        reason="the data is not prepared by the datasets package",
        instead="Prepare the dataset before you pass it.",
    ),
    "dataset_num_proc": ForeignSetting(
        default=None,
        reason="rows are tokenized in the trainer's process",
        reading=Reading.NOTED,
    ),
    "pad_token": ForeignSetting(
        default=None, reason="padding is never trained", instead=_SET_ON_TOKENIZER
    ),
    "pad_to_multiple_of": ForeignSetting(
        default="auto",
        harmless=(None,),
        reason="micro-batches are cut by token_budget, and padding changes no result",
        reading=Reading.NOTED,
    ),
    "activation_offloading": ForeignSetting(
        default=False,
        reason="activations stay on the device",
        instead="Set gradient_checkpointing=True, or lower token_budget.",
    ),
}
"""By name, those of every trainer included."""

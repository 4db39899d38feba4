"""Settings of TRL's SFTConfig that Corral's has not."""

from collections.abc import Mapping

from corral.training.foreign.common import COMMON_SETTINGS
from corral.training.foreign.setting import ForeignSetting, Reading

_SET_ON_TOKENIZER = "Set it on the tokenizer, and pass that as processing_class."

SFT_SETTINGS: Mapping[str, ForeignSetting] = {
    **COMMON_SETTINGS,
    "router_aux_loss_coef": ForeignSetting(
        default=None,
        harmless=(0, 0.0),
        reason="a balance loss over micro-batches would depend on where they are cut",
        instead="Leave it out, and freeze the router or train an adapter that spares it.",
    ),
    "chat_template_path": ForeignSetting(
        default=None,
        reason="the chat template is the tokenizer's",
        instead=_SET_ON_TOKENIZER,
    ),
    "dataset_text_field": ForeignSetting(
        default="text",
        reason="rows are conversations: `messages`, or `prompt` and `completion`",
        instead="Give conversations.",
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
    "eos_token": ForeignSetting(
        default=None, reason="turns end as the chat template ends them", instead=_SET_ON_TOKENIZER
    ),
    "pad_token": ForeignSetting(
        default=None, reason="padding is never trained", instead=_SET_ON_TOKENIZER
    ),
    "truncation_mode": ForeignSetting(
        default="keep_start",
        reason="a conversation without its start is none that a model would see",
        instead="Raise max_length, or cut the conversations yourself.",
    ),
    "packing_strategy": ForeignSetting(
        default="bfd",
        reason="rows are packed whole, never split",
        instead="Leave it out.",
    ),
    "padding_free": ForeignSetting(
        default=False,
        reason="packing=True lays rows behind each other without padding",
        instead="Set packing=True.",
    ),
    "pad_to_multiple_of": ForeignSetting(
        default="auto",
        harmless=(None,),
        reason="micro-batches are cut by token_budget, and padding changes no result",
        reading=Reading.NOTED,
    ),
    "eval_packing": ForeignSetting(
        default=None,
        reason="packing changes no result, so there is one setting for it",
        reading=Reading.NOTED,
    ),
    "completion_only_loss": ForeignSetting(
        default=None,
        harmless=(True,),
        reason="only what the model says is trained",
        instead="Leave it out.",
    ),
    "assistant_only_loss": ForeignSetting(
        default=False,
        harmless=(True,),
        reason="only what the model says is trained",
        instead="Leave it out.",
    ),
    "loss_type": ForeignSetting(
        default="nll",
        harmless=("chunked_nll",),
        reason="the loss is the mean negative log-likelihood",
        instead="Leave it out.",
    ),
    "activation_offloading": ForeignSetting(
        default=False,
        reason="activations stay on the device",
        instead="Set gradient_checkpointing=True, or lower token_budget.",
    ),
}
"""By name, those of every trainer included."""

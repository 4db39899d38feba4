"""Settings of TRL's GRPOConfig that Corral's has not."""

from collections.abc import Mapping

from corral.training.foreign.common import COMMON_SETTINGS
from corral.training.foreign.setting import ForeignSetting, Reading

_VLLM = "it has an effect with use_vllm=True only"
_OWN_ENGINE = "the built-in engine decodes, with a paged cache and continuous batching of its own"


def _vllm(default: object) -> ForeignSetting:
    return ForeignSetting(default=default, reason=_VLLM, reading=Reading.NOTED)


def _engine(default: object) -> ForeignSetting:
    return ForeignSetting(default=default, reason=_OWN_ENGINE, reading=Reading.NOTED)


GRPO_SETTINGS: Mapping[str, ForeignSetting] = {
    **COMMON_SETTINGS,
    "use_vllm": ForeignSetting(
        default=False,
        reason="Corral does not sample with vLLM yet",
        instead="Leave it out: the built-in engine samples from the model that is trained. "
        "max_batch sets how many conversations it decodes at the same time.",
    ),
    "vllm_mode": _vllm("colocate"),
    "vllm_model_impl": _vllm("vllm"),
    "vllm_enable_sleep_mode": _vllm(False),
    "vllm_structured_outputs_regex": ForeignSetting(
        default=None,
        reason="completions can be held to a pattern with vLLM only, which Corral does not use yet",
        instead="Give a reward function that scores 0 where the pattern does not match.",
    ),
    "vllm_server_base_url": _vllm(None),
    "vllm_server_host": _vllm("0.0.0.0"),
    "vllm_server_port": _vllm(8000),
    "vllm_server_timeout": _vllm(240.0),
    "vllm_group_port": _vllm(51216),
    "vllm_gpu_memory_utilization": _vllm(0.3),
    "vllm_max_model_length": _vllm(None),
    "vllm_tensor_parallel_size": _vllm(1),
    "cache_implementation": _engine(None),
    "use_transformers_continuous_batching": _engine(False),
    "transformers_continuous_batching_config": _engine(None),
    "use_transformers_paged": _engine(False),
    "ds3_gather_for_generation": ForeignSetting(
        default=True,
        reason="the engine needs whole weights to sample",
        instead="Leave it out.",
    ),
    "pad_to_multiple_of": ForeignSetting(
        default="auto",
        harmless=(None,),
        reason="micro-batches are cut by token_budget, and padding changes no result",
        reading=Reading.NOTED,
    ),
    "max_prompt_length": ForeignSetting(
        default=None,
        reason="prompts are never cut",
        instead="Drop rows with long prompts from the dataset.",
    ),
}
"""By name, those of every trainer included."""

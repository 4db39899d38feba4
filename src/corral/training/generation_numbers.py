"""The numbers that a generation reports: what its episodes came to, over all processes."""

import logging
from collections.abc import Sequence
from statistics import fmean

from accelerate import PartialState
from accelerate.utils import gather_object

from corral.chat import ChatFormat
from corral.records import Episode
from corral.training.counters import Counters, TokenWatch, count
from corral.training.episode_metrics import episode_metrics, prompt_and_sampled_tokens, token_counts
from corral.training.exchange import gathered_episodes, means_over_processes
from corral.training.generation import Generation
from corral.training.grpo_config import GRPOConfig
from corral.training.state import TrainerState

logger = logging.getLogger(__name__)


class GenerationNumbers:
    """Counts generations; all processes call each method."""

    def __init__(self, chat: ChatFormat, args: GRPOConfig, state: TrainerState) -> None:
        self.tokens = TokenWatch()
        """Whether there is still something to train."""
        self._chat = chat
        self._args = args
        self._state = state

    def of_training(self, generation: Generation) -> dict[str, float]:
        """Those of a generation that is learned from; its tokens are added to the run's."""
        episodes = gathered_episodes(generation.episodes())
        sampled, every = token_counts(episodes)
        counters = count(
            episodes,
            stop_ids=self._chat.stop_ids,
            masks_truncated=self._args.mask_truncated_completions,
            is_own_template=self._chat.template is not None,
        )
        self.tokens.saw(counters)
        if PartialState().is_main_process:
            self._tell(counters)
        self._state.num_tokens += prompt_and_sampled_tokens(episodes)
        return {
            **self._of_episodes(generation, episodes),
            **counters.as_metrics(),
            "num_tokens": float(self._state.num_tokens),
            "tokens_per_second": sampled / generation.seconds,
            "tokens/sampled": float(sampled),
            "tokens/all": float(every),
            "time/play": generation.seconds,
        }

    def _tell(self, counters: Counters) -> None:
        step = self._state.global_step + 1
        if counters.has_only_faults:
            logger.warning(
                "Step %d makes no update, as none of its %d episodes could be played. %s. "
                "(%d in a row; %d end the run.)",
                *(step, counters.episodes, counters.shown_causes()),
                *(self.tokens.empty_in_a_row, self.tokens.patience),
            )
        if counters.unscored:
            logger.warning(
                "Step %d: no reward applies to %s, which teach nothing.",
                *(step, counters.shown_unscored()),
            )

    def of_evaluation(self, generation: Generation) -> dict[str, float]:
        """Those of a generation that nothing is learned from."""
        return self._of_episodes(generation, gathered_episodes(generation.episodes()))

    def _of_episodes(self, generation: Generation, episodes: Sequence[Episode]) -> dict[str, float]:
        is_zero = gather_object(generation.advantages.std_is_zero)
        advantages = gather_object(generation.advantages.values)
        return {
            **episode_metrics(episodes, self._chat.stop_ids),
            **means_over_processes(generation.scored.metrics),
            "frac_reward_zero_std": fmean(map(float, is_zero)),
            "advantages/abs_mean": fmean(map(abs, advantages)),
        }

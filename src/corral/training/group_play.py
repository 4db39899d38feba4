"""Playing the groups of a generation: each process its share, scored and compared."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from accelerate import Accelerator

from corral.errors import StorageError
from corral.records import Task
from corral.rollout import PlayedGroup, Player, RewardFunction, Scored, score
from corral.rollout.blocking import run_blocking
from corral.track import RunFolder
from corral.training.evaluating import played_in_parts
from corral.training.exchange import advantages_over_processes
from corral.training.generation import Generation
from corral.training.grpo_config import GRPOConfig
from corral.training.state import TrainerState
from corral.training.together import play_together

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlay:
    """Plays tasks on all processes; what it holds stays the same for a whole run."""

    player: Player
    rewards: Sequence[RewardFunction]
    args: GRPOConfig
    state: TrainerState
    accelerator: Accelerator
    own: Callable[[Sequence[Task], int], list[PlayedGroup]] | None
    """Plays instead of the player, if the user brought a function that does."""
    show: Callable[[Sequence[PlayedGroup]], None]
    """Sees what the player played, before it is scored."""

    def train(self, tasks: Sequence[Task], members: int) -> Generation:
        """Each task played ``members`` times."""
        started = time.perf_counter()
        scored = self._scored(tasks, members)
        return self._compared(scored, time.perf_counter() - started)

    def evaluate(self, tasks: Sequence[Task]) -> Generation:
        """Each task played as often as the configuration says, some tasks at a time."""
        started = time.perf_counter()
        scored = played_in_parts(tasks, self.args, self.accelerator.num_processes, self._scored)
        return self._compared(scored, time.perf_counter() - started)

    def save(self, generation: Generation, folder: RunFolder, stage: str) -> None:
        """Write the episodes into the run folder, if they are wanted there."""
        if not (self.args.save_episodes and self.accelerator.is_main_process):
            return
        step = self.state.global_step + 1
        try:
            folder.write_episodes(
                stage, step, generation.episodes(), advantages=generation.advantages.values
            )
        except StorageError as error:
            # A full disk must not cost the training; a checkpoint that cannot be written ends it.
            logger.error("The episodes of step %d are not saved. %s", step, error)
        except Exception:
            # Neither must a column that cannot be written.
            logger.exception("The episodes of step %d are not saved", step)

    def _scored(self, tasks: Sequence[Task], members: int) -> Scored:
        """This process's share of the tasks, played and scored."""
        mine = tasks[self.accelerator.process_index :: self.accelerator.num_processes]

        def play() -> Scored:
            # Not on the event loop: a user's function may well run one of its own.
            given = None if self.own is None else self.own(mine, members)

            async def play_and_score() -> Scored:
                played = await self.player.play(mine, members) if given is None else given
                self.show(played)
                return await score(played, self.rewards, trainer_state=self.state)

            return run_blocking(play_and_score())

        return play_together(play, patience_s=self.args.infrastructure_patience_s)

    def _compared(self, scored: Scored, seconds: float) -> Generation:
        advantages = advantages_over_processes(
            scored,
            scale=self.args.scale_rewards,
            aggregation=self.args.multi_objective_aggregation,
        )
        return Generation(scored=scored, advantages=advantages, seconds=seconds)

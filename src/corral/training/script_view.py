"""What scripts read off a GRPO trainer, under the names that TRL gives it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from corral.chat import ChatFormat
from corral.env import EnvironmentKind, Tool
from corral.rollout import PlayedGroup, Player, RewardFunction
from corral.training.grpo_config import GRPOConfig
from corral.training.policy_step import PolicyStep
from corral.training.reward_models import RewardModel


class ScriptView:
    """Attributes for reward functions, callbacks and rollout functions; training uses none."""

    args: GRPOConfig
    chat: ChatFormat
    player: Player
    environment_kinds: Mapping[str | None, EnvironmentKind]
    _rewards: Sequence[RewardFunction]
    _policy_step: PolicyStep

    environments: list[object | None] | None = None
    """The instances of this process's last batch, aligned with its completions (None where a fault
    took one); None before the first batch, and where there are no environments."""

    @property
    def tools(self) -> list[Callable[..., Any]]:
        """Every tool of the run: plain functions, then the methods of each environment class."""
        kinds = self.environment_kinds.values()
        if not kinds:
            return [_function(tool) for tool in self.player.tools.tools]
        plain = {tool.name: _function(tool) for kind in kinds for tool in _plain(kind)}
        methods = [
            _function(tool, kind.cls)
            for kind in kinds
            for tool in kind.tools.tools
            if tool.function is None
        ]
        return [*plain.values(), *dict.fromkeys(methods)]

    @property
    def reward_funcs(self) -> list[Callable[..., Any]]:
        """The reward functions, and of reward models the models themselves.

        Rewards that environments have of their own are not among them: they are given when an
        episode ends, while its environment is at hand.
        """
        functions = [column.function for column in self._rewards]
        return [one.model if isinstance(one, RewardModel) else one for one in functions]

    @property
    def reward_func_names(self) -> list[str]:
        """The reward columns: functions, then the own rewards of environments."""
        return [*(function.name for function in self._rewards), *self._own_rewards()]

    @property
    def reward_weights(self) -> Tensor:
        """One weight for each of the names [names]; an environment's own reward weighs 1."""
        weights = [function.weight for function in self._rewards]
        return torch.tensor(weights + [1.0] * len(self._own_rewards()))

    @property
    def ref_model(self) -> nn.Module | None:
        """The model that the KL term compares with; None without one, and where it is the policy
        itself with its adapter off."""
        reference = self._policy_step.parts.reference
        return None if reference is None or reference.has_adapter else reference.model

    @property
    def num_generations(self) -> int:
        """Episodes of one task."""
        return self.args.num_generations

    @property
    def max_completion_length(self) -> int:
        """Tokens of a whole episode after its prompt."""
        return self.args.max_completion_length

    @property
    def chat_template(self) -> str | None:
        """The template that replaces the tokenizer's; None where the tokenizer's own is used."""
        return self.chat.template

    @property
    def chat_template_kwargs(self) -> dict[str, Any]:
        """Extra arguments of every template rendering."""
        return dict(self.args.chat_template_kwargs)

    @property
    def eos_token_ids(self) -> list[int]:
        """All ids that end a turn, in ascending order."""
        return sorted(self.chat.stop_ids)

    def _show(self, played: Sequence[PlayedGroup]) -> None:
        """Let scripts see the environments of a batch, before it is scored."""
        if self.environment_kinds:
            self.environments = [one for group in played for one in group.environments]

    def _own_rewards(self) -> list[str]:
        kinds = self.environment_kinds.values()
        return list(dict.fromkeys(name for kind in kinds for name in kind.reward_columns))


def _plain(kind: EnvironmentKind) -> list[Tool]:
    return [tool for tool in kind.tools.tools if tool.function is not None]


def _function(tool: Tool, environment_class: type | None = None) -> Callable[..., Any]:
    return tool.function or getattr(environment_class, tool.function_name)

"""The loss of one optimiser step, or of one evaluation, summed over its micro-batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from accelerate.utils import gather_object
from torch import Tensor

from corral.algorithms import (
    ImportanceRatio,
    LossOptions,
    Metric,
    MicroBatch,
    TokenBatch,
    TokenLogprobs,
    Totals,
    combine_metrics,
    correction_metrics,
    entropy_threshold,
    finish_metrics,
    importance_ratio,
    policy_loss,
)
from corral.records import Sample
from corral.training.expert_balance import AUX_LOSS, ExpertBalance, StepBalance
from corral.training.grpo_config import GRPOConfig
from corral.training.learner import Learner
from corral.training.placeholder import PLACEHOLDER
from corral.training.reference import Reference


@dataclass(frozen=True, slots=True)
class Before:
    """Logprobs [trained tokens] by ``id(sample)``, from before the first step of a generation."""

    policy: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    reference: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    """Empty where there is no reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossParts:
    """What a loss is made of, the same from step to step."""

    learner: Learner
    config: GRPOConfig
    reference: Reference | None = None
    """Where the KL term pulls to; None when beta is 0."""
    balance: ExpertBalance | None = None
    """What keeps experts in use; None where a model has none."""

    def reference_logprobs(self, batch: MicroBatch) -> Tensor | None:
        """Logprobs [N] of the batch's trained tokens; None without a reference."""
        if self.reference is None:
            return None
        with self.learner.autocast():
            return self.reference.logprobs(
                batch,
                temperature=self.config.temperature,
                chunk_tokens=self.config.logits_chunk_tokens,
            )


class StepLoss:
    """The shares of micro-batches, which add up to the loss of all samples on all processes."""

    def __init__(
        self,
        parts: LossParts,
        samples: Sequence[Sample],
        totals: Totals,
        *,
        before: Before | None = None,
        entropy_coef: float,
    ) -> None:
        """
        Args:
            samples: This process's; none is what a process has whose rows teach nothing.
            totals: Counts of all that the loss is divided by.
            before: What was said of the samples before the first step of their generation; None
                where this is the first.
            entropy_coef: Weight of the entropy bonus in this step.
        """
        self._parts = parts
        # Every process must take part in the backward pass, if need be with a row of no effect.
        self._samples = samples or [PLACEHOLDER]
        self._is_real = bool(samples)
        self._before = before
        self._metrics: list[Mapping[str, Metric]] = []
        self._options = replace(loss_options(parts.config), entropy_coef=entropy_coef)
        self.batches = parts.learner.micro_batches(self._samples)
        self._threshold, bonus_tokens = self._entropy_threshold()
        self._totals = replace(totals, entropy_tokens=bonus_tokens)
        own = self.batches if self._is_real else []
        balance, learner = parts.balance, parts.learner
        self._balance = None if balance is None else StepBalance(balance, learner, own)

    def __call__(self, batch: MicroBatch) -> Tensor:
        """The micro-batch's share, with gradient."""
        scored = self._score(batch)
        tokens = self._tokens(batch, scored)
        ratio = self._ratio(tokens)
        result = policy_loss(
            self._parts.config.loss_type,
            tokens,
            self._options,
            self._totals,
            entropy_threshold=self._threshold,
            importance_ratio=ratio,
        )
        if self._is_real:
            self._metrics += [result.metrics, correction_metrics(tokens, ratio)]
        if scored.routing is None or self._balance is None:
            return result.loss
        return result.loss + self._balance(scored.routing)

    def metrics(self) -> dict[str, float]:
        """Those of all micro-batches so far, on all processes."""
        metrics = finish_metrics(combine_metrics(gather_object(self._metrics)))
        return metrics if self._balance is None else {**metrics, AUX_LOSS: self._balance.total()}

    def _score(self, batch: MicroBatch) -> TokenLogprobs:
        config, balance = self._parts.config, self._parts.balance
        return self._parts.learner.score(
            batch,
            temperature=config.temperature,
            with_entropy=True,
            chosen=None if balance is None else balance.chosen,
        )

    def _tokens(self, batch: MicroBatch, scored: TokenLogprobs) -> TokenBatch:
        before, parts, logprobs = self._before, self._parts, scored.logprobs
        batch = batch.to(logprobs.device)
        rows = [self._samples[index] for index in batch.indices]
        return batch.token_batch(
            logprobs,
            old_logprobs=_of_rows(before.policy, rows, logprobs) if before else None,
            ref_logprobs=_of_rows(before.reference, rows, logprobs)
            if before and parts.reference
            else parts.reference_logprobs(batch),
            entropies=scored.entropies,
        )

    def _ratio(self, tokens: TokenBatch) -> ImportanceRatio | None:
        # The sampler's logprobs are those of what top-p and the like left of the distribution. The
        # ratio to the whole one would shrink with every token until nothing is learned.
        config = self._parts.config
        if not config.importance_sampling_correction or config.is_sampling_filtered():
            return None
        return importance_ratio(
            tokens,
            config.importance_sampling_mode,
            clip_min=config.importance_sampling_clip_min,
            clip_max=config.importance_sampling_clip_max,
        )

    def _entropy_threshold(self) -> tuple[float | None, float | None]:
        """The least entropy of a token that is trained, and how many tokens reach it."""
        quantile = self._parts.config.top_entropy_quantile
        if quantile >= 1:
            return None, None
        with torch.no_grad():
            values = [self._score(batch).entropies for batch in self.batches]
        every = torch.cat(gather_object([value.cpu() for value in values if value is not None]))
        threshold = entropy_threshold(every, torch.ones_like(every, dtype=torch.bool), quantile)
        return threshold, None if threshold is None else float((every >= threshold).sum())


def loss_options(config: GRPOConfig) -> LossOptions:
    """The part of the configuration that shapes the loss."""
    names = LossOptions.__dataclass_fields__
    return LossOptions(**{name: getattr(config, name) for name in names})


def by_row(rows: Sequence[Sample], logprobs: Tensor) -> dict[int, Tensor]:
    """Logprobs [N] of rows as :class:`Before` has them."""
    parts = logprobs.split([row.trained_tokens() for row in rows])
    return {id(row): part for row, part in zip(rows, parts, strict=True)}


def _of_rows(known: Mapping[int, Tensor], rows: Sequence[Sample], like: Tensor) -> Tensor:
    parts = [like.new_zeros(0) if row is PLACEHOLDER else known[id(row)] for row in rows]
    return torch.cat(parts).to(like.device)

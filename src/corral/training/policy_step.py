"""One optimiser step of policy-gradient learning, from samples to updated weights."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from accelerate.utils import gather_object
from torch import Tensor

from corral.algorithms import (
    BONUS_ENTROPY,
    ImportanceRatio,
    LossOptions,
    Metric,
    MicroBatch,
    TokenBatch,
    Totals,
    combine_metrics,
    correction_metrics,
    entropy_threshold,
    finish_metrics,
    importance_ratio,
    policy_loss,
)
from corral.records import Sample
from corral.training.entropy_control import EntropyControl
from corral.training.grpo_config import GRPOConfig
from corral.training.learner import Learner, StepNumbers
from corral.training.placeholder import PLACEHOLDER
from corral.training.reference import Reference, reference_of


def loss_options(config: GRPOConfig) -> LossOptions:
    """The part of the configuration that shapes the loss."""
    names = LossOptions.__dataclass_fields__
    return LossOptions(**{name: getattr(config, name) for name in names})


@dataclass(frozen=True, slots=True)
class Before:
    """Logprobs [trained tokens] by ``id(sample)``, from before the first step of a generation."""

    policy: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    reference: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    """Empty where there is no reference."""


@dataclass(frozen=True, slots=True)
class PolicyStep:
    """Learns from samples with one loss; holds what stays the same from step to step."""

    learner: Learner
    config: GRPOConfig
    reference: Reference | None = None
    """Where the KL term pulls to; None when beta is 0."""
    control: EntropyControl | None = None
    """What moves the weight of the entropy bonus; None where it stays."""

    @classmethod
    def of(cls, learner: Learner, config: GRPOConfig, *, has_adapter: bool) -> "PolicyStep":
        """The step of a learner whose model has not been trained yet."""
        reference = reference_of(learner.model, config, has_adapter=has_adapter)
        if reference is not None and config.sync_ref_model:
            learner.beside["reference"] = reference.moving(learner.model)
        control = EntropyControl(config) if config.use_adaptive_entropy else None
        if control is not None:
            learner.beside["entropy_control"] = control.tensors
        return cls(learner, config, reference, control)

    @torch.no_grad()
    def score_before(self, samples: Sequence[Sample]) -> Before:
        """What the policy and its reference say of samples now, without a gradient.

        Needed when a generation feeds several optimiser steps: the first changes the policy, and
        may move the reference. With one step both are found in passing.
        """
        before = Before()
        for batch in self.learner.micro_batches(samples):
            rows = [samples[index] for index in batch.indices]
            logprobs, _ = self.learner.score(batch, temperature=self.config.temperature)
            before.policy.update(_by_row(rows, logprobs))
            reference = self._reference_logprobs(batch.to(logprobs.device))
            if reference is not None:
                before.reference.update(_by_row(rows, reference))
        return before

    def __call__(
        self, samples: Sequence[Sample], before: Before | None = None
    ) -> tuple[StepNumbers, dict[str, float]]:
        """Learn from this process's samples of a step; returns the step's numbers and metrics.

        Args:
            before: What :meth:`score_before` said of the samples' generation; None where the step
                is its only one.
        """
        made = self._learn(samples, before)
        config, reference = self.config, self.reference
        is_due = config.sync_ref_model and self.learner.step % config.ref_model_sync_steps == 0
        if reference is not None and is_due:
            reference.move(self.learner.model, config.ref_model_mixup_alpha)
        return made

    def _learn(
        self, samples: Sequence[Sample], before: Before | None
    ) -> tuple[StepNumbers, dict[str, float]]:
        """Make the optimiser's step.

        Rows that cannot move the weights are left out of the forward pass (their tokens still count
        in what the loss is divided by), so the metrics are those of the rows that were trained. A
        step in which no process has anything to learn passes without touching the weights.
        """
        totals = self._totals(samples)
        useful = samples if self._uses_zero_advantage() else _with_advantage(samples)
        if not self._anyone(useful):
            return self.learner.skip_step(), {}
        # Every process must take part in the backward pass, if need be with a row of no effect.
        useful = useful or [PLACEHOLDER]
        batches = self.learner.micro_batches(useful)
        parts: list[Mapping[str, Metric]] = []
        loss_of = self._loss(useful, batches, before, totals, parts)
        numbers = self.learner.optimizer_step(batches, loss_of)
        metrics = _finished(parts)
        if self.control is not None:
            self.control.saw(metrics[BONUS_ENTROPY])
        return numbers, metrics | self._bonus_weight()

    @torch.no_grad()
    def measure(self, samples: Sequence[Sample]) -> tuple[float, dict[str, float]]:
        """The loss of this process's samples under the present weights, and its metrics.

        Nothing changes; all processes take part. The loss is that of all samples together.
        """
        totals = self._totals(samples)
        if not self._anyone(samples):
            return 0.0, {}
        useful = samples or [PLACEHOLDER]
        batches = self.learner.micro_batches(useful)
        parts: list[Mapping[str, Metric]] = []
        self.learner.model.eval()
        loss_of = self._loss(useful, batches, None, totals, parts)
        loss = torch.stack([loss_of(batch).detach() for batch in batches]).sum()
        return float(self.learner.summed(loss)), _finished(parts) | self._bonus_weight()

    def _bonus_weight(self) -> dict[str, float]:
        """What stands in the log of the entropy bonus; nothing where there is none."""
        weight = self.config.entropy_coef if self.control is None else self.control.weight
        return {"entropy_coef": weight} if weight or self.control is not None else {}

    def _loss(
        self,
        useful: Sequence[Sample],
        batches: Sequence[MicroBatch],
        before: Before | None,
        totals: Totals,
        parts: list[Mapping[str, Metric]],
    ) -> Callable[[MicroBatch], Tensor]:
        """The loss of a micro-batch, which adds its metrics to ``parts``."""
        threshold, bonus_tokens = self._entropy_threshold(batches)
        totals = replace(totals, entropy_tokens=bonus_tokens)
        options = loss_options(self.config)
        if self.control is not None:
            options = replace(options, entropy_coef=self.control.applied())

        def loss_of(batch: MicroBatch) -> Tensor:
            tokens = self._tokens(batch, useful, before)
            ratio = self._ratio(tokens)
            result = policy_loss(
                self.config.loss_type,
                tokens,
                options,
                totals,
                entropy_threshold=threshold,
                importance_ratio=ratio,
            )
            if useful[0] is not PLACEHOLDER:
                parts.extend([result.metrics, correction_metrics(tokens, ratio)])
            return result.loss

        return loss_of

    def _tokens(
        self, batch: MicroBatch, samples: Sequence[Sample], before: Before | None
    ) -> TokenBatch:
        temperature = self.config.temperature
        logprobs, entropies = self.learner.score(batch, temperature=temperature, with_entropy=True)
        batch = batch.to(logprobs.device)
        rows = [samples[index] for index in batch.indices]
        return batch.token_batch(
            logprobs,
            old_logprobs=_of_rows(before.policy, rows, logprobs) if before else None,
            ref_logprobs=_of_rows(before.reference, rows, logprobs)
            if before and self.reference
            else self._reference_logprobs(batch),
            entropies=entropies,
        )

    def _reference_logprobs(self, batch: MicroBatch) -> Tensor | None:
        if self.reference is None:
            return None
        with self.learner.autocast():
            return self.reference.logprobs(
                batch,
                temperature=self.config.temperature,
                chunk_tokens=self.config.logits_chunk_tokens,
            )

    def _ratio(self, tokens: TokenBatch) -> ImportanceRatio | None:
        # The sampler's logprobs are those of what top-p and the like left of the distribution. The
        # ratio to the whole one would shrink with every token until nothing is learned.
        if not self.config.importance_sampling_correction or self.config.is_sampling_filtered():
            return None
        return importance_ratio(
            tokens,
            self.config.importance_sampling_mode,
            clip_min=self.config.importance_sampling_clip_min,
            clip_max=self.config.importance_sampling_clip_max,
        )

    def _entropy_threshold(
        self, batches: Sequence[MicroBatch]
    ) -> tuple[float | None, float | None]:
        """The least entropy of a token that is trained, and how many tokens reach it."""
        quantile = self.config.top_entropy_quantile
        if quantile >= 1:
            return None, None
        values: list[Tensor] = []
        with torch.no_grad():
            for batch in batches:
                temperature = self.config.temperature
                _, entropies = self.learner.score(batch, temperature=temperature, with_entropy=True)
                values.append(entropies)  # type: ignore[arg-type]
        every = torch.cat(gather_object([value.cpu() for value in values]))
        threshold = entropy_threshold(every, torch.ones_like(every, dtype=torch.bool), quantile)
        return threshold, None if threshold is None else float((every >= threshold).sum())

    def _totals(self, samples: Sequence[Sample]) -> Totals:
        own = Totals.of_samples(samples)
        counts = torch.tensor(
            [own.tokens, own.rows], dtype=torch.float64, device=self.learner.device
        )
        tokens, rows = self.learner.summed(counts).tolist()
        return Totals(tokens=tokens, rows=rows)

    def _uses_zero_advantage(self) -> bool:
        config = self.config
        has_bonus = config.entropy_coef or config.use_adaptive_entropy
        return bool(config.beta or has_bonus or config.top_entropy_quantile < 1)

    def _anyone(self, samples: Sequence[Sample]) -> bool:
        count = torch.tensor(len(samples), device=self.learner.device)
        return int(self.learner.summed(count)) > 0


def _finished(parts: list[Mapping[str, Metric]]) -> dict[str, float]:
    """The metrics of a step from those of its micro-batches on all processes."""
    return finish_metrics(combine_metrics(gather_object(parts)))


def _by_row(rows: Sequence[Sample], logprobs: Tensor) -> dict[int, Tensor]:
    parts = logprobs.split([row.trained_tokens() for row in rows])
    return {id(row): part for row, part in zip(rows, parts, strict=True)}


def _of_rows(known: Mapping[int, Tensor], rows: Sequence[Sample], like: Tensor) -> Tensor:
    parts = [like.new_zeros(0) if row is PLACEHOLDER else known[id(row)] for row in rows]
    return torch.cat(parts).to(like.device)


def _with_advantage(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Rows that have a gradient: every loss is proportional to the advantage but for KL and bonus.

    Their tokens still count in the totals, so the loss is the same as with all rows.
    """
    return [sample for sample in samples if sample.advantage != 0]

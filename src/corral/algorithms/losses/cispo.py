"""CISPO: a policy gradient weighted by the capped ratio, so that no token loses its gradient."""

from corral.algorithms.losses.inputs import Term, TermInputs


def capped_policy_gradient(inputs: TermInputs) -> Term:
    """``−stopgrad(min(ρ, ε_high))·A·logprob``; ε_high is the cap itself, not 1 + ε_high.

    Source: MiniMax-M1's CISPO as in TRL 1.16's GRPO trainer The default cap of 0.2 makes every
    weight small; 5 is a usual choice.
    """
    cap = inputs.options.upper()
    weight = inputs.ratio.detach().clamp(max=cap)
    is_capped = (inputs.ratio > cap) & (inputs.advantages > 0)
    return Term(
        values=-weight * inputs.advantages * inputs.batch.logprobs,
        metrics={"cispo_clip_ratio": inputs.share_of_tokens(is_capped)},
    )

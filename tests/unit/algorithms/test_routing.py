"""The balance loss of a mixture of experts, whole and in parts."""

import pytest
import torch
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from corral.algorithms.routing import balance_loss, routing_of

CHOSEN, EXPERTS, LAYERS = 2, 5, 3


def logits(lines: int, length: int, seed: int = 0) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    shape = (lines * length, EXPERTS)
    return tuple(torch.randn(shape, generator=generator).double() for _ in range(LAYERS))


def test_equal_use_of_all_experts_costs_their_number_per_token() -> None:
    # Two layers of one token each: the first two experts, then the last two.
    one = torch.log(torch.tensor([[0.4, 0.4, 0.1, 0.1]]))
    routing = routing_of([one, one.flip(-1)], None, chosen=2)
    assert routing.counts.tolist() == [1, 1, 1, 1]
    assert balance_loss(routing, routing.counts, chosen=2).item() == pytest.approx(2.0)
    # All to the same two: 4 experts · (1 · 0.4 + 1 · 0.4).
    uneven = routing_of([one, one], None, chosen=2)
    assert balance_loss(uneven, uneven.counts, chosen=2).item() == pytest.approx(3.2)


@pytest.mark.parametrize("is_masked", [True, False])
def test_the_loss_of_a_batch_is_that_of_transformers(is_masked: bool) -> None:
    layers = logits(3, 4)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]]) if is_masked else None
    routing = routing_of(layers, mask, chosen=CHOSEN)
    expected = load_balancing_loss_func(layers, EXPERTS, CHOSEN, mask)
    torch.testing.assert_close(balance_loss(routing, routing.counts, chosen=CHOSEN), expected)


def test_shares_of_a_step_add_up_to_its_loss_and_gradient() -> None:
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]])

    def gradient(cuts: list[slice]) -> tuple[float, torch.Tensor]:
        layers = [layer.requires_grad_() for layer in logits(3, 4)]
        lines = [layer.view(3, 4, -1) for layer in layers]
        parts = [
            routing_of([each[cut].flatten(0, 1) for each in lines], mask[cut], chosen=CHOSEN)
            for cut in cuts
        ]
        counts = torch.stack([part.counts for part in parts]).sum(dim=0)
        total = torch.stack([balance_loss(part, counts, chosen=CHOSEN) for part in parts]).sum()
        total.backward()
        return total.item(), torch.cat([layer.grad for layer in layers])

    whole, cut = gradient([slice(3)]), gradient([slice(1), slice(1, 3)])
    assert cut[0] == pytest.approx(whole[0], rel=1e-6)
    torch.testing.assert_close(cut[1], whole[1])
    assert whole[1].abs().max() > 1e-3

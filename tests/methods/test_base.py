from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from pinoise.errors import UserError
from pinoise.methods import Method
from pinoise.methods.base import full_precision, two_views
from pinoise.views import Batch


class Counter(nn.Module):
    """Mean and size of every sample, and a record of the shapes that passed."""

    out_features = 2

    def __init__(self) -> None:
        super().__init__()
        self.passes: list[tuple[int, ...]] = []

    def forward(self, x: Tensor) -> Tensor:
        self.passes.append(tuple(x.shape))
        flat = x.flatten(1)
        return torch.stack([flat.mean(dim=1), torch.full((len(x),), float(flat.shape[1]))], dim=1)


def batch(x: Tensor, features: Tensor | None = None) -> Batch:
    return Batch(x, torch.arange(len(x)), features=features)


def test_views_of_one_shape_pass_together_and_known_features_need_no_pass() -> None:
    samples = [torch.randn(3, 1, 8, 8), torch.randn(3, 1, 8, 8), torch.randn(3, 1, 4, 4), torch.randn(3, 1, 4, 4)]
    encoder, known = Counter(), torch.randn(3, 2)
    views = [batch(torch.randn(3, 8), known), *map(batch, samples), batch(torch.randn(3, 8), known)]
    found = Method(encoder).encode(views)
    assert encoder.passes == [(6, 1, 8, 8), (6, 1, 4, 4)]
    torch.testing.assert_close(found, torch.cat([known, *map(Counter(), samples), known]))
    assert Method(encoder).encode([batch(torch.randn(3, 8), known)]) is known


def test_a_plain_method_has_nothing_to_do_after_a_step() -> None:
    Method(nn.Identity()).after_step(0, 10)


def test_a_plain_method_takes_two_views_that_others_make_and_guesses_no_loss() -> None:
    method = Method(nn.Identity())
    assert (method.makes_views, method.takes_local_views, method.least_loss) == (False, False, 0.0)
    assert method.guessing_loss(8) is None
    with pytest.raises(NotImplementedError):
        method([batch(torch.zeros(1, 2))] * 2)


def test_full_precision_switches_autocast_off_and_leaves_it_as_it_was() -> None:
    with torch.autocast("cpu", dtype=torch.float16):
        with full_precision(torch.ones(1, dtype=torch.float16)):
            assert not torch.is_autocast_enabled("cpu")
        assert torch.is_autocast_enabled("cpu")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_full_precision_has_32_bits_or_more_and_passes_gradients(dtype: torch.dtype) -> None:
    x = torch.randn(3).to(dtype).requires_grad_()
    with full_precision(x) as (wide,):
        assert torch.equal(wide.double(), x.double())
        assert wide.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        wide.square().sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())


@pytest.mark.parametrize("count", [0, 1, 3])
def test_two_views_are_two(count: int) -> None:
    with pytest.raises(UserError, match=rf"'byol' compares two views and was given {count}: choose another pairing"):
        two_views([batch(torch.zeros(1, 2))] * count, method="byol")

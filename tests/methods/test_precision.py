"""Every loss is computed in 32 bits at least."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from pinoise.methods import byol_loss, dino_loss, info_nce, negative_cosine, nt_xent

LOSSES: dict[str, Callable[..., Tensor]] = {
    "simclr": lambda a, b, others: nt_xent(a, b, temperature=0.01),
    "moco": lambda a, b, others: info_nce(a, b, others, temperature=0.01),
    "byol": lambda a, b, others: byol_loss(a, b),
    "simsiam": lambda a, b, others: negative_cosine(a, b),
    "dino": lambda a, b, others: dino_loss(torch.stack([a, b]), torch.stack([b, a]), others[0], temperature=0.01),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_a_loss_of_half_precision_is_that_of_the_same_numbers_in_full(name: str, dtype: torch.dtype) -> None:
    inputs = [nn.functional.normalize(torch.randn(6, 8), dim=1).to(dtype) for _ in range(3)]
    found = LOSSES[name](*inputs)
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    exact = LOSSES[name](*(x.double() for x in inputs))
    torch.testing.assert_close(found.double(), exact, rtol=1e-5, atol=1e-4)

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors
from torch import nn

from pinoise.choices import EMBEDDINGS
from pinoise.errors import UserError
from pinoise.networks import Embedding, MLPEncoder, join
from pinoise.networks.embedding import LEARNED_SHARE


def slow_join(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """One sample and one number at a time."""
    rows = []
    for sample, learned in zip(x, z, strict=True):
        flat = [float(value) for value in sample.ravel()]
        length = math.sqrt(sum(float(value) ** 2 for value in learned))
        rows.append(
            [value / math.sqrt(len(flat)) for value in flat] + [LEARNED_SHARE * float(v) / length for v in learned]
        )
    return np.array(rows)


@pytest.mark.parametrize("shape", [(7,), (2, 3), (2, 2, 3)])
def test_joining_is_the_equation(shape: tuple[int, ...]) -> None:
    x, z = torch.randn(5, *shape), torch.randn(5, 4)
    np.testing.assert_allclose(join(x, z).numpy(), slow_join(x.numpy(), z.numpy()), rtol=1e-5)


def test_the_learned_part_has_its_share_of_the_length_of_a_typical_sample() -> None:
    joined = join(torch.randn(5000, 40), 100 * torch.randn(5000, 3))
    torch.testing.assert_close(joined[:, 40:].norm(dim=1), torch.full((5000,), LEARNED_SHARE))
    assert 0 < LEARNED_SHARE < 1
    assert joined[:, :40].square().sum(dim=1).mean() == pytest.approx(1, rel=0.02)


def test_what_is_learned_decides_between_equal_samples_and_the_sample_between_equal_codes() -> None:
    x = torch.tensor([[0.0], [0.0], [0.0], [1.0]])
    z = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [1.0, 0.0]])
    near = NearestNeighbors(n_neighbors=4).fit(join(x, z)).kneighbors(join(x, z)[:1], return_distance=False)
    assert near.tolist() == [[0, 1, 2, 3]]


def test_a_code_of_zeros_stays_finite() -> None:
    assert join(torch.ones(2, 3), torch.zeros(2, 4))[:, 3:].tolist() == [[0.0] * 4] * 2


@pytest.mark.parametrize("shape", [(6,), (2, 3)])
def test_each_embedding_has_its_width_and_nothing_of_the_sample_is_lost_in_the_joined_one(
    shape: tuple[int, ...],
) -> None:
    encoder = MLPEncoder(shape, hidden=8, out_features=4)
    x = torch.randn(5, *shape)
    with torch.no_grad():
        assert torch.equal(Embedding(encoder, name="learned")(x), encoder(x))
        joined = Embedding(encoder, name="joined")(x)
    assert joined.shape == (5, 6 + 4)
    torch.testing.assert_close(joined[:, :6] * math.sqrt(6), x.flatten(1))


def test_an_embedding_keeps_the_precision_of_its_input() -> None:
    embedding = Embedding(nn.Linear(3, 2).double(), name="joined")
    assert embedding(torch.zeros(1, 3, dtype=torch.float64)).dtype == torch.float64


def test_an_unknown_embedding_is_answered_with_the_nearest() -> None:
    assert EMBEDDINGS == ("joined", "learned")
    with pytest.raises(UserError, match="unknown embedding 'joint': did you mean 'joined'"):
        Embedding(nn.Linear(3, 2), name="joint")  # type: ignore[arg-type]

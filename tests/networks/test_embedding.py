from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors
from torch import Tensor, nn

from pinoise.choices import EMBEDDINGS
from pinoise.errors import UserError
from pinoise.networks import Blocks, Embedding, MLPEncoder, Raw
from pinoise.networks.embedding import LEARNED_WEIGHT, measure_blocks, raw_block


def slow_joined(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """One sample and one number at a time, in units of the same samples."""
    flat = [[float(value) for value in sample.ravel()] for sample in x]
    learned = [[float(v) / math.sqrt(sum(float(u) ** 2 for u in row)) for v in row] for row in z]
    means = [sum(column) / len(learned) for column in zip(*learned, strict=True)]
    learned = [[value - mean for value, mean in zip(row, means, strict=True)] for row in learned]
    columns = (zip(*flat, strict=True), zip(*learned, strict=True))
    left, right = (math.sqrt(sum(float(np.var(column)) for column in block)) for block in columns)
    return np.array(
        [
            row + [LEARNED_WEIGHT * left / right * value for value in code]
            for row, code in zip(flat, learned, strict=True)
        ]
    )


@pytest.mark.parametrize("shape", [(7,), (2, 3), (2, 2, 3)])
def test_the_joined_embedding_is_the_equation(shape: tuple[int, ...]) -> None:
    encoder, x = MLPEncoder(shape, hidden=8, out_features=4), torch.randn(9, *shape)
    embedding = Embedding.measured(encoder, x.split(200), name="joined")
    with torch.no_grad():
        np.testing.assert_allclose(
            embedding(x).numpy(), slow_joined(x.numpy(), encoder(x).numpy()), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("features", [3, 3000])
def test_blocks_keep_their_shares_however_many_features_there_are(features: int) -> None:
    encoder = nn.Linear(features, 5)
    x = 100 * torch.randn(400, features) + 7
    with torch.no_grad():
        variance = Embedding.measured(encoder, x.split(200), name="joined")(x).var(dim=0, correction=0)
        alone = Embedding.measured(encoder, x.split(200), name="learned")(x).var(dim=0, correction=0)
    raw, learned = float(variance[:features].sum()), float(variance[features:].sum())
    assert raw == pytest.approx(float(x.var(dim=0, correction=0).sum()), rel=1e-3)
    assert learned / raw == pytest.approx(LEARNED_WEIGHT**2, rel=1e-3)
    assert float(alone.sum()) == pytest.approx(raw, rel=1e-3)


class Table(nn.Module):
    """A code for each sample, looked up by its last feature."""

    def __init__(self, codes: Tensor) -> None:
        super().__init__()
        self.codes = codes

    def forward(self, x: Tensor) -> Tensor:
        return self.codes[x[:, -1].long()]


def test_what_is_learned_decides_between_equal_samples_and_the_sample_between_equal_codes() -> None:
    codes = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [1.0, 0.0]])
    x = torch.tensor([[0.0], [0.0], [0.0], [90.0]])
    numbered = torch.cat([x, torch.arange(4.0)[:, None]], dim=1)
    blocks = measure_blocks([(x, codes)])
    joined = torch.cat([x, blocks.factor * (nn.functional.normalize(codes) - blocks.centre)], dim=1)
    near = NearestNeighbors(n_neighbors=4).fit(joined).kneighbors(joined[:1], return_distance=False)
    assert near[0, :2].tolist() == [0, 1]
    embedding = Embedding(Table(codes), name="learned", blocks=blocks)
    torch.testing.assert_close(embedding(numbered), joined[:, 1:])


def test_a_code_that_does_not_vary_adds_nothing() -> None:
    for codes in (torch.zeros(3, 2), torch.ones(3, 2)):
        embedding = Embedding.measured(Table(codes), [torch.arange(3.0)[:, None]], name="joined")
        assert not embedding(torch.arange(3.0)[:, None])[:, 1:].any()


def test_an_empty_row_is_no_neighbour_of_everyone() -> None:
    texts = torch.eye(6)
    texts[5] = 0  # no known word
    x = texts - texts.mean(dim=0)
    away = torch.cdist(raw_block(x, unit_rows=True), raw_block(x, unit_rows=True))[5, :5]
    among = torch.cdist(raw_block(x, unit_rows=True), raw_block(x, unit_rows=True))[0, 1:5]
    assert bool((torch.cdist(x, x)[5, :5] < 0.9 * torch.cdist(x, x)[0, 1:5].min()).all())
    assert bool((away > 0.9 * among.min()).all())
    torch.testing.assert_close(Raw(unit_rows=True)(x).square().sum(dim=1), torch.full((6,), 6.0))
    assert torch.equal(Raw(unit_rows=False)(x.reshape(6, 2, 3)), x)


def test_an_unknown_embedding_is_answered_with_the_nearest() -> None:
    assert EMBEDDINGS == ("joined", "learned")
    with pytest.raises(UserError, match="unknown embedding 'joint': did you mean 'joined'"):
        Embedding(nn.Linear(3, 2), name="joint", blocks=Blocks(*torch.zeros(2)))  # type: ignore[arg-type]

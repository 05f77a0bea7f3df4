from __future__ import annotations

import numpy as np
import pytest
import torch

from pinoise.evaluation.softmax import fit_softmax, softmax_regression


def slow_softmax(
    x: np.ndarray, y: np.ndarray, *, n_classes: int, epochs: int, batch_size: int, learning_rate: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Adam written out in float64, row by row, from the documented start and order."""
    generator = torch.Generator().manual_seed(seed)
    d = x.shape[1]
    bound = d**-0.5
    weight = torch.empty(n_classes, d).uniform_(-bound, bound, generator=generator).double().numpy()
    bias = torch.empty(n_classes).uniform_(-bound, bound, generator=generator).double().numpy()
    parameter = np.column_stack([weight, bias])
    first, second, step = np.zeros_like(parameter), np.zeros_like(parameter), 0
    for _ in range(epochs):
        order = torch.randperm(len(x), generator=generator).numpy()
        for start in range(0, len(x), batch_size):
            rows = order[start : start + batch_size]
            gradient = np.zeros_like(parameter)
            for row in rows:
                features = np.append(x[row], 1.0)
                odds = np.exp(parameter @ features)
                error = odds / odds.sum() - (np.arange(n_classes) == y[row])
                gradient += np.outer(error, features) / len(rows)
            step += 1
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            root = np.sqrt(second / (1 - 0.999**step))
            parameter = parameter - learning_rate * first / (1 - 0.9**step) / (root + 1e-8)
    return parameter[:, :-1], parameter[:, -1]


def fitted(x: torch.Tensor, y: torch.Tensor, *, epochs: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    return fit_softmax(x, y, epochs=epochs, batch_size=256, learning_rate=1e-3, seed=seed)


@pytest.mark.parametrize("batch_size", [7, 32, 100])
def test_weights_equal_a_slow_adam(batch_size: int) -> None:
    random = np.random.default_rng(0)
    x, y = random.standard_normal((60, 5)), random.integers(0, 3, 60)
    expected = slow_softmax(x, y, n_classes=3, epochs=4, batch_size=batch_size, learning_rate=1e-2, seed=3)
    found = fit_softmax(
        torch.tensor(x, dtype=torch.float32),
        torch.tensor(y),
        epochs=4,
        batch_size=batch_size,
        learning_rate=1e-2,
        seed=3,
    )
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(f.numpy(), e, atol=1e-4)


def test_the_seed_decides_and_the_global_state_is_untouched() -> None:
    x = torch.randn(50, 4, generator=torch.Generator().manual_seed(1))
    y = torch.arange(50) % 2
    state = torch.get_rng_state()
    weights = [fitted(x, y, epochs=2, seed=seed)[0] for seed in (5, 5, 6)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert torch.equal(torch.get_rng_state(), state)


def test_labels_need_not_be_consecutive_and_unknown_ones_are_wrong() -> None:
    x = np.repeat(np.eye(2), 5000, axis=0)
    y = np.repeat([40, -3], 5000)
    y_test = y.copy()
    y_test[:2500] = 99
    assert softmax_regression(x, y, x, y_test) == 0.75

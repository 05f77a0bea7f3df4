"""Softmax regression as the paper fits it: one linear layer, Adam, a fixed number of epochs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from pinoise.data.dataset import Array
from pinoise.evaluation.embedding import check_labelled


def fit_softmax(
    x: Tensor, y: Tensor, *, epochs: int = 50, batch_size: int = 256, learning_rate: float = 1e-3, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Return the weight (classes, d) and bias (classes,) after the last epoch of Adam on the mean cross-entropy.

    One generator seeded with ``seed`` draws the weight, then the bias, both from U(−1/√d, 1/√d), then the order of the
    rows of each epoch; torch's global generator is left alone. The last batch of an epoch may be smaller.

    >>> y = torch.tensor([0, 1])
    >>> weight, bias = fit_softmax(torch.eye(2), y)
    >>> weight.shape, bias.shape
    (torch.Size([2, 2]), torch.Size([2]))
    """
    generator, n_classes = torch.Generator().manual_seed(seed), int(y.max()) + 1
    bound = 1 / math.sqrt(x.shape[1])
    weight = torch.empty(n_classes, x.shape[1]).uniform_(-bound, bound, generator=generator)
    bias = torch.empty(n_classes).uniform_(-bound, bound, generator=generator)
    target = torch.nn.functional.one_hot(y, n_classes).to(x.dtype)
    optimiser = torch.optim.Adam([weight, bias], lr=learning_rate, fused=True)
    with one_thread():
        for _ in range(epochs):
            for rows in torch.split(torch.randperm(len(x), generator=generator), batch_size):
                batch = x.index_select(0, rows)
                # The gradient in closed form: on a layer this small, autograd would cost more than the products.
                probability = torch.addmm(bias, batch, weight.T).softmax(dim=1)
                error = (probability - target.index_select(0, rows)) / len(rows)  # (m, classes)
                weight.grad = error.T @ batch
                bias.grad = error.sum(dim=0)
                optimiser.step()
    return weight, bias


def softmax_regression(train: Array, y: Array, test: Array, y_test: Array, *, seed: int = 0) -> float:
    """Return the test accuracy of softmax regression after its last epoch, never the best one.

    The embedding is taken as it is, without standardisation, as in the paper.

    >>> import numpy as np
    >>> x, y = np.repeat(np.eye(3), 4000, axis=0), np.repeat([0, 1, 2], 4000)
    >>> softmax_regression(x, y, x, y)
    1.0
    """
    check_labelled(train, y, test, y_test)
    classes, label = np.unique(y, return_inverse=True)
    x, number = torch.tensor(train, dtype=torch.float32), torch.tensor(label, dtype=torch.int64)
    weight, bias = fit_softmax(x, number, seed=seed)
    logits = torch.addmm(bias, torch.tensor(test, dtype=torch.float32), weight.T)
    return float(np.mean(classes[logits.argmax(dim=1).numpy()] == y_test))


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch on one thread: a step is too small to share, and on a busy machine the threads wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)

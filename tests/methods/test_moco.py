from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from tests.methods.problems import Pair, batches, slow_info_nce, slow_network
from torch import nn

from pinoise.errors import UserError
from pinoise.methods import MoCo
from pinoise.views import Batch


def test_the_method_averages_both_directions_between_query_and_key_network(
    encoder: nn.Module,
    head: nn.Module,
    pair: Pair,
) -> None:
    method = MoCo(encoder, head, temperature=0.3, queue=13).double()
    for parameter in method.key_network.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
    network = method.key_network.network
    query = [slow_network(head)(slow_network(encoder)(x.numpy())) for x in pair]
    key = [slow_network(network[1])(slow_network(network[0])(x.numpy())) for x in pair]
    queue = method.queue.numpy()
    expected = [
        (slow_info_nce(query[0][i], key[1][i], queue, 0.3)
         + slow_info_nce(query[1][i], key[0][i], queue, 0.3)) / 2
        for i in range(6)
    ]  # fmt: skip
    np.testing.assert_allclose(method(batches(*pair)).detach().numpy(), expected, atol=1e-5)


def test_the_queue_after_many_odd_batches_is_a_list_of_the_latest_keys(encoder: nn.Module, head: nn.Module) -> None:
    method = MoCo(encoder, head, momentum=0.5, queue=17).double()
    naive, naive_rows = method.queue.tolist(), [-1] * 17
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
    oldest = 0
    for step in range(40):
        views = torch.randn(2, 1 + 3 * step % 8, 4, dtype=torch.float64)
        rows = torch.randperm(50)[: views.shape[1]]
        with torch.no_grad():
            keys = nn.functional.normalize(method.key_network(views.flatten(0, 1)), dim=1).tolist()
        optimizer.zero_grad()
        method([Batch(x, rows) for x in views]).mean().backward()
        optimizer.step()
        method.after_step(step, 40)
        for key, row in zip(keys, 2 * rows.tolist(), strict=True):
            naive[oldest], naive_rows[oldest] = key, row
            oldest = oldest + 1 if oldest + 1 < 17 else 0
        np.testing.assert_allclose(method.queue.numpy(), naive, atol=1e-12)
        assert method.queue_rows.tolist() == naive_rows
        assert int(method.position) == oldest


def test_a_sample_s_own_keys_in_the_queue_are_not_its_negatives(
    encoder: nn.Module, head: nn.Module, pair: Pair
) -> None:
    method = MoCo(encoder, head, temperature=0.3, queue=32).double()
    rows = torch.tensor([7, 2, 9, 0, 4, 5])
    for step, past in enumerate(([0, 1, 2, 3, 4, 5], [9, 8, 7, 2, 1, 0])):
        method([Batch(torch.randn(6, 4, dtype=torch.float64), torch.tensor(past)) for _ in range(2)])
        method.after_step(step, 10)
    owners = [0, 1, 2, 3, 4, 5] * 2 + [9, 8, 7, 2, 1, 0] * 2 + [-1] * 8
    losses = method([Batch(x, rows) for x in pair]).tolist()
    with torch.no_grad():
        query = [head(encoder(x)).numpy() for x in pair]
        key = [method.key_network(x).numpy() for x in pair]
    for i, row in enumerate(rows.tolist()):
        others = np.stack([k for k, owner in zip(method.queue.numpy(), owners, strict=True) if owner != row])
        assert len(others) == 32 - {7: 2, 2: 4, 9: 2, 0: 4, 4: 2, 5: 2}[row]
        expected = sum(slow_info_nce(query[a][i], key[1 - a][i], others, 0.3) for a in (0, 1)) / 2
        assert losses[i] == pytest.approx(expected, abs=1e-9)


def test_a_step_enqueues_the_keys_of_its_last_look_once(encoder: nn.Module, head: nn.Module) -> None:
    method = MoCo(encoder, head, queue=32).double()
    before = method.queue.clone()
    method(batches(*torch.randn(2, 3, 4, dtype=torch.float64)))
    last = torch.randn(2, 3, 4, dtype=torch.float64)
    keys = nn.functional.normalize(method.key_network(last.flatten(0, 1)), dim=1)
    method(batches(*last))
    assert torch.equal(method.queue, before)
    method.after_step(0, 2)
    torch.testing.assert_close(method.queue[:6], keys)
    after = method.queue.clone()
    assert torch.equal(after[6:], before[6:])
    method.after_step(1, 2)
    assert torch.equal(method.queue, after)
    assert int(method.position) == 6


def test_guessing_has_the_loss_of_projections_that_are_all_equal(encoder: nn.Module) -> None:
    head = nn.Linear(5, 3).double()
    nn.init.zeros_(head.weight)
    method = MoCo(encoder, head, queue=8).double()
    views = batches(*torch.randn(2, 4, 4, dtype=torch.float64))
    method(views)
    method.after_step(0, 1)
    others = [view._replace(rows=view.rows + 4) for view in views]
    assert method(others).tolist() == pytest.approx([method.guessing_loss(4)] * 4)
    assert method(views).tolist() == pytest.approx([math.log(8 - 2 + 1)] * 4)  # two keys of the queue are its own


def test_bad_settings_are_refused(encoder: nn.Module, head: nn.Module) -> None:
    with pytest.raises(UserError, match=r"temperature is 0.0: it must be positive"):
        MoCo(encoder, head, temperature=0.0)
    with pytest.raises(UserError, match=r"momentum is 1.5: it must be from 0 to 1"):
        MoCo(encoder, head, momentum=1.5)
    with pytest.raises(UserError, match=r"queue is 0: it must be from 1 to"):
        MoCo(encoder, head, queue=0)
    with pytest.raises(UserError, match=r"the head .* does not state its output size"):
        MoCo(encoder, nn.Sequential(nn.Linear(5, 3)))

from __future__ import annotations

import pytest
import torch
from torch import nn

from pinoise.modes import frozen_statistics


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3, momentum=0.3), nn.BatchNorm1d(3, track_running_stats=False))


@pytest.mark.parametrize("training", [True, False])
def test_frozen_statistics_change_no_output_and_no_buffer(training: bool) -> None:
    net, x = network().train(training), 3 + torch.randn(5, 2)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    with frozen_statistics(net):
        found = net(x)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert torch.equal(found, net(x))
    assert (int(net.state_dict()["1.num_batches_tracked"]) == 1) == training


def test_statistics_are_collected_again_after_an_error() -> None:
    net = network()
    with pytest.raises(RuntimeError), frozen_statistics(net):
        net(torch.randn(5, 7))
    assert [net[1].track_running_stats, net[2].track_running_stats] == [True, False]

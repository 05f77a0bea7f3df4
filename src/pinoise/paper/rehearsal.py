"""A training step on samples that stand in for data: what a configuration costs does not depend on their values."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)
from torch.overrides import TorchFunctionMode

from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.modes import flushed_denormals, keep_freed_memory
from pinoise.networks.mlp import width_of
from pinoise.noise.support import SUPPORT_ROWS, TABLE_ROWS
from pinoise.paper.counting import Operations, count_operations, counting, counting_saved
from pinoise.training.build import build_standardizer, seeded_model
from pinoise.training.build.parts import memory_gb
from pinoise.training.config import Settings, complete, takes_images
from pinoise.training.loop import LOWER, Machine, make_optimizer, shuffled_rows
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.run import machine_of
from pinoise.views import IMAGE_PRESETS, Batch, ImagePipeline

_POOL = 256  # samples that stand for all rows


class StandIn:
    """Any number of rows, of which only a few differ, so that they need little memory."""

    def __init__(self, pool: Tensor, rows: int) -> None:
        self._pool, self._rows = pool, rows

    def __len__(self) -> int:
        return self._rows

    def __getitem__(self, rows: Tensor) -> Tensor:
        return self._pool.index_select(0, rows % len(self._pool))


def stand_in(settings: Settings, shape: tuple[int, ...], rows: int) -> tuple[Standardizer, Rows]:
    """Return random samples of a shape as training rows, bytes for images, with their units."""
    draw, size = np.random.default_rng(0), (min(rows, _POOL), *shape)
    x = draw.integers(0, 256, size, np.uint8) if takes_images(settings) else draw.normal(size=size)
    standardizer = build_standardizer(settings, x)
    return standardizer, StandIn(make_rows(x, standardizer)[torch.arange(len(x))], rows)


class Rehearsal:
    """A model of a configuration for samples of a shape, whose steps can be counted or timed.

    Args:
        settings: the configuration.
        shape: the shape of one sample, as it is stored.
        rows: the number of training rows.

    >>> rehearsal = Rehearsal(Settings(), (64,), rows=1437)
    >>> forward, products, saved = rehearsal.count_step()
    >>> forward.total < products, saved > 256 * 64 * 4
    (True, True)
    """

    def __init__(self, settings: Settings, shape: tuple[int, ...], rows: int) -> None:
        self.settings = settings = complete(settings)
        self.batch_size = min(settings.training.batch_size, rows)
        if settings.noise.support_neighbours and rows <= TABLE_ROWS:
            # To look neighbours up costs the same in a table of any length.
            rows = min(rows, max(SUPPORT_ROWS, self.batch_size))
        self.standardizer, self.rows = stand_in(settings, shape, rows)
        self.model: ContrastiveModel = seeded_model(settings, self.standardizer, self.rows, pretrained=False)

    def memory_gb(self) -> float | None:
        """Return the memory of the device that the settings name, or None if it is unknown."""
        device = machine_of(self.settings.training).device
        if device.type == "cuda":
            return torch.cuda.get_device_properties(device).total_memory / 1e9
        return memory_gb() if device.type == "cpu" else None

    def count_sample(self) -> Operations:
        """Return the operations of one sample through the encoder, the head and the generator, each once."""
        method, noise, x = self.model.method, self.model.noise, self.rows[torch.arange(1)]
        parts: list[tuple[nn.Module, Tensor]] = [(method.encoder, x)]
        if isinstance(head := getattr(method, "head", None), nn.Module):
            parts.append((head, torch.zeros(1, width_of("encoder", method.encoder))))
        if noise is not None:
            parts.append((noise.generator, x))
        with FakeTensorMode(allow_non_fake_inputs=True):
            return reduce(Operations.plus, (count_operations(part, given) for part, given in parts))

    def count_step(self) -> tuple[Operations, int, int]:
        """Return the operations of a step's forward pass, its multiply-accumulates, and the bytes that autograd keeps.

        The whole batch is counted, but nothing is computed and no memory is taken. The multiply-accumulates are those
        of the forward and the backward pass.
        """
        model, size = self.model.train(), self.batch_size
        if model.noise is not None and model.noise.support is not None:  # finds neighbours, which depend on values
            some = torch.arange(2)
            model.noise.sample(self.rows[some], rows=some)
        for view in model.modules():
            if isinstance(view, ImagePipeline):  # colours have no products that count, and kornia looks at values
                view.preset = IMAGE_PRESETS["crop"]
        weights = [*model.parameters(), *model.buffers()]
        fake = FakeTensorMode(allow_non_fake_inputs=True)
        known = [*weights, *map(fake.from_tensor, weights)]
        precision = LOWER.get(self.settings.training.precision)
        lower = nullcontext() if precision is None else torch.autocast("cpu", precision)
        try:
            with fake, _AnyValue(), counting() as tally, counting_saved(known) as saved:
                batch = Batch(torch.empty(size, *self.standardizer.shape), torch.arange(size))
                with lower:
                    loss = model(batch).loss
                forward = tally.operations
                loss.backward()
        except (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException) as error:
            raise UserError(
                f"the cost cannot be counted, because a part looks at the values of a batch ({error}): time its steps."
            ) from None
        return forward, tally.operations.multiply_accumulates, saved.peak

    def time_steps(self, steps: int, *, patience: float) -> tuple[float, int | None]:
        """Return the median seconds of real training steps, and on a GPU the peak memory.

        Args:
            steps: how many are timed, after one that warms up.
            patience: the seconds after which no further step begins. Then the first one counts, if it is the only one.
        """
        step = training_step(self.settings, self.model, self.rows, batch_size=self.batch_size)
        on_gpu = next(self.model.parameters()).device.type == "cuda"
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        seconds: list[float] = []
        with flushed_denormals():
            while len(seconds) <= steps and sum(seconds) < patience:
                began = time.perf_counter()
                step()
                if on_gpu:
                    torch.cuda.synchronize()
                seconds.append(time.perf_counter() - began)
        return float(np.median(seconds[1:] or seconds)), torch.cuda.max_memory_allocated() if on_gpu else None


def training_step(
    settings: Settings, model: ContrastiveModel, rows: Rows, *, batch_size: int, machine: Machine | None = None
) -> Callable[[], None]:
    """Return a function that does one real step of training, with the gather of its rows and the optimiser.

    Args:
        settings: the configuration.
        model: the model to train.
        rows: standardised samples.
        batch_size: the rows of this process in a step.
        machine: one of the processes that train together; None trains in this process alone.
    """
    keep_freed_memory()
    machine = machine or machine_of(settings.training)
    wrapped, optimizer = machine.wrap(model), make_optimizer(model, settings.training, machine.device)
    order = shuffled_rows(len(rows), seed=settings.training.seed, epoch=0)
    per_epoch, count = len(rows) // batch_size, 0

    def step() -> None:
        nonlocal count
        first = count % per_epoch * batch_size
        chosen = order[first : first + batch_size]
        with machine.lowered():
            loss = wrapped(machine.batch(rows, chosen)).loss
        machine.update(loss.float(), optimizer)
        model.after_step(count, count + 1)
        count += 1

    return step


class _AnyValue(TorchFunctionMode):
    """Gives the code that asks for a value of a tensor without values an arbitrary one."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in (Tensor.__int__, Tensor.__float__, Tensor.item):
            return 0
        return False if func is Tensor.__bool__ else func(*args, **(kwargs or {}))

"""What a configuration costs before anyone trains it: FLOPs, weights, memory and time, of its base and of π-noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from pinoise.choices import NOISE_VIEW, OBJECTIVE, VIEW
from pinoise.data.layout import are_images
from pinoise.data.readers import open_for_training
from pinoise.modes import own_modes
from pinoise.paper.catalogue import entry, is_name
from pinoise.paper.counting import Operations
from pinoise.paper.rehearsal import Rehearsal
from pinoise.training.config import Choice, DataSettings, NoiseSettings, Settings, follow_kind, read_choice
from pinoise.training.loop import check_device, plan_epoch

PATIENCE = 30.0  # seconds of timed steps
_STATES = 4  # numbers for every weight: itself, its gradient and Adam's two moments


class Share(NamedTuple):
    """What a model costs, or a share of it."""

    parameters: int  # that are trained
    sample: Operations  # of a forward pass of one sample through the encoder and the head, and the generator
    forward: Operations  # of the forward pass of a step, with all views
    step: int  # multiply-accumulates of a step, with its backward pass
    memory: int  # bytes at the peak of a step
    seconds: float | None = None  # of a step

    def minus(self, other: Share) -> Share:
        """Return what this one costs more than another."""
        seconds = None if self.seconds is None or other.seconds is None else self.seconds - other.seconds
        return Share(
            self.parameters - other.parameters,
            self.sample.plus(other.sample, -1),
            self.forward.plus(other.forward, -1),
            self.step - other.step,
            self.memory - other.memory,
            seconds,
        )


@dataclass(frozen=True)
class Cost:
    """The cost of a configuration: of its base, which is the same without π-noise, and of the whole."""

    shape: tuple[int, ...]
    rows: int
    batch_size: int
    steps: int  # in an epoch
    epochs: int
    base: Share
    whole: Share
    memory_measured: bool = False  # by torch's counter on a GPU, else calculated

    @property
    def added(self) -> Share:
        """What π-noise adds."""
        return self.whole.minus(self.base)

    def seconds_per_epoch(self, share: Share) -> float | None:
        """Return the seconds of an epoch's steps."""
        return None if share.seconds is None else self.steps * share.seconds

    def on_machine(self, flops_per_second: float) -> Cost:
        """Return the cost with the times of a machine of this rate, at which a product and a sum are two operations.

        >>> share = Share(0, Operations(0, 0), Operations(0, 0), step=500, memory=0)
        >>> Cost((2,), 40, 4, steps=10, epochs=1, base=share, whole=share).on_machine(1e3).whole.seconds
        1.0
        """
        base, whole = (share._replace(seconds=2 * share.step / flops_per_second) for share in (self.base, self.whole))
        return replace(self, base=base, whole=whole)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values for JSON."""
        shares = {"base": self.base, "added": self.added, "whole": self.whole}
        return {
            "shape": list(self.shape),
            "rows": self.rows,
            "batch_size": self.batch_size,
            "steps_per_epoch": self.steps,
            "epochs": self.epochs,
            "memory_measured": self.memory_measured,
            **{name: self._share_as_dict(share) for name, share in shares.items()},
        }

    def _share_as_dict(self, share: Share) -> dict[str, Any]:
        return {
            "parameters": share.parameters,
            "flops_sample": share.sample.total,
            "flops_forward": share.forward.total,
            "multiply_accumulates_step": share.step,
            "memory_bytes": share.memory,
            "seconds_per_step": share.seconds,
            "seconds_per_epoch": self.seconds_per_epoch(share),
        }


@own_modes()
def cost_of(
    settings: Settings,
    shape: tuple[int, ...],
    rows: int,
    *,
    timed_steps: int = 0,
    note: Callable[[str], None] = lambda _: None,
) -> Cost:
    """Return the cost of training a configuration on samples of a shape, without training it.

    FLOPs are those of the paper's tables: multiply-accumulates, and 4 operations for every normalised number. Nothing
    is computed to count them. Peak memory is calculated: weights, gradients and Adam's moments, and what autograd keeps
    of a step; buffers that operations use for a moment are not in it. If steps are timed on a GPU, its own counter
    replaces the calculation. Predefined augmentations cost time, but hardly any FLOPs. Reading data is not counted.

    Args:
        settings: the configuration.
        shape: the shape of one sample as it is stored, for images (height, width, channels).
        rows: the number of training rows.
        timed_steps: how many real steps are timed of the base and of the whole, on samples that stand in for the data.
        note: called with a sentence if they cannot be timed.

    >>> from pinoise.training.config import parse_settings
    >>> found = cost_of(parse_settings({"objective": "paper", "noise": {"mean": "learned"}}), (561,), rows=7352)
    >>> f"{256 * found.added.sample.total:.2e}"  # the paper's figure for HAR
    '1.25e+09'
    """
    settings = _countable(settings)
    training = settings.training
    steps, batch_size = plan_epoch(rows, training.batch_size, training.devices * training.nodes)
    alone = settings.model_copy(
        update={"training": training.model_copy(update={"devices": 1, "nodes": 1, "batch_size": batch_size})}
    )
    bare = without_noise(alone)
    base, measured = _share(bare, shape, rows, timed_steps, note)
    whole = base if bare is alone else _share(alone, shape, rows, timed_steps, note)[0]
    return Cost(shape, rows, batch_size, steps, training.epochs, base, whole, memory_measured=measured)


def cost_of_training(
    settings: Settings,
    *,
    timed_steps: int = 0,
    progress: bool = False,
    note: Callable[[str], None] = lambda _: None,
) -> Cost:
    """Return the cost of training a configuration on its own data; ``progress`` shows a bar for a download."""
    check_device(settings.training.device)
    size = size_of_data(settings.data, progress=progress)
    settings = follow_kind(settings, images=size.images).settings
    return cost_of(settings, size.shape, size.rows, timed_steps=timed_steps, note=note)


class Size(NamedTuple):
    """What the cost of a configuration depends on in its data."""

    shape: tuple[int, ...]  # of one sample
    rows: int  # to train on
    images: bool  # whether samples are images


def size_of_data(data: DataSettings, *, progress: bool = False) -> Size:
    """Return the size of training data. A set of the catalogue need not be here.

    >>> from pinoise.training.config import DataSettings
    >>> size_of_data(DataSettings(source="stl10", size=32))
    Size(shape=(32, 32, 3), rows=5000, images=True)
    >>> size_of_data(DataSettings(source="har", rows=500))
    Size(shape=(561,), rows=500, images=False)
    """
    if not is_name(data.source):
        opened, _ = open_for_training(data.source, data, progress=progress)
        return Size(opened.shape, len(opened.train), are_images(opened.train.x))
    known = entry(data.source)
    shape = known.shape if data.height_and_width is None else (*data.height_and_width, *known.shape[2:])
    return Size(shape, min(known.rows[0], data.rows or known.rows[0]), known.has_images)


def without_noise(settings: Settings) -> Settings:
    """Return the base that π-noise is added to: the augmentations alone or, without any, random noise.

    >>> without_noise(Settings()).objective.name
    'fixed'
    >>> from pinoise.training.config import parse_settings
    >>> without_noise(parse_settings({"views": {"noise": "scarf"}})).views.noise.name
    'scarf'
    """
    if not settings.is_learned or not settings.objective.trait("learns_noise", True):
        return settings
    views = settings.views.model_copy(update={"pairing": "auto"})
    if views.augmentations or settings.method.trait("makes_views"):
        nothing = read_choice("none", NOISE_VIEW, "views.noise")
        return settings.model_copy(update={"views": views.model_copy(update={"noise": nothing})})
    random = read_choice("fixed", OBJECTIVE, "objective")
    noise = NoiseSettings(distribution=settings.noise.distribution)
    return settings.model_copy(update={"objective": random, "noise": noise, "views": views})


def _countable(settings: Settings) -> Settings:
    """Return settings in which noise on the background is noise everywhere: it costs the same and needs no masks."""

    def counted(view: Choice) -> Choice:
        return read_choice("gaussian", VIEW, "views") if view.name == "background" else view

    views = settings.views
    changed = {"noise": counted(views.noise), "augmentations": tuple(map(counted, views.augmentations))}
    return settings.model_copy(update={"views": views.model_copy(update=changed)})


def _share(
    settings: Settings, shape: tuple[int, ...], rows: int, timed_steps: int, note: Callable[[str], None]
) -> tuple[Share, bool]:
    """Return the cost of a model, and whether its memory was measured."""
    rehearsal = Rehearsal(settings, shape, rows)
    sample, (forward, step, saved) = rehearsal.count_sample(), rehearsal.count_step()
    model = rehearsal.model
    learned = [weight for weight in model.parameters() if weight.requires_grad]
    fixed = [*(weight for weight in model.parameters() if not weight.requires_grad), *model.buffers()]
    memory = _STATES * _bytes(learned) + _bytes(fixed) + saved
    share = Share(sum(weight.numel() for weight in learned), sample, forward, step, memory)
    if not timed_steps:
        return share, False
    if (there := rehearsal.memory_gb()) is not None and memory > 1e9 * there:
        note(f"no step is timed: one needs about {memory / 1e9:.0f} GB, and there are {there:.0f}")
        return share, False
    seconds, peak = Rehearsal(settings, shape, rows).time_steps(timed_steps, patience=PATIENCE)  # with weights as new
    return share._replace(seconds=seconds, memory=peak or memory), peak is not None


def _bytes(tensors: Iterable[torch.Tensor]) -> int:
    return sum(tensor.nbytes for tensor in tensors)

"""Train from settings: in memory, or in a run folder that can be resumed at any moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from pinoise.data.dataset import Dataset, fingerprint_parts
from pinoise.data.moments import HEAVY_TAILS
from pinoise.data.preparation import Preparation
from pinoise.data.readers import open_for_training
from pinoise.data.rows import Rows, make_rows
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.information import HealthFlag
from pinoise.modes import own_modes
from pinoise.networks import Embedding
from pinoise.training.build import build_embedding, build_standardizer, seeded_model
from pinoise.training.callbacks import Callbacks, Interrupted, Quiet, Record, Reporter
from pinoise.training.checkpoint import LAST, PREVIOUS, Progress
from pinoise.training.config import Settings, TrainingSettings, complete, follow
from pinoise.training.folder import DataRecord, check_usable, full_source, run_identity, settle_folder, write_weights
from pinoise.training.loop import Machine, check_device, plan_epoch, train
from pinoise.training.metrics import broken_weights, diverged, held_out_rows, model_health
from pinoise.training.objectives import ContrastiveModel
from pinoise.training.processes import find_group
from pinoise.training.running import RunLog, hold


class EarlierTraining(NamedTuple):
    """A training in memory to go on from."""

    weights: dict[str, Tensor]  # of the whole model
    history: list[Record]

    def into(self, model: ContrastiveModel) -> Progress:
        """Load what was learned into a new model for the same or for other rows, and return the progress so far.

        What the model keeps of the rows themselves, such as neighbours and banks, is that of the new rows.
        """
        learned = {name for name, _ in model.named_parameters()}
        kept = {n: w for n, w in self.weights.items() if n in learned or n.endswith(("running_mean", "running_var"))}
        try:
            model.load_state_dict({**model.state_dict(), **kept})
        except RuntimeError:  # as torch refuses weights
            raise UserError(
                "warm_start goes on from the fitted model, which does not fit the parameters any more: change them "
                "back, or fit with warm_start=False."
            ) from None
        return Progress(seconds=self.history[-1].seconds if self.history else 0.0, history=list(self.history))


class TrainedModel(NamedTuple):
    """A trained model, the embedding of its encoder, its history and its health flags."""

    settings: Settings  # in which nothing is left open
    model: ContrastiveModel
    embedding: Embedding
    history: list[Record]
    flags: list[HealthFlag]
    interrupted: bool = False


@own_modes()
def fit(
    settings: Settings,
    standardizer: Standardizer,
    rows: Rows,
    *,
    reporter: Reporter,
    callbacks: Sequence[Any] = (),
    earlier: EarlierTraining | None = None,
    keep_interrupted: bool = False,
) -> TrainedModel:
    """Build and train a model. The caller's random numbers and modes of torch stay as they are.

    Args:
        settings: the settings of the run.
        standardizer: the units of the samples.
        rows: standardised samples.
        reporter: called as training proceeds.
        callbacks: callbacks or functions of a record.
        earlier: an earlier training to go on from, for ``training.epochs`` more.
        keep_interrupted: whether an interrupt after the first step ends training with the model as it is.
    """
    machine = machine_of(settings.training)
    settings = complete(settings)
    model = seeded_model(settings, standardizer, rows, pretrained=earlier is None)
    progress = Progress() if earlier is None else earlier.into(model)
    training = settings.training.model_copy(update={"epochs": len(progress.history) + settings.training.epochs})
    interrupted = False
    try:
        with Callbacks(callbacks, settings.model_dump()) as heard:
            train(model, rows, training, machine=machine, reporter=reporter, progress=progress, on_epoch=heard.on_epoch)
            if heard.failure is not None:
                raise heard.failure
    except KeyboardInterrupt:
        if not keep_interrupted or not progress.step:
            raise
        if broken_weights(model):
            raise diverged(model, progress.step, training) from None
        interrupted = True
    model.to("cpu").eval()
    if model.noise is not None and model.noise.support is not None:
        model.noise.support.fetch = None  # the fitted model must not keep the training data in memory
    return _fitted(model, settings, standardizer, rows, progress.history)._replace(interrupted=interrupted)


def _fitted(
    model: ContrastiveModel,
    settings: Settings,
    standardizer: Standardizer,
    rows: Rows,
    history: list[Record],
    *,
    processes: int = 1,
) -> TrainedModel:
    embedding = build_embedding(model.method.encoder, settings.embedding, standardizer, rows)
    flags = run_health(model, rows, settings, history, processes=processes) if history else []
    return TrainedModel(settings, model, embedding, history, flags)


def run_health(
    model: ContrastiveModel, rows: Rows, settings: Settings, history: list[Record], *, processes: int = 1
) -> list[HealthFlag]:
    """Return the health flags of a trained model, from its last epoch. ``processes`` is the number that trained it."""
    n_rows = len(rows) - len(held_out_rows(len(rows), settings.training))
    batch_size = min(settings.training.batch_size, n_rows - n_rows % processes)
    return model_health(model, rows, contrast=history[-1].metrics["contrast"], batch_size=batch_size)


@own_modes()
def run_training(
    path: Path,
    settings: Settings,
    *,
    reporter: Reporter,
    should_stop: Callable[[], bool] = lambda: False,
    note: Callable[[str], None] = lambda _: None,
    progress: bool = False,
    fresh: bool = False,
    callbacks: Sequence[Any] = (),
) -> TrainedModel:
    """Train in a run folder, from the start or from its newest intact checkpoint.

    Args:
        path: the run folder, new or existing. One process at a time changes it, once data and model are sound.
        settings: of the run. In a run that resumes, only those that ``MAY_CHANGE`` lists may differ.
        reporter: called as training proceeds.
        should_stop: called after every step; True stops the run.
        note: called before training with sentences about the data and about a damaged checkpoint.
        progress: whether long work before training shows a bar.
        fresh: whether the folder must be new. A run that another process has made there meanwhile is then refused.
        callbacks: callbacks or functions of a record. If one fails, the state is saved before it is raised.
    """
    check_usable(path)
    new = fresh or not (path / "config.yaml").exists()
    settings, data, preparation, standardizer = _opened(settings, progress=progress)
    training, machine = settings.training, machine_of(settings.training, together=True)
    begun = any((path / "checkpoints" / name).exists() for name in (LAST, PREVIOUS))
    rows = make_rows(data.train.x, standardizer, origin=data.train.origin)
    record = machine.first(partial(describe_data, settings, data, preparation, standardizer))  # one pass over it
    per_epoch, batches = _plan(training, len(rows), machine)
    for sentence in [*record.notes, *batches] if machine.rank == 0 else ():
        note(sentence)
    del data  # rows in memory are a copy, so the original can be freed
    model = seeded_model(settings, standardizer, rows, pretrained=not begun)
    state, identity = Progress(), run_identity(settings, record.fingerprint)
    settle = partial(settle_folder, path, settings, record, standardizer, model, steps=per_epoch, new=new, note=note)
    with ExitStack() as folder:
        machine.first(lambda: folder.enter_context(hold(path, note=note)))
        checkpoint = machine.first(settle)
        own = folder.enter_context(closing(RunLog(path, reporter, state))) if machine.rank == 0 else None
        heard = folder.enter_context(Callbacks(callbacks if machine.rank == 0 else (), settings.model_dump()))
        train(
            model,
            rows,
            training,
            machine=machine,
            reporter=own or Quiet(),
            checkpoints=path / "checkpoints",
            identity=identity,
            resume_from=checkpoint,
            progress=state,
            should_stop=should_stop,
            on_epoch=heard.on_epoch,
        )
        if machine.any(heard.failure is not None):
            raise heard.failure or Interrupted(state.step)
        fitted = _fitted(model, settings, standardizer, rows, state.history, processes=machine.size)
        machine.first(partial(write_weights, path, fitted.embedding, model.noise, flags=[f.name for f in fitted.flags]))
        return fitted


def _opened(settings: Settings, *, progress: bool) -> tuple[Settings, Dataset, Preparation, Standardizer]:
    """Return the settings of a run with what follows from its data where they are silent, the data, and its units."""
    data, preparation = open_for_training(settings.data.source, settings.data, progress=progress)
    settings, _, said = follow(settings, data.train.x)
    standardizer = build_standardizer(settings, data.train.x, spans=data.spans)
    return settings, replace(data, notes=(*data.notes, *said)), preparation, standardizer


def _plan(settings: TrainingSettings, n_rows: int, machine: Machine) -> tuple[int, list[str]]:
    """Return the steps in an epoch, and a note if batches are smaller than they should be."""
    per_epoch, share = plan_epoch(n_rows - len(held_out_rows(n_rows, settings)), settings.batch_size, machine.size)
    if (batch := share * machine.size) == settings.batch_size:
        return per_epoch, []
    return per_epoch, [f"a batch has {batch} rows instead of {settings.batch_size}, as there are no more"]


def describe_data(
    settings: Settings, data: Dataset, preparation: Preparation, standardizer: Standardizer
) -> DataRecord:
    """Return the record of the data: the rows that were trained on, and how to read later data in the same way."""
    heavy = standardizer.tails is not None and settings.data.scaling == "auto"
    return DataRecord(
        source=full_source(settings),
        rows=len(data.train),
        shape=list(data.shape),
        fingerprint=fingerprint_parts(data),
        feature_names=None if data.feature_names is None else list(data.feature_names),
        class_names=None if data.class_names is None else list(data.class_names),
        notes=[*data.notes, *([HEAVY_TAILS] if heavy else [])],
        preparation=preparation.to_json(),
    )


def machine_of(settings: TrainingSettings, *, together: bool = False) -> Machine:
    """Return what trains with these settings: this process alone, or ``together`` with the others of its group."""
    if together and (group := find_group()).size > 1:
        from pinoise.training.together import join

        return join(group, settings)
    device = check_device(settings.device)
    if settings.devices * settings.nodes > 1:
        raise UserError(
            f"training.devices is {settings.devices} and training.nodes {settings.nodes}: "
            "only 'pinoise train' trains in several processes; leave both at 1 here."
        )
    return Machine(device, settings.precision)

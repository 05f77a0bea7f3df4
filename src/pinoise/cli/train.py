"""``pinoise train``: learn an encoder and its noise in a run folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from pinoise.choices import (
    AUTO,
    DISTRIBUTION,
    GENERATOR,
    MEAN,
    METHOD,
    OBJECTIVE,
    PAIRINGS,
    VIEW,
    Distribution,
    Mean,
)
from pinoise.cli.console import leave, note, on_terminal, print_json, reporters, say, stop_on_signal
from pinoise.cli.options import (
    DATA,
    BatchOption,
    Change,
    DeviceOption,
    DropOption,
    EncoderOption,
    EngineOption,
    EpochsOption,
    JsonOption,
    KeepOption,
    LabelOption,
    LearningRateOption,
    MissingOption,
    RegressionOption,
    RowsOption,
    SetOption,
    TargetOption,
    TemperatureOption,
    TextOption,
    TrustOption,
    flag_changes,
    part_option,
)
from pinoise.errors import UserError, counted, either
from pinoise.training.processes import ALONE, STOPPED, adopt_srun, end_with_command, find_group, is_first, is_restarted

if TYPE_CHECKING:
    from pinoise.engines.ray_training import Outcome
    from pinoise.training.callbacks import Record
    from pinoise.training.config import Settings
    from pinoise.training.run import TrainedModel

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Settings from a YAML file, under the flags.")
]
PatienceOption = Annotated[
    int | None,
    typer.Option(
        help="Stop once the loss of held-out rows, a tenth, has not fallen for so many epochs; no labels.",
        show_default="off",
    ),
]
RestartsOption = Annotated[
    int, typer.Option(min=0, help="How often all processes start again, from the last checkpoint, if one fails.")
]
RendezvousOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", envvar="PET_RDZV_ENDPOINT", help="Where the processes of several machines meet."),
]

DistributionOption = Annotated[
    str | None,
    typer.Option(help=f"Distribution of the noise: {either(get_args(Distribution))}.", show_default=DISTRIBUTION),
]
MeanOption = Annotated[
    str | None, typer.Option(help=f"Mean of the noise: {either(get_args(Mean))}.", show_default=MEAN)
]
PairingOption = Annotated[
    str | None, typer.Option(help=f"How views are paired: {either((AUTO, *PAIRINGS))}.", show_default=AUTO)
]
_USUAL_VIEWS = "simclr and identity for images"
AugmentOption = Annotated[
    list[str] | None,
    part_option("--augment", VIEW, "A view beside the noise: ", more="; repeatable", default=_USUAL_VIEWS),
]


def train(
    context: typer.Context,
    data: Annotated[str | None, typer.Option("--data", metavar="SOURCE", help=DATA)] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="The run folder to make.")] = None,
    label: LabelOption = None,
    regression: RegressionOption = None,
    target: TargetOption = None,
    resume: Annotated[Path | None, typer.Option("--resume", metavar="DIR", help="Go on with this run folder.")] = None,
    config: ConfigOption = None,
    method: Annotated[str | None, part_option("--method", METHOD, "The contrastive method: ")] = None,
    encoder: EncoderOption = None,
    generator: Annotated[str | None, part_option("--generator", GENERATOR, "What makes σ of the noise: ")] = None,
    distribution: DistributionOption = None,
    mean: MeanOption = None,
    objective: Annotated[str | None, part_option("--objective", OBJECTIVE, "What the noise optimises: ")] = None,
    pairing: PairingOption = None,
    augment: AugmentOption = None,
    epochs: EpochsOption = None,
    batch_size: BatchOption = None,
    learning_rate: LearningRateOption = None,
    temperature: TemperatureOption = None,
    text: TextOption = None,
    drop: DropOption = None,
    keep: KeepOption = None,
    na: MissingOption = None,
    rows: RowsOption = None,
    seed: Annotated[int | None, typer.Option(help="Seed of every random number.", show_default="0")] = None,
    device: DeviceOption = None,
    devices: Annotated[int | None, typer.Option(help="Processes on this machine that share every batch.")] = None,
    nodes: Annotated[int | None, typer.Option(help="Machines with as many processes each.")] = None,
    patience: PatienceOption = None,
    set_: SetOption = None,
    engine: EngineOption = None,
    max_restarts: RestartsOption = 0,
    rendezvous: RendezvousOption = None,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Learn an encoder and its noise.

    Example: `pinoise train --data digits --epochs 20 --out runs/digits`

    After Ctrl-C: `pinoise train --resume runs/digits`, or use the run as it stands
    """
    changes = flag_changes(context, set_)
    if resume is not None and (out is not None or config is not None):
        raise UserError("--resume goes on with a folder as it is: leave out --out and --config.")
    path = resume or out
    if path is None:
        raise UserError("--out is missing: name the run folder to make, or one to go on with by --resume.")
    if resume is not None:
        settings = _resumed_settings(path, changes, trust=trust)
    else:
        settings = _new_settings(path, config, changes, engine=engine, trust=trust)
    again = _resuming(path, settings, engine)
    if engine is None and _started_others(path, settings, rendezvous, max_restarts, again=again):
        return
    here, there = partial(_trained_here, fresh=resume is None), partial(_trained_on_cluster, max_restarts=max_restarts)
    _run(path, settings, here if engine is None else there, again=again, as_json=json)


def _trusting(settings: Settings) -> str:
    """Return the flag without which no verb reads a run that has parts of the user's own."""
    return " --trust" if settings.needs_trust else ""


def _resuming(path: Path, settings: Settings, engine: str | None) -> str:
    """Return the command that goes on with a run."""
    on_engine = f" --engine {engine}" if engine else ""
    return f"pinoise train --resume {shlex.quote(str(path))}{_trusting(settings)}{on_engine}"


def _started_others(path: Path, settings: Settings, rendezvous: str | None, max_restarts: int, *, again: str) -> bool:
    """Train in several processes that run this command. False if it takes one, or if a launcher has started several."""
    devices, nodes = settings.training.devices, settings.training.nodes
    adopt_srun(devices, nodes)
    if (devices * nodes == 1 and not max_restarts) or find_group() is not ALONE:
        end_with_command()
        return False
    from pinoise.training.launch import Launch, StoppedError, launch

    try:
        launch(Launch(sys.argv[1:], settings.training, rendezvous, max_restarts, path, again))
    except StoppedError as stop:
        leave(str(stop) or "stopped", STOPPED)
    return True


def _new_settings(
    out: Path, config: Path | None, changes: list[Change], *, engine: str | None, trust: bool
) -> Settings:
    """Check all that can be checked before any data is read."""
    from pinoise.training.build import check_options
    from pinoise.training.config import read_settings
    from pinoise.training.folder import check_folder, check_usable
    from pinoise.training.loop import check_device

    if config is None and "data.source" not in dict(changes):
        raise UserError("--data is missing: name a data set ('pinoise datasets' lists them) or a file.")
    settings = read_settings(config, changes, trust=trust)
    if engine is None:  # a cluster's machines have devices of their own
        check_device(settings.training.device)
    check_options(settings)
    check_usable(out) if is_restarted() else check_folder(out)
    return settings


def _resumed_settings(run: Path, changes: list[Change], *, trust: bool) -> Settings:
    """Few settings may change when a run goes on: all else would make it another run."""
    from pinoise.training.changes import MAY_CHANGE
    from pinoise.training.config import override, parse_settings
    from pinoise.training.folder import check_links, read_config

    before = read_config(run, trust=trust)
    if not trust:
        check_links(run)
    changes = [change for change in changes if change != ("data.target", before.data.target)]
    other = [path for path, _ in changes if path not in MAY_CHANGE]
    if other:
        raise UserError(
            f"--resume keeps the settings of {run}: only {', '.join(MAY_CHANGE)} may be given, not {other[0]}."
        )
    return parse_settings(override(before.model_dump(mode="json"), changes))


def _run(
    path: Path, settings: Settings, train_there: Callable[..., TrainedModel | Outcome], *, again: str, as_json: bool
) -> None:
    from pinoise.training.callbacks import Interrupted

    labelled = classifier = None
    if settings.data.target is not None:
        from pinoise.data.target import read_target
        from pinoise.model import load_run

        # A mistake in the target ends here, before training.
        labelled = read_target(settings.data.source, settings.data.target, na=settings.data.na)
        if is_first():
            note(*labelled.notes)
    try:
        with stop_on_signal() as should_stop:
            result = train_there(path, settings, should_stop, again=again)
    except Interrupted as stop:
        leave(f"stopped after step {stop.step}, all saved; go on with: {again} (or use it as it stands)", STOPPED)
    if not is_first():
        return
    if labelled is not None:
        classifier = load_run(path, trust=settings.needs_trust).fit_classifier(labelled)
    for flag in result.flags:
        say(f"warning: {flag.name}: {flag.meaning}.")
    if as_json:
        found = {"run": str(path), **result.history[-1]._asdict(), "flags": [flag.name for flag in result.flags]}
        if labelled is not None and classifier is not None:
            found |= {"target": labelled.as_dict(), **classifier.as_dict()}
        print_json(found)
        return
    _tell(path, settings, result.history[-1], () if classifier is None else classifier.lines())


def _trained_here(
    path: Path, settings: Settings, should_stop: Callable[[], bool], *, again: str, fresh: bool
) -> TrainedModel:
    """Train in this process, alone or as one of several."""
    from pinoise.modes import flushed_denormals
    from pinoise.training.run import run_training

    with ExitStack() as stack:
        if find_group().size > 1:
            from pinoise.training.together import noticing_losses

            stack.enter_context(noticing_losses(again, settings.training))
        stack.enter_context(flushed_denormals())
        make = stack.enter_context(reporters(epochs=True))
        return run_training(
            path,
            settings,
            reporter=make(str(path)),
            should_stop=should_stop,
            note=note,
            progress=on_terminal(),
            fresh=fresh and not is_restarted(),
        )


def _trained_on_cluster(
    path: Path, settings: Settings, should_stop: Callable[[], bool], *, again: str, max_restarts: int
) -> Outcome:
    """Train with Ray. That the folder is new was checked before, because Ray may start the processes again."""
    from pinoise.engines.ray_training import Job, train_on_ray
    from pinoise.training.folder import check_usable

    check_usable(path)  # before a cluster starts
    job = Job(path.absolute(), settings, again)
    return train_on_ray(job, max_restarts=max_restarts, should_stop=should_stop, say=say)


def _tell(path: Path, settings: Settings, last: Record, voters: Sequence[str]) -> None:
    """Print how a run ended, and what can be done with it."""
    planned, target, trusting = settings.training.epochs, settings.data.target, _trusting(settings)
    early = "" if last.epoch == planned else f" of {planned}, ended early"
    length = f"{counted(last.epoch, 'epoch')}{early}, {counted(last.step, 'step')}"
    print(f"{path}: {length}, loss {last.loss:.4f}, {last.seconds:.0f} s")
    if target is not None:
        print(f"{target!r} is predicted by a vote; share of the result, model and validated scores:")
        for line in voters:
            print(f"  {line}")
        print(f"next: pinoise predict {path} --data FILE --out FILE{trusting}")
        return
    print(f"next: pinoise evaluate {path}{trusting}   or   pinoise embed {path} --data FILE --out FILE{trusting}")

"""``pinoise train``: learn an encoder and its noise in a run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pinoise.cli.console import print_json, reporters, say
from pinoise.cli.options import (
    BatchOption,
    DeviceOption,
    EpochsOption,
    JsonOption,
    LabelOption,
    RowsOption,
    SetOption,
    assignments,
)
from pinoise.errors import UserError


def train(
    data: Annotated[
        str | None,
        typer.Option("--data", help="A data set of the catalogue, or a file (.csv .parquet .npy .npz .svm)."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The run folder to make.")] = None,
    label: LabelOption = None,
    resume: Annotated[Path | None, typer.Option("--resume", help="Go on with this run folder.")] = None,
    config: Annotated[Path | None, typer.Option("--config", help="Settings from a YAML file, under the flags.")] = None,
    method: Annotated[str | None, typer.Option(help="simclr, simcl or clae.")] = None,
    encoder: Annotated[str | None, typer.Option(help="mlp.")] = None,
    generator: Annotated[str | None, typer.Option(help="mlp or shared.")] = None,
    distribution: Annotated[str | None, typer.Option(help="gaussian or uniform.")] = None,
    mean: Annotated[str | None, typer.Option(help="zero or learned.")] = None,
    objective: Annotated[str | None, typer.Option(help="paper or fixed.")] = None,
    pairing: Annotated[
        str | None, typer.Option(help="auto, identity-noise, noise-noise, sampled, compose or identity.")
    ] = None,
    augment: Annotated[
        list[str] | None, typer.Option(help="identity, gaussian, scarf, vime, dacl or modals; repeatable.")
    ] = None,
    epochs: EpochsOption = None,
    batch_size: BatchOption = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of Adam.")] = None,
    temperature: Annotated[float | None, typer.Option(help="τ of the contrastive loss.")] = None,
    rows: RowsOption = None,
    seed: Annotated[int | None, typer.Option(help="Of every random number.")] = None,
    device: DeviceOption = None,
    set_: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Learn an encoder and its noise.

    Example: `pinoise train --data digits --epochs 20 --out runs/digits`
    """
    flags: dict[str, Any] = {
        "data.source": data,
        "data.label": label,
        "data.rows": rows,
        "method": method,
        "method.temperature": temperature,
        "encoder": encoder,
        "noise.generator": generator,
        "noise.distribution": distribution,
        "noise.mean": mean,
        "objective": objective,
        "views.pairing": pairing,
        "views.augmentations": f"[{', '.join(augment)}]" if augment else None,
        "training.epochs": epochs,
        "training.batch_size": batch_size,
        "training.learning_rate": learning_rate,
        "training.seed": seed,
        "training.device": device,
    }
    changes = [*assignments(flags), *(set_ or [])]
    path = _resumed(resume, out, config, changes) if resume is not None else _created(out, data, config, changes)
    _run(path, as_json=json)


def _created(out: Path | None, data: str | None, config: Path | None, changes: list[str]) -> Path:
    from pinoise.training.device import check_device
    from pinoise.training.parse import override, parse_settings, read_yaml
    from pinoise.training.run import create_folder

    if out is None:
        raise UserError("--out is missing: name the run folder to make, or one to go on with by --resume.")
    if data is None and config is None:
        raise UserError("--data is missing: name a data set ('pinoise datasets' lists them) or a file.")
    settings = parse_settings(override({} if config is None else read_yaml(config), changes))
    check_device(settings.training.device)
    create_folder(out, settings)
    return out


def _resumed(resume: Path, out: Path | None, config: Path | None, changes: list[str]) -> Path:
    """Only the number of epochs may change when a run goes on: all else would make it another run."""
    from pinoise.training.parse import override, parse_settings
    from pinoise.training.run import read_config, write_config

    if out is not None or config is not None:
        raise UserError("--resume goes on with a folder as it is: leave out --out and --config.")
    settings = read_config(resume)
    other = [change for change in changes if not change.startswith("training.epochs=")]
    if other:
        raise UserError(f"--resume keeps the settings of {resume}: only --epochs may be given, not {other[0]}.")
    if changes:
        settings = parse_settings(override(settings.model_dump(mode="json"), changes))
        write_config(resume, settings)
    return resume


def _run(path: Path, *, as_json: bool) -> None:
    from pinoise.training.loop import Interrupted
    from pinoise.training.run import read_config, run_training
    from pinoise.training.signals import stop_on_signal

    settings = read_config(path)
    try:
        with reporters(lines_every=2.0) as make, stop_on_signal() as should_stop:
            outcome = run_training(path, settings, reporter=make(str(path)), should_stop=should_stop)
    except Interrupted as stop:
        say(f"stopped after step {stop.step}, all saved; go on with: pinoise train --resume {path}")
        raise typer.Exit(130) from None
    last = outcome.history[-1]
    for note in outcome.notes:
        say(f"note: {note}")
    for flag in outcome.flags:
        say(f"warning: {flag.name}: {flag.meaning}")
    if as_json:
        print_json({"run": str(path), **last._asdict(), "flags": [flag.name for flag in outcome.flags]})
        return
    print(f"{path}: {last.epoch} epochs, {last.step} steps, loss {last.loss:.4f}, {last.seconds:.0f} s")
    print(f"next: pinoise evaluate {path}   or   pinoise embed {path} --data FILE --out FILE")

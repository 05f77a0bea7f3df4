"""The verbs in several processes: with ``--devices`` or under torchrun, and on a cluster with ``--engine``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pinoise.cli.console import note, on_one_line, on_terminal, print_json, say

if TYPE_CHECKING:
    from pinoise.engines.pieces import Work
    from pinoise.engines.ray_training import Outcome
    from pinoise.evaluation.sharing import Team
    from pinoise.training.config import Settings


@contextmanager
def together(devices: int | None) -> Iterator[Team]:
    """Yield the processes that share the rows to embed: those that torchrun started, or as many as ``devices``."""
    from pinoise.evaluation.sharing import ALONE, Team
    from pinoise.training.processes import find_group

    if find_group(devices or 1, 1).size == 1:
        yield ALONE
        return
    from pinoise.training.config import TrainingSettings
    from pinoise.training.device import make_fabric
    from pinoise.training.rendezvous import noticing_losses

    with noticing_losses("give the command again", say=lambda sentence: say(f"pinoise: {sentence}")):
        fabric = make_fabric(TrainingSettings(device="cpu", devices=devices or 1), together=True)
        fabric.launch()
        yield Team(fabric.global_rank, fabric.world_size)


def embed_on_cluster(
    run: Path, data: str, out: str, *, keep: list[str], workers: int | None, force: bool, trust: bool, as_json: bool
) -> None:
    """Embed Parquet into a folder of parts with Ray."""
    from pinoise.engines.pieces import plan_work
    from pinoise.engines.ray_embedding import embed_on_ray
    from pinoise.training.load import load_run

    _check_folder(out)
    work = plan_work(load_run(run, trust=trust), data, out, keep=keep, force=force)
    _tell_begun(work)
    embed_on_ray(work, workers=workers)
    _tell_done(work, out, as_json=as_json)


def embed_in_parts(run: Path, data: str, out: str, *, keep: list[str], force: bool, trust: bool, as_json: bool) -> None:
    """Embed any data into a folder of parts, in this process."""
    from pinoise.engines.pieces import plan_rows, plan_work, write_missing
    from pinoise.errors import UserError
    from pinoise.training.load import load_run

    _check_folder(out)
    finished = load_run(run, trust=trust)
    if "://" in data or _is_parquet(data):
        work = plan_work(finished, data, out, keep=keep, force=force)
    else:
        if keep:
            raise UserError(f"--keep passes columns of Parquet into parts, and {data} is none: write one file instead.")
        work = plan_rows(finished, data, out, force=force, progress=on_terminal())
    _tell_begun(work)
    write_missing(work, done=lambda number: say(f"part {number + 1} of {len(work.plan.rows)}"))
    _tell_done(work, out, as_json=as_json)


def _is_parquet(data: str) -> bool:
    from pinoise.data.source import find_source

    return find_source(data).file_format == "parquet"


def _check_folder(out: str) -> None:
    from pinoise.files import check_output

    if "://" not in out:
        check_output(Path(out), force=True)  # the folder may be there already


def _tell_begun(work: Work) -> None:
    for sentence in work.notes:
        note(sentence)
    parts = len(work.plan.rows)
    if len(work.missing) < parts:
        note(f"{parts - len(work.missing)} of {parts} parts are there already")


def _tell_done(work: Work, out: str, *, as_json: bool) -> None:
    from pinoise.data.messages import counted
    from pinoise.evaluation import WHOLE

    shape, parts, kept = [work.rows, len(work.run.column_names)], len(work.plan.rows), list(work.plan.keep)
    if as_json:
        print_json({"out": out, "shapes": {WHOLE: shape}, "kept": kept, "parts": parts})
    else:
        beside = f", beside {', '.join(kept)}" if kept else ""
        print(on_one_line(f"{out}: all {shape[0]} × {shape[1]} in {counted(parts, 'part')}{beside}"))


def train_on_cluster(
    path: Path, settings: Settings, should_stop: Callable[[], bool], *, again: str, fresh: bool, loggers: Sequence[str]
) -> Outcome:
    """Train with Ray."""
    from pinoise.engines.ray_training import Job, train_on_ray
    from pinoise.training.folder import check_usable

    check_usable(path)  # before a cluster starts
    return train_on_ray(Job(path.absolute(), settings, fresh, tuple(loggers), again), should_stop=should_stop, say=say)

"""``pinoise train --engine ray``: Ray Train starts the processes that train together."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pinoise.choices import OWN_MODULES
from pinoise.engines.ray_cluster import cause, connected
from pinoise.errors import UserError
from pinoise.information import HealthFlag
from pinoise.modes import flushed_denormals
from pinoise.training.callbacks import Interrupted, Lines, Record
from pinoise.training.config import Settings, parse_settings
from pinoise.training.processes import MARK, LostProcessError, from_checkpoint
from pinoise.training.run import run_training
from pinoise.training.together import noticing_losses

_QUIET = 2.0  # seconds between two lines about progress
_POLL = 0.5  # seconds between two looks at what the workers say, or at whether they should stop


class Outcome(NamedTuple):
    """What a run ended with, without the model, which is in the run folder."""

    history: list[Record]
    flags: list[HealthFlag]


class Job(NamedTuple):
    """What every worker needs to know. The run folder must be on a disk that all of them share."""

    path: Path
    settings: Settings
    again: str  # the command that goes on


def train_on_ray(
    job: Job, *, should_stop: Callable[[], bool], say: Callable[[str], None], max_restarts: int = 0
) -> Outcome:
    """Train in the processes of a Ray cluster, ``training.devices`` on each of ``training.nodes`` machines.

    Args:
        job: the run.
        should_stop: asked while the workers train. If True, they save and stop, and ``Interrupted`` is raised.
        say: called with what the first worker reports.
        max_restarts: how often Ray starts all processes again, which go on from the last checkpoint, if one fails.
    """
    training = job.settings.training
    size = training.devices * training.nodes
    with connected(workers=max(size, os.cpu_count() or 1)) as ray:
        from ray.exceptions import RayActorError
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.torch import TorchConfig, TorchTrainer

        cores, gpus = (int(ray.cluster_resources().get(kind, 0)) for kind in ("CPU", "GPU"))
        if size > cores:
            raise UserError(f"{size} processes were asked for, but the cluster has {cores} core(s): start fewer.")
        line, found = ray.remote(num_cpus=0)(_Line).remote(), list[Any]()
        with tempfile.TemporaryDirectory(prefix="pinoise-ray-") as scratch:  # which Ray Train wants
            trainer = TorchTrainer(
                _worker(job, line),
                torch_config=TorchConfig(timeout_s=training.wait),
                scaling_config=ScalingConfig(
                    num_workers=size,
                    use_gpu=training.device.startswith("cuda") or (training.device == "auto" and gpus >= size),
                    placement_strategy="PACK" if training.nodes == 1 else "SPREAD",
                ),
                run_config=RunConfig(
                    name="run", storage_path=scratch, failure_config=FailureConfig(max_failures=max_restarts)
                ),
            )
            waiting = threading.Thread(target=_fit, args=(trainer, found), name="pinoise-ray", daemon=True)
            waiting.start()
            while waiting.is_alive():
                waiting.join(timeout=_POLL)
                with suppress(RayActorError):  # its machine may be gone; the workers ask it too, and fail
                    for sentence in ray.get(line.heard.remote(should_stop())):
                        say(sentence)
        ray.kill(line)  # a cluster of the user's lives on
        return _outcome(found[0], job)


def _fit(trainer: Any, found: list[Any]) -> None:
    """Wait for the workers, and keep what they return or raise."""
    try:
        found.append(trainer.fit().return_value)
    except BaseException as error:
        found.append(error)


def _outcome(result: Any, job: Job) -> Outcome:
    """Return what a run ended with, or raise why it failed or stopped."""
    from ray.train import TrainingFailedError

    if isinstance(result, TrainingFailedError):
        died = LostProcessError(f"a process on Ray died; {from_checkpoint(job.again)}")
        raise cause(result) or died from result
    if isinstance(result, BaseException):
        raise result
    return Outcome(*result)


class _Line:
    """An actor through which workers report, and hear that they should stop."""

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self._stops = False

    def say(self, sentence: str) -> None:
        """Keep a sentence until it is heard."""
        self._sentences.append(sentence)

    def heard(self, stop: bool) -> list[str]:
        """Return what was said since the last time. Workers are asked to stop from the first ``stop`` on."""
        said, self._sentences = self._sentences, []
        self._stops |= stop
        return said

    def stops(self) -> bool:
        """Whether the workers were asked to stop."""
        return self._stops


class _Caller:
    """A worker's end of the line: a stream whose lines reach the command, which is asked whether to stop."""

    def __init__(self, line: Any) -> None:
        self._line, self._next = line, 0.0

    def write(self, text: str) -> None:
        """Send a line. The end of a line comes by itself."""
        if text.strip():
            self._line.say.remote(text.strip())

    def flush(self) -> None:
        """Do nothing: lines are sent at once."""

    def should_stop(self) -> bool:
        """Ask the command now and then, because a question takes as long as a small step."""
        if time.monotonic() < self._next:
            return False
        import ray

        self._next = time.monotonic() + _POLL
        return bool(ray.get(self._line.stops.remote()))


def _worker(job: Job, line: Any) -> Callable[[], Any]:
    """Return what every worker runs. Settings travel as plain values, which need no module of the user's own."""
    settings, modules = job.settings.model_dump(mode="json"), [str(Path(folder).resolve()) for folder in OWN_MODULES]
    path, _, again = job  # whose settings hold the classes themselves

    def work() -> Any:
        os.environ[MARK] = "ray"
        OWN_MODULES[:] = modules
        command: Any = _Caller(line)
        here = parse_settings(settings)
        try:
            with noticing_losses(again, here.training), flushed_denormals():
                result = run_training(
                    path,
                    here,
                    reporter=Lines(command, every=_QUIET),
                    should_stop=command.should_stop,
                    note=lambda sentence: command.write(f"note: {sentence}"),
                )
        except Interrupted as stop:
            return stop
        return result.history, result.flags

    return work

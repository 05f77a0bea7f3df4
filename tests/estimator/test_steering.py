"""A fit that people steer: interrupts, warm starts, early stopping, callbacks and a progress bar."""

from __future__ import annotations

import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from pinoise import Callback, PiNDA, UserError
from pinoise.training.callbacks import Record
from pinoise.training.objectives import ContrastiveModel

X, Y = (array[:200] for array in load_digits(return_X_y=True))
pytestmark = pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")


def small(**changes: Any) -> PiNDA:
    return PiNDA(**{"n_components": 8, "hidden": 16, "epochs": 3, "batch_size": 64, "random_state": 0, **changes})


def at(epoch: int, action: Any) -> Any:
    def act(record: Record) -> bool | None:
        return action() if record.epoch == epoch else None

    return act


def raise_(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    "interrupt",
    [lambda: raise_(KeyboardInterrupt()), lambda: signal.raise_signal(signal.SIGINT)],
    ids=["raised", "sent"],
)
def test_an_interrupt_loses_nothing(interrupt: Any) -> None:
    model = small(epochs=50, callbacks=[at(2, interrupt)])
    with pytest.warns(
        UserWarning, match="fit was interrupted after 2 epochs: the model is used as it stands"
    ) as caught:
        model.fit(X)
    assert caught[0].filename == __file__
    assert model.history_["epoch"] == [1, 2]
    whole = small(epochs=2).fit(X)
    np.testing.assert_array_equal(model.transform(X), whole.transform(X))
    assert model.augment(X).shape == X.shape

    model.set_params(warm_start=True, epochs=1, callbacks=()).fit(X)
    assert model.history_["epoch"] == [1, 2, 3]


def test_an_interrupt_in_the_first_epoch_leaves_a_model_without_history(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = iter(range(100))
    after_step = ContrastiveModel.after_step

    def interrupted(self: ContrastiveModel, step: int, total: int) -> None:
        after_step(self, step, total)
        if next(steps) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(ContrastiveModel, "after_step", interrupted)
    model = small(batch_size=20)
    with pytest.warns(UserWarning, match="fit was interrupted after 0 epochs"):
        model.fit(X)
    assert model.history_["epoch"] == []
    assert model.transform(X).shape == (200, 72)


def test_an_interrupt_before_training_is_an_interrupt() -> None:
    class Early(Callback):
        def on_start(self, settings: Any) -> None:
            raise KeyboardInterrupt

    model = small(callbacks=[Early()])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert not hasattr(model, "encoder_")


@pytest.mark.parametrize("changes", [{}, {"objective": "paper"}, {"augmentations": ("scarf",)}, {"method": "moco"}])
def test_a_warm_fit_goes_on_from_the_weights_that_it_has(changes: dict[str, Any]) -> None:
    warm = small(warm_start=True, learning_rate=1e-8, noise_learning_rate=1e-8, **changes).fit(X)
    before = warm.transform(X)
    warm.fit(X)
    np.testing.assert_allclose(warm.transform(X), before, atol=1e-3)
    warm.set_params(learning_rate=1e-3, noise_learning_rate=None, epochs=5).fit(X)
    assert not np.allclose(warm.transform(X), before, atol=1e-3)
    assert warm.history_["epoch"] == list(range(1, 12))


def test_a_warm_fit_goes_on_with_other_rows_in_the_units_of_the_first() -> None:
    warm = small(warm_start=True, epochs=2).fit(X)
    mean, before = warm.mean_, warm.transform(X)
    warm.fit(X[:120])
    np.testing.assert_array_equal(warm.mean_, mean)
    assert warm.history_["epoch"] == [1, 2, 3, 4]
    assert warm.history_["loss"][2] < warm.history_["loss"][0]
    assert not np.array_equal(warm.transform(X), before)


def test_a_warm_fit_of_other_features_or_other_networks_is_refused() -> None:
    warm = small(warm_start=True).fit(X)
    with pytest.raises(ValueError, match="X has 60 features, but PiNDA is expecting 64"):
        warm.fit(X[:, :60])
    with pytest.raises(UserError, match="warm_start goes on from the fitted model, which does not fit the parameters"):
        warm.set_params(n_components=4).fit(X)
    assert warm.set_params(n_components=8).transform(X).shape == (200, 72)


def test_without_warm_start_a_fit_begins_again() -> None:
    model = small().fit(X)
    once = model.transform(X)
    np.testing.assert_array_equal(model.fit(X).transform(X), once)


def test_a_failed_warm_fit_leaves_the_model_as_it_was() -> None:
    warm = small(warm_start=True, epochs=2).fit(X)
    before = warm.transform(X)
    with pytest.raises(LookupError):
        warm.set_params(callbacks=[at(3, lambda: raise_(LookupError()))]).fit(X)
    np.testing.assert_array_equal(warm.transform(X), before)
    assert warm.history_["epoch"] == [1, 2]


def test_a_pickle_goes_on_and_a_saved_folder_does_not(tmp_path: Path) -> None:
    model = small().fit(X)
    again = pickle.loads(pickle.dumps(model)).set_params(warm_start=True).fit(X)
    np.testing.assert_array_equal(again.transform(X), model.set_params(warm_start=True).fit(X).transform(X))
    model.save(tmp_path / "m")
    loaded = PiNDA.load(tmp_path / "m").set_params(warm_start=True)
    with pytest.raises(UserError, match=r"the state of training, which PiNDA\.save does not hold"):
        loaded.fit(X)
    loaded.set_params(warm_start=False).fit(X)


def test_a_fit_stops_early_and_says_what_it_saw() -> None:
    model = small(epochs=200, patience=2, min_improvement=0.05).fit(X)
    losses = model.history_["held_out"]
    assert len(losses) < 200
    assert min(losses[:-2]) - 0.05 <= min(losses[-2:])
    assert np.isnan(small().fit(X).history_["held_out"]).all()
    more = model.set_params(warm_start=True).fit(X)  # patience counts from here
    assert len(more.history_["held_out"]) >= len(losses) + 2


class Count(Callback):
    """Counts epochs."""

    def __init__(self) -> None:
        self.epochs = 0

    def on_epoch(self, record: Record) -> bool:
        self.epochs += 1
        return self.epochs == 2


def test_callbacks_go_through_clone_grid_and_save(tmp_path: Path) -> None:
    counter = Count()
    model = small(callbacks=[counter])
    assert clone(model).get_params()["callbacks"][0] is not counter
    grid = GridSearchCV(make_pipeline(model, KNeighborsClassifier()), {"pinda__n_components": [4, 8]}, cv=2)
    grid.fit(X, Y)
    assert len(grid.best_estimator_[0].history_["epoch"]) == 2
    assert counter.epochs == 0  # every fit has its own
    model.fit(X).save(tmp_path / "m")
    loaded = PiNDA.load(tmp_path / "m")
    assert loaded.callbacks == ()
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


FIT = "import numpy as np; from pinoise import PiNDA; PiNDA(4, hidden=8, epochs=3, batch_size=32, verbose={}).fit(X)"
FIT = FIT.replace("; PiNDA", "; X = np.random.default_rng(0).normal(size=(64, 5)); PiNDA", 1)


@pytest.mark.processes
@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are POSIX's")
@pytest.mark.parametrize("verbose", [0, 1])
def test_a_terminal_gets_a_bar(verbose: int) -> None:
    import pty
    import termios

    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 100))
    code = [sys.executable, "-W", "ignore", "-c", FIT.format(verbose)]
    printed = subprocess.run(code, stdout=subprocess.PIPE, stderr=slave, check=True).stdout
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        shown += part
    assert printed == b""
    bars = re.findall(r"100%.* 6/6 .*epoch=3, loss=\d", shown.decode())
    assert bool(bars) == bool(verbose), shown.decode()
    assert verbose or not shown


def test_lines_are_printed_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    small(verbose=1).fit(X)
    shown = capsys.readouterr()
    assert [line[:7] for line in shown.out.splitlines()] == ["epoch 1", "epoch 2", "epoch 3"]
    small(verbose=0).fit(X)
    assert capsys.readouterr().out == ""


def test_a_notebook_gets_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    class Kernel:
        """As IPython has it in a notebook."""

        config = ("IPKernelApp",)

    class IPython:
        get_ipython = staticmethod(Kernel)

    monkeypatch.setitem(sys.modules, "IPython", IPython)
    small(verbose=1).fit(X)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "100%" in shown.err
    assert "epoch=3" in shown.err

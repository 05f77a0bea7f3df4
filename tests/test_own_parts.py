"""Parts of a user's own go in wherever a name does: by the command, a configuration, the estimator and Python."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file
from tests.commands import ended, start
from torch import nn

from pinoise import PiNDA, UserError, load_run

pytestmark = pytest.mark.filterwarnings("ignore::pinoise.HealthWarning")  # toys learn little

MINE = '''
import torch
from torch import nn

from pinoise.methods import Method
from pinoise.training.objectives import Objective
from pinoise.views import View

seen = []  # what the parts were called with


class Net(nn.Module):
    def __init__(self, shape, *, width: int = 4):
        super().__init__()
        self.out_features = width
        self.layer = nn.Linear(shape[0], width)

    def forward(self, x):
        return torch.tanh(self.layer(x))


class Pull(Method):
    """Views are pulled together after a gain that is learned."""

    def __init__(self, encoder, head, *, strength: float = 1.0):
        super().__init__(encoder)
        self.head = head
        self.gain = nn.Parameter(torch.full((), 2.0))
        self.strength = strength

    def forward(self, views):
        first, second = self.head(self.encode(views)).chunk(2)
        return self.strength * (self.gain * first - second).square().mean(dim=1)


def pull(first, second, *, strength: float = 1.0):
    seen.append(("pull", strength))
    return strength * (first - second).square().mean(dim=1)


class Tilt(View):
    """A learned direction, in the units of the features, which the site tells."""

    def __init__(self, unit, *, strength: float = 0.1):
        super().__init__()
        self.register_buffer("unit", unit)
        self.way = nn.Parameter(torch.ones_like(unit))
        self.strength = strength

    @classmethod
    def build(cls, site, *, strength: float = 0.1):
        return cls(site.unit, strength=strength)

    def forward(self, batch):
        return batch.moved(batch.x + self.strength * self.way * self.unit)


def tilt(x, *, strength: float = 0.1):
    seen.append(("tilt", strength))
    return x + strength * torch.randn_like(x)


class Jitter:
    """A view as other libraries have them: an object that is called."""

    def __init__(self, strength: float = 0.1):
        self.strength = strength

    def __call__(self, x):
        return tilt(x, strength=self.strength)


class Goal(Objective):
    """Positive loss, with a price on noise that is learned."""

    pairing = "noise-noise"

    def __init__(self, *, price: float = 1.0):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(()))
        self.price = price

    def forward(self, look, further=()):
        seen.append(("Goal", self.price))
        return look.losses.mean() + (self.bias - self.price).square()


def goal(look, *, price: float = 1.0):
    seen.append(("goal", price))
    return price * look.losses.mean()


class Wave(nn.Module):
    """σ from a sine of the sample."""

    def __init__(self, shape, outputs, *, pace: float = 1.0):
        super().__init__()
        self.pace = pace
        self.height = nn.Parameter(torch.zeros(outputs, *shape))

    def forward(self, x):
        return self.height * torch.sin(self.pace * x)[:, None]


def wave(shape, outputs, *, pace: float = 3.0):
    return Wave(shape, outputs, pace=pace)
'''

WRONG = """
import torch
from torch import nn

from mine import Goal, Net, Pull, Wave
from pinoise.views import View

number = 3


class Silent(Net):
    def __init__(self, shape):
        super().__init__(shape)
        del self.out_features


class Wide(Net):
    def forward(self, x):
        return super().forward(x).repeat(1, 2)


class Deep(Net):
    def __init__(self, shape, depth):
        super().__init__(shape)


class Hungry(Net):
    def __init__(self, shape, *, depth: int):
        super().__init__(shape)


def list_of(shape):
    return [shape]


class Mean(Pull):
    def forward(self, views):
        return super().forward(views).mean()


class Queue(Pull):
    def __init__(self, encoder, head, queue):
        super().__init__(encoder, head)


def mean(first, second):
    return (first - second).square().mean()


def alone(first):
    return first.sum(dim=1)


def half(x):
    return x[:, ::2]


def both(x, y):
    return x + y


class Half(View):
    def forward(self, batch):
        return batch.moved(batch.x[:, ::2])


class Bare(View):
    def forward(self, batch):
        return batch.x


class Rated(View):
    def __init__(self, rate):
        super().__init__()


def each(look):
    return look.losses


def number_of(look):
    return 1.0


class Priced(Goal):
    def __init__(self, price):
        super().__init__(price=price)


class Narrow(Wave):
    def forward(self, x):
        return super().forward(x)[..., :1]


class Paced(Wave):
    def __init__(self, shape, outputs, pace):
        super().__init__(shape, outputs, pace=pace)


def three(shape, outputs):
    return 3
"""

BASE: dict[str, Any] = {"n_components": 4, "epochs": 2, "batch_size": 32, "device": "cpu", "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 2)) @ RNG.normal(size=(2, 6)) + 0.3 * RNG.normal(size=(64, 6))


def own_parts(mine: ModuleType) -> dict[str, Any]:
    """The user's five classes."""
    found = {"encoder": "Net", "method": "Pull", "objective": "Goal", "generator": "Wave"}
    return {**{part: getattr(mine, name) for part, name in found.items()}, "augmentations": [mine.Tilt]}


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The user's file in the current folder, and another with mistakes."""
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "wrong.py").write_text(WRONG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("mine")
    for name in ("mine", "wrong"):
        sys.modules.pop(name, None)


@pytest.fixture
def table(mine: ModuleType) -> str:
    """A file of samples in the current folder, with two classes."""
    rows = [",".join(f"{value:.6f}" for value in row) + f",{'a' if row[0] > 0 else 'b'}" for row in X]
    Path("table.csv").write_text("\n".join(["p,q,r,s,t,u,class", *rows]) + "\n")
    return "table.csv"


FLAGS = [
    *("--label", "class", "--batch-size", "16", "--device", "cpu"),
    *("--encoder", "mine:Net", "--method", "mine:Pull", "--augment", "mine:Tilt", "--augment", "mine:tilt"),
    *("--objective", "mine:Goal", "--generator", "mine:Wave"),
    *("--set", "encoder.width=3", "--set", "method.strength=2", "--set", "noise.generator.pace=0.5"),
]


def checkpoint(run: str) -> Mapping[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = torch.load(Path(run) / "checkpoints" / "last.ckpt", weights_only=True)["model"]
    return state


# By the command


def test_the_command_trains_scores_embeds_reports_and_goes_on_with_parts_of_a_users_own(
    pinoise: Callable[..., Any], table: str, mine: ModuleType
) -> None:
    for arguments in (
        ["train", "--data", table, "--out", "run", "--epochs", 1, *FLAGS],
        ["evaluate", "run", "--trust"],
        ["evaluate", "run", "--information", "--trust"],
        ["embed", "run", "--data", table, "--out", "z.npy", "--trust"],
        ["report", "run", "--trust"],
        ["train", "--resume", "run", "--epochs", 2, "--trust"],
    ):
        result = pinoise(*arguments)
        assert result.code == 0, (arguments, result.err)
        assert "Traceback" not in result.err
    assert np.load("z.npy").shape == (64, 6 + 3)
    assert "mine:Pull" in (Path("run") / "report.html").read_text()

    config = yaml.safe_load((Path("run") / "config.yaml").read_text())
    assert config["encoder"] == {"name": "mine:Net", "width": 3}
    assert config["method"] == {"name": "mine:Pull", "strength": 2.0}
    assert config["objective"] == {"name": "mine:Goal"}  # the signature has its default
    assert config["noise"]["generator"] == {"name": "mine:Wave", "pace": 0.5}
    names = [view["name"] for view in config["views"]["augmentations"]]
    assert names == ["mine:Tilt", "mine:tilt"]

    assert load_file("run/encoder.safetensors")["layer.weight"].shape == (3, 6)
    assert load_file("run/noise.safetensors")["generator.height"].abs().max() > 0  # where it began
    state = checkpoint("run")
    assert state["method.gain"] != 2
    assert state["objective.bias"] != 0
    assert (state["pairing.augmentations.0.way"] != 1).any()
    assert ("tilt", 0.1) in mine.seen

    assert pinoise("train", "--data", table, "--out", "straight", "--epochs", 2, *FLAGS).code == 0
    straight = checkpoint("straight")
    assert all(torch.equal(tensor, straight[name]) for name, tensor in state.items())  # resumed to the bit

    run = load_run("run", trust=True)
    assert type(run.embedding.encoder) is mine.Net
    assert run.noise is not None
    assert run.noise.generator.pace == 0.5


@pytest.mark.processes
def test_a_process_of_the_command_finds_a_file_in_the_current_folder_and_only_there(table: str) -> None:
    python = ("-P", "-m", "pinoise")  # -P keeps Python itself from looking there
    done = ended(start("train", "--data", table, "--out", "run", "--epochs", "1", *FLAGS, python=python))
    assert done.code == 0, done.err
    Path("elsewhere").mkdir()
    refused = ended(start("evaluate", "../run", "--trust", python=python, where=Path("elsewhere")))
    assert refused.sentence.startswith("encoder 'mine:Net' cannot be found (No module named 'mine'): write package.")


def test_a_configuration_names_parts_with_options_and_flags_lie_over_it(
    pinoise: Callable[..., Any], table: str, mine: ModuleType
) -> None:
    Path("own.yaml").write_text(
        """
        data: {source: table.csv, label: class}
        encoder: {name: mine:Net, width: 5}
        method: {name: "mine:pull", strength: 3}
        objective: {name: mine:goal, price: 2}
        noise: {generator: {name: mine:wave, pace: 2}}
        views:
          augmentations:
            - mine:Tilt
            - {name: mine:tilt, strength: 0.5}
            - {name: torch.nn:Dropout, p: 0.2}
        training: {epochs: 1, batch_size: 16, device: cpu}
        """
    )
    assert pinoise("train", "--config", "own.yaml", "--out", "run", "--set", "objective.price=4", "--trust").code == 0
    assert set(mine.seen) == {("pull", 3.0), ("goal", 4.0), ("tilt", 0.5)}
    run = load_run("run", trust=True)
    assert run.embedding.encoder.out_features == 5
    assert run.noise is not None
    assert run.noise.generator.pace == 2
    assert run.settings.views.augmentations[2].options["p"] == 0.2


@pytest.mark.parametrize("file", ["own encoder", "own view"])
def test_a_part_that_has_changed_since_is_one_sentence(pinoise: Callable[..., Any], table: str, file: str) -> None:
    assert pinoise("train", "--data", table, "--out", "run", "--epochs", 1, *FLAGS).code == 0
    old, new = {
        "own encoder": ("self.layer = nn.Linear", "self.more = nn.Linear(2, 2); self.layer = nn.Linear"),
        "own view": ("torch.ones_like(unit)", "torch.ones(9)"),
    }[file]
    Path("mine.py").write_text(MINE.replace(old, new))
    sys.modules.pop("mine")
    importlib.invalidate_caches()
    result = pinoise("train", "--resume", "run", "--epochs", 2, "--trust")
    assert "last.ckpt does not fit the model" in result.sentence
    if file == "own encoder":
        result = pinoise("evaluate", "run", "--trust")
        assert "the weights in run do not fit its configuration" in result.err


# By the estimator


def test_objects_of_a_user_stay_as_they_were_and_training_starts_from_their_weights(mine: ModuleType) -> None:
    parts = {
        "encoder": mine.Net((6,)),
        "method": mine.pull,
        "objective": mine.Goal(),
        "generator": mine.Wave((6,), 1),
        "augmentations": [mine.Tilt(torch.ones(6)), nn.Dropout(0.2), mine.Jitter(), mine.Jitter],
    }
    modules = [parts["encoder"], parts["objective"], parts["generator"], parts["augmentations"][0]]
    before = [{name: tensor.clone() for name, tensor in module.state_dict().items()} for module in modules]
    modes = [module.training for module in modules]
    model: Any = PiNDA(**parts, **{**BASE, "learning_rate": 1e-6}).fit(X)
    for module, state in zip(modules, before, strict=True):
        assert all(torch.equal(tensor, state[name]) for name, tensor in module.state_dict().items())
        assert all(weight.grad is None for weight in module.parameters())
    assert [module.training for module in modules] == modes
    assert model.encoder_ is not parts["encoder"]
    learned, given = model.encoder_.layer.weight, parts["encoder"].layer.weight
    assert not torch.equal(learned, given)
    assert torch.allclose(learned, given, atol=1e-4)  # small steps from there
    assert PiNDA(**parts, **BASE).fit(X).encoder_ is not model.encoder_


def test_a_file_needs_the_module_and_the_parts_that_it_was_saved_with(
    mine: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    PiNDA(**own_parts(mine), **BASE).fit(X).save("model")
    monkeypatch.setattr(mine, "Net", lambda shape, *, width=4: nn.Linear(shape[0], width))
    with pytest.raises(UserError, match=r"^the weights in model do not fit its configuration"):
        PiNDA.load("model", trust=True)
    Path("mine.py").unlink()
    sys.modules.pop("mine")
    monkeypatch.setattr(sys, "path_importer_cache", {})
    with pytest.raises(UserError, match=r"^encoder 'mine:Net' cannot be found \(.*'mine'.*\): write"):
        PiNDA.load("model", trust=True)


def test_what_no_other_process_could_import_is_not_saved(mine: ModuleType) -> None:
    class Local(mine.Net):  # type: ignore[misc, name-defined]
        """A class inside a function."""

    for parameter, part, name in [
        ("encoder", Local, "Local"),
        ("encoder", mine.Net((6,)), "Net"),
        ("method", {"name": lambda first, second: mine.pull(first, second)}, "<lambda>"),
        ("objective", mine.Goal(), "Goal"),
        ("generator", mine.Wave((6,), 1), "Wave"),
        ("augmentations", [mine.tilt, nn.Dropout()], "Dropout"),
    ]:
        model = PiNDA(**{**BASE, parameter: part, "epochs": 1}).fit(X)
        with pytest.raises(
            UserError, match=rf"{parameter}\S* is '{name}', which has no import path, .*pickle the estimator"
        ):
            model.save("model")
        assert not Path("model").exists()


# What goes wrong


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--encoder", "wrong:Silent"], "encoder 'wrong:Silent' does not state its output size: set its integer attr"),
        (["--encoder", "wrong:Wide"], "encoder 'wrong:Wide' returned shape (2, 8) for 2 samples: "),
        (["--encoder", "wrong:Deep"], "encoder 'wrong:Deep' cannot be called (missing a required argument: 'depth'):"),
        (["--encoder", "wrong:Hungry"], "setting 'encoder.depth' is missing: encoder needs it."),
        (["--encoder", "wrong:list_of"], "encoder 'wrong:list_of' made list: it must be a torch module."),
        (["--encoder", "wrong:number"], "encoder 'wrong:number' is of type int: give a torch module, or a class or"),
        (["--encoder", "wrong:Nowhere"], "encoder 'wrong:Nowhere' cannot be found (module 'wrong' has no attribute"),
        (["--encoder", "nowhere:Net"], "encoder 'nowhere:Net' cannot be found (No module named 'nowhere'): write"),
        (["--encoder", "broken:Net"], "encoder 'broken:Net' cannot be found (invalid syntax (broken.py, line 1)):"),
        (
            ["--encoder", "mine.Net"],
            "setting 'encoder' is 'mine.Net'. Allowed: auto, mlp, resnet18, resnet50, vit, or p",
        ),
        (["--encoder", "mine:Net", "--set", "encoder.widht=3"], "unknown setting 'encoder.widht': did you mean 'enc"),
        (["--encoder", "mine:Net", "--set", "encoder.width=wide"], "setting 'encoder.width' is 'wide': input should"),
        (
            ["--method", "wrong:Mean"],
            "the method returned shape () for 16 samples: it must return one loss per sample",
        ),
        (["--method", "wrong:Queue"], "method 'wrong:Queue' cannot be called (missing a required argument: 'queue'):"),
        (["--method", "wrong:mean"], "the method returned shape () for 16 samples: it must return one loss per"),
        (["--method", "wrong:alone"], "method 'wrong:alone' cannot be called (too many positional arguments): give a"),
        (["--method", "mine:Net"], "method 'mine:Net' is no Method: give a class derived from Method, or a f"),
        (
            ["--method", "mine:Pull", "--temperature", "1"],
            "unknown setting 'method.temperature': allowed there are str",
        ),
        (["--augment", "wrong:half"], "the view returned shape (16, 3): it must return a tensor of shape (16, 6)."),
        (["--augment", "wrong:both"], "view 'wrong:both' cannot be called (missing a required argument: 'y'): give a"),
        (["--augment", "wrong:Half"], "the view Half returned samples of shape (16, 3): they must keep the shape (16,"),
        (["--augment", "wrong:Bare"], "the view Bare returned Tensor: it must return a Batch, such as batch.moved(x)."),
        (["--augment", "wrong:Rated"], "view 'wrong:Rated' cannot be called (missing a required argument: 'rate'): gi"),
        (["--set", "views.noise=wrong:Half"], "the view Half returned samples of shape (16, 3): they must keep the"),
        (
            ["--objective", "wrong:each"],
            "the objective returned shape (16,): it must return a scalar like look.los",
        ),
        (["--objective", "wrong:number_of"], "the objective returned float: it must return a scalar like look.los"),
        (["--objective", "wrong:both"], "objective 'wrong:both' cannot be called (missing a required argument: 'y'):"),
        (["--objective", "wrong:Priced"], "objective 'wrong:Priced' cannot be called (missing a required argument:"),
        (["--objective", "mine:Net"], "objective 'mine:Net' is no Objective: give a class derived from Objective"),
        (["--generator", "wrong:Narrow"], "the generator returned shape (16, 1, 1) for 16 samples: it must return"),
        (["--generator", "wrong:Paced"], "generator 'wrong:Paced' cannot be called (missing a required argument: 'pa"),
        (["--generator", "mine:Net"], "generator 'mine:Net' cannot be called (too many positional arguments): give a"),
        (["--generator", "wrong:three"], "generator 'wrong:three' made int: it must make a torch module."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_part_that_does_not_keep_its_contract_is_one_sentence(
    pinoise: Callable[..., Any], table: str, flags: list[str], sentence: str
) -> None:
    Path("broken.py").write_text("def = 3\n")
    options = ["--label", "class", "--batch-size", 16, "--epochs", 1, "--device", "cpu"]
    # Without neighbours, so that the generator sees batches alone.
    objective = [] if "--objective" in flags else ["--set", "noise.neighbours=0", "--set", "noise.covariance=diagonal"]
    result = pinoise("train", "--data", table, "--out", "run", *options, *objective, *flags)
    assert result.sentence.startswith(sentence)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (lambda mine: {"encoder": nn.Sequential(nn.Linear(6, 4))}, r"encoder 'Sequential' does not state its output"),
        (
            lambda mine: {"encoder": nn.Linear(9, 4)},
            r"encoder 'Linear' does not take samples of shape \(6,\): mat1 and",
        ),
        (lambda mine: {"encoder": 3}, r"setting 'encoder' is 3: give a name, an import path, or a torch module"),
        (
            lambda mine: {"encoder": {"name": mine.Net, "widht": 2}},
            r"unknown setting 'widht': did you mean 'encoder\.w",
        ),
        (lambda mine: {"encoder": {"name": mine.Net((6,)), "width": 2}}, r"unknown setting 'width': encoder has no se"),
        (
            lambda mine: {"method": mine.Pull(nn.Linear(6, 4), nn.Identity())},
            r"method 'Pull' is no Method: giv",
        ),
        (
            lambda mine: {"generator": mine.Wave((6,), 1), "mean": "learned"},
            r"the generator returned shape \(\d+, 1, 6\)",
        ),
        (lambda mine: {"augmentations": mine.tilt}, r"augmentations is <function tilt.*: give a list"),
    ],
)
def test_an_object_that_does_not_keep_its_contract_is_one_sentence(
    mine: ModuleType,
    parameters: Callable[[ModuleType], dict[str, Any]],
    sentence: str,
) -> None:
    with pytest.raises(UserError, match=rf"^{sentence}"):
        PiNDA(**BASE, **parameters(mine)).fit(X)

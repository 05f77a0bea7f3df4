"""The names of all parts, and how a name or an import path is resolved. Nothing here imports torch.

A name is short for an import path, ``package.module:object``. Wherever a name is accepted, an import path is accepted
too, and in Python also the object itself. To add a part to the package, write its file and add one line here.

An import path outside these tables runs code. It is followed if the user gave it, in a command or in Python. An import
path that only a file gives is followed if the user says that he trusts the file.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

from annotated_types import Ge, Gt, Interval

from pinoise.errors import UserError, unknown_choice

# Ranges of numbers, for the signatures of parts. The configuration reads them from there and checks its values.
Positive = Annotated[float, Gt(0)]
NonNegative = Annotated[float, Ge(0)]
Share = Annotated[float, Interval(ge=0, le=1)]
Size = Annotated[int, Interval(ge=1, le=65_536)]  # the width of a layer
Layers = Annotated[int, Interval(ge=1, le=1_000)]
Entries = Annotated[int, Interval(ge=1, le=1_048_576)]  # of a batch, a queue or a bank
NeighbourCount = Annotated[int, Interval(ge=1, le=1_000)]
MOST_DRAWS = 1_000  # of noise, to measure its information: the work grows with their square
MOST_PROCESSES = 1024  # on a node, and as many nodes
MOST_TIMES = 1_000_000_000
Times = Annotated[int, Interval(ge=1, le=MOST_TIMES)]  # epochs, steps or rows
EPOCHS, BATCH_SIZE, LEARNING_RATE = 100, 256, 1e-3  # of a run, unless the user says otherwise
MANY_ROWS = 1 << 20  # above it nothing lists all rows: test rows, batches and banks are drawn in another way
LARGEST_SEED = 2**32 - 1  # numpy's and torch's generators all take it
Seed = Annotated[int, Interval(ge=0, le=LARGEST_SEED)]

Distribution = Literal["gaussian", "uniform"]
Mean = Literal["zero", "learned"]
ScaleMap = Literal["softplus", "abs", "fixed-entropy"]
Covariance = Literal["diagonal", "differences", "low-rank", "mixed"]
PairingName = Literal["identity-noise", "noise-noise", "sampled", "compose", "identity"]
EmbeddingName = Literal["joined", "learned"]
PrecisionName = Literal["32-true", "16-mixed", "bf16-mixed"]

DISTRIBUTION: Distribution = "gaussian"  # the noise, unless the user says otherwise
MEAN: Mean = "zero"
SCALE_MAP: ScaleMap = "softplus"
INDEPENDENT: Covariance = "diagonal"
ALONG_COVARIANCE: Covariance = "mixed"  # of the library's default noise
PRECISION: PrecisionName = "32-true"  # of the training steps, unless the user says otherwise

ENGINES = ("ray",)  # of clusters

PAIRINGS: tuple[PairingName, ...] = get_args(PairingName)
EMBEDDINGS: tuple[EmbeddingName, ...] = get_args(EmbeddingName)
SCORES = ("knn", "sr", "lr", "few", "few_standardised")  # of an embedding; ``evaluation.Scores`` says what they are


def within(name: str, value: Any, allowed: Any) -> Any:
    """Return a number that lies in the range of ``Positive``, or of a type with an interval. Refuse any other.

    >>> within("temperature", 0.5, Positive)
    0.5
    >>> within("momentum", 1.5, Share)
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: momentum is 1.5: it must be from 0 to 1.
    """
    limit = get_args(allowed)[1]
    if isinstance(limit, Gt):
        sound, wanted = value > limit.gt, "positive"
    else:
        sound, wanted = limit.ge <= value <= limit.le, f"from {limit.ge} to {limit.le}"
    if not sound:
        raise UserError(f"{name} is {value}: it must be {wanted}.")
    return value


class Kind(NamedTuple):
    """A kind of part: its noun, its names in the package, and what a user may give instead of a name."""

    noun: str
    default: str | None  # the name that is used if none is given
    names: Mapping[str, str]  # from name to import path; an empty path means that no part is built
    own: str


AUTO = "auto"  # a choice that other settings, or the data, decide

ENCODER = Kind(
    "encoder",
    AUTO,
    {
        AUTO: "",  # a ResNet18 for images, the MLP for vectors
        "mlp": "pinoise.networks.mlp:MLPEncoder",
        "resnet18": "pinoise.networks.resnet:ResNet18",
        "resnet50": "pinoise.networks.resnet:ResNet50",
        "vit": "pinoise.networks.vit:ViT",
    },
    own="a torch module, or a class or function that makes one from the shape of a sample",
)
METHOD = Kind(
    "method",
    "simclr",
    {
        "simclr": "pinoise.methods.simclr:SimCLR",
        "simcl": "pinoise.methods.simcl:SimCL",
        "clae": "pinoise.methods.clae:CLAE",
        "moco": "pinoise.methods.moco:MoCo",
        "byol": "pinoise.methods.byol:BYOL",
        "simsiam": "pinoise.methods.simsiam:SimSiam",
        "dino": "pinoise.methods.dino:DINO",
    },
    own="a class derived from Method, or a function from the projections of two views to a loss per sample",
)
GENERATOR = Kind(
    "generator",
    "auto",
    {
        "auto": "",  # the objective decides
        "global": "pinoise.noise.generators:GlobalGenerator",
        "mlp": "pinoise.noise.generators:MLPGenerator",
        "shared": "pinoise.noise.image_generators:shared_generator",
        "constant": "pinoise.noise.generators:ConstantGenerator",
        "resnet18": "pinoise.noise.image_generators:ResNet18Generator",
        "resnet50": "pinoise.noise.image_generators:ResNet50Generator",
        "unet": "pinoise.noise.image_generators:UNetGenerator",
    },
    own="a torch module, or a class or function that makes one from the shape of a sample and the number of outputs",
)
OBJECTIVE = Kind(
    "objective",
    "supported",
    {
        "supported": "pinoise.training.objectives:Supported",
        "paper": "pinoise.training.objectives:Paper",
        "fixed": "pinoise.training.objectives:Fixed",
        "adversarial": "pinoise.training.objectives:Adversarial",
        "information": "pinoise.training.objectives:Information",
    },
    own="a class derived from Objective, or a function from a Look to the scalar that is minimised",
)
VIEW = Kind(
    "view",
    None,
    {
        "identity": "pinoise.views.base:Identity",
        "gaussian": "pinoise.views.noise:GaussianNoise",
        "scarf": "pinoise.views.swap:ScarfSwap",
        "vime": "pinoise.views.swap:VimeSwap",
        "dacl": "pinoise.views.swap:Mixup",
        "neighbours": "pinoise.views.swap:Neighbour",
        "viewmaker": "pinoise.views.noise:Viewmaker",
        "background": "pinoise.paper.background:BackgroundNoise",
        "simclr": "pinoise.views.images:SimCLRPipeline",
        "byol": "pinoise.views.images:BYOLPipeline",
        "crop": "pinoise.views.images:CropPipeline",
    },
    own="a View, or a function from a batch of samples to a batch of the same shape",
)
# The choices for ``views.noise``: learned noise (``pi``), no noise (``none``), or any view.
NOISE_VIEW = VIEW._replace(noun="noise", default="pi", names={"pi": "", "none": "", **VIEW.names})

# What is the paper's and serves others: data sets by name, and the formats in which well-known ones are published.
CATALOGUE = {
    "entries": "pinoise.paper.catalogue:entries",
    "locate": "pinoise.paper.catalogue:locate",
    "load": "pinoise.paper.catalogue.loading:load",
}
FORMATS = {
    "idx": "pinoise.paper.formats:IDX",
    "cifar": "pinoise.paper.formats:CIFAR",
    "stl10": "pinoise.paper.formats:STL10",
}

# Where modules of users are looked for after Python's own path, from the first import path of a user on. The command
# adds the current folder: not at its start, because libraries try to import modules that may be absent.
OWN_MODULES: list[str] = []


class Distrust(NamedTuple):
    """A file that the user has not said to trust, and what the user typed beside it: only the latter is followed."""

    file: Path
    typed: frozenset[str] = frozenset()

    def check(self, setting: str, path: str) -> None:
        """Refuse the import path of a setting that the user did not type.

        >>> Distrust(Path("a.yaml")).check("encoder", "mine:Net")
        Traceback (most recent call last):
        ...
        pinoise.errors.UserError: a.yaml names encoder 'mine:Net', which runs code: if you trust the file, pass \
--trust, or trust=True in Python.
        """
        if path not in self.typed:
            raise UserError(
                f"{self.file} names {setting} {path!r}, which runs code: if you trust the file, pass --trust, or "
                "trust=True in Python."
            )


def find(kind: Kind, name: str, *, distrust: Distrust | None = None, setting: str | None = None) -> Any:
    """Return the class or function behind a name or an import path, or None if the name stands for no part.

    No other function imports what a user or a file names.

    Args:
        kind: the kind of part.
        name: a name of the kind, or an import path.
        distrust: the file that gives the name, if the user has not said to trust it.
        setting: the setting that holds the name, for the refusal.

    >>> find(METHOD, "simclr").__name__
    'SimCLR'
    >>> find(METHOD, "simlcr")
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: unknown method 'simlcr': did you mean 'simclr'? Allowed: simclr, simcl, clae, moco, \
byol, simsiam, dino.
    """
    path = kind.names.get(name, name)
    if not path:
        return None
    if ":" not in path:
        raise unknown_choice(kind.noun, name, kind.names)
    if path not in kind.names.values():
        if distrust is not None:
            distrust.check(setting or kind.noun, path)
        sys.path += [folder for folder in OWN_MODULES if folder not in sys.path]
    try:
        return imported(path)
    except _ABSENT as error:
        raise UserError(
            f"{kind.noun} {name!r} cannot be found ({error}): write package.module:name, where the name is {kind.own}."
        ) from error


_ABSENT = (ImportError, AttributeError, ValueError, TypeError, SyntaxError)


def imported(path: str) -> Any:
    """Return the object at an import path of this package, or at one that ``find`` allows.

    >>> imported("pinoise.errors:UserError").__name__
    'UserError'
    """
    module, _, attribute = path.partition(":")
    found: Any = importlib.import_module(module)
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def options_of(part: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters that a user may set: keyword-only parameters, and parameters with a default.

    The other parameters describe what the part is built for, such as the shape of a sample. A class with a method
    ``build`` has the options of ``build``. If ``build`` takes ``**options``, the constructor's options are added.

    >>> sorted(options_of(find(METHOD, "dino")))
    ['centre_momentum', 'momentum', 'prototypes', 'teacher_temperature', 'temperature']
    """
    build = builder_of(part)
    try:
        parameters = dict(inspect.signature(build or part).parameters)
    except ValueError:  # some functions written in C have no signature
        return {}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()) and build is not None:
        parameters = {**inspect.signature(part).parameters, **parameters}
    return {
        name: parameter
        for name, parameter in parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
        or (parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.default is not parameter.empty)
    }


def builder_of(part: Any) -> Any:
    """Return the class method ``build`` of a class, or None."""
    build = getattr(part, "build", None) if inspect.isclass(part) else None
    return build if inspect.ismethod(build) else None


def check_call(kind: Kind, name: str, part: Any, arguments: int, options: Mapping[str, Any]) -> None:
    """Refuse a part that cannot be called with this number of arguments and these options.

    >>> check_call(VIEW, "shift", lambda x, by: x + by, 1, {})
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: view 'shift' cannot be called (missing a required argument: 'by'): give a View, or a \
function from a batch of samples to a batch of the same shape.
    """
    try:
        signature = inspect.signature(part)
    except ValueError:  # some functions written in C have no signature
        return
    try:
        signature.bind(*range(arguments), **options)
    except TypeError as error:
        raise UserError(f"{kind.noun} {name!r} cannot be called ({error}): give {kind.own}.") from None


def name_of(part: Any) -> str:
    """Return the name of a part for messages and configurations: its import path if it has one.

    >>> name_of(UserError), name_of(lambda x: x)
    ('pinoise.errors:UserError', '<lambda>')
    """
    return import_path(part) or str(getattr(part, "__name__", type(part).__name__))


def import_path(part: Any) -> str | None:
    """Return the path from which another process can import a class or function, or None if it cannot.

    >>> import_path(UserError), import_path(lambda x: x)
    ('pinoise.errors:UserError', None)
    """
    module, name = getattr(part, "__module__", None), getattr(part, "__qualname__", None)
    if not module or not name or module == "__main__":
        return None
    path = f"{module}:{name}"
    try:
        return path if imported(path) is part else None
    except _ABSENT:
        return None

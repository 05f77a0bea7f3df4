"""From files, flags and ``--set`` to settings, with one clear sentence for each mistake, and what follows from images.

What settings mean for images is told here, where they are silent; which samples are images, in ``data.layout``.
Of what was measured (``benchmarks/image_noise.py``), small differences between neighbours on top of augmentations and
of the image itself gave the best kNN on average over two sets: ``docs/images.md`` has the figures and their limits.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ValidationError

from pinoise.choices import Distrust, PairingName
from pinoise.data.dataset import Samples
from pinoise.data.layout import are_images, have_colours
from pinoise.errors import UserError, brief
from pinoise.files import open_regular
from pinoise.training.config.section import DEEPEST, MOST_CHARACTERS, DocumentError, load_yaml
from pinoise.training.config.sentences import sentence_of
from pinoise.training.config.settings import IMAGE_ENCODER, VECTOR_ENCODER, Settings, encoder_of, takes_images

_MOST_TEXT = 10_000  # characters; no path is longer
_MOST_BITS = 4096  # of a number; Python cannot even print much larger ones


def parse_settings(
    values: Mapping[str, Any],
    *,
    names: Mapping[str, str] | None = None,
    distrust: Distrust | None = None,
) -> Settings:
    """Validate a nested mapping.

    Args:
        values: names, import paths and objects of parts, numbers and sections.
        names: the user's names of settings, by path, for error messages.
        distrust: the file that the values are from, if the user has not said to trust it.

    >>> parse_settings({"training": {"epochs": 3}}).training.epochs
    3
    >>> parse_settings({"training": {"epoch": 3}})
    Traceback (most recent call last):
    ...
    pinoise.errors.UserError: unknown setting 'training.epoch': did you mean 'training.epochs'?
    """
    try:
        return Settings.model_validate(_plain(values), context=distrust)
    except ValidationError as error:
        raise UserError(sentence_of(error, Settings, names=names)) from None


def distrusted(file: Path, changes: Iterable[tuple[str, Any]] = (), *, trust: bool = False) -> Distrust | None:
    """Return the distrust of a file's values, but for what the user typed as changes; None if the file is trusted.

    >>> distrusted(Path("a.yaml"), [("encoder", "mine:Net"), ("training.epochs", 3)]).typed
    frozenset({('encoder', 'mine:Net')})
    """
    if trust:
        return None
    return Distrust(file, frozenset((path, text) for path, value in changes for text in _texts(value)))


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a nested value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(inner)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a configuration file as nested values."""
    try:
        with io.TextIOWrapper(open_regular(path), encoding="utf-8") as stream:
            values = load_yaml(stream.read(MOST_CHARACTERS + 1))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not valid YAML.") from None
    except DocumentError as error:
        raise UserError(f"{path} is {error}.") from None
    if not isinstance(values, dict):
        raise UserError(f"{path} is not a configuration: it must hold sections such as training and method.")
    return values


def read_settings(config: Path | None, changes: Iterable[tuple[str, Any]] = (), *, trust: bool = False) -> Settings:
    """Return the settings of a configuration file, or the defaults, with changes at given paths.

    Args:
        config: a YAML file; the configuration of a run can be used as it is.
        changes: what the user typed, which wins.
        trust: whether to import the parts that the file names by a path.

    >>> read_settings(None, [("training.epochs", 5)]).training.epochs
    5
    """
    changes = list(changes)
    values = {} if config is None else read_yaml(config)
    values.pop("format", None)
    distrust = None if config is None else distrusted(config, changes, trust=trust)
    return parse_settings(override(values, changes), distrust=distrust)


def merge(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values with changes merged into them, section by section. A new name replaces a section.

    >>> merge({"method": {"name": "clae", "weight": 2}, "training": {"epochs": 5}}, {"training": {"seed": 1}})
    {'method': {'name': 'clae', 'weight': 2}, 'training': {'epochs': 5, 'seed': 1}}
    >>> merge({"method": "clae"}, {"method": {"weight": 2}})
    {'method': {'name': 'clae', 'weight': 2}}
    """
    merged = dict(values)
    for key, change in changes.items():
        before = merged.get(key)
        if before is not None and not isinstance(before, Mapping) and isinstance(change, Mapping):
            before = {"name": before}  # a name, or an object that is a part
        mergeable = isinstance(before, Mapping) and isinstance(change, Mapping) and "name" not in change
        merged[key] = merge(before, change) if mergeable and before is not None else change
    return merged


def parse_assignment(text: str) -> tuple[str, Any]:
    """Return the path and the value of ``section.key=value``, the value written as in YAML; a section takes braces.

    >>> parse_assignment("training.epochs=5"), parse_assignment("data.drop=Unnamed: 0")
    (('training.epochs', 5), ('data.drop', 'Unnamed: 0'))
    """
    path, equals, value = text.partition("=")
    if not equals or not all(path.strip().split(".")):
        raise UserError(f"--set got {brief(text)}: write section.key=value, for example training.epochs=50.")
    try:
        found = load_yaml(value)
        return path.strip(), value if isinstance(found, dict) and "{" not in value else found
    except DocumentError as error:
        raise UserError(f"--set got {brief(text)}: the value is {error}.") from None


def override(values: Mapping[str, Any], changes: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return nested values with changes at given paths. Later changes win.

    >>> override({"method": "clae"}, [("method.weight", 2), ("training.epochs", 5)])
    {'method': {'name': 'clae', 'weight': 2}, 'training': {'epochs': 5}}
    """
    changed = dict(values)
    for path, value in changes:
        _assign(changed, path.split("."), value)
    return changed


def _assign(values: dict[str, Any], keys: list[str], value: Any) -> None:
    for depth, key in enumerate(keys[:-1], start=1):
        inner = values.get(key) or {}
        if not isinstance(inner, str | Mapping):
            found, inside = brief(".".join(keys)), brief(".".join(keys[:depth]))
            raise UserError(f"--set got {found}: {inside} is a value, not a section.")
        values[key] = {"name": inner} if isinstance(inner, str) else dict(inner)
        values = values[key]
    values[keys[-1]] = value


def _plain(value: Any, path: str = "") -> Any:
    """Turn numpy's numbers, which parameter grids often hold, into Python's. Refuse what no setting can be."""
    if isinstance(value, Mapping | list | tuple) and path.count(".") >= DEEPEST:
        raise UserError(f"setting {brief(path)} is nested more than {DEEPEST} levels deep.")
    if isinstance(value, Mapping):
        return {key: _plain(inner, f"{path}.{key}" if path else str(key)) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_plain(inner, f"{path}.{number}") for number, inner in enumerate(value)])
    if isinstance(value, str) and "\0" in value:
        raise UserError(f"setting {brief(path)} is {brief(value)}: text must not hold the character NUL.")
    if isinstance(value, str) and len(value) > _MOST_TEXT:
        raise UserError(f"setting {brief(path)} is text of {len(value):,} characters: give at most {_MOST_TEXT:,}.")
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise UserError(f"setting {brief(path)} is {brief(value)}: no setting can be that large.")
    return value.item() if isinstance(value, np.generic) else value


# Views of images beside the noise: for pictures, for other numbers of channels or values, and the image as it is.
COLOURED, UNCOLOURED, ITSELF = "simclr", "crop", "identity"
PAIRING: PairingName = "compose"
COVARIANCE, AMPLITUDE = "differences", 0.5
NEIGHBOURS = 0  # the nearest images by their pixels are often of another class

_ALONE = ("identity-noise", "noise-noise", "identity")  # pairings without augmentations


class Followed(NamedTuple):
    """Settings in which nothing is left open, and what a user should know about how they came about."""

    settings: Settings
    changes: Mapping[str, Any]  # what follows from images, by path
    notes: tuple[str, ...] = ()


def follow(settings: Settings, x: Samples) -> Followed:
    """Return settings in which nothing is left open, for these samples. A setting that the user gave stays.

    >>> import numpy as np
    >>> found = follow(Settings(), np.zeros((4, 32, 32, 3), np.uint8))
    >>> found.settings.encoder.name, found.settings.neighbours
    ('resnet18', 0)
    """
    shape = tuple(map(int, x.shape[1:]))
    if len(shape) < 2:  # vectors
        return follow_kind(settings, images=False)
    found = follow_kind(settings, images=are_images(x), coloured=len(shape) > 3 or have_colours(x))
    if found.changes:
        shown = ", ".join(f"{path}={_written(value)}" for path, value in found.changes.items())
        note = (
            f"samples are images, so {shown} follow; --set changes each, and --encoder {VECTOR_ENCODER} takes "
            "pixels as vectors"
        )
    elif settings.encoder.part is None and not takes_images(found.settings):
        sides = " × ".join(map(str, shape))
        note = f"samples of {sides} numbers are taken as vectors; --encoder {IMAGE_ENCODER} takes them as images"
    else:
        return found
    return found._replace(notes=(note,))


def _written(value: Any) -> str:
    return f"[{','.join(value)}]" if isinstance(value, tuple) else str(value)


def follow_kind(settings: Settings, *, images: bool, coloured: bool = True) -> Followed:
    """Return settings in which nothing is left open, for samples of a kind.

    Args:
        settings: as the user gave them. A setting that the user gave stays.
        images: whether samples are images, for encoder ``auto``. With another encoder, the parts decide.
        coloured: whether the colours of images can be changed.

    >>> follow_kind(Settings(), images=False).settings.encoder.name
    'mlp'
    >>> found = follow_kind(Settings.model_validate({"views": {"augmentations": ["byol"]}}), images=True)
    >>> list(found.changes)
    ['encoder', 'objective.neighbours', 'views.pairing', 'noise.covariance', 'noise.amplitude']
    """
    encoder = encoder_of(settings, images=images)
    found = settings.model_copy(update={"encoder": encoder})
    if not takes_images(found):
        return Followed(complete(found), {})
    changes: dict[str, Any] = {} if settings.encoder.part is not None else {"encoder": encoder.name}
    if "augmentations" not in settings.views.model_fields_set and settings.views.pairing not in _ALONE:
        changes["views.augmentations"] = (COLOURED if coloured else UNCOLOURED, ITSELF)
    beside = bool(changes.get("views.augmentations", settings.views.augmentations))
    if beside and settings.is_learned and not settings.is_automatic:
        changes |= _noise_beside(settings)
    return Followed(complete(found, changes), changes)


def _noise_beside(settings: Settings) -> dict[str, Any]:
    """Return the noise beside augmentations: weak, on top of them, and not towards neighbours."""
    objective, noise, views = settings.objective, settings.noise, settings.views
    if "neighbours" not in objective.options:
        return {}
    changes: dict[str, Any] = {} if "neighbours" in objective.given else {"objective.neighbours": NEIGHBOURS}
    on_top = "pairing" not in views.model_fields_set or views.pairing == PAIRING
    kind_is_open = "covariance" not in noise.model_fields_set and noise.distribution == "gaussian"
    if changes.get("objective.neighbours", settings.neighbours) or not on_top or not kind_is_open:
        return changes
    changes |= {"views.pairing": PAIRING, "noise.covariance": COVARIANCE}
    if noise.amplitude is None and noise.initial_scale is None:
        changes["noise.amplitude"] = AMPLITUDE
    return changes


def complete(settings: Settings, changes: Mapping[str, Any] | None = None) -> Settings:
    """Return settings with changes at given paths, in which every setting counts as given, so that none follows later.

    >>> follow_kind(complete(Settings.model_validate({"encoder": "resnet18"})), images=True).changes
    {}
    """
    values: dict[str, Any] = {name: dict(value) if isinstance(value, BaseModel) else value for name, value in settings}
    objective, changed = settings.objective, dict[str, Any]()
    for path, value in (changes or {}).items():
        section, _, key = path.rpartition(".")
        if section == "objective":
            changed[key] = value
        elif section:
            values[section][key] = value
    # The defaults of a user's part stay in its signature: a file of settings does not hold them.
    given = objective.given.union(changed) if objective.own else objective.takes
    values["objective"] = replace(objective, options={**objective.options, **changed}, given=given)
    return parse_settings(values)

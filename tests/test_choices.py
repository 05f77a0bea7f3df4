"""Names, import paths, and the options that a part of the package or of a user has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pinoise.choices import (
    ENCODER,
    GENERATOR,
    METHOD,
    NOISE_VIEW,
    OBJECTIVE,
    VIEW,
    Kind,
    find,
    import_path,
    options_of,
)
from pinoise.errors import UserError

KINDS = {kind.noun: kind for kind in (ENCODER, METHOD, GENERATOR, OBJECTIVE, VIEW, NOISE_VIEW)}
EVERY_NAME = [(noun, name) for noun, kind in KINDS.items() for name in kind.names]


class Outer:
    """A part of a user's own."""

    class Inner:
        """One inside of another."""

    @classmethod
    def make(cls) -> Outer:
        return cls()


@pytest.mark.parametrize(("noun", "name"), EVERY_NAME)
def test_every_name_is_found_and_its_class_or_function_leads_back_to_its_path(noun: str, name: str) -> None:
    kind = KINDS[noun]
    path = kind.names[name]
    part = find(kind, name)
    if not path:
        assert part is None
        return
    assert callable(part)
    assert import_path(part) == path
    assert find(kind, path) is part


def test_names_that_stand_for_no_part_are_those_that_others_decide() -> None:
    assert {(noun, name) for noun, name in EVERY_NAME if not KINDS[noun].names[name]} == {
        ("encoder", "auto"),
        ("generator", "auto"),
        ("noise", "pi"),
        ("noise", "none"),
    }


@pytest.mark.parametrize(
    ("kind", "name", "near"),
    [(METHOD, "simlcr", "simclr"), (ENCODER, "resnet81", "resnet18"), (NOISE_VIEW, "vimee", "vime")],
)
def test_an_unknown_name_is_refused_with_the_nearest_and_all_that_are_allowed(kind: Kind, name: str, near: str) -> None:
    allowed = ", ".join(kind.names)
    with pytest.raises(
        UserError, match=rf"^unknown {kind.noun} '{name}': did you mean '{near}'\? Allowed: {allowed}\.$"
    ):
        find(kind, name)


def test_an_import_path_leads_to_any_object_also_inside_another() -> None:
    assert find(METHOD, "collections:OrderedDict").__name__ == "OrderedDict"
    assert find(METHOD, "xml.dom.minidom:Node.ELEMENT_NODE") == 1
    assert find(METHOD, f"{__name__}:Outer.Inner") is Outer.Inner


@pytest.mark.parametrize(
    "path",
    [
        "no_such_package:Thing",
        "collections.no_such:Thing",
        "collections:NoSuchThing",
        "collections:",
        ":Thing",
        "a b:c",
    ],
)
def test_a_path_that_leads_nowhere_is_refused_with_how_to_write_one(path: str) -> None:
    with pytest.raises(UserError, match=rf"^method '{path}' cannot be found \(.*\): write package\.module:name, where"):
        find(METHOD, path)


def test_an_own_part_in_a_module_that_fails_to_import_another_is_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pinoise_own_part.py").write_text("import no_such_package_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=r"cannot be found \(No module named 'no_such_package_at_all'\)"):
        find(METHOD, "pinoise_own_part:Method")


def place_and_options(shape: tuple[int, ...], outputs: int, *, width: int, depth: int = 3) -> None:
    """What comes first is the place."""


def plain(x: int, factor: float = 2.0, *rest: int, **others: int) -> None:
    """A function as users write them."""


class Built:
    """Built by its method, which has an option of its own."""

    def __init__(self, head: object, *, strength: float = 0.5) -> None: ...

    @classmethod
    def build(cls, site: object, *, size: int = 4, **options: Any) -> Built:
        return cls(site, **options)


class BuiltAlone:
    """Built by its method, which passes nothing on."""

    def __init__(self, head: object, *, strength: float = 0.5) -> None: ...

    @classmethod
    def build(cls, site: object, *, size: int = 4) -> BuiltAlone:
        return cls(site)


@pytest.mark.parametrize(
    ("part", "options"),
    [
        (place_and_options, {"width", "depth"}),
        (plain, {"factor"}),
        (Built, {"size", "strength"}),
        (BuiltAlone, {"size"}),
        (Outer, set()),
        (lambda x: x, set()),
        (torch.tanh, set()),  # which has no signature
    ],
)
def test_options_are_what_is_keyword_only_or_has_a_default(part: Any, options: set[str]) -> None:
    assert set(options_of(part)) == options


def test_the_import_path_of_a_part_is_where_another_process_finds_it() -> None:
    assert import_path(Outer) == f"{__name__}:Outer"
    assert import_path(Outer.Inner) == f"{__name__}:Outer.Inner"
    assert import_path(place_and_options) == f"{__name__}:place_and_options"


def test_what_no_other_process_could_find_has_no_import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def local() -> None: ...

    def impostor() -> None: ...

    impostor.__qualname__ = "Outer"  # another object has its name
    monkeypatch.setattr(local, "__module__", "no_such_package")
    for part in (local, impostor, lambda x: x, 3, "text", None, Outer().make):
        assert import_path(part) is None
    monkeypatch.setattr(Outer, "__module__", "__main__")
    assert import_path(Outer) is None

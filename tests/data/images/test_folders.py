from __future__ import annotations

from pathlib import Path

import pytest

from pinoise.data.images.folders import Listing, list_images
from pinoise.errors import UserError


def touch(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def test_files_directly_inside_have_no_labels_and_are_sorted(tmp_path: Path) -> None:
    found = list_images(touch(tmp_path, "b.JPEG", "a.png", "c.webp", ".hidden.png"))
    assert found.parts[0] == Listing(("a.png", "b.JPEG", "c.webp"))
    assert (len(found.parts), found.notes) == (1, ())


def test_subfolders_are_classes_however_deep_their_files(tmp_path: Path) -> None:
    found = list_images(touch(tmp_path, "dog/z.png", "cat/images/b.jpg", "cat/a.png", "__MACOSX/a.png", ".git/b.png"))
    assert found.parts[0] == Listing(("cat/a.png", "cat/images/b.jpg", "dog/z.png"), ("cat", "cat", "dog"))


@pytest.mark.parametrize("training", ["train", "Training", "TRAIN"])
@pytest.mark.parametrize("held_out", ["test", "val", "valid", "validation", "testing", "Validation", "TEST"])
def test_training_and_held_out_folders_are_a_split_in_any_case(training: str, held_out: str, tmp_path: Path) -> None:
    touch(tmp_path, f"{training}/a/1.png", f"{training}/b/2.png", f"{held_out}/a/3.png", f"{held_out}/b/4.png")
    found = list_images(tmp_path)
    assert found.parts[0] == Listing((f"{training}/a/1.png", f"{training}/b/2.png"), ("a", "b"))
    assert found.parts[1] == Listing((f"{held_out}/a/3.png", f"{held_out}/b/4.png"), ("a", "b"))


def test_a_test_part_without_classes_gives_way_to_val(tmp_path: Path) -> None:
    touch(tmp_path, "train/n01/1.JPEG", "train/n02/2.JPEG", "val/n01/3.JPEG", "test/4.JPEG")
    found = list_images(tmp_path)
    assert found.parts[1] == Listing(("val/n01/3.JPEG",), ("n01",))
    assert found.notes == ("left out 1 folder beside train: test",)


def test_train_alone_and_a_split_without_labels(tmp_path: Path) -> None:
    found = list_images(touch(tmp_path / "alone", "train/a/1.png", "train/b/1.png"))
    assert [part.labels for part in found.parts] == [("a", "b")]
    found = list_images(touch(tmp_path / "flat", "train/1.png", "test/2.png"))
    assert found.parts == (Listing(("train/1.png",)), Listing(("test/2.png",)))


def test_of_several_held_out_folders_the_test_part_is_used_and_the_rest_reported(tmp_path: Path) -> None:
    found = list_images(touch(tmp_path, "Train/a/1.png", "Train/b/2.png", "valid/a/3.png", "Testing/a/4.png"))
    assert found.parts[1] == Listing(("Testing/a/4.png",), ("a",))
    assert found.notes == ("left out 1 folder beside Train: valid",)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["validation/1.png", "cat/2.png", "dog/3.png"], "validation"),
        (["test/a/1.png"], "test"),
        (["Test/a/1.png", "val/a/1.png"], "Test, val"),
        (["train/a/1.png", "training/a/2.png", "test/a/3.png"], "train, training, test"),
        (["train/a/1.png", "train/b/2.png", "more/c/3.png"], "train"),
        (["training/1.png", "plane/2.png"], "training"),
    ],
)
def test_folders_named_like_parts_that_form_no_split_are_refused(names: list[str], told: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"has {told}, named like parts of a split and not forming one: have"):
        list_images(touch(tmp_path, *names))


def test_other_files_are_reported(tmp_path: Path) -> None:
    found = list_images(touch(tmp_path, "a/1.png", "a/boxes.txt", "b/2.png", "README"))
    assert found.notes == ("left out 2 files without the extension of an image: README, a/boxes.txt",)


def test_an_empty_class_folder_is_named(tmp_path: Path) -> None:
    touch(tmp_path, "cat/a.png", "dog/notes.txt")
    with pytest.raises(UserError, match=r"the class folder .*dog holds no image: put its images there, or remove it"):
        list_images(tmp_path)
    touch(tmp_path / "split", "train/cat/a.png", "test/cat/b.png")
    (tmp_path / "split/test/dog").mkdir()
    with pytest.raises(UserError, match=r"the class folder .*test.dog holds no image"):
        list_images(tmp_path / "split")


def test_a_folder_without_images_and_one_with_a_mixture_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"empty holds no images: they are known by their extensions, \.jpg"):
        list_images(tmp_path / "empty")
    touch(tmp_path / "mixed", "a.png", "b.png", "dog/c.png")
    with pytest.raises(UserError, match=r"mixed holds both images \(a\.png and 1 more\) and folders \(dog\)"):
        list_images(tmp_path / "mixed")


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the folder .*gone cannot be read: No such file or directory"):
        list_images(tmp_path / "gone")


def test_linked_class_folders_are_followed(tmp_path: Path) -> None:
    touch(tmp_path / "all", "cat/a.png", "dog/b.png")
    (tmp_path / "some").mkdir()
    for name in ("cat", "dog"):
        (tmp_path / "some" / name).symlink_to(tmp_path / "all" / name)
    assert list_images(tmp_path / "some").parts[0].names == ("cat/a.png", "dog/b.png")

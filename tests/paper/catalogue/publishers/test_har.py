from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pinoise.errors import UserError
from pinoise.paper.catalogue import entry
from pinoise.paper.catalogue.loading import read_set

ACTIVITIES = ("WALKING", "WALKING_UPSTAIRS", "WALKING_DOWNSTAIRS", "SITTING", "STANDING", "LAYING")
RNG = np.random.default_rng(0)
X = {"train": RNG.uniform(-1, 1, (5, 3)), "test": RNG.uniform(-1, 1, (2, 3))}
Y = {"train": [5, 1, 6, 2, 5], "test": [3, 4]}
SUBJECTS = {"train": [1, 1, 3, 30, 30], "test": [2, 4]}


def har_files() -> dict[str, str]:
    """The publisher's layout: fixed-width numbers in exponents, labels from 1, one subject per line."""
    files = {
        "README.txt": "read me",
        "activity_labels.txt": "".join(f"{i} {name}\n" for i, name in enumerate(ACTIVITIES, start=1)),
        "features.txt": "1 tBodyAcc-mean()-X\n2 tBodyAcc-mean()-Y\n3 angle(X,gravityMean)\n",
    }
    for side in ("train", "test"):
        rows = ["".join(f" {value: .7e}" for value in row) + "\n" for row in X[side]]
        files[f"{side}/X_{side}.txt"] = "".join(rows)
        files[f"{side}/y_{side}.txt"] = "".join(f"{label}\n" for label in Y[side])
        files[f"{side}/subject_{side}.txt"] = "".join(f"{subject}\n" for subject in SUBJECTS[side])
    return files


def zip_of(files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("UCI HAR Dataset/", "")
        for name, text in files.items():
            archive.writestr(f"UCI HAR Dataset/{name}", text)
            archive.writestr(f"__MACOSX/UCI HAR Dataset/{Path(name).parent}/._{Path(name).name}", "\0\0")
    return content.getvalue()


def write(path: Path, files: dict[str, str], *, nested: bool) -> Path:
    if nested:
        with zipfile.ZipFile(path, "w") as outer:
            outer.writestr("UCI HAR Dataset.names", "text")
            outer.writestr("UCI HAR Dataset.zip", zip_of(files))
    else:
        path.write_bytes(zip_of(files))
    return path


@pytest.mark.parametrize("nested", [True, False])
def test_the_zip_of_the_repository_and_the_zip_within_it_give_the_same_set(nested: bool, tmp_path: Path) -> None:
    data = read_set(entry("har"), [write(tmp_path / "har.zip", har_files(), nested=nested)])
    assert data.name == "har"
    assert data.feature_names == ("tBodyAcc-mean()-X", "tBodyAcc-mean()-Y", "angle(X,gravityMean)")
    assert data.class_names == ACTIVITIES
    assert data.test is not None
    for part, side in ((data.train, "train"), (data.test, "test")):
        np.testing.assert_allclose(np.asarray(part.x), X[side], rtol=1e-6)
        assert part.x.dtype == np.float32
        assert part.y is not None
        assert part.y.dtype == np.int64
        assert part.y.tolist() == [label - 1 for label in Y[side]]
        assert part.groups is not None
        assert part.groups.tolist() == SUBJECTS[side]


@pytest.mark.parametrize(
    ("member", "text", "message"),
    [
        ("train/X_train.txt", "1 2\n" * 5, r"3 feature names for samples of shape \(2,\)"),
        ("test/y_test.txt", "3\n" * 4, "2 rows but 4 labels"),
        ("test/y_test.txt", "3\n7\n", "the label '6' has no entry among the 6 class names"),
        ("test/y_test.txt", "3\n0\n", "the label '-1' has no entry among the 6 class names"),
    ],
)
def test_a_wrong_file_is_named(member: str, text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "har.zip", har_files() | {member: text}, nested=True)
    with pytest.raises(UserError, match=message):
        read_set(entry("har"), [path])

"""A folder of photographs: a small ResNet learns from all of them, and a few labels say what they show.

The folder is made here from two photographs that scikit-learn has, cut into pieces: which one is a piece from?
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images

from pinoise import PiNDA
from pinoise.data import ReadOptions, read_file, split
from pinoise.evaluation import few_label_accuracies


def write_pieces(folder: Path, *, side: int = 40) -> None:
    """Write pieces of each photograph to a folder of its own, as your folder has a folder for each class."""
    for name, photograph in zip(("temple", "flower"), load_sample_images().images, strict=True):
        (folder / name).mkdir()
        for top in range(0, photograph.shape[0] - side, side):
            for left in range(0, photograph.shape[1] - side, side):
                piece = photograph[top : top + side, left : left + side]
                Image.fromarray(piece).save(folder / name / f"{top}_{left}.png")


def main() -> None:
    """Print the accuracy with few labels, of pixels and of what the network learned."""
    with tempfile.TemporaryDirectory() as folder:
        write_pieces(Path(folder))
        data, _ = read_file(folder, ReadOptions(size=16))  # any size that is read becomes 16 × 16
        data = split(data, seed=0)
        assert data.test is not None
        X, X_test = (np.asarray(part.x[np.arange(len(part.x))]) for part in (data.train, data.test))
    y, y_test = np.asarray(data.train.y), np.asarray(data.test.y)
    model = PiNDA(
        encoder={"name": "resnet18", "width": 8},
        image_shape=X.shape[1:],
        augmentations=("simclr",),
        neighbours=0,  # neighbours in pixels are often of another class
        epochs=10,
        batch_size=64,
        random_state=0,
    ).fit(X)
    pixels = [images.reshape(len(images), -1) / 255 for images in (X, X_test)]
    for name, (Z, Z_test) in {"pixels": pixels, "learned": [model.transform(X), model.transform(X_test)]}.items():
        print(f"{name}: {100 * np.mean(few_label_accuracies(Z, y, Z_test, y_test)):.1f} % with 10 labels per class")


if __name__ == "__main__":
    main()

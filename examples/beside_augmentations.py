"""Algorithm 2: noise as one more augmentation beside those that one already has."""

from __future__ import annotations

from typing import Any

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from pinoise import PiNDA


def main() -> None:
    """Draw each view from {SCARF, mixup, noise}, sample by sample, and print how well neighbours then agree."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    others: tuple[str | dict[str, Any], ...] = ("scarf", {"name": "dacl", "alpha": 0.8})
    for augmentations in ((), others):
        model = PiNDA(
            n_components=32,
            hidden=256,
            augmentations=augmentations,  # with any, pairing "auto" means Algorithm 2
            epochs=15,
            random_state=0,
        ).fit(X_train)
        neighbours = KNeighborsClassifier(5).fit(model.transform(X_train), y_train)
        names = ["noise", *(a if isinstance(a, str) else a["name"] for a in augmentations)]
        score = neighbours.score(model.transform(X_test), y_test)
        print(f"{' + '.join(names)}: {100 * score:.1f} % by 5 neighbours")


if __name__ == "__main__":
    main()

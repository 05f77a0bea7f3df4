"""What a comparison means, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from pinoise.experiments.compare import Line
from pinoise.experiments.recipes import RECIPES


def verdict(lines: Sequence[Line]) -> str:
    """Say which augmentation does best with few labels, whether it beats raw features, and where noise collapsed.

    >>> raw = Line("toy", "raw", {"few": 80.0, "knn": 90.0}, {"few": 1.0, "knn": 0.0}, 0.0, ())
    >>> fixed = Line("toy", "fixed", {"few": 85.0, "knn": 89.0}, {"few": 1.0, "knn": 0.0}, 1.0, ())
    >>> verdict([raw, fixed])
    'On toy, random noise (σ = 1) is the best learned embedding with few labels, 5.0 points above raw features.'
    """
    data = lines[0].data
    raw = next((line for line in lines if line.method == "raw"), None)
    trained = [line for line in lines if RECIPES[line.method].settings is not None]
    if raw is None or not trained:
        return f"On {data}, nothing was trained, so there is nothing to compare with raw features."
    best = max(trained, key=lambda line: line.means["few"])
    gain = best.means["few"] - raw.means["few"]
    side = "above" if gain >= 0 else "below"
    sentence = (
        f"On {data}, {RECIPES[best.method].title} is the best learned embedding with few labels, "
        f"{abs(gain):.1f} points {side} raw features"
    )
    shrunk = [line for line in trained if "shrink" in line.flags]
    if shrunk:
        names = " and ".join(RECIPES[line.method].title for line in shrunk)
        gaps = [line.means["few"] - raw.means["few"] for line in shrunk]
        places = " and ".join(f"{abs(gap):.1f} {'above' if gap >= 0 else 'below'}" for gap in gaps)
        sentence += (
            f"; the learned noise of {names} collapsed to almost nothing, so its views taught little, "
            f"and it ends {places} raw features"
        )
    return sentence + "."

"""What a reproduction says about the paper, in a sentence or two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from pinoise.choices import SCORES
from pinoise.errors import either
from pinoise.paper.reproduce.outcome import OutcomeLine, Reproduction

CLOSE = 0.01  # of the paper's figure, within which a count of operations is the same


class Pair(NamedTuple):
    """A row against the row that the paper compares it with, in one score."""

    line: OutcomeLine
    column: str
    ours: float
    paper: float | None  # the same difference in the paper


def pairs(found: Reproduction) -> list[Pair]:
    """Return every comparison that the paper makes, as far as it was measured."""
    return list(_pairs(found))


def _pairs(found: Reproduction) -> Iterator[Pair]:
    for line in found.lines:
        base = None if line.above is None else found.line(line.data, line.above)
        if base is None:
            continue
        for column in (column for column in found.item.columns if column in SCORES):
            mean, other = line.mean(column), base.mean(column)
            if mean is not None and other is not None:
                both = column in line.paper and column in base.paper
                paper = line.paper[column][0] - base.paper[column][0] if both else None
                yield Pair(line, column, mean - other, paper)


def verdict(found: Reproduction) -> str:
    """Say what the item shows here and in the paper."""
    says = {
        "accuracy": _on_accuracy,
        "sweep": _on_accuracy,
        "data": _on_data,
        "cost": _on_cost,
        "noise": _on_noise,
        "curves": _on_curves,
    }
    sentence = says[found.item.kind](found) if found.lines else "Nothing is finished."
    if not found.is_complete:
        sentence += f" Stopped after {found.finished} of {found.total} fits."
    return sentence


def _on_accuracy(found: Reproduction) -> str:
    compared = pairs(found)
    if not compared:
        return "No comparison of the paper is finished."
    known = [pair for pair in compared if pair.paper is not None]
    sentences = []
    if known:
        papers = sum(pair.paper is not None and pair.paper > 0 for pair in known)
        agree = sum(pair.paper is not None and (pair.paper > 0) == (pair.ours > 0) for pair in known)
        sentences.append(
            f"In the paper the row with PiNDA is above the one it is compared with in {papers} of {len(known)} "
            f"comparisons, by {fmean(pair.paper or 0.0 for pair in known):+.1f} points on average. "
            f"The direction is the same here in {agree} of {len(known)}."
        )
    above = sum(pair.ours > 0 for pair in compared)
    mean = fmean(pair.ours for pair in compared)
    subject = "it" if known else "the row with PiNDA"
    sentences.append(f"Here {subject} is above in {above} of {len(compared)}, by {mean:+.1f} points on average.")
    shrunk = [line.title for line in found.lines if "shrink" in line.flags]
    if shrunk:
        sentences.append(f"Learned noise collapsed to almost nothing in {_counted(shrunk)}.")
    sentences += _on_others(found)
    return " ".join([*sentences, _on_cost(found)] if "flops" in found.item.columns else sentences)


def _on_others(found: Reproduction) -> list[str]:
    """Return how the rows that the paper does not have stand against the best of its rows with PiNDA."""
    standings = []
    bases = {line.above for line in found.lines}
    others = [line.title for line in found.lines if not line.paper and line.above is None and line.title not in bases]
    for title in dict.fromkeys(others):
        gaps = []
        for line in (line for line in found.lines if line.title == title):
            rivals = [other for other in found.lines if other.data == line.data and other.above is not None]
            for column in (column for column in found.item.columns if column in SCORES):
                best = [value for value in (rival.mean(column) for rival in rivals) if value is not None]
                mean = line.mean(column)
                if best and mean is not None:
                    gaps.append(mean - max(best))
        if gaps:
            above = sum(gap > 0 for gap in gaps)
            standings.append(f"{title} is above in {above} of {len(gaps)} ({fmean(gaps):+.1f} points)")
    if not standings:
        return []
    return [f"Against the best row with PiNDA, on average over sets and scores: {'; '.join(standings)}."]


def _on_data(found: Reproduction) -> str:
    same = [line for line in found.lines if line.difference("rows") == 0]
    apart = [line.title for line in found.lines if line.difference("rows") != 0]
    return f"{len(same)} of {len(found.lines)} sets have the paper's number of rows at their publisher" + (
        f"; {either(apart, last='and')} do not." if apart else "."
    )


def _on_cost(found: Reproduction) -> str:
    gaps = {}
    for line in found.lines:
        difference = line.difference("flops")
        if difference is not None:
            gaps[f"{line.title} ({found.item.data[line.data].title})"] = abs(difference) / line.paper["flops"][0]
    apart = [f"{title} by {gap:.1%}" for title, gap in gaps.items() if gap > CLOSE]
    if not gaps:
        return "No count of operations is finished."
    return f"{len(gaps) - len(apart)} of {len(gaps)} counts of operations are within 1 % of the paper's" + (
        f"; {either(apart, last='and')} differ." if apart else "."
    )


def _on_noise(found: Reproduction) -> str:
    sentences = []
    for line in found.lines:
        sentence = f"{line.title}: mean σ {line.mean('sigma'):.3g}, correlation with edges {line.mean('edges'):+.2f}"
        if line.ours.get("mu_edges"):
            sentence += f", of μ {line.mean('mu_edges'):+.2f}"
        sentences.append(sentence + (f" ({', '.join(line.flags)})." if line.flags else "."))
    return " ".join(sentences)


def _on_curves(found: Reproduction) -> str:
    sentences = []
    for line in found.lines:
        title = found.item.data[line.data].title
        base = None if line.above is None else found.line(line.data, line.above)
        mean, other = line.mean("contrast"), None if base is None else base.mean("contrast")
        if mean is not None and other is not None and base is not None:
            side = "below" if mean < other else "above"
            sentences.append(f"{title}: {line.title} ends at ℓ = {mean:.3g}, {side} {base.title} ({other:.3g}).")
        elif (plug_in := line.mean("plug_in")) is not None:
            exact = line.mean("information")
            sentences.append(f"{title}, {line.title}: plug-in MI {plug_in:+.3f}, exact MI {exact:.3f} nats.")
    return " ".join(sentences)


def _counted(titles: Sequence[str]) -> str:
    return either([f"{title} (on {titles.count(title)} sets)" for title in dict.fromkeys(titles)], last="and")

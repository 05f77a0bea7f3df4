"""``pinoise demo``: two minutes on handwritten digits."""

from __future__ import annotations

from pinoise.cli.compare import run_comparison
from pinoise.cli.options import JsonOption


def demo(json: JsonOption = False) -> None:
    """Compare learned noise with its rivals on handwritten digits, in about a minute.

    Example: `pinoise demo`
    """
    run_comparison(
        sources=["digits"],
        seeds=[0, 1, 2],
        changes=[("training.epochs", 60), ("encoder.hidden", 512), ("noise.generator.hidden", 512)],
        as_json=json,
    )

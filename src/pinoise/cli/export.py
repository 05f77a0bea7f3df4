"""``pinoise export``: a finished run as one ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pinoise.cli.console import print_json
from pinoise.cli.embed import open_run
from pinoise.cli.options import ForceOption, JsonOption, TrustOption


def export(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a finished run.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write: .onnx.")],
    what: Annotated[
        str, typer.Option(help="embedding, or noise: σ(x) in the units of x and in standard deviations.")
    ] = "embedding",
    force: ForceOption = False,
    trust: TrustOption = False,
    json: JsonOption = False,
) -> None:
    """Write a run as one ONNX file, from samples as the data holds them to their embedding; needs the extra `export`.

    The file is kept only if onnxruntime computes the same as pinoise, to 1e-5 of the largest value in a row.

    Example: `pinoise export runs/digits --out digits.onnx`
    """
    finished = open_run(run, None, out, what="a graph", formats=(".onnx",), force=force, trust=trust)
    written = finished.export(out, what=what)  # type: ignore[arg-type]  # which refuses another
    if json:
        print_json({"out": str(out), **written})
    else:
        inputs, outputs = (_shown(written[name]) for name in ("inputs", "outputs"))
        print(f"{out}: {inputs} → {outputs}; differs from pinoise by {written['difference']:.1e} at most")


def _shown(tensors: dict[str, list[Any]]) -> str:
    return ", ".join(f"{name} ({', '.join(map(str, shape))})" for name, shape in tensors.items())

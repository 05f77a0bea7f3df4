"""Is an augmentation π-noise for a task? What the views of a run, and others, tell about its task."""

from __future__ import annotations

import torch

from pinoise.choices import VIEW, PairingName
from pinoise.information import InformationEstimate
from pinoise.model import Model, contrastive_model
from pinoise.training.build import build_view, make_site
from pinoise.training.config import read_choice, takes_images
from pinoise.training.metrics import information_in_views
from pinoise.training.objectives import ContrastiveModel
from pinoise.views import Batch, Pairing

# The views that a run's own are compared with, and further ones for images.
PREDEFINED = ("identity", "gaussian", "scarf", "vime", "dacl", "neighbours")
IMAGE_VIEWS = ("crop", "simclr")

DRAWS = 16  # how often every view is drawn

_ROWS = 512
_IMAGES = 64


def information_of_run(run: Model, *, draws: int = DRAWS, progress: bool = False) -> dict[str, InformationEstimate]:
    """Measure what a run's own views, and predefined ones, tell about the task of its encoder.

    Args:
        run: a finished run, whose own training rows are used; labels are not.
        draws: of every view, two or more; the work grows with their square.
        progress: whether a download of the data shows a bar.
    """
    part = run.own_data(progress=progress).train
    rows = run.rows(part.x, where=run.settings.data.source, origin=part.origin)
    model = contrastive_model(run, rows)
    images = takes_images(run.settings)
    size = min(_IMAGES if images else _ROWS, len(rows))
    chosen = torch.arange(size) * len(rows) // size
    batch = Batch(rows[chosen], chosen)
    found = {"the run's own": information_in_views(model, batch, draws=draws)}
    # Paired like the run's own views, so that the figures can be compared.
    pairing: PairingName = "noise-noise" if model.pairing.name == "noise-noise" else "identity-noise"
    site = make_site(run.settings, run.standardizer, rows, model.method.encoder)
    for name in (*PREDEFINED, *(IMAGE_VIEWS if images else ())):
        view = build_view(read_choice(name, VIEW, "view"), site)
        other = ContrastiveModel(pairing=Pairing(pairing, noise=view), method=model.method, objective=model.objective)
        found[name] = information_in_views(other, batch, draws=draws)
    return found

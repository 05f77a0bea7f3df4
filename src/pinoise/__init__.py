"""Learned data augmentation for contrastive learning: π-noise (PiNDA) on any data.

Three doors: the scikit-learn transformer ``PiNDA`` (``PiNDAClassifier`` for few labels), the
PyTorch module ``PiNoise`` and the command ``pinoise``.
``load_run`` reads what the command trained; ``compare`` sets methods side by side.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
    from pinoise.errors import UserError
    from pinoise.estimator import HealthWarning, PiNDA, PiNDAClassifier
    from pinoise.experiments.compare import compare
    from pinoise.model import load_run
    from pinoise.noise import PiNoise
    from pinoise.training.callbacks import Callback

__all__ = [
    "Callback",
    "HealthWarning",
    "PiNDA",
    "PiNDAClassifier",
    "PiNoise",
    "UserError",
    "__version__",
    "compare",
    "load_run",
]

_HOMES = {
    "PiNDA": "pinoise.estimator",
    "PiNDAClassifier": "pinoise.estimator",
    "HealthWarning": "pinoise.estimator",
    "PiNoise": "pinoise.noise",
    "Callback": "pinoise.training.callbacks",
    "compare": "pinoise.experiments.compare",
    "load_run": "pinoise.model",
    "UserError": "pinoise.errors",
}


def __getattr__(name: str) -> object:
    """Import torch and scikit-learn only when a name that needs them is asked for."""
    if name == "__version__":
        from importlib.metadata import version

        return version("pinoise")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

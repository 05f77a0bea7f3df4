"""The scikit-learn door: ``PiNDA``, a transformer that learns an embedding with learned noise as its augmentation."""

from pinoise.estimator.pinda import HealthWarning, PiNDA

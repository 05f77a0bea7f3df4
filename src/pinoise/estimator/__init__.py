"""The scikit-learn door: ``PiNDA``, a transformer that learns an embedding with learned noise as its augmentation.

``PiNDAClassifier`` is it with a classifier for few labels.
"""

from pinoise.estimator.classifier import PiNDAClassifier
from pinoise.estimator.pinda import HealthWarning, PiNDA

"""A fitted estimator to and from its file, whose format is in ``saving``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pinoise.data.preparation import Preparation, preparation_from_json
from pinoise.data.standardizer import Standardizer
from pinoise.errors import UserError
from pinoise.estimator.parameters import settings_from
from pinoise.estimator.saving import ModelHeader, portable, read_model, write_model
from pinoise.modes import Randomness
from pinoise.networks import Embedding, load_weights
from pinoise.noise import PiNoise
from pinoise.training.automatic import with_best_noise
from pinoise.training.build import build_encoder, check_size, embedding_tensors, restore_embedding, restore_noise
from pinoise.training.build.model import standardizer_from, standardizer_tensors
from pinoise.training.config import distrusted


class StoredEstimator(NamedTuple):
    """What a model file holds, as the objects that an estimator is made of."""

    header: ModelHeader
    standardizer: Standardizer
    embedding: Embedding
    noise: PiNoise
    preparation: Preparation | None


def write_estimator(path: Path, estimator: Any) -> None:
    """Write a fitted ``PiNDA``."""
    params = portable({**estimator.get_params(deep=False), "callbacks": ()})  # they watched the fit, which is over
    if isinstance(estimator.random_state, np.random.RandomState):
        params["random_state"] = None  # a generator in mid-stream has no place in a file
    header = ModelHeader(
        params=params,
        history=estimator.history_,
        flags=estimator.flags_,
        trials=estimator.trials_,
        n_features_in=estimator.n_features_in_,
        feature_names_in=list(getattr(estimator, "feature_names_in_", ())),
        preparation=None if estimator._preparation is None else estimator._preparation.to_json(),
        of_sparse=estimator._of_sparse,
    )
    write_model(
        path,
        header,
        encoder=estimator.encoder_.state_dict(),
        embedding=embedding_tensors(estimator.embedding_),
        noise=estimator.noise_.state_dict(),
        standardizer=standardizer_tensors(estimator._standardizer),
    )


def read_estimator(path: Path, *, parameters: Iterable[str], trust: bool) -> StoredEstimator:
    """Read what ``write_estimator`` wrote.

    Args:
        path: the file.
        parameters: the names of those that the estimator takes.
        trust: whether to import the parts that the file names by an import path.
    """
    header, parts = read_model(path)
    unknown = sorted(header.params.keys() ^ set(parameters))
    if unknown:
        raise UserError(f"{path} does not fit this version of PiNDA, which differs in the parameter {unknown[0]!r}.")
    settings = settings_from(header.params, seed=0, distrust=distrusted(path, trust=trust))
    settings = with_best_noise(settings, header.trials)
    standardizer = standardizer_from(parts["standardizer"], where=path)
    preparation = None if header.preparation is None else preparation_from_json(header.preparation)
    features = standardizer.mean.size if preparation is None else math.prod(preparation.shape)
    if features != standardizer.mean.size or (preparation is None and features != header.n_features_in):
        raise UserError(f"{path} has a standardiser for other samples than its header: the file is damaged.")
    try:
        with Randomness(0).lent():  # the weights of the file replace what is drawn
            check_size(settings, standardizer.shape)
            encoder = build_encoder(settings, standardizer.shape)
            load_weights(encoder, parts["encoder"], where=path)
            embedding = restore_embedding(encoder, settings, standardizer, parts["embedding"])
            noise = restore_noise(settings, standardizer, encoder, parts["noise"])
    except RuntimeError:  # as torch refuses weights
        raise UserError(f"{path} does not fit its parameters: a part of your own has changed since.") from None
    return StoredEstimator(header, standardizer, embedding, noise, preparation)

"""Embeddings and the scores of classifiers fitted on them; nothing here trains an encoder or reads a file."""

from pinoise.evaluation.embedding import check_embeddings, check_labelled, embed
from pinoise.evaluation.few_label import few_label_accuracies, few_label_rows
from pinoise.evaluation.knn import knn_accuracy, knn_neighbours, knn_predict
from pinoise.evaluation.logistic import fit_logistic, logistic_regression
from pinoise.evaluation.scores import Scores, evaluate
from pinoise.evaluation.softmax import fit_softmax, softmax_regression

__all__ = [
    "Scores",
    "check_embeddings",
    "check_labelled",
    "embed",
    "evaluate",
    "few_label_accuracies",
    "few_label_rows",
    "fit_logistic",
    "fit_softmax",
    "knn_accuracy",
    "knn_neighbours",
    "knn_predict",
    "logistic_regression",
    "softmax_regression",
]

"""Embeddings and the scores of classifiers fitted on them; nothing here trains an encoder or reads a file."""

from pinoise.evaluation.embedding import FORMATS, TABLES, WHOLE, embed, write_embedding
from pinoise.evaluation.knn import knn_accuracy
from pinoise.evaluation.logistic import few_label_accuracies, logistic_regression
from pinoise.evaluation.ridge import few_value_scores, knn_r_squared, ridge_r_squared
from pinoise.evaluation.scores import Scores, evaluate
from pinoise.evaluation.softmax import softmax_regression

"""What predictions say about samples, and ways to pick samples by it.

Functions of arrays, in the precision of their input. A sample has logits l,
probabilities p = softmax(l), an embedding z (what the last layer of the classifier
sees) and a predicted class, the first with the largest probability.
"""

from ._gradients import expected_gradient_length, gradient_factors, gradient_norm
from ._picking import (
    distance_to_labelled,
    k_centre,
    kmeans_plus_plus,
    rescaled,
    top_n,
)
from ._uncertainty import (
    by_blocks,
    entropy,
    free_energy,
    least_confidence,
    logit_margin,
    margin,
    softmax,
)

__all__ = [
    "by_blocks",
    "distance_to_labelled",
    "entropy",
    "expected_gradient_length",
    "free_energy",
    "gradient_factors",
    "gradient_norm",
    "k_centre",
    "kmeans_plus_plus",
    "least_confidence",
    "logit_margin",
    "margin",
    "rescaled",
    "softmax",
    "top_n",
]

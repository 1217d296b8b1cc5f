"""The estimator that people use in their labelling loops."""

from ._learner import (
    CompositeActiveLearner,
    MinusOneIsAClassWarning,
    StartedAnewWarning,
)
from ._rounds import Allocation, Round

__all__ = [
    "Allocation",
    "CompositeActiveLearner",
    "MinusOneIsAClassWarning",
    "Round",
    "StartedAnewWarning",
]

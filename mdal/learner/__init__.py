"""The estimator that people use in their labelling loops."""

from ._learner import CompositeActiveLearner
from ._pool import MinusOneIsAClassWarning
from ._rounds import Allocation, Round
from ._training import StartedAnewWarning

__all__ = [
    "Allocation",
    "CompositeActiveLearner",
    "MinusOneIsAClassWarning",
    "Round",
    "StartedAnewWarning",
]

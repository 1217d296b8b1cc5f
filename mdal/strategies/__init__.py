"""Which samples to label: strategies on what a model says about a pool."""

from ._base import FewerSamplesWarning, ScoreStrategy, Strategy, TransformerStrategy
from ._diverse import BADGE, CLUE, ClusterMargin, CoreSet, GraDS
from ._scored import (
    EADA,
    Energy,
    Entropy,
    ExpectedGradientLength,
    LeastConfidence,
    Margin,
    Random,
)
from ._view import PoolView

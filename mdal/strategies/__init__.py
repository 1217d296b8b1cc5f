"""Which samples to label: strategies on what a model says about a pool.

A strategy has ``transform(view)``, the scores or the embedding by which it judges, and
``select(view, n)``, the rows that it picks. A view is a :class:`PoolView`, or an array
of logits.
"""

from ._base import (
    FewerSamplesWarning,
    RankingStrategy,
    ScoreStrategy,
    Strategy,
    TransformerStrategy,
)
from ._diverse import BADGE, CLUE, ClusterMargin, CoreSet, GraDS
from ._mixture import Mixture
from ._names import get_strategy, strategy_names
from ._others import CallableStrategy, SkactivemlStrategy
from ._scored import (
    EADA,
    Energy,
    Entropy,
    ExpectedGradientLength,
    LeastConfidence,
    Margin,
    Random,
)
from ._streamed import select_streamed
from ._view import PoolView

__all__ = [  # noqa: RUF022 (in plain order, like every other)
    "BADGE",
    "CLUE",
    "CallableStrategy",
    "ClusterMargin",
    "CoreSet",
    "EADA",
    "Energy",
    "Entropy",
    "ExpectedGradientLength",
    "FewerSamplesWarning",
    "GraDS",
    "LeastConfidence",
    "Margin",
    "Mixture",
    "PoolView",
    "Random",
    "RankingStrategy",
    "ScoreStrategy",
    "SkactivemlStrategy",
    "Strategy",
    "TransformerStrategy",
    "get_strategy",
    "select_streamed",
    "strategy_names",
]

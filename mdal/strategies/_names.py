"""Strategies by name."""

from ._base import Strategy
from ._diverse import BADGE, CLUE, ClusterMargin, CoreSet, GraDS
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

_STRATEGIES = {
    "badge": BADGE,
    "bvsb": Margin,
    "clue": CLUE,
    "cluster_margin": ClusterMargin,
    "coreset": CoreSet,
    "eada": EADA,
    "egl": ExpectedGradientLength,
    "energy": Energy,
    "entropy": Entropy,
    "grads": GraDS,
    "least_confidence": LeastConfidence,
    "margin": Margin,
    "random": Random,
}


def strategy_names() -> list[str]:
    """Return the names that :func:`get_strategy` knows.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from mdal.strategies import strategy_names
    >>> "grads" in strategy_names()
    True
    """
    return sorted(_STRATEGIES)


def get_strategy(strategy) -> Strategy:
    """Return the strategy that a name, a callable or an object stands for.

    Parameters
    ----------
    strategy : str, Strategy, callable or scikit-activeml pool strategy
        One of :func:`strategy_names`; a strategy, which is returned as it is; a
        function as :class:`CallableStrategy` takes it; or an object with a method
        `query` as :class:`SkactivemlStrategy` takes it.

    Returns
    -------
    Strategy

    Examples
    --------
    >>> from mdal.strategies import get_strategy
    >>> get_strategy("margin")
    Margin()
    """
    if isinstance(strategy, str):
        if strategy not in _STRATEGIES:
            raise ValueError(
                f"strategy={strategy!r} is unknown; choose one of "
                f"{', '.join(strategy_names())}, or pass a strategy or a callable"
            )
        return _STRATEGIES[strategy]()
    if isinstance(strategy, type):
        raise TypeError(
            f"strategy is the class {strategy.__name__}; pass an object of it"
        )
    if isinstance(strategy, Strategy):
        return strategy
    if hasattr(strategy, "query") and hasattr(strategy, "get_params"):
        return SkactivemlStrategy(strategy)
    if callable(strategy):
        return CallableStrategy(strategy)
    raise TypeError(
        f"strategy={strategy!r} is of type {type(strategy).__name__}; pass a name, a "
        "strategy or a callable"
    )

"""Several strategies that share a budget."""

import numpy as np

from .._validation import check_weights
from ..budget import allocate
from ._base import Strategy, TransformerStrategy
from ._names import get_strategy


class Mixture(TransformerStrategy):
    """Some samples by this strategy, some by that.

    The strategies pick one after the other; none picks what an earlier one has picked.
    They draw from the mixture's generator, whatever their own `random_state`, and `fit`
    does not fit them.

    Parameters
    ----------
    strategies : sequence of str, Strategy or callable, default=("margin", "random")
        What :func:`get_strategy` knows.
    quotas : sequence of float, default=None
        How many samples each strategy picks. If they do not sum to what is asked for,
        they are shares of it, rounded by :func:`mdal.budget.allocate`. None is equal
        shares.
    random_state : int, RandomState or None, default=None
        Seed or generator, for all of them.

    Examples
    --------
    >>> from mdal.strategies import Mixture
    >>> five_and_five = Mixture(["margin", "random"], quotas=[5, 5], random_state=0)
    >>> logits = [[float(i), 0.0] for i in range(100)]
    >>> five_and_five.select(logits, 10)[:5]
    array([0, 1, 2, 3, 4])
    """

    def __init__(self, strategies=("margin", "random"), quotas=None, random_state=None):
        self.strategies = strategies
        self.quotas = quotas
        self.random_state = random_state

    def describe(self, view):
        """Return what the strategies say, side by side; see :meth:`transform`."""
        members = self._members()
        for member in members:
            if not isinstance(member, TransformerStrategy):
                raise TypeError(
                    f"{member!r} has no transform; a mixture has one only if all of "
                    "its strategies have"
                )
        return np.hstack([member.describe(view) for member in members])

    def _learn(self, view):
        described = all(isinstance(m, TransformerStrategy) for m in self._members())
        return super()._learn(view) if described else {}

    def screen(self, view, luck):
        """Return all strategies' respects; see :meth:`Strategy.screen`."""
        return np.hstack([member.screen(view, luck) for member in self._members()])

    def pick(self, view, n, rng):
        """Return rows of all strategies; see :meth:`Strategy.pick`."""
        members = self._members()
        quotas = [1] * len(members) if self.quotas is None else self.quotas
        quotas = check_weights(quotas, "quotas", len(members))
        if not quotas.any():
            raise ValueError("all quotas are 0; give at least one strategy a share")
        left, picked = np.arange(len(view)), []
        for strategy, quota in zip(members, allocate(quotas, n), strict=True):
            rows = strategy.select(view.take(left), int(quota), rng)
            picked.append(left[rows])
            left = np.delete(left, rows)
        return np.concatenate(picked)

    def _members(self) -> list[Strategy]:
        if not isinstance(self.strategies, list | tuple) or not self.strategies:
            raise ValueError(
                f"strategies={self.strategies!r} is not a list of strategies; pass at "
                "least one in a list"
            )
        return [get_strategy(strategy) for strategy in self.strategies]

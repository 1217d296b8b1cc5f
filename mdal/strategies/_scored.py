"""Strategies that rank samples by scores of the predictions."""

import math

import numpy as np

from .._validation import check_number
from ..scores import (
    by_blocks,
    entropy,
    expected_gradient_length,
    free_energy,
    least_confidence,
    logit_margin,
    margin,
    softmax,
    top_n,
)
from ._base import RankingStrategy, ScoreStrategy, TransformerStrategy


class Random(TransformerStrategy):
    """Uniformly at random, without replacement.

    Parameters
    ----------
    random_state : int, RandomState or None, default=None
        Seed or generator.

    Examples
    --------
    >>> from mdal.strategies import Random
    >>> len(Random(random_state=0).select([[0.0, 1.0]] * 5, 3))
    3
    """

    def __init__(self, random_state=None):
        self.random_state = random_state

    def describe(self, view):
        """Return a column of ones, as all samples are worth the same."""
        return np.ones((len(view), 1), view.logits.dtype)

    def pick(self, view, n, rng):
        """Return random rows; see :meth:`Strategy.pick`."""
        return rng.permutation(len(view))[:n]


class Margin(ScoreStrategy):
    """Smallest margin between the two most probable classes first (also called BvSB).

    See :func:`mdal.scores.margin`; the utility is its negative.

    Examples
    --------
    >>> from mdal.strategies import Margin
    >>> Margin().select([[3.0, 0.0], [0.1, 0.0], [1.0, 0.0]], 2)
    array([1, 2])
    """

    def utilities(self, view):
        """Return negative margins; see :meth:`ScoreStrategy.utilities`."""
        return by_blocks(lambda logits: -margin(softmax(logits)), view.logits)


class Entropy(ScoreStrategy):
    """Largest entropy of the predicted classes first.

    See :func:`mdal.scores.entropy`.

    Examples
    --------
    >>> from mdal.strategies import Entropy
    >>> Entropy().select([[3.0, 0.0], [0.1, 0.0], [1.0, 0.0]], 2)
    array([1, 2])
    """

    def utilities(self, view):
        """Return entropies; see :meth:`ScoreStrategy.utilities`."""
        return by_blocks(lambda logits: entropy(softmax(logits)), view.logits)


class LeastConfidence(ScoreStrategy):
    """Smallest probability of the predicted class first.

    See :func:`mdal.scores.least_confidence`.

    Examples
    --------
    >>> from mdal.strategies import LeastConfidence
    >>> LeastConfidence().select([[3.0, 0.0], [0.1, 0.0], [1.0, 0.0]], 2)
    array([1, 2])
    """

    def utilities(self, view):
        """Return 1 - max p; see :meth:`ScoreStrategy.utilities`."""
        return by_blocks(lambda logits: least_confidence(softmax(logits)), view.logits)


class ExpectedGradientLength(ScoreStrategy):
    """Largest expected gradient of the last layer first.

    See :func:`mdal.scores.expected_gradient_length`.

    Examples
    --------
    >>> from mdal.strategies import ExpectedGradientLength
    >>> ExpectedGradientLength().select([[3.0, 0.0], [0.1, 0.0], [1.0, 0.0]], 2)
    array([1, 2])
    """

    def utilities(self, view):
        """Return expected lengths; see :meth:`ScoreStrategy.utilities`."""
        if view.embedding is None:
            return by_blocks(
                lambda logits: expected_gradient_length(softmax(logits)), view.logits
            )
        return by_blocks(
            lambda logits, z: expected_gradient_length(softmax(logits), z),
            view.logits,
            view.embedding,
        )


class _EnergyAndMargin(RankingStrategy):
    """What the strategies by free energy have in common."""

    def describe(self, view):
        """Return free energies and negative logit margins; see :meth:`transform`."""
        return by_blocks(
            lambda logits: np.stack([free_energy(logits), -logit_margin(logits)], 1),
            view.logits,
        )


class Energy(_EnergyAndMargin):
    r"""A share of the budget by free energy, the rest by the margin of the logits.

    Of n samples, :math:`\lfloor w n \rfloor` are those with the highest free energy
    :math:`F`; the others have the smallest logit margins among what remains. This is
    how Composite Active Learning's authors adapt EADA's score; for EADA's own
    selection see :class:`EADA`.

    Parameters
    ----------
    share : float, default=0.5
        The share :math:`w`. The paper's experiments use 0.5 (RotatingMNIST,
        Office-Home) and 0.2 (ImageCLEF, Office-Caltech).

    References
    ----------
    Hao et al., "Composite Active Learning", AAAI 2024.

    Examples
    --------
    >>> from mdal.strategies import Energy
    >>> Energy().select([[9.0, 9.5], [0.0, 3.0], [8.0, 1.0]], 2)
    array([1, 0])
    """

    def __init__(self, share=0.5):
        self.share = share

    def choose(self, described, n):
        """Return rows by energy, then by margin; see :meth:`RankingStrategy.choose`."""
        share = check_number(self.share, "share", high=1)
        energies, margins = described.T
        first = top_n(energies, math.floor(share * n))
        rest = np.delete(np.arange(len(described)), first)
        return np.concatenate([first, rest[top_n(margins[rest], n - len(first))]])


class EADA(_EnergyAndMargin):
    """Smallest logit margins among the samples of highest free energy.

    Parameters
    ----------
    kept : float, default=0.5
        The part of the pool, by highest free energy, among which margins decide. If
        that is less than what was asked for, it is as many as were asked for.

    References
    ----------
    Xie et al., "Active Learning for Domain Adaptation: An Energy-Based Approach",
    AAAI 2022.

    Examples
    --------
    >>> from mdal.strategies import EADA
    >>> EADA().select([[9.0, 9.1], [0.0, 3.0], [8.0, 1.0], [1.0, 2.0]], 1)
    array([3])
    """

    def __init__(self, kept=0.5):
        self.kept = kept

    def choose(self, described, n):
        """Return rows by margin of those kept; see :meth:`RankingStrategy.choose`."""
        kept = check_number(self.kept, "kept", high=1)
        energies, margins = described.T
        rows = np.sort(top_n(energies, max(n, math.ceil(kept * len(described)))))
        return rows[top_n(margins[rows], n)]

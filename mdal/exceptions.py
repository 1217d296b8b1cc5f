"""Warnings of the package's own, so that users can filter them by category."""

__all__ = ["AmbiguousLabelsWarning"]


class AmbiguousLabelsWarning(UserWarning):
    """Labels that can be read in two ways were read in the way that scikit-learn does.

    Given for labels that are exactly ``{-1, 1}``: there ``-1`` counts as a class.
    """

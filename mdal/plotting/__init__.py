"""Figures of labelling loops, drawn with matplotlib from plain records.

A record is a dict that says how one round of one run went; a function asks for the
keys that it needs:

- ``name``, ``seed`` and ``round``: the method, the run and the round, always needed;
- ``labels``: labels so far; ``spent``: the same by domain, a dict;
- ``accuracy``: a share from 0 to 1; ``by_domain``: the same by domain, a dict;
- ``alpha``: a matrix (n_domains, n_domains), or None;
- ``bound``: the error bound's terms, a dict, or None.

Means and standard deviations are over seeds. Rounds that some seed of a method has not
reached are left out: a mean over fewer runs would not compare.

Matplotlib is needed when a function is called, not before. Without ``ax=`` a function
draws on a figure of its own, which pyplot does not know: show or save it by
``axes.figure``. On axes of yours, use a figure with ``layout="constrained"``: legends
stand beside the data.
"""

from ._alpha import alpha_by_round, alpha_heat_map
from ._curves import bound_by_round, learning_curves
from ._domains import accuracy_by_domain, budgets_by_round
from ._embedding import embedding_scatter

__all__ = [
    "accuracy_by_domain",
    "alpha_by_round",
    "alpha_heat_map",
    "bound_by_round",
    "budgets_by_round",
    "embedding_scatter",
    "learning_curves",
]

"""Multi-domain active learning: how many labels each domain gets, and which samples.

The parts can be used alone:

- :mod:`mdal.budget` splits a labelling budget between domains;
- :mod:`mdal.similarity` estimates alpha, how much domains have to say about
  each other;
- :mod:`mdal.divergence` measures how far labelled data are from their domains;
- :mod:`mdal.bounds` computes the error bound and its terms;
- :mod:`mdal.tables` holds the small tables that connect them.
"""

from . import bounds, budget, divergence, similarity, tables
from ._version import __version__

__all__ = [
    "__version__",
    "bounds",
    "budget",
    "divergence",
    "similarity",
    "tables",
]

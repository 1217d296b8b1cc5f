r"""Alpha: how much each labelled domain counts in the surrogate of each original one.

``alpha[i, j]`` is the weight of labelled domain j in surrogate i; every row is on
the simplex. The functions work on the small tables of :mod:`mdal.tables`; the
transformers estimate alpha from features.
"""

from ._adversarial import AdversarialSimilarity
from ._kernel import KernelMeanSimilarity, even_gram, mixture_weights
from ._objective import alpha_gradient, alpha_objective, alpha_step, solve_alpha

__all__ = [
    "AdversarialSimilarity",
    "KernelMeanSimilarity",
    "alpha_gradient",
    "alpha_objective",
    "alpha_step",
    "even_gram",
    "mixture_weights",
    "solve_alpha",
]

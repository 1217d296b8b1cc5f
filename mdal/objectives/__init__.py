"""Training methods: what the networks are, and what each of them minimises.

A method is an :class:`Objective`, in a file of its own with its loss functions. The
paper's variants are values of one of them, :class:`CAL`. Methods have names: see
:func:`get_objective`.
"""

from sklearn.base import clone

from .._validation import check_option
from ._cal import CAL, MultiplicativeWeights
from ._consistency import (
    Consistency,
    balanced,
    centred,
    consistency_losses,
    default_targets,
)
from ._dann import DANN, ramp, reversed_gradient
from ._energy import EnergyAlignment, free_energy
from ._entropy import MinimaxEntropy, mean_entropy
from ._interface import Batch, Group, Objective, Task
from ._man import MAN

__all__ = [  # noqa: RUF022 (in plain order, like every other)
    "Batch",
    "CAL",
    "Consistency",
    "DANN",
    "EnergyAlignment",
    "Group",
    "MAN",
    "MinimaxEntropy",
    "MultiplicativeWeights",
    "Objective",
    "Task",
    "balanced",
    "centred",
    "consistency_losses",
    "default_targets",
    "free_energy",
    "get_objective",
    "mean_entropy",
    "objective_names",
    "ramp",
    "reversed_gradient",
]

_FIXED = {"learn_alpha": False, "third_term": False}
_PLUS = {"two_updates": True, "index": "one_hot"}
METHODS = {
    "cal": (CAL, {}),
    "cal++": (CAL, _PLUS),
    "cal_alpha": (CAL, {"alignment": False}),
    "cal_fa": (CAL, _FIXED),
    "cal_fa++": (CAL, {**_FIXED, **_PLUS}),
    "cal_identity": (CAL, {**_FIXED, "alpha": "identity"}),
    "cal_without_both": (CAL, {"second_term": False, "third_term": False}),
    "cal_without_second": (CAL, {"second_term": False}),
    "cal_without_third": (CAL, {"third_term": False}),
    "dann": (DANN, {}),
    "energy_alignment": (EnergyAlignment, {}),
    "erm": (CAL, {**_FIXED, "second_term": False}),
    "man": (MAN, {}),
    "minimax_entropy": (MinimaxEntropy, {}),
}
_CONSISTENT = "_consistency"


def get_objective(method, **settings) -> Objective:
    r"""Return the objective that a name stands for, or a copy of one.

    ========================  ======================================================
    name                      what it trains
    ========================  ======================================================
    ``cal``                   all three terms, alpha learned
    ``cal++``                 the same with a second step of the discriminator, to
                              which domains are one-hot vectors
    ``cal_alpha``             alpha learned, no alignment of features
    ``cal_fa``                features aligned, alpha uniform, no third term
    ``cal_fa++``              the same with the two changes of ``cal++``
    ``cal_identity``          features aligned within each domain: alpha is the identity
    ``cal_without_second``    ``cal`` without :math:`V_d`
    ``cal_without_third``     ``cal`` without :math:`V_\lambda`
    ``cal_without_both``      ``cal`` without either; alpha then favours easy domains
    ``erm``                   the labelled samples alone, all domains weighing the same
    ``dann``                  features that do not tell the domain (:class:`DANN`)
    ``man``                   the same, beside private features of each domain
                              (:class:`MAN`)
    ``energy_alignment``      free energy of the pool like that of the labelled samples,
                              EADA's training (:class:`EnergyAlignment`)
    ``minimax_entropy``       a game about the entropy of the pool, CLUE's training
                              (:class:`MinimaxEntropy`)
    ========================  ======================================================

    Each of them with ``_consistency`` after it, such as ``cal_consistency``, also
    learns the same answers for perturbed samples of the pool (:class:`Consistency`).

    Parameters
    ----------
    method : str or Objective
        A name, or an objective, which is copied.
    **settings
        Parameters that differ from those of the name or the objective.

    Returns
    -------
    Objective
        A new one.

    Examples
    --------
    >>> from mdal.objectives import get_objective
    >>> get_objective("cal_fa", lambda_d=2.0)
    CAL(lambda_d=2.0, learn_alpha=False, third_term=False)
    """
    if isinstance(method, Objective):
        return clone(method).set_params(**settings)
    name = check_option(method, "method", objective_names())
    kind, own = METHODS[name.removesuffix(_CONSISTENT)]
    objective = kind(**own)
    if name.endswith(_CONSISTENT):
        objective = Consistency(objective)
    return objective.set_params(**settings)


def objective_names() -> list[str]:
    """Return the names that :func:`get_objective` knows.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from mdal.objectives import objective_names
    >>> "cal" in objective_names()
    True
    """
    return sorted([*METHODS, *(f"{name}{_CONSISTENT}" for name in METHODS)])

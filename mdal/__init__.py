"""Multi-domain active learning: how many labels each domain gets, and which samples.

:class:`CompositeActiveLearner` is the estimator for labelling loops;
:mod:`mdal.model_selection` has folds, scores and a pipeline for it. The parts can be
used alone:

- :mod:`mdal.budget` splits a labelling budget between domains;
- :mod:`mdal.similarity` estimates alpha, how much domains have to say about
  each other;
- :mod:`mdal.divergence` measures how far labelled data are from their domains;
- :mod:`mdal.bounds` computes the error bound and its terms;
- :mod:`mdal.tables` holds the small tables that connect them;
- :mod:`mdal.strategies` picks samples by what a model says about them;
- :mod:`mdal.scores` has the functions of arrays that strategies are made of;
- :mod:`mdal.svm_text` is a linear classifier of several domains, to compare with.

Deep nets are trained by :mod:`mdal.net`, with a method from :mod:`mdal.objectives`:

- :mod:`mdal.modules` has the networks, :mod:`mdal.losses` the terms of the objective;
- :mod:`mdal.perturbations` makes perturbed samples that keep their class;
- :mod:`mdal.streams` draws batches of labelled and of all samples;
- :mod:`mdal.persistence` writes files that contain no code.

:mod:`mdal.datasets`, :mod:`mdal.experiment`, :mod:`mdal.plotting` and
:mod:`mdal.report` are for experiments: data in, records out, figures from records.
:mod:`mdal.session` is for labelling over days: :mod:`mdal.labels` keeps every label,
and :mod:`mdal.exchange` talks to the tools that people label with.
"""

from importlib import import_module

from . import (
    bounds,
    budget,
    divergence,
    learner,
    losses,
    model_selection,
    modules,
    net,
    objectives,
    persistence,
    perturbations,
    scores,
    similarity,
    strategies,
    streams,
    svm_text,
    tables,
)
from ._version import __version__
from .learner import CompositeActiveLearner

__all__ = [
    "CompositeActiveLearner",
    "__version__",
    "bounds",
    "budget",
    "datasets",
    "divergence",
    "exchange",
    "experiment",
    "labels",
    "learner",
    "losses",
    "model_selection",
    "modules",
    "net",
    "objectives",
    "persistence",
    "perturbations",
    "plotting",
    "report",
    "scores",
    "session",
    "similarity",
    "strategies",
    "streams",
    "svm_text",
    "tables",
]

# Loaded when they are first used: labelling loops do without them.
_LATER = {
    *("datasets", "exchange", "experiment", "labels", "plotting", "report", "session"),
}


def __getattr__(name: str):
    if name in _LATER:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

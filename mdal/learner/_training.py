"""The net of a learner: made, trained or trained on, and asked."""

import copy
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from .._crossfit import check_classifier
from .._validation import check_number, check_option
from ..bounds import Bound, error_bound, lambda_bound
from ..budget import OptimalBudget, get_budget
from ..divergence import hdh_distances
from ..modules import CompositeClassifier
from ..net import CompositeNet, NotFiniteError
from ..objectives import get_objective, objective_names
from ._pool import Pool
from ._shallow import AlphaWeightedClassifier, DomainAwareClassifier


class StartedAnewWarning(UserWarning):
    """A warm start was not possible, and training began with new weights.

    Examples
    --------
    >>> import warnings
    >>> from mdal.learner import StartedAnewWarning
    >>> warnings.simplefilter("ignore", StartedAnewWarning)
    """


def new_net(learner, seed: int, shape: tuple[int, ...]):
    """Return a net to train, with what the learner says about it; all is checked."""
    given = learner.net
    if isinstance(given, type):
        raise TypeError(f"net is the class {given.__name__}; pass an object")
    if given is not None and not hasattr(given, "get_params"):
        raise TypeError(
            f"net={given!r} is of type {type(given).__name__}; pass a "
            "CompositeNet or a scikit-learn classifier"
        )
    check_number(learner.lambda_d, "lambda_d")
    similarity = learner.similarity
    if similarity is not None and (
        isinstance(similarity, type) or not hasattr(similarity, "get_params")
    ):
        raise TypeError(
            f"similarity={similarity!r} estimates no alpha; pass None, or an object "
            "such as mdal.similarity.AdversarialSimilarity()"
        )
    net = CompositeNet() if given is None else clone(given)
    method = method_for(learner.method, net, shape)
    if isinstance(net, CompositeNet):
        return _new_deep_net(learner, net, method, seed)
    if has_fit_parameter(net, "domains"):
        get_objective(method)  # which has no part, but must not be nonsense
        _check_alpha_is_known(learner, False, f"net={net!r}")
        return DomainAwareClassifier(net, random_state=seed)
    check_classifier(net, "net")
    return AlphaWeightedClassifier(
        net,
        learner.similarity,
        learn_alpha=_check_shallow_method(method) == "cal",
        random_state=seed,
    )


def method_for(method, net, shape: tuple[int, ...]):
    """Return the method that "auto" stands for, and any other as it is.

    It is consistency training for images that pass the library's own encoder, by a net
    that says nothing about its method. What a network of the user's takes may look
    like an image and be something else, which a small move or change of size would
    spoil; and settings such as ``method__lambda_d`` are those of "cal".
    """
    if not isinstance(method, str):
        return method
    if check_option(method, "method", {"auto", *objective_names()}) != "auto":
        return method
    images = len(shape) in (2, 3)
    return "cal_consistency" if images and _is_as_made(net) else "cal"


def _is_as_made(net) -> bool:
    """Return whether nobody has set a net's method, or given it a network."""
    if not isinstance(net, CompositeNet):
        return False
    given = net.get_params()
    return (
        given["module"] in (None, CompositeClassifier)
        and given.get("module__encoder") is None
        and not any(name.startswith("method__") for name in given)
    )


def _new_deep_net(learner, net: CompositeNet, method, seed: int) -> CompositeNet:
    if net.method == CompositeNet().method:
        net.set_params(method=method)
    objective = get_objective(net.method)
    for name in objective.get_params():
        weight = f"method__{name}"
        if (
            isinstance(net.method, str)
            and name.removeprefix("base__") == "lambda_d"
            and weight not in net.get_params()
        ):
            net.set_params(**{weight: learner.lambda_d})
    if net.random_state is None:
        net.set_params(random_state=seed)
    net.check_settings()
    _check_alpha_is_known(learner, objective.has_alpha, f"method={net.method!r}")
    return net


def _check_alpha_is_known(learner, known: bool, what: str) -> None:
    """Raise an error if a budget needs an alpha that there will not be."""
    if not known and isinstance(get_budget(learner.allocation), OptimalBudget):
        raise ValueError(
            f"allocation={learner.allocation!r} splits by alpha, which {what} does not "
            'estimate; choose "separate", "size", "joint" or "error"'
        )


def _check_shallow_method(method) -> str:
    if not isinstance(method, str) or method not in ("cal", "erm"):
        raise ValueError(
            f"method={method!r} trains networks, and net is a scikit-learn classifier; "
            'choose "cal" to weigh domains by alpha, or "erm" to weigh all the same'
        )
    return method


def trained(learner, pool: Pool, seed: int, labels: NDArray):
    """Return a net that was trained on these labels, from new weights."""
    net = new_net(learner, seed, pool.shape)
    return net.fit(pool.X, labels, domains=pool.names[pool.domains])


def trained_on(learner, pool: Pool, seed: int):
    """Return the learner's last net, trained on; or a new one, where it cannot be."""
    last = getattr(learner, "net_", None)
    net = new_net(learner, seed, pool.shape)
    if isinstance(net, CompositeNet) and isinstance(last, CompositeNet):
        changed = [
            what
            for what, now, then in (
                ("classes", _numbered(pool), _numbered(learner.pool_)),
                ("domains", pool.names.tolist(), learner.domains_.tolist()),
                ("the shape of samples", pool.shape, learner.pool_.shape),
            )
            if now != then
        ]
        if not _same(settings(learner), learner.settings_):
            changed.append("the net's parameters")
        if not changed:
            domains = pool.names[pool.domains]
            return copy.deepcopy(last).partial_fit(pool.X, pool.labels, domains=domains)
        warnings.warn(
            f"{', '.join(changed)} changed since the last fit; training starts "
            "with new weights",
            StartedAnewWarning,
            stacklevel=5,
        )
    return trained(learner, pool, seed, pool.labels)


def _numbered(pool: Pool) -> list:
    """Return the classes that have labels, with the numbers that the net knows."""
    codes = np.unique(pool.labels[pool.labelled])
    return list(zip(codes.tolist(), pool.classes[codes].tolist(), strict=True))


def settings(learner) -> dict:
    """Return all that a user has set about the net; each fit has its own seed."""
    of_net = {} if learner.net is None else learner.net.get_params(deep=False)
    found = {"lambda_d": learner.lambda_d, "its method": learner.method, **of_net}
    return {
        # An object with parameters may be changed in its place.
        name: repr(value) if hasattr(value, "get_params") else value
        for name, value in found.items()
        if name != "random_state" and not name.startswith("_")
    }


def _same(now: dict, then: dict) -> bool:
    return now.keys() == then.keys() and all(
        now[name] is then[name] or np.array_equal(now[name], then[name]) for name in now
    )


def bound_of(net, names: NDArray) -> Bound | None:
    """Return the bound by the tables of the training, if they are of 0/1 losses."""
    tables, alpha = getattr(net, "tables_", None), getattr(net, "alpha_", None)
    if alpha is None or tables is None or tables.errors is None:
        return None
    if tables.loss != "zero_one":
        return None
    return error_bound(
        alpha,
        tables.errors[0],
        hdh_distances(tables, alpha),
        lambda_bound(alpha, tables.errors[1:]),
        domains=names.tolist(),
    )


def probabilities(net, X, n_classes: int, domains=None) -> NDArray:
    """Return those of all classes; the net may have seen fewer."""
    found = check_output(net.predict_proba(X, domains))
    if found.shape[1] == n_classes:
        return found
    whole = np.zeros((len(found), n_classes), dtype=found.dtype)
    whole[:, net.classes_.astype(np.intp)] = found
    return whole


def check_output(found: NDArray) -> NDArray:
    """Return what a net says, if it can be used."""
    if not np.isfinite(found).all():
        raise NotFiniteError(
            "the net gives numbers that are not finite, and cannot predict; look at "
            "net= and its encoder, or try a lower net__lr and inputs of a smaller scale"
        )
    return found


def predicted_classes(net, X, domains=None) -> NDArray:
    """Return the most probable class of samples, as a number."""
    best = check_output(net.predict_proba(X, domains)).argmax(axis=1)
    return net.classes_[best].astype(np.intp)

"""The net that people use: fitting, predicting, saving."""

import copy
from numbers import Integral
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted
from skorch.history import History
from torch import nn
from torch.utils.data import TensorDataset

from .. import _generators, persistence
from .._unchanged import unchanged_on_failure
from .._validation import (
    check_count,
    check_domains,
    check_labels,
    check_number,
    check_option,
    check_seed,
)
from ..modules import padded
from ..objectives import Objective, Task, get_objective
from ..streams import Rows
from ..tables import DomainTables
from ._loop import PRECISIONS, Data, ObjectiveNet, not_finite


class Observation(NamedTuple):
    """What a trained net says about samples.

    Attributes
    ----------
    logits : ndarray of shape (n_samples, n_classes)
        Of the classifier that predicts.
    penultimate : ndarray of shape (n_samples, n_hidden)
        What the last layer of the classifier sees.
    features : ndarray of shape (n_samples, n_features)
        The encoder's features z.
    outlier : ndarray of shape (n_samples,) or None
        f(z, i), the probability that a sample comes from its original domain i and
        not from the surrogate; None without domains or without a discriminator.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.net import CompositeNet
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> net = CompositeNet(max_epochs=1, random_state=0).fit(X, X[:, 0] > 0)
    >>> net.observe(X).logits.shape
    (40, 2)
    """

    logits: NDArray
    penultimate: NDArray
    features: NDArray
    outlier: NDArray | None = None


class CompositeNet(ObjectiveNet):
    r"""A deep net for several domains, trained with Composite Active Learning.

    .. math:: \min_{h, e, h_i} \min_\alpha \max_f \; V_h - \lambda_d V_d + V_\lambda

    Every fit starts from new weights unless ``warm_start=True``. Each step draws
    labelled rows and rows of the pool (all rows, labelled or not) and lets the method
    take its steps: for CAL first the discriminator f, then alpha, then encoder and
    classifiers. An exponential moving average of all networks and of alpha predicts.

    Parameters
    ----------
    method : str or Objective, default="cal"
        What to train, see :func:`mdal.objectives.get_objective`. Its parameters are
        those of the net with the prefix ``method__``: ``method__lambda_d=0.5``.
    module : type, default=None
        Class of the classifier, with the methods and attributes of
        :class:`mdal.modules.CompositeClassifier`; None leaves it to the method. An
        encoder alone is ``module__encoder``. Parameters have the prefix ``module__``:
        ``module__width=256``. Other networks of the method can be replaced and set in
        the same way: ``discriminator__width=512``.
    criterion : type, default=torch.nn.CrossEntropyLoss
        Loss on held-out labelled rows, if `train_split` holds any out.
    optimizer : type, default=torch.optim.Adam
        Optimiser of each group of parameters, unless the method or
        ``optimizer_<group>=`` names another. ``optimizer__weight_decay=5e-4`` sets
        the classifier's, ``optimizer_discriminator__lr=1e-4`` the discriminator's
        and ``optimizer_alpha__lr=0.1`` alpha's.
    lr : float, default=1e-3
        Learning rate, unless a group has its own. Set on a trained net it reaches the
        classifier's optimiser; those of other groups follow when training starts anew.
    max_epochs : int, default=30
        Epochs to train.
    steps_per_epoch : int or None, default=50
        Steps that make an epoch; None is one pass over the labelled rows.
    batch_size : int, default=100
        Labelled rows in a batch.
    pool_batch_size : int, default=None
        Rows of the pool in a batch; None is as many as `batch_size`.
    average_decay : float, default=0.99
        Of the moving average, in each step; 0 predicts with the last weights.
    precision : {None, "bfloat16", "float16"}, default=None
        Of mixed-precision training; None is full precision.
    train_split : callable, default=None
        Holds labelled rows out, for example ``skorch.dataset.ValidSplit(0.2)``. They
        stay in the pool, and the history has their loss, which an early stopping can
        look at.
    verbose : int, default=0
        1 shows a progress bar and one line for each epoch.
    device : str, default="auto"
        Where to train; "auto" takes a GPU where there is one.
    random_state : int, RandomState instance or None, default=None
        Where all randomness comes from; each fit of a warm start draws anew. torch's
        global generators stay as they are.
    **kwargs
        Other parameters of ``skorch.NeuralNet`` (``callbacks``, ``warm_start``,
        ``compile``) and those with a prefix.

    Attributes
    ----------
    alpha_ : ndarray of shape (n_domains, n_domains)
        The averaged alpha: ``alpha_[i, j]`` is the weight of labelled domain j in
        surrogate i. Methods without alpha have none.
    tables_ : mdal.tables.DomainTables
        Mean losses by domain over the last steps, from which alpha took its steps.
    classes_ : ndarray of shape (n_classes,)
    domains_ : ndarray of shape (n_domains,)
    history_ : skorch.history.History
        For each epoch the mean of each loss (``v_h``, ``v_d``, ``v_lambda``), alpha
        and the tables.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.net import CompositeNet
    >>> rng = np.random.default_rng(0)
    >>> domains = np.repeat(["near", "far"], 200)
    >>> X = rng.normal(size=(400, 5)) + 2.0 * (domains == "far")[:, None]
    >>> y = np.where(rng.uniform(size=400) < 0.2, X[:, 0] > X[:, 1], -1)
    >>> net = CompositeNet(max_epochs=4, random_state=0).fit(X, y, domains=domains)
    >>> net.predict(X).shape
    (400,)
    >>> net.alpha_.shape
    (2, 2)
    """

    def __init__(
        self,
        method="cal",
        module=None,
        *,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        lr=1e-3,
        max_epochs=30,
        steps_per_epoch=50,
        batch_size=100,
        pool_batch_size=None,
        average_decay=0.99,
        precision=None,
        train_split=None,
        verbose=0,
        device="auto",
        random_state=None,
        **kwargs,
    ):
        super().__init__(
            module,
            criterion,
            optimizer=optimizer,
            lr=lr,
            max_epochs=max_epochs,
            batch_size=batch_size,
            train_split=train_split,
            verbose=verbose,
            device=device,
            **kwargs,
        )
        self.method = method
        self.steps_per_epoch = steps_per_epoch
        self.pool_batch_size = pool_batch_size
        self.average_decay = average_decay
        self.precision = precision
        self.random_state = random_state

    def fit(self, X, y, *, domains=None):
        """Train on all samples, some of them labelled.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), Dataset or sliceable object
            Samples of all domains. Arrays are kept on the device; a memmap, a torch
            Dataset, or any other object with a length and slices is read in batches.
        y : array-like of shape (n_samples,)
            Labels, with -1, NaN or None for samples that have none.
        domains : array-like of shape (n_samples,), default=None
            Domain of each sample; None is a single domain.

        Returns
        -------
        self
            An interrupt from the keyboard ends the training and keeps what it has
            learned; any error leaves the net as it was before.
        """
        return self._train(X, y, domains, go_on=self.warm_start)

    def partial_fit(self, X, y, classes=None, *, domains=None):
        """Train on from the present weights; as ``fit`` with ``warm_start=True``.

        Parameters
        ----------
        X, y, domains
            As in :meth:`fit`, with the same classes and domains as before.
        classes
            Ignored.

        Returns
        -------
        self
        """
        return self._train(X, y, domains, go_on=True)

    def _train(self, X, y, domains, go_on):
        self.check_settings()
        rows = Rows(X, self._resolved_device())
        names, codes = check_domains(domains, len(rows))
        classes, labels = check_labels(y, len(rows))
        if not (labels >= 0).any():
            raise ValueError("y has no label at all; label at least one sample")
        labelled, held_out = self._divided(np.flatnonzero(labels >= 0), labels)
        go_on = go_on and self.initialized_ and not self.method_changed_
        if go_on:
            self._check_same(rows, classes, names)
        task = Task(
            rows.shape,
            len(classes),
            counts=np.bincount(codes[labelled], minlength=len(names)),
            sizes=np.bincount(codes, minlength=len(names)),
        )
        n_before = self.n_fits_ if go_on else 0  # fits that this one goes on from
        rng = check_seed(self.random_state)
        seeds = rng.randint(2**31 - 1, size=(n_before + 1, 3))[-1].tolist()
        with unchanged_on_failure(self), _generators.kept(rows.device):
            self.task_, self.classes_, self.domains_ = task, classes, names
            if go_on:
                self._go_on_with_copies()
            else:
                self.history_ = None  # a new one, so that the last one can be kept
                with _generators.seeded(seeds[0], rows.device):
                    self.initialize()
            self.n_fits_ = n_before + 1
            self.objective_.start(self._nets(), self._averaged_nets(), task)
            with _generators.seeded(seeds[1], rows.device):
                pass  # for dropout
            generator = torch.Generator().manual_seed(seeds[2])
            super().partial_fit(
                Data(rows, labels, codes, labelled, held_out, generator)
            )
            self._check_weights()
        return self

    def _divided(self, labelled, labels):
        """Return the labelled rows to train on, and those that are held out."""
        if not self.train_split:
            return labelled, labelled[:0]
        numbers = TensorDataset(torch.as_tensor(labelled))
        parts = callable(self.train_split) and self.train_split(
            numbers, labels[labelled]
        )
        if not isinstance(parts, tuple | list) or len(parts) != 2:
            raise TypeError(
                f"train_split={self.train_split!r} does not divide the labelled rows; "
                "pass skorch.dataset.ValidSplit or None"
            )
        if parts[1] is None:
            return labelled, labelled[:0]
        kept, held_out = (labelled[np.asarray(part.indices)] for part in parts)
        return kept, held_out

    def _check_weights(self):
        """Raise an error if the last steps have left numbers that are not finite."""
        for name, weight in self.averaged_.named_parameters():
            if not torch.isfinite(weight).all():
                raise not_finite(f"weight {name}", len(self.history), self.lr)

    def check_settings(self):
        """Raise an error if a parameter of the net or its method cannot be used."""
        for name in ("max_epochs", "batch_size", "steps_per_epoch", "pool_batch_size"):
            value = getattr(self, name)
            if value is not None:
                check_count(value, name, minimum=int(name != "max_epochs"))
                if not isinstance(value, Integral):
                    raise TypeError(f"{name}={value!r} is no int; pass {int(value)}")
        get_objective(self.method, **self.get_params_for("method")).check()
        check_number(self.average_decay, "average_decay", high=1)
        check_number(self.lr, "lr")
        self._check_device_is_there()
        if self.precision is not None:
            check_option(self.precision, "precision", PRECISIONS)
        callbacks = self.callbacks if isinstance(self.callbacks, list) else []
        for callback in callbacks:
            callback = callback[1] if isinstance(callback, tuple) else callback
            if getattr(callback, "load_best", False):
                raise ValueError(
                    f"{type(callback).__name__}(load_best=True) would bring back "
                    "weights, but their average predicts; leave load_best=False"
                )

    def _check_device_is_there(self):
        """Raise an error if the device is not there."""
        if self._resolved_device().type == "cuda" and not torch.cuda.is_available():
            raise ValueError(
                f"device={self.device!r}, and torch sees no GPU here; choose 'auto'"
            )

    def _check_same(self, rows, classes, names):
        for what, new, old in (
            ("samples of shape", rows.shape, self.task_.shape),
            ("classes", classes.tolist(), self.classes_.tolist()),
            ("domains", names.tolist(), self.domains_.tolist()),
            ("device", rows.device.type, self._device().type),
        ):
            if new != old:
                raise ValueError(
                    f"this net was trained on {what} {old} and cannot go on with "
                    f"{new}; fit it anew with warm_start=False"
                )

    def _go_on_with_copies(self):
        """Train copies of everything, so that the last state survives a failure."""
        names = [f"{name}_" for name in (*self._modules, *self._optimizers)]
        names += ["history_", "objective_"]
        vars(self).update(copy.deepcopy({name: vars(self)[name] for name in names}))
        # These may have been set since.
        self.averaged_.decay = self.average_decay
        self.scaler_ = self._new_scaler()

    def observe(self, X, domains=None) -> Observation:
        """Return all that the averaged networks say about samples, in one pass.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), Dataset or sliceable object
            The samples.
        domains : array-like of shape (n_samples,), default=None
            Their domains, which the outlier score needs.

        Returns
        -------
        Observation
        """
        blocks = list(self._observed(X, domains))
        return Observation(
            **{name: np.concatenate([b[name] for b in blocks]) for name in blocks[0]}
        )

    def predict_proba(self, X, domains=None):
        """Return class probabilities, of shape (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, ...), Dataset or sliceable object
            The samples.
        domains : array-like of shape (n_samples,), default=None
            Their domains, for methods whose predictions depend on them.

        Returns
        -------
        ndarray of float32
        """
        logits = [block["logits"] for block in self._observed(X, domains)]
        return softmax(np.concatenate(logits), axis=1)

    def predict(self, X, domains=None):
        """Return the most probable class of each sample, of shape (n_samples,).

        Parameters
        ----------
        X, domains
            As in :meth:`predict_proba`.

        Returns
        -------
        ndarray
        """
        best = self.predict_proba(X, domains).argmax(axis=1)
        return self.classes_[best]

    def _observed(self, X, domains, block_size=2000):
        """Yield what the objective observes in each block of samples, by name."""
        check_is_fitted(self)
        rows = Rows(X, self._device())
        if rows.shape != self.task_.shape:
            raise ValueError(
                f"X has samples of shape {rows.shape}, but this net was trained on "
                f"samples of shape {self.task_.shape}; pass samples of that shape"
            )
        codes = None
        if domains is not None:
            _, codes = check_domains(domains, len(rows), known=self.domains_)
            codes = torch.as_tensor(codes, device=rows.device)
        self.averaged_.eval()
        nets, start = self._averaged_nets(), 0
        with torch.no_grad():
            for block in rows.blocks(block_size):
                n = len(block)
                here = None if codes is None else padded(codes[start : start + n])
                seen = self.objective_.observe(nets, padded(block), here)
                yield {
                    name: value[:n].float().cpu().numpy()
                    for name, value in seen.items()
                }
                start += n

    @property
    def alpha_(self) -> NDArray:
        """The averaged alpha, shape (n_domains, n_domains)."""
        check_is_fitted(self)
        nets = self._averaged_nets()
        if "surrogates" not in nets:
            raise AttributeError(f"method={self.method!r} has no alpha")
        return nets["surrogates"]()

    @property
    def tables_(self):
        """Mean losses by domain over the last steps of the last whole epoch.

        Of a method without discriminator, misses and hits are those of a guess.
        """
        check_is_fitted(self)
        tables = [epoch["tables"] for epoch in self.history if "tables" in epoch]
        if not tables:
            raise AttributeError(f"method={self.method!r} has made no tables")
        return DomainTables(counts=self.task_.counts, **tables[-1])

    def __sklearn_is_fitted__(self):
        return self.initialized_

    def save(self, path):
        """Write the net to a file without code: safetensors with a JSON header.

        The file has the networks, their averages, the classes, the domains, the
        history, and those parameters of the net that are values: numbers, strings,
        arrays, and lists, tuples or dicts of them. Others (an encoder, a class,
        callbacks) have to be passed to :meth:`load`. The state of the optimisers is
        not written.

        Parameters
        ----------
        path : str or path-like
            Where to write. The file appears as a whole or not at all.
        """
        check_is_fitted(self)
        if self.method_changed_:
            raise ValueError(
                "the method was changed after fit; fit again before you save the net"
            )
        values, others = self._parameters_as_values()
        header = {
            "parameters": values,
            "others": others,
            "shape": self.task_.shape,
            "counts": self.task_.counts,
            "sizes": self.task_.sizes,
            "classes": self.classes_,
            "domains": self.domains_,
            "n_fits": self.n_fits_,
            "history": self.history.to_list(),
        }
        nets = nn.ModuleDict(self._nets()).state_dict(prefix="last.")
        averaged = self.averaged_.state_dict(prefix="averaged.")
        persistence.save(path, "net", {**nets, **averaged}, header)

    @classmethod
    def load(cls, path, **others):
        """Read a net from a file that ``save`` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.
        **others
            The parameters that were no values, such as ``module__encoder=my_module``
            or ``callbacks=[...]``; also a ``device`` other than at first.

        Returns
        -------
        CompositeNet
            Ready to predict or, from new optimiser states, to train on.
        """
        tensors, header = persistence.load(path, "net")
        missing = sorted(set(header["others"]) - set(others))
        if missing:
            raise ValueError(
                f"{path} was saved without {', '.join(missing)}, which cannot be "
                f"written to a file; pass load(path, {missing[0]}=..., ...)"
            )
        net = cls(**{**header["parameters"], **others})
        net.classes_, net.domains_ = header["classes"], header["domains"]
        net.n_fits_ = header["n_fits"]
        net.task_ = Task(
            header["shape"], len(net.classes_), header["counts"], header["sizes"]
        )
        with _generators.seeded(0, net._resolved_device()):
            net.initialize()
        try:
            for prefix, nets in (
                ("last.", nn.ModuleDict(net._nets())),
                ("averaged.", net.averaged_),
            ):
                names = [name for name in tensors if name.startswith(prefix)]
                nets.load_state_dict(
                    {n.removeprefix(prefix): tensors[n] for n in names}
                )
        except RuntimeError as error:
            raise ValueError(
                f"the weights in {path} are not those of this net; pass the parameters "
                f"with which it was saved ({error})"
            ) from error
        net.objective_.start(net._nets(), net._averaged_nets(), net.task_)
        net.history_ = History(header["history"])
        return net

    def _parameters_as_values(self):
        """Return the parameters that are values, and the names of the others."""
        defaults, values, others = vars(type(self)()), {}, []
        for name, value in self.get_params(deep=False).items():
            try:
                persistence.to_plain(value)
            except TypeError:
                if value is not defaults.get(name, self):
                    others.append(name)
            else:
                if not name.startswith("_"):
                    values[name] = value
        if isinstance(self.method, str):  # whatever the name will stand for one day
            settings = self.objective_.get_params()
            values |= {
                f"method__{name}": value
                for name, value in settings.items()
                if not isinstance(value, Objective)
            }
        return values, [name for name in others if not name.startswith("_")]

    def load_params(self, *args, **kwargs):
        """Raise an error: skorch would restore the last weights, not the average."""
        raise TypeError(
            "load_params would not reach the averaged weights, which predict; use save "
            "and CompositeNet.load"
        )

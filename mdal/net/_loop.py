"""What skorch asks of a net that trains an objective: networks, optimisers, steps."""

import math
from contextlib import contextmanager, nullcontext
from inspect import signature
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from skorch import NeuralNet
from skorch.callbacks import EpochTimer, PassthroughScoring, PrintLog, ProgressBar
from torch import nn
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import TensorDataset

from .. import _generators
from ..objectives import METHODS, get_objective
from ..streams import Batches, Rows

PRECISIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16}


class Data(NamedTuple):
    """What skorch hands on from ``fit`` to where the batches are made."""

    rows: Rows
    labels: NDArray
    domains: NDArray
    labelled: NDArray
    held_out: NDArray
    generator: torch.Generator


class ObjectiveNet(NeuralNet):
    """A skorch net that runs an objective, one optimiser for each of its groups.

    The parameters are those of its one subclass, :class:`mdal.net.CompositeNet`, which
    also prepares the data and sets ``task_``.
    """

    prefixes_ = [*NeuralNet.prefixes_, "method"]  # noqa: RUF012 (skorch copies it)

    def initialize(self):
        """Build the networks and optimisers for the data of the last ``fit``."""
        if not hasattr(self, "task_"):
            raise TypeError(
                "the networks' sizes follow from the data; call fit instead of "
                "initialize"
            )
        with self._on_resolved_device():
            return super().initialize()

    def initialize_module(self):
        """Build the networks that the method asks for."""
        self.objective_ = get_objective(self.method, **self.get_params_for("method"))
        nets = self.objective_.build(self._make, self.task_)
        for other in set(getattr(self, "names_", ())) - set(nets):
            delattr(self, f"{other}_")  # of the method before this one
        self.names_, self.method_changed_ = list(nets), False
        for name, net in nets.items():
            setattr(self, f"{name}_", net)
        self.averaged_ = Average(nn.ModuleDict(nets), self.average_decay)
        return self

    def _make(self, name, default, **settings):
        kind = getattr(self, name, None) or default
        if isinstance(kind, nn.Module):
            raise TypeError(
                f"{name} is a {type(kind).__name__} object; pass a class or a function "
                "that makes it, or your network as module__encoder"
            )
        return kind(**{**settings, **self.get_params_for(name)})

    def initialize_optimizer(self):
        """Build one optimiser for each group of parameters."""
        fused = self._device().type in ("cpu", "cuda")
        self.groups_ = {}
        for name, group in self.objective_.groups(self._nets()).items():
            prefix = "optimizer" if name == "module" else f"optimizer_{name}"
            args, settings = self.get_params_for_optimizer(prefix, group.parameters)
            given = self.get_params_for(prefix)
            settings = {**settings, **group.settings, **given}
            settings.pop("param_groups", None)
            optimizer = getattr(self, prefix, None) or group.optimizer or self.optimizer
            if "fused" in signature(optimizer).parameters and not (
                {"foreach", "differentiable"} & set(given)
            ):
                settings.setdefault("fused", fused)
            setattr(self, f"{prefix}_", optimizer(*args, **settings))
            self.groups_[name] = prefix
        for other in set(self._optimizers) - set(self.groups_.values()):
            delattr(self, f"{other}_")
        self.scaler_ = self._new_scaler()
        return self

    def _new_scaler(self):
        half = self.precision == "float16"
        return torch.amp.GradScaler(self._device().type, enabled=half)

    def _validate_params(self):
        unused = _of_some_methods() - set(self.prefixes_)
        self._params_to_validate = {
            name
            for name in self._params_to_validate
            if name.split("__")[0] not in unused
        }
        super()._validate_params()

    def torch_compile(self, module, name):
        """Compile the parts of a network in place, which keeps the names of weights."""
        if self.compile and name != "averaged":
            for part in module.children():
                part.compile(**self.get_params_for("compile"))
        return module

    def get_default_callbacks(self):
        """Return skorch's callbacks, lines without arrays, and a progress bar."""
        callbacks = [
            ("epoch_timer", EpochTimer()),
            ("train_loss", PassthroughScoring("train_loss", on_train=True)),
            ("valid_loss", PassthroughScoring("valid_loss")),
            ("valid_accuracy", PassthroughScoring("valid_accuracy", False)),
            ("print_log", PrintLog(keys_ignored=["alpha", "tables"])),
        ]
        if self.verbose:
            bar = ProgressBar(self.steps_per_epoch or "count")
            callbacks.append(("progress_bar", bar))
        return callbacks

    def get_split_datasets(self, data, y=None, **fit_params):
        """Return the batches to train on, and the labelled rows held out, if any."""
        pool_batch_size = self.pool_batch_size or self.batch_size
        batches = Batches(
            data.rows,
            data.labels,
            data.domains,
            data.labelled,
            n_steps=self.steps_per_epoch
            or math.ceil(len(data.labelled) / self.batch_size),
            n_epochs=self.max_epochs,
            batch_size=self.batch_size,
            pool_batch_size=pool_batch_size if self.objective_.needs_pool else 0,
            generator=data.generator,
        )
        if not len(data.held_out):
            return batches, None
        labels, domains = (
            torch.as_tensor(part[data.held_out]) for part in (data.labels, data.domains)
        )
        held_out = data.rows[data.held_out].cpu()
        return batches, TensorDataset(held_out, labels, domains)

    def get_iterator(self, dataset, training=False):
        """Return what to loop over: batches as they are, or a loader of rows."""
        if isinstance(dataset, Batches):
            return dataset
        return super().get_iterator(dataset, training=training)

    def train_step(self, batch, **fit_params):
        """Let the objective take its steps on one batch, and average the networks."""
        losses = self.objective_.losses(self._nets(), batch, self._averaged_nets())
        values, total = {}, None
        while True:
            with self._autocast():
                found = next(losses, None)
            if found is None:
                break
            group, named = found
            loss = sum(named.values())
            if not torch.isfinite(loss):
                raise not_finite(f"loss of {group}", len(self.history), self.lr)
            self._step(group, loss, batch)
            values.update({name: value.detach() for name, value in named.items()})
            if group == "module":
                total = loss.detach()
        if total is None:
            raise ValueError(
                f"{self.objective_!r} yields no loss of group 'module', which predicts"
            )
        self.averaged_.follow(self._nets())
        numbers = torch.stack(list(values.values())).tolist()
        for name, number in zip(values, numbers, strict=True):
            self.history.record_batch(name, number)
        return {"loss": total, "y_pred": None}

    def _step(self, group, loss, batch):
        if group not in self.groups_:
            raise ValueError(
                f"{self.objective_!r} yields losses of group {group!r}; its groups are "
                f"{', '.join(self.groups_)}"
            )
        optimizer = getattr(self, f"{self.groups_[group]}_")
        parameters = [
            p for g in optimizer.param_groups for p in g["params"] if p.requires_grad
        ]
        optimizer.zero_grad(set_to_none=True)
        self.scaler_.scale(loss).backward(inputs=parameters)
        self.scaler_.unscale_(optimizer)
        self.notify(
            "on_grad_computed",
            named_parameters=[(group, p) for p in parameters],
            batch=batch,
            training=True,
        )
        self.scaler_.step(optimizer)
        self.scaler_.update()

    def on_epoch_begin(self, net, dataset_train=None, dataset_valid=None, **kwargs):
        """Set the networks to training, and their averages to evaluation."""
        super().on_epoch_begin(net, dataset_train, dataset_valid, **kwargs)
        self._set_training(True)
        self.averaged_.eval()

    def on_epoch_end(self, net, dataset_train=None, dataset_valid=None, **kwargs):
        """Add the means of the losses and the objective's report to the history."""
        batches = self.history[-1, "batches"]
        for name in {name: None for batch in batches for name in batch}:
            if not name.startswith(("train_", "valid_")):
                values = [batch[name] for batch in batches if name in batch]
                self.history.record(name, float(np.mean(values)))
        for name, value in self.objective_.epoch_record(self._averaged_nets()).items():
            self.history.record(name, value)

    def validation_step(self, batch, **fit_params):
        """Return the loss of the averaged classifier on held-out labelled rows."""
        X, y, domains = (part.to(self._device()) for part in batch)
        self.averaged_.eval()
        with torch.no_grad(), self._autocast():
            seen = self.objective_.observe(self._averaged_nets(), X, domains)
            logits = seen["logits"]
            accuracy = (logits.argmax(dim=1) == y).float().mean().item()
            self.history.record_batch("valid_accuracy", accuracy)
            return {"loss": self.criterion_(logits, y), "y_pred": logits}

    def infer(self, x, **fit_params):
        """Return the logits of the averaged classifier for a batch."""
        self.averaged_.eval()
        return self._averaged_nets()["module"](x.to(self._device()))

    def _nets(self):
        return {name: getattr(self, f"{name}_") for name in self.names_}

    def _averaged_nets(self):
        return dict(self.averaged_.module.items())

    def _device(self):
        return next(self.module_.parameters()).device

    def _resolved_device(self):
        if self.device != "auto":
            try:
                return torch.device("cpu" if self.device is None else self.device)
            except RuntimeError:
                raise ValueError(
                    f"device={self.device!r} is unknown; choose 'auto', 'cpu' or 'cuda'"
                ) from None
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    @contextmanager
    def _on_resolved_device(self):
        """Show skorch a device that torch knows instead of "auto"."""
        asked = self.device
        self.device = str(self._resolved_device())
        try:
            yield
        finally:
            self.device = asked

    def _autocast(self):
        if self.precision is None:
            return nullcontext()
        return torch.autocast(self._device().type, PRECISIONS[self.precision])

    def set_params(self, **params):
        """Set parameters; after those of the method the next ``fit`` starts anew."""
        own = {name: params.pop(name) for name in list(params) if _is_own(name)}
        self._params_to_validate.update(name for name in own if "__" in name)
        vars(self).update(own)
        if any(name != "device" for name in own):
            self.method_changed_ = True
        # skorch may build networks anew, which are untrained: any seed will do.
        with (
            self._on_resolved_device(),
            _generators.seeded(0, self._resolved_device()),
        ):
            super().set_params(**params)
        return self

    def __setstate__(self, state):
        asked = state["device"]
        if asked == "auto":
            resolved = "cuda" if torch.cuda.is_available() else "cpu"
            state = {**state, "device": resolved}
        super().__setstate__(state)
        if asked == "auto":
            self.device = asked


def _of_some_methods() -> set[str]:
    """Return the prefixes of networks and optimisers that only some methods have.

    The others accept them, so that a search can go over methods.
    """
    networks = {name for kind, _ in METHODS.values() for name in kind.networks}
    optimizers = {f"optimizer_{name}" for name in networks}
    return {"surrogates", "optimizer_alpha"} | networks | optimizers


def _is_own(name: str) -> bool:
    return name == "device" or name.split("__")[0] == "method"


class NotFiniteError(FloatingPointError, ValueError):
    """A net computes numbers that are not finite.

    Examples
    --------
    >>> from mdal.net import NotFiniteError
    >>> issubclass(NotFiniteError, ValueError)
    True
    """


def not_finite(what: str, epoch: int, lr: float) -> NotFiniteError:
    return NotFiniteError(
        f"the {what} is no finite number in epoch {epoch}; try a lower learning rate "
        f"than lr={lr}, inputs of a smaller scale, or precision=None. The net is as it "
        "was before this fit"
    )


class Average(AveragedModel):
    """A moving average of networks, of all their weights and buffers.

    The tensors are looked up once: for small networks that would take longer than to
    average them.
    """

    def __init__(self, nets: nn.ModuleDict, decay: float):
        super().__init__(nets, use_buffers=True)
        self.decay = decay
        self._pairs = None

    @torch.no_grad()
    def follow(self, nets: dict[str, nn.Module]) -> None:
        """Move averages to tensors; in the first steps faster, to forget the start."""
        if self._pairs is None:
            parts = (self.module, nn.ModuleDict(nets))
            self._pairs = list(zip(*map(_tensors, parts), strict=True))
            self._n = int(self.n_averaged)
        numbers, counts = self._pairs
        weight = max(1 - self.decay, 9 / (self._n + 10)) if self._n else 1.0
        torch._foreach_lerp_(*numbers, weight)
        for old, new in zip(*counts, strict=True):
            old.copy_(new)
        self._n += 1
        self.n_averaged += 1

    def __getstate__(self):
        return {**super().__getstate__(), "_pairs": None}


def _tensors(nets: nn.Module) -> tuple[list, list]:
    """Return all numbers of networks, and the rest: how many batches they saw."""
    tensors = [part.detach() for part in (*nets.parameters(), *nets.buffers())]
    return (
        [tensor for tensor in tensors if tensor.is_floating_point()],
        [tensor for tensor in tensors if not tensor.is_floating_point()],
    )

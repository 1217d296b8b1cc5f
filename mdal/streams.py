"""Rows of data by number, and batches of labelled and pool rows."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from .objectives import Batch

__all__ = ["Batches", "Densified", "Rows", "draws"]


class Densified:
    """The rows of a sparse matrix, which become dense when they are asked for.

    Parameters
    ----------
    matrix : sparse matrix or array of shape (n_samples, n_features)
        Of any format.

    Examples
    --------
    >>> from scipy.sparse import eye
    >>> from mdal.streams import Densified
    >>> rows = Densified(eye(3))
    >>> len(rows), rows[[2]]
    (3, array([[0., 0., 1.]]))
    """

    def __init__(self, matrix):
        self.matrix = matrix.tocsr()

    def __len__(self):
        return self.matrix.shape[0]

    def __getitem__(self, rows):
        return self.matrix[rows].toarray()


class Rows:
    """The samples of an array or a larger source, fetched by number.

    Arrays, tensors and data frames are kept on the device as a whole. What may not
    fit (a sparse matrix, a ``numpy.memmap``, a ``torch.utils.data.Dataset``, any object
    with a length and slices) is read as it is needed.

    Parameters
    ----------
    X : array-like of shape (n_samples, ...), Dataset or sliceable object
        The samples. Of a dataset's items that are tuples, the first entry counts.
    device : torch.device, default="cpu"
        Where the fetched samples are to be.

    Attributes
    ----------
    shape : tuple of int
        Shape of one sample.
    in_memory : bool
        Whether the samples are kept on the device.

    Examples
    --------
    >>> import numpy as np
    >>> from mdal.streams import Rows
    >>> rows = Rows(np.arange(6).reshape(3, 2))
    >>> len(rows), rows.shape
    (3, (2,))
    >>> rows[[2, 0]]
    tensor([[4., 5.],
            [0., 1.]])
    """

    def __init__(self, X, device="cpu"):
        self.device = torch.device(device)
        X = Densified(X) if issparse(X) else X
        self.in_memory = not _is_streamed(X)
        self._source = _as_tensor(X).to(self.device) if self.in_memory else X
        if len(self) == 0:
            raise ValueError("X has 0 samples; pass at least one (0 sample(s) found)")
        self.shape = tuple(self[[0]].shape[1:])

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, rows) -> Tensor:
        """Return the samples with these numbers as floating point numbers."""
        if self.in_memory:
            return _as_float(self._source[torch.as_tensor(rows, device=self.device)])
        rows = np.asarray(rows)
        if isinstance(self._source, Dataset):
            batch = _collated([_sample(self._source[int(row)]) for row in rows])
        elif isinstance(self._source, np.ndarray | Densified):
            batch = np.array(self._source[rows])
        else:
            parts = [np.asarray(self._source[row : row + 1]) for row in rows]
            batch = np.concatenate(parts)
        return _checked(torch.as_tensor(batch)).to(self.device)

    def blocks(self, size: int) -> Iterator[Tensor]:
        """Yield all samples in order, `size` at a time."""
        for start in range(0, len(self), size):
            stop = min(start + size, len(self))
            if self.in_memory:  # a copy, which a network may overwrite
                yield _as_float(self._source[start:stop]).clone()
            elif isinstance(self._source, Dataset):
                yield self[np.arange(start, stop)]
            else:
                block = torch.as_tensor(np.array(self._source[start:stop]))
                yield _checked(block).to(self.device)


def draws(rows: NDArray, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Yield batches of row numbers for ever, each row once before any comes again.

    Parameters
    ----------
    rows : ndarray of shape (n_rows,)
        The rows to draw from.
    size : int
        Rows in a batch; all rows if there are fewer.
    generator : torch.Generator
        Where the order comes from, on the CPU.

    Yields
    ------
    Tensor of shape (size,)
        Row numbers. A batch that begins with the last rows of one order goes on with
        the first of the next, so that all batches are of the same size.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from mdal.streams import draws
    >>> stream = draws(np.arange(4), 2, torch.Generator().manual_seed(0))
    >>> sorted(torch.cat([next(stream), next(stream)]).tolist())
    [0, 1, 2, 3]
    """
    rows = torch.as_tensor(rows)
    size = min(size, len(rows))
    waiting = rows[:0]
    while True:
        if len(waiting) < size:
            order = torch.randperm(len(rows), generator=generator)
            waiting = torch.cat([waiting, rows[order]])
        yield waiting[:size]
        waiting = waiting[size:]


class Batches:
    """Batches for one objective: labelled rows, and rows of the pool if it needs any.

    The pool is all rows, labelled ones included. Iterating gives one epoch; the next
    epoch goes on where the last one stopped.

    Parameters
    ----------
    rows : Rows
        All samples.
    y, domains : ndarray of shape (n_samples,)
        Positions of the class (-1 where there is no label) and of the domain.
    labelled : ndarray of shape (n_labelled,)
        Rows to train on.
    n_steps : int
        Batches in an epoch.
    n_epochs : int
        Epochs in the training, for its progress.
    batch_size, pool_batch_size : int
        Labelled and pool rows in a batch; with 0 there is no pool.
    generator : torch.Generator
        Where the order comes from.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from mdal.streams import Batches, Rows
    >>> batches = Batches(
    ...     Rows(np.ones((6, 2))), np.array([0, 1, -1, -1, -1, -1]), np.zeros(6, int),
    ...     labelled=np.array([0, 1]), n_steps=3, n_epochs=1, batch_size=2,
    ...     pool_batch_size=4, generator=torch.Generator())
    >>> [len(batch.pool_X) for batch in batches]
    [4, 4, 4]
    """

    def __init__(
        self,
        rows: Rows,
        y: NDArray,
        domains: NDArray,
        labelled: NDArray,
        *,
        n_steps: int,
        n_epochs: int,
        batch_size: int,
        pool_batch_size: int,
        generator: torch.Generator,
    ):
        self.rows = rows
        self.y = torch.as_tensor(y).to(rows.device)
        self.domains = torch.as_tensor(domains).to(rows.device)
        self.n_steps, self.n_all_steps, self.step = n_steps, n_steps * n_epochs, 0
        # For objectives, on the device: one that is on the CPU is of no use to a GPU.
        self.generator = torch.Generator(rows.device)
        self.generator.manual_seed(generator.initial_seed() + 1)
        self.labelled = draws(labelled, batch_size, generator)
        self.pool = (
            draws(np.arange(len(rows)), pool_batch_size, generator)
            if pool_batch_size
            else None
        )

    def __len__(self) -> int:
        return self.n_steps

    def __iter__(self) -> Iterator[Batch]:
        for _ in range(self.n_steps):
            chosen = next(self.labelled)
            pool_X = pool_domains = None
            if self.pool is not None:
                pool = next(self.pool)
                pool_X, pool_domains = self.rows[pool], self.domains[pool]
            yield Batch(
                self.rows[chosen],
                self.y[chosen],
                self.domains[chosen],
                pool_X,
                pool_domains,
                progress=min(self.step / self.n_all_steps, 1.0),
                generator=self.generator,
            )
            self.step += 1


def _is_streamed(X) -> bool:
    if isinstance(X, np.memmap):
        return True
    if isinstance(X, np.ndarray | Tensor | list | tuple):
        return False
    if isinstance(X, dict | str | bytes) or not hasattr(X, "__len__"):
        raise TypeError(
            f"X is of type {type(X).__name__}; pass an array, a data frame, a tensor, "
            "a torch Dataset, or an object with a length and slices"
        )
    return not hasattr(X, "iloc")  # a data frame is in memory


def _sample(item) -> Tensor:
    """Return the sample in an item of a dataset."""
    if isinstance(item, tuple | list):
        item = item[0]
    if isinstance(item, dict):
        raise TypeError(
            f"an item of X is a dict with {sorted(item)}; pass a Dataset whose items "
            "are samples, or tuples that begin with one"
        )
    return torch.as_tensor(item)


def _collated(samples: list[Tensor]) -> Tensor:
    shapes = {tuple(sample.shape) for sample in samples}
    if len(shapes) > 1:
        raise ValueError(
            f"items of X have shapes {sorted(shapes)[:3]}; pass samples of one shape"
        )
    return default_collate(samples)


def _as_tensor(X) -> Tensor:
    """Return samples as a tensor of finite numbers; bytes stay bytes."""
    if not isinstance(X, Tensor):
        given = X
        kept = isinstance(X, np.ndarray) and X.dtype in (np.uint8, np.float32)
        with np.errstate(over="ignore"):  # what becomes infinite is named below
            X = check_array(
                X,
                allow_nd=True,
                ensure_2d=False,
                ensure_all_finite=False,
                dtype=X.dtype if kept else np.float32,
            )
        if not kept:
            _check_not_too_large(X, given)
        if not X.flags.writeable or min(X.strides, default=0) < 0:
            X = X.copy()  # torch takes neither
        X = torch.from_numpy(X)
    X = X.detach()
    if X.layout != torch.strided:
        raise TypeError("X is a sparse tensor; pass X.to_dense()")
    if X.dtype == torch.uint8:
        return _checked(X, keep_bytes=True)
    return _checked(X)


def _check_not_too_large(X, given) -> None:
    """Raise an error if numbers have become infinite in single precision."""
    infinite = np.isinf(X)
    if infinite.any():
        value = np.asarray(given, dtype=np.float64)[infinite][0]
        if np.isfinite(value):
            raise ValueError(
                f"X contains {value:g}, which is infinity in single precision, in "
                "which nets compute; scale X"
            )


def _checked(X: Tensor, keep_bytes: bool = False) -> Tensor:
    """Return samples as finite numbers."""
    if X.is_complex():
        raise ValueError("Complex data not supported: X is complex; pass real numbers")
    if X.ndim < 2:
        raise ValueError(
            f"X has shape {tuple(X.shape)}; pass samples along the first of at least "
            "two dimensions. Reshape your data, with X[:, None] for a single feature"
        )
    if keep_bytes:
        return X
    X = _as_float(X)
    if not torch.isfinite(X).all():
        raise ValueError("X contains NaN or infinity; replace it by a number")
    return X


def _as_float(batch: Tensor) -> Tensor:
    return batch if batch.dtype == torch.float32 else batch.float()

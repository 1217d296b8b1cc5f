"""How many threads compute: sums depend on it, and with them what is picked."""

from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def computing_with(n: int):
    """Compute with n threads, of NumPy and of torch."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        with threadpool_limits(n):
            yield
    finally:
        torch.set_num_threads(before)

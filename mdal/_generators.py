"""torch's global generators, left as they were, also with nets in threads.

Networks are initialised by torch's global generators, and dropout draws from them. What
dropout draws depends on the seed alone only as long as one net trains at a time.
"""

import threading
from contextlib import contextmanager

import torch

_lock = threading.RLock()
_inside = 0
_fork = None


@contextmanager
def kept(device: torch.device):
    """Let the generators move, and bring them back when the last thread leaves."""
    global _inside, _fork
    with _lock:
        if _inside == 0:
            devices = [device] if device.type == "cuda" else []
            _fork = torch.random.fork_rng(devices=devices)
            _fork.__enter__()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                _fork.__exit__(None, None, None)


@contextmanager
def seeded(seed: int, device: torch.device):
    """Start the generators from a seed, and let no other thread in."""
    with _lock, kept(device):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield

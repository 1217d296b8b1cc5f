import os

# Many small fits are faster without threads, and much faster beside other work.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Read when SciPy is first imported; scikit-learn's checks of array API input need it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture
def two_far_domains():
    """Features, labels and domains: two clouds far apart, half of each labelled."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) + np.repeat([[0.0], [5.0]], 200, axis=0)
    y = np.where(np.arange(400) % 2 == 0, X[:, 1] > X[:, 1].mean(), -1)
    return X, y.astype(int), np.repeat(["near", "off"], 200)


@pytest.fixture
def identical_domains():
    """Features, labels and domains: three samples of one distribution."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 3))
    y = np.where(np.arange(900) % 2 == 0, X[:, 0] > 0, -1)
    return X, y.astype(int), np.repeat(["a", "b", "c"], 300)

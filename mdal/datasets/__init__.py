"""Data of several domains, in one form for experiments, examples and tests.

Every loader returns a :class:`sklearn.utils.Bunch` with

- ``X``, the samples: an array, a CSR matrix, or an array of strings for raw text;
- ``y``, the class of each sample, as a position in ``classes``;
- ``domains``, the name of each sample's domain;
- ``names`` and ``classes``, the names of all domains and all classes, sorted;
- ``train`` and ``test``, sorted row numbers: disjoint, and together all rows;
- ``groups``, the document of each sample where those of one document must stay
  together, otherwise None;
- ``DESCR``, what it is and whom to cite.

``subset="train"`` or ``"test"`` leaves out the other rows, and
``return_X_y_domains=True`` returns ``(X, y, domains)`` instead. The functions `load_*`
and `make_*` need no file but those that they are given; the functions `fetch_*` look
into `data_home`, by default the folder ``mdal`` in scikit-learn's data folder.
"""

from ._folder import load_feature_folder
from ._names import dataset_names, dataset_options, get_dataset
from ._office import fetch_office_caltech
from ._rotating import fetch_rotating_mnist, load_rotating_digits
from ._rotation import rotated
from ._split import development_split
from ._synthetic import make_shifted_domains
from ._text import fetch_vader4

__all__ = [
    "dataset_names",
    "dataset_options",
    "development_split",
    "fetch_office_caltech",
    "fetch_rotating_mnist",
    "fetch_vader4",
    "get_dataset",
    "load_feature_folder",
    "load_rotating_digits",
    "make_shifted_domains",
    "rotated",
]

"""Data sets by name."""

from inspect import signature

from .._validation import check_option
from ._folder import load_feature_folder
from ._office import fetch_office_caltech
from ._rotating import fetch_rotating_mnist, load_rotating_digits
from ._synthetic import make_shifted_domains
from ._text import fetch_vader4

_DATASETS = {
    "feature_folder": load_feature_folder,
    "office_caltech": fetch_office_caltech,
    "rotating_digits": load_rotating_digits,
    "rotating_mnist": fetch_rotating_mnist,
    "shifted_domains": make_shifted_domains,
    "vader4": fetch_vader4,
}


def dataset_names() -> list[str]:
    """Return the names that :func:`get_dataset` knows.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from mdal.datasets import dataset_names
    >>> "rotating_digits" in dataset_names()
    True
    """
    return sorted(_DATASETS)


def dataset_options(name: str) -> dict:
    """Return the options of a data set's loader, and their defaults.

    Parameters
    ----------
    name : str
        One of :func:`dataset_names`.

    Returns
    -------
    dict
        Of an option that has to be given the default is ``inspect.Parameter.empty``.

    Examples
    --------
    >>> from mdal.datasets import dataset_options
    >>> dataset_options("rotating_digits")["ranges"]
    'D6'
    """
    loader = _DATASETS[check_option(name, "name", _DATASETS)]
    parameters = signature(loader).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters}


def get_dataset(name: str, **options):
    """Return the data set of a name.

    Parameters
    ----------
    name : str
        One of :func:`dataset_names`.
    **options
        What its loader takes.

    Returns
    -------
    Bunch
        See :mod:`mdal.datasets`.

    Examples
    --------
    >>> from mdal.datasets import get_dataset
    >>> get_dataset("rotating_digits", ranges="D2").names.tolist()
    ['000-090', '090-180']
    """
    return _DATASETS[check_option(name, "name", _DATASETS)](**options)

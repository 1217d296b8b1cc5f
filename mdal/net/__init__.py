"""The skorch net that trains a method on partly labelled data of several domains."""

from ._loop import NotFiniteError
from ._net import CompositeNet, Observation

__all__ = ["CompositeNet", "NotFiniteError", "Observation"]

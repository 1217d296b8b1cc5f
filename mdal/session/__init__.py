"""Labelling over days, with people, tools and interruptions.

A :class:`Session` is a folder: the samples, a :class:`mdal.labels.LabelStore` with
every label, the learner of the last round, and tasks for the tools that people use.
Each step can be repeated, and an interrupted one goes on to the same result.
"""

from ._session import NETS, Session

__all__ = ["NETS", "Session"]

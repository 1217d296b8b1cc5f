"""Labels that people gave, in one SQLite file: nothing is ever lost.

A :class:`LabelStore` has the samples' ids and domains, the rounds with the samples that
were asked for, and every vote of every annotator. Votes are added in one transaction,
all or none, and when :meth:`LabelStore.add` returns they are on the disk. The file is
locked as long as it is open: a second process gets an error and can change nothing.
"""

from ._store import LabelStore
from ._votes import RULES as RULES
from ._votes import Asked, Vote

__all__ = ["Asked", "LabelStore", "Vote"]

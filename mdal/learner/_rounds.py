"""What a learner tells people: how to split a budget, and what a round has bought."""

from dataclasses import dataclass


class Allocation(dict):
    """Labels for each domain, by its name; printing it gives a table.

    Where all domains are one pool, the only name is "all domains".

    Examples
    --------
    >>> from mdal.learner import Allocation
    >>> print(Allocation({"clinic": 44, "lab": 6}))
    clinic  44
    lab      6
    total   50
    """

    def __str__(self):
        rows = [*self.items(), ("total", sum(self.values()))]
        names = max(len(str(name)) for name, _ in rows)
        numbers = max(len(str(number)) for _, number in rows)
        return "\n".join(f"{name!s:<{names}}  {n:>{numbers}}" for name, n in rows)


@dataclass(frozen=True)
class Round:
    """One fit of a learner, and what it has bought since the last one.

    Attributes
    ----------
    labels : int
        Labelled samples.
    by_domain : dict
        The same for each domain, by its name.
    bound : dict of str to float, or None
        The terms of the error bound.
    change : dict of str to float, or None
        How the terms have changed since the last round.
    accuracy_on_new : float or None
        Accuracy of the last round's classifier on samples that were labelled since:
        what it did not know yet. Strategies pick difficult samples, so it is lower than
        that on all samples.
    agreement : float or None
        Share of all samples on which this round's and the last round's classifier
        agree.

    Examples
    --------
    >>> from mdal.learner import Round
    >>> print(Round(90, {"a": 60, "b": 30}, agreement=0.99))
    90 labels
    99.0 % of predictions are those of the last round
    the last round has changed little: more labels of this kind may not pay
    """

    labels: int
    by_domain: dict
    bound: dict | None = None
    change: dict | None = None
    accuracy_on_new: float | None = None
    agreement: float | None = None

    @property
    def settled(self) -> bool:
        """Whether the last round has changed fewer than 2 % of the predictions."""
        return self.agreement is not None and self.agreement > 0.98

    def __str__(self):
        lines = [f"{self.labels} labels"]
        if self.change is not None:
            terms = ", ".join(
                f"{name.rstrip('_')} {self.bound[name]:.3f} ({value:+.3f})"
                for name, value in self.change.items()
            )
            lines.append(f"bound: {terms}")
        if self.accuracy_on_new is not None:
            lines.append(
                f"{100 * self.accuracy_on_new:.1f} % of the new labels were predicted"
            )
        if self.agreement is not None:
            lines.append(
                f"{100 * self.agreement:.1f} % of predictions are those of the last "
                "round"
            )
        if self.settled:
            lines.append(
                "the last round has changed little: more labels of this kind may not "
                "pay"
            )
        return "\n".join(lines)

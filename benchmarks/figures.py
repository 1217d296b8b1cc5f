"""The figures of the benchmark page, from records alone.

    python benchmarks/figures.py

draws what there are records of (see ``tables.py``) into ``figures/`` beside this file:

- ``curves.png``: accuracy by labels on RotatingMNIST-D6, of CAL with GraDS and with
  random samples, of random samples without it, and of the best rival;
- ``consistency.png``: the same with consistency training and without;
- ``alpha_d6.png`` and others: alpha of CAL after the last round, on each version of
  RotatingMNIST that says which domains are alike, the mean over seeds;
- ``alpha_by_round.png``: alpha of CAL on RotatingMNIST-D6 after each round.
"""

import numpy as np
from tables import HERE, best_rival, records_of

from mdal.plotting import alpha_by_round, alpha_heat_map, learning_curves

FIGURES = HERE / "figures"
CONSISTENT = (
    "CAL + consistency, rotation",
    "ERM + consistency, rotation",
    "CAL + consistency",
    "ERM + consistency",
)
ALIKE = ("d6", "d6_90", "d1_5", "d3_3", "d30")


def curves(records, shown):
    """Return the axes with the learning curves of some methods, None without any."""
    records = [record for record in records if record["name"] in shown]
    records.sort(key=lambda record: shown.index(record["name"]))
    return learning_curves(records) if records else None


def alpha_maps():
    """Yield the name of each data set and the axes with its alpha."""
    for version in ALIKE:
        records = [
            r for r in records_of(f"rotating_mnist_{version}") if r["name"] == "CAL"
        ]
        last = max((record["round"] for record in records), default=0)
        final = [record for record in records if record["round"] == last]
        if final:
            alpha = np.mean([record["alpha"] for record in final], axis=0)
            ax = alpha_heat_map(alpha, list(final[0]["spent"]))
            ax.set_title(
                f"{version.upper()}, {final[0]['labels']} labels, {len(final)} seeds"
            )
            yield version, ax


def main():
    """Draw the figures."""
    FIGURES.mkdir(exist_ok=True)
    found = dict(alpha_maps())
    drawn = {f"alpha_{version}": ax for version, ax in found.items()}
    d6 = records_of("rotating_mnist_d6")
    usual = ("CAL", "CAL + Random", best_rival(d6), "Random, separate")
    drawn["curves"] = curves(d6, usual)
    drawn["consistency"] = curves(d6, (*CONSISTENT, "CLUE", "CAL", "Random, separate"))
    cal = [r for r in d6 if r["name"] == "CAL"]
    drawn["alpha_by_round"] = alpha_by_round(cal) if cal else None
    for name, figure in drawn.items():
        if figure is not None:
            figure = figure.get_figure(root=True)
            figure.savefig(FIGURES / f"{name}.png", dpi=110)
            print(FIGURES / f"{name}.png")


if __name__ == "__main__":
    main()

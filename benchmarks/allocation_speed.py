"""Speed of the exact allocation against a plain heap, in one run.

The heap gives out one label at a time, which is the definition of the answer; both must
agree. Prints the median of five runs of each.

    python benchmarks/allocation_speed.py
"""

import heapq
import time

import numpy as np

from mdal.budget import allocate


def heap_allocate(weights, budget):
    """Give each label to the domain where it lowers sum w^2 / n most."""
    counts = [1] * len(weights)
    squares = (weights**2).tolist()
    queue = [(-square / 2, domain) for domain, square in enumerate(squares)]
    heapq.heapify(queue)
    for _ in range(budget - len(weights)):
        domain = queue[0][1]
        counts[domain] += 1
        n = counts[domain]
        heapq.heapreplace(queue, (-squares[domain] / (n * (n + 1)), domain))
    return np.array(counts)


def seconds(function, *arguments):
    """Return the median time of five calls."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return np.median(times)


def main():
    """Time both on budgets of growing size."""
    rng = np.random.default_rng(0)
    columns = "{:>8} {:>10} {:>8} {:>12} {:>6}".format
    print(columns("domains", "labels", "heap, s", "allocate, s", "ratio"))
    for n_domains, budget in ((10, 10**4), (100, 10**5), (1000, 10**6), (1000, 10**7)):
        weights = rng.dirichlet(np.ones(n_domains))
        assert np.array_equal(allocate(weights, budget), heap_allocate(weights, budget))
        heap, ours = (seconds(f, weights, budget) for f in (heap_allocate, allocate))
        cells = f"{heap:.3f}", f"{ours:.4f}", f"{heap / ours:.1f}"
        print(columns(n_domains, budget, *cells))


if __name__ == "__main__":
    main()

import heapq
import time
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from mdal.budget import (
    CallableBudget,
    ErrorBudget,
    JointBudget,
    OptimalBudget,
    SizeBudget,
    UniformBudget,
    allocate,
    budget_names,
    get_budget,
)


@st.composite
def problems(draw, max_domains=6, max_count=40):
    """Weights (zeros and ties among them), spent, capacity and a budget."""
    n = draw(st.integers(1, max_domains))

    def lists(values):
        return draw(st.lists(values, min_size=n, max_size=n))

    some_numbers = st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 6.0])
    weights = lists(some_numbers | st.floats(0, 1))
    spent = lists(st.integers(0, max_count))
    capacity = lists(st.integers(0, max_count))
    return weights, draw(st.integers(0, 2 * max_count)), spent, capacity


def value(weights, counts):
    """Sum of w^2 / n, as (weight of domains left without a label, finite sum)."""
    pairs = [(w, n) for w, n in zip(weights, counts, strict=True) if w > 0]
    empty = sum(w**2 for w, n in pairs if n == 0)
    return empty, sum(w**2 / n for w, n in pairs if n > 0)


def one_at_a_time(weights, budget, spent, capacity):
    """The definition: every label to the domain where it lowers the sum most."""
    new = [0] * len(weights)
    for _ in range(min(budget, sum(capacity))):

        def gain(j):
            n = spent[j] + new[j]
            if weights[j] == 0:
                return (2, n, j)
            return (n > 0, -(weights[j] ** 2) / (n * (n + 1) if n else 1), j)

        open_domains = [j for j in range(len(new)) if new[j] < capacity[j]]
        new[min(open_domains, key=gain)] += 1
    return new


def test_allocation_by_hand():
    # n = (1, 1) first; then 1 / 2 against 4 / 2, 1 / 2 against 4 / 6: 1, 3;
    # then 1 / 2 against 4 / 12: 2, 3.
    assert allocate([1, 2], 2).tolist() == [1, 1]
    assert allocate([1, 2], 4).tolist() == [1, 3]
    assert allocate([1, 2], 5).tolist() == [2, 3]


def test_allocation_is_the_best_of_all_integer_allocations():
    rng = np.random.default_rng(0)
    for _ in range(150):
        n = int(rng.integers(2, 5))
        weights = rng.choice([0.0, 0.1, 0.3, 1.0, 2.5], n) * rng.uniform(0.5, 1, n)
        spent, capacity = rng.integers(0, 4, n), rng.integers(0, 6, n)
        budget = int(rng.integers(0, 9))
        total = min(budget, int(capacity.sum()))
        every = (
            np.array(new)
            for new in product(*(range(c + 1) for c in capacity))
            if sum(new) == total
        )
        best = min(value(weights, spent + new) for new in every)
        found = allocate(weights, budget, spent=spent, capacity=capacity)
        assert value(weights, spent + found) == pytest.approx(best, rel=1e-12)


@given(problems())
def test_allocation_equals_giving_one_label_at_a_time(problem):
    weights, budget, spent, capacity = problem
    # Squares that underflow would make the slow form divide zeros.
    weights = [w if w > 1e-100 else 0.0 for w in weights]
    new = allocate(weights, budget, spent=spent, capacity=capacity)
    slow = one_at_a_time(weights, budget, spent, capacity)
    assert value(weights, np.add(spent, new)) == pytest.approx(
        value(weights, np.add(spent, slow)), rel=1e-12
    )


@given(problems())
def test_allocation_sums_to_the_budget_and_stays_within_capacity(problem):
    weights, budget, spent, capacity = problem
    new = allocate(weights, budget, spent=spent, capacity=capacity)
    assert new.dtype == np.int64
    assert new.sum() == min(budget, sum(capacity))
    assert (new >= 0).all() and (new <= capacity).all()


@given(problems())
def test_allocation_is_monotone_in_the_budget(problem):
    weights, budget, spent, capacity = problem
    less = allocate(weights, budget, spent=spent, capacity=capacity)
    more = allocate(weights, budget + 1, spent=spent, capacity=capacity)
    assert (more >= less).all()


@given(problems())
def test_nobody_with_a_weight_is_starved(problem):
    weights, budget, spent, capacity = problem
    waiting = [
        j
        for j, (w, s, c) in enumerate(zip(weights, spent, capacity, strict=True))
        if w > 0 and s == 0 and c > 0
    ]
    new = allocate(weights, budget, spent=spent, capacity=capacity)
    served = [j for j in waiting if new[j] > 0]
    assert len(served) == min(len(waiting), budget)
    left_out = [weights[j] for j in waiting if new[j] == 0]
    if served and left_out:
        assert min(weights[j] for j in served) >= max(left_out)


@given(problems(), st.randoms(use_true_random=False))
def test_allocation_is_equivariant_under_permutation_up_to_ties(problem, random):
    weights, budget, spent, capacity = problem
    order = list(range(len(weights)))
    random.shuffle(order)
    new = allocate(weights, budget, spent=spent, capacity=capacity)
    moved = allocate(
        np.take(weights, order),
        budget,
        spent=np.take(spent, order),
        capacity=np.take(capacity, order),
    )
    twins = zip(weights, spent, capacity, strict=True)
    if len(set(twins)) == len(weights) and not _has_tie(weights, spent, new):
        assert moved.tolist() == new[order].tolist()
    assert value(np.take(weights, order), np.take(spent, order) + moved) == (
        pytest.approx(value(weights, np.add(spent, new)), rel=1e-9)
    )


def _has_tie(weights, spent, new):
    """Whether some label could as well have gone to another domain."""
    last, following = [], []
    for w, s, m in zip(weights, spent, new, strict=True):
        n = int(s + m)
        if m:
            last.append(w**2 / max(n * (n - 1), 1))
        following.append(w**2 / max(n * (n + 1), 1))
    return bool(last) and bool(
        np.isclose(np.subtract.outer(last, following), 0, atol=1e-9).any()
    )


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_allocation_does_not_depend_on_the_scale_of_the_weights(scale):
    weights = np.array([0.5, 0.3, 0.15, 0.05])
    assert allocate(weights * scale, 997).tolist() == allocate(weights, 997).tolist()


def test_ties_are_exact_and_go_to_the_lowest_index():
    # 36 / (8 * 9) = 1 / (1 * 2): the next label is worth the same to both.
    assert allocate([1, 6], 1, spent=[1, 8]).tolist() == [1, 0]
    assert allocate([6, 1], 1, spent=[8, 1]).tolist() == [1, 0]
    assert allocate([1, 1, 1], 4).tolist() == [2, 1, 1]
    # 1 / (2 * 3) = 100 / (24 * 25), but not if 1 / 10 is squared in floating point.
    assert allocate([1, 10], 1, spent=[2, 24]).tolist() == [1, 0]
    assert allocate([10, 1], 1, spent=[24, 2]).tolist() == [1, 0]


def test_shares_converge_to_the_weights():
    alpha = np.random.default_rng(0).dirichlet(np.ones(8))
    for budget in (10**3, 10**5, 10**7):
        assert np.abs(allocate(alpha, budget) / budget - alpha).max() < 2 / budget


def test_zero_weights_fill_up_last_and_fewest_labels_first():
    new = allocate([0, 1, 0], 10, spent=[5, 3, 2], capacity=[9, 2, 9])
    assert new.tolist() == [3, 2, 5]
    assert allocate([0, 0], 3, spent=[4, 4]).tolist() == [2, 1]


def test_a_million_labels_over_a_thousand_domains_match_a_plain_heap():
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(1000))
    spent, capacity = rng.integers(1, 100, 1000), rng.integers(0, 3000, 1000)
    new = np.zeros(1000, dtype=int)
    queue = [
        (-(weights[j] ** 2) / (spent[j] * (spent[j] + 1)), j)
        for j in range(1000)
        if capacity[j]
    ]
    heapq.heapify(queue)
    for _ in range(10**6):
        _, j = heapq.heappop(queue)
        new[j] += 1
        if new[j] < capacity[j]:
            n = spent[j] + new[j]
            heapq.heappush(queue, (-(weights[j] ** 2) / (n * (n + 1)), j))
    start = time.perf_counter()
    found = allocate(weights, 10**6, spent=spent, capacity=capacity)
    assert time.perf_counter() - start < 1
    assert found.tolist() == new.tolist()


def test_inputs_are_left_alone():
    weights, spent, capacity = np.array([0.7, 0.3]), np.array([2, 1]), np.array([9, 9])
    allocate(weights, 10, spent=spent, capacity=capacity)
    assert weights.tolist() == [0.7, 0.3]
    assert spent.tolist() == [2, 1] and capacity.tolist() == [9, 9]


BUDGETS = [
    CallableBudget(lambda budget, *, capacity, **others: allocate(
        np.ones(len(capacity)), budget, capacity=capacity)),
    ErrorBudget(),
    ErrorBudget(uniform_share=0.0),
    JointBudget(),
    OptimalBudget(),
    SizeBudget(),
    UniformBudget(),
]  # fmt: skip


@pytest.mark.parametrize("rule", BUDGETS, ids=lambda rule: type(rule).__name__)
@given(
    sizes=st.lists(st.integers(0, 50), min_size=1, max_size=5),
    budget=st.integers(0, 120),
    data=st.data(),
)
def test_every_rule_gives_out_what_there_is(rule, sizes, budget, data):
    spent = [data.draw(st.integers(0, size)) for size in sizes]
    n = len(sizes)
    alpha = np.random.default_rng(n).dirichlet(np.ones(n), n)
    errors = np.linspace(0, 0.4, n)
    new = rule.split(budget, alpha=alpha, errors=errors, sizes=sizes, spent=spent)
    groups = rule.groups(n)
    room = np.bincount(groups, np.subtract(sizes, spent), minlength=len(new))
    assert new.sum() == min(budget, room.sum())
    assert (new >= 0).all() and (new <= room).all()
    assert len(new) == len(set(groups.tolist()))


@pytest.mark.parametrize("rule", BUDGETS, ids=lambda rule: type(rule).__name__)
def test_rules_have_parameters_and_can_be_cloned(rule):
    copy = clone(rule)
    assert type(copy) is type(rule)
    assert copy.get_params().keys() == rule.get_params().keys()
    copy.set_params(**rule.get_params())


def test_the_optimal_budget_moves_cumulative_shares_to_alpha():
    alpha = [[0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.6, 0.0, 0.4]]  # means .6, .2, .2
    new = OptimalBudget().split(100, alpha=alpha, spent=[10, 10, 30], sizes=[999] * 3)
    assert np.add(new, [10, 10, 30]).tolist() == [90, 30, 30]


def test_the_optimal_budget_counts_unknown_columns_as_uniform():
    alpha = [[1.0, 0.0], [1.0, 0.0]]  # nothing is labelled in domain 1
    new = OptimalBudget().split(30, alpha=alpha, spent=[10, 0], sizes=[99, 99])
    assert new.tolist() == allocate([1.0, 0.5], 30, spent=[10, 0]).tolist()
    assert new[1] > 10


def test_the_optimal_budget_takes_alpha_at_its_word_when_nothing_is_labelled():
    alpha = [[0.9, 0.1], [0.9, 0.1]]
    assert OptimalBudget().split(100, alpha=alpha).tolist() == [90, 10]


def test_a_uniform_budget_is_equal_per_round():
    new = UniformBudget().split(9, sizes=[50, 50, 50], spent=[0, 30, 2])
    assert new.tolist() == [3, 3, 3]


def test_the_remainder_of_a_uniform_budget_goes_to_those_with_fewest_labels():
    new = UniformBudget().split(8, sizes=[50, 50, 50], spent=[9, 1, 4])
    assert new.tolist() == [2, 3, 3]


def test_a_budget_by_size_is_proportional_over_all_rounds():
    # The second has its share already; the others stand at 2 : 1 afterwards.
    new = SizeBudget().split(30, sizes=[60, 30, 30], spent=[0, 20, 10])
    assert new.tolist() == [27, 0, 3]


def test_an_error_budget_without_uniform_share_follows_the_errors():
    new = ErrorBudget(uniform_share=0).split(
        60, sizes=[99] * 3, errors=[0.3, 0.1, 0.2], spent=[50, 0, 0]
    )
    assert new.tolist() == [30, 10, 20]


def test_an_error_budget_with_uniform_share_one_is_uniform():
    rule = ErrorBudget(uniform_share=1)
    assert rule.split(30, sizes=[99] * 3, errors=[0.9, 0.1, 0.0]).tolist() == [10] * 3


def test_capacity_may_be_smaller_than_what_is_unlabelled():
    new = UniformBudget().split(30, sizes=[99, 99], spent=[9, 9], capacity=[5, 90])
    assert new.tolist() == [5, 25]


def test_names_stand_for_rules():
    assert [type(get_budget(name)).__name__ for name in budget_names()] == [
        "ErrorBudget",
        "JointBudget",
        "OptimalBudget",
        "UniformBudget",
        "SizeBudget",
        "UniformBudget",
    ]
    rule = ErrorBudget(0.2)
    assert get_budget(rule) is rule
    assert isinstance(get_budget(lambda budget, **known: [budget]), CallableBudget)

"""Figures of labelling loops: what is drawn equals what was recorded."""

import io
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.text import Text

from mdal import plotting
from mdal.plotting import (
    accuracy_by_domain,
    alpha_by_round,
    alpha_heat_map,
    bound_by_round,
    budgets_by_round,
    embedding_scatter,
    learning_curves,
)

METHODS = ["CAL + GraDS", "Margin, joint", "Random <b>"]
TERMS = ["labelled_error", "divergence", "lambda_"]


def make_records(methods, *, n_domains=3, n_seeds=3, n_rounds=4, seed=0):
    rng = np.random.default_rng(seed)
    domains = [f"site {number}" for number in range(n_domains)]
    records = []
    for name in methods:
        for run in range(n_seeds):
            spent = np.zeros(n_domains, dtype=int)
            for number in range(n_rounds):
                spent = spent + rng.integers(5, 20, size=n_domains)
                by_domain = rng.uniform(0.4, 0.9, size=n_domains)
                record = {
                    "name": name,
                    "seed": run,
                    "round": number,
                    "labels": 30 * (number + 1),
                    "accuracy": by_domain.mean(),
                    "by_domain": dict(zip(domains, by_domain, strict=True)),
                    "spent": dict(zip(domains, spent.tolist(), strict=True)),
                    "alpha": rng.dirichlet(np.ones(n_domains), n_domains).tolist(),
                    "bound": dict(zip(TERMS, rng.uniform(size=3), strict=True)),
                }
                records.append(record)
    return records


@pytest.fixture
def three_methods():
    """Records of three methods, three seeds, four rounds and three domains."""
    return make_records(METHODS)


def values(records, name, number, read):
    found = [r for r in records if r["name"] == name and r["round"] == number]
    return np.array([read(record) for record in found])


def figures():
    """One call of every function, and calls with many domains or methods."""
    rng = np.random.default_rng(0)
    records = make_records(METHODS)
    crowd = make_records([f"method {n}" for n in range(17)], n_rounds=3)
    wide = make_records(["CAL"], n_domains=30, n_seeds=2, n_rounds=3)
    embedding = rng.normal(size=(60, 5))
    yield "curves", learning_curves(records)
    yield "curves of 17", learning_curves(crowd)
    yield "curves of one run", learning_curves(make_records(["CAL"], n_seeds=1))
    for n in (1, 12, 13, 150):
        alpha = rng.dirichlet(np.ones(n), n)
        yield f"alpha of {n}", alpha_heat_map(alpha, range(n))
    for n_rounds in (1, 4, 5):
        records_n = make_records(["CAL"], n_rounds=n_rounds)
        yield f"alpha of {n_rounds} rounds", alpha_by_round(records_n)
    yield "alpha of 30 by round", alpha_by_round(wide)
    yield "budgets", budgets_by_round(records, name=METHODS[0])
    yield "shares", budgets_by_round(wide, shares=True)
    yield "bound", bound_by_round(records, name=METHODS[0])
    yield "domains", accuracy_by_domain(records)
    yield "domains of 17", accuracy_by_domain(crowd)
    yield "30 domains", accuracy_by_domain(wide)
    yield "scatter", embedding_scatter(embedding, [0, 1, -1] * 20, list("ab") * 30)[0]
    yield "many", embedding_scatter(embedding[:, :2], range(60), np.arange(60) % 20)[0]


def test_figures_draw_leave_no_state_and_can_be_read():
    before = matplotlib.rcParams.copy()
    for what, drawn in figures():
        figure = drawn.get_figure(root=True)
        figure.savefig(io.BytesIO(), format="png", dpi=50)  # warnings are errors
        texts = [text for text in figure.findobj(Text) if text.get_text()]
        assert min(text.get_fontsize() for text in texts) >= 8, what
        if figure.get_suptitle() == "":
            assert all(ax.get_title() for ax in figure.axes), what
    assert matplotlib.rcParams.copy() == before
    assert pyplot.get_fignums() == []


def test_importing_and_drawing_do_not_import_pyplot():
    code = (
        "import sys, mdal.plotting as p\n"
        "assert 'matplotlib' not in sys.modules\n"
        "p.alpha_heat_map([[1.0]], ['a']).figure.draw_without_rendering()\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_matplotlib_the_error_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "mdal-learn\[plot\]"'):
        alpha_heat_map([[1.0]], ["a"])


def test_curves_are_means_with_bands_of_one_deviation(three_methods):
    ax = learning_curves(three_methods)
    for line, band, name in zip(ax.lines, ax.collections, METHODS, strict=True):
        corners = band.get_paths()[0].vertices
        for number in range(4):
            runs = 100 * values(three_methods, name, number, lambda r: r["accuracy"])
            mean = sum(runs) / 3
            deviation = (sum((run - mean) ** 2 for run in runs) / 2) ** 0.5
            x, y = line.get_xydata()[number]
            assert (x, y) == (30 * (number + 1), pytest.approx(mean))
            edges = corners[corners[:, 0] == x, 1]
            assert edges.min() == pytest.approx(mean - deviation)
            assert edges.max() == pytest.approx(mean + deviation)


def test_curves_differ_by_more_than_colour():
    ax = learning_curves(make_records([f"method {n}" for n in range(40)], n_rounds=2))
    assert len({(line.get_marker(), line.get_linestyle()) for line in ax.lines}) > 30
    marks = {(line.get_marker(), line.get_color()) for line in ax.lines}
    assert len(marks) == 40


def test_the_legend_ranks_methods_and_covers_no_data(three_methods):
    ax = learning_curves(three_methods)
    ax.figure.draw_without_rendering()
    last = [line.get_ydata()[-1] for line in ax.lines]
    ranked = [METHODS[position] for position in np.argsort(last)[::-1]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ranked
    legend, data = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert legend.x0 >= data.x1
    assert legend.x1 <= ax.figure.bbox.x1


def test_rounds_that_a_seed_has_not_reached_are_left_out(three_methods):
    ax = learning_curves(three_methods[:-1])
    assert [len(line.get_xdata()) for line in ax.lines] == [4, 4, 3]


def test_another_metric_can_be_drawn(three_methods):
    ax = learning_curves(three_methods, metric="worst")
    runs = values(three_methods, METHODS[1], 2, lambda r: min(r["by_domain"].values()))
    assert ax.lines[1].get_ydata()[2] == pytest.approx(100 * runs.mean())
    assert "worst domain (%)" in ax.get_ylabel()
    halved = [{**r, "recall": r["accuracy"] / 2} for r in three_methods]
    recall = learning_curves(halved, metric="recall").lines[0].get_ydata()
    accuracy = learning_curves(halved).lines[0].get_ydata()
    np.testing.assert_allclose(recall, accuracy / 2)


@settings(max_examples=20)
@given(st.integers(1, 16), st.integers(0, 999))
def test_the_heat_map_has_alpha_and_its_column_means(n_domains, seed):
    alpha = np.random.default_rng(seed).dirichlet(np.ones(n_domains), n_domains)
    ax = alpha_heat_map(alpha, [f"d{n}" for n in range(n_domains)])
    np.testing.assert_array_equal(ax.images[0].get_array(), alpha)
    below = ax.child_axes[0]
    if n_domains <= 12:
        np.testing.assert_allclose(below.images[0].get_array()[0], alpha.mean(axis=0))
        assert below.images[0].get_clim() == ax.images[0].get_clim()
        written = [float(text.get_text()) for text in ax.texts]
        np.testing.assert_allclose(written, alpha.ravel(), atol=0.0051)
    else:
        heights = [bar.get_height() for bar in below.patches]
        np.testing.assert_allclose(heights, alpha.mean(axis=0))
        assert not ax.texts


def test_rows_are_original_domains_and_columns_labelled_ones():
    ax = alpha_heat_map([[0.8, 0.2], [0.4, 0.6]], ["clinic", "lab"])
    below = ax.child_axes[0]
    ax.figure.draw_without_rendering()
    assert ax.get_ylabel() == "original domain"
    assert below.get_xlabel() == "labelled domain"
    assert [text.get_text() for text in ax.get_yticklabels()] == ["clinic", "lab"]
    assert [text.get_text() for text in below.get_xticklabels()] == ["clinic", "lab"]
    # The first row is at the top, and the means are under the columns.
    assert ax.yaxis_inverted()
    assert below.get_window_extent().y1 < ax.get_window_extent().y0
    assert below.get_window_extent().x0 == pytest.approx(ax.get_window_extent().x0)
    assert below.get_window_extent().x1 == pytest.approx(ax.get_window_extent().x1)


def test_many_domains_have_few_ticks():
    ax = alpha_heat_map(np.eye(150), range(150))
    assert len(ax.get_yticks()) <= 15
    assert len(ax.child_axes[0].get_xticks()) <= 15


def test_text_in_cells_stands_out():
    ax = alpha_heat_map([[1.0, 0.0], [0.0, 1.0]], "ab")
    assert [text.get_color() for text in ax.texts] == [
        "white",
        "black",
        "black",
        "white",
    ]


def test_alpha_by_round_is_the_mean_over_seeds_in_one_scale(three_methods):
    figure = alpha_by_round(three_methods, name=METHODS[2])
    panels = [ax for ax in figure.axes if ax.get_title()]
    assert [ax.get_title() for ax in panels] == [f"round {n}" for n in range(4)]
    means = [
        values(three_methods, METHODS[2], number, lambda r: r["alpha"]).mean(axis=0)
        for number in range(4)
    ]
    for ax, mean in zip(panels, means, strict=True):
        np.testing.assert_allclose(ax.images[0].get_array(), mean)
        assert ax.images[0].get_clim() == (0, np.max(means))


def test_rounds_without_alpha_are_left_out_and_rounds_can_be_chosen(three_methods):
    for record in three_methods:
        if record["round"] == 0 or (record["round"], record["seed"]) == (2, 1):
            record["alpha"] = None

    def titles(**options):
        figure = alpha_by_round(three_methods, name=METHODS[0], **options)
        return [ax.get_title() for ax in figure.axes if ax.get_title()]

    assert titles() == ["round 1", "round 3"]
    assert titles(rounds=[3]) == ["round 3"]
    with pytest.raises(ValueError, match=r"rounds with alpha are \[1, 3\]"):
        titles(rounds=[0])


def test_alpha_that_was_rounded_is_drawn():
    alpha = np.full((3, 3), 0.333)
    assert alpha_heat_map(alpha, "abc").images[0].get_array()[0, 0] == 0.333


def test_budgets_are_what_each_round_adds(three_methods):
    ax = budgets_by_round(three_methods, name=METHODS[1])
    before = 0
    for number in range(4):
        spent = values(
            three_methods, METHODS[1], number, lambda r: list(r["spent"].values())
        ).mean(axis=0)
        bars = [container[number] for container in ax.containers]
        np.testing.assert_allclose([b.get_height() for b in bars], spent - before)
        tops = [bar.get_y() + bar.get_height() for bar in bars]
        np.testing.assert_allclose([bar.get_y() for bar in bars[1:]], tops[:-1])
        before = spent
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["site 2", "site 1", "site 0"]


def test_shares_of_labels_add_up_to_a_hundred(three_methods):
    ax = budgets_by_round(three_methods, name=METHODS[1], shares=True)
    heights = np.array([[bar.get_height() for bar in bars] for bars in ax.containers])
    np.testing.assert_allclose(heights.sum(axis=0), 100)
    spent = values(three_methods, METHODS[1], 3, lambda r: list(r["spent"].values()))
    shares = 100 * spent.mean(axis=0) / spent.mean(axis=0).sum()
    np.testing.assert_allclose(heights[:, 3], shares)


def test_bound_has_mean_terms_and_accuracy_beside(three_methods):
    for record in three_methods:
        if record["round"] == 3:
            record["bound"] = None
    left, right = bound_by_round(three_methods, name=METHODS[0]).axes
    for bars, term in zip(left.containers, TERMS, strict=True):
        bounds = [
            values(three_methods, METHODS[0], number, lambda r: r["bound"])
            for number in range(3)
        ]
        means = [np.mean([bound[term] for bound in runs]) for runs in bounds]
        np.testing.assert_allclose([bar.get_height() for bar in bars], means)
    accuracy = [
        100 * values(three_methods, METHODS[0], n, lambda r: r["accuracy"]).mean()
        for n in range(4)
    ]
    np.testing.assert_allclose(right.lines[0].get_ydata(), accuracy)
    names = [text.get_text() for text in left.get_legend().get_texts()]
    assert names == ["labelled error", "divergence", "λ"]


@pytest.mark.parametrize("n_domains", [3, 20])
def test_accuracy_by_domain_is_that_of_the_last_common_round(n_domains):
    records = make_records(METHODS, n_domains=n_domains)
    cut = [r for r in records if (r["name"], r["round"]) != (METHODS[2], 3)]
    for given_records, round_, number in ((records, None, 3), (cut, None, 2)):
        ax = accuracy_by_domain(given_records, round=round_)
        assert f"round {number}" in ax.get_title()
        lines = [line for line in ax.lines if len(line.get_ydata()) == n_domains]
        for line, name in zip(lines, METHODS, strict=True):
            runs = values(
                records, name, number, lambda r: list(r["by_domain"].values())
            )
            np.testing.assert_allclose(line.get_ydata(), 100 * runs.mean(axis=0))
            assert (np.abs(line.get_xdata() - np.arange(n_domains)) < 0.5).all()
    with pytest.raises(ValueError, match=r"round=3 is not in all runs.*\[0, 1, 2\]"):
        accuracy_by_domain(cut, round=3)


def drawn_points(ax):
    return np.concatenate([np.asarray(c.get_offsets()) for c in ax.collections])


def test_an_embedding_of_two_features_is_drawn_as_it_is():
    embedding = np.random.default_rng(0).normal(size=(30, 2))
    for ax in embedding_scatter(embedding, [0, 1, -1] * 10, list("ab") * 15):
        found = drawn_points(ax)
        np.testing.assert_allclose(
            np.sort(found, axis=0), np.sort(embedding, axis=0), rtol=1e-6
        )


def test_a_wider_embedding_is_projected_where_it_varies_most():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(50, 2)) * [9.0, 3.0]
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0][:2]
    left, _ = embedding_scatter(hidden @ turn, [0] * 50, ["a"] * 50)
    centred = hidden - hidden.mean(axis=0)
    spread = np.linalg.svd(centred, compute_uv=False) / np.sqrt(50)
    np.testing.assert_allclose(drawn_points(left).std(axis=0), spread)
    assert "% of variance" in left.get_xlabel()


def test_at_most_max_points_are_drawn_and_the_seed_repeats_them():
    embedding = np.random.default_rng(0).normal(size=(100, 2))
    arguments = (embedding, np.arange(100) % 3, np.arange(100) % 2)

    def draw(**options):
        return drawn_points(embedding_scatter(*arguments, max_points=40, **options)[1])

    assert len(draw()) == 40
    np.testing.assert_array_equal(draw(), draw(random_state=0))
    assert not np.array_equal(draw(), draw(random_state=1))


def test_samples_have_the_colour_of_their_class_and_unlabelled_ones_are_named():
    embedding = np.arange(8.0).reshape(4, 2)
    left, right = embedding_scatter(embedding, ["x", "y", None, "x"], list("abab"))
    colours = {}
    for collection in left.collections:
        for place, colour in zip(
            collection.get_offsets(), collection.get_facecolors(), strict=True
        ):
            colours[float(place[0])] = tuple(colour)
    assert colours[0.0] == colours[6.0]
    assert len(set(colours.values())) == 3
    names = [text.get_text() for text in left.get_legend().get_texts()]
    assert names == ["x", "y", "unlabelled"]
    assert [text.get_text() for text in right.get_legend().get_texts()] == ["a", "b"]


def test_identical_samples_without_a_class_are_drawn():
    left, _ = embedding_scatter(np.ones((5, 4)), [-1] * 5, ["a"] * 5)
    np.testing.assert_allclose(drawn_points(left), 0)


def test_given_axes_are_drawn_on(three_methods):
    figure = Figure(layout="constrained")
    axes = figure.subplots(2, 3).ravel()
    assert learning_curves(three_methods, ax=axes[0]) is axes[0]
    assert alpha_heat_map(np.eye(2), "ab", ax=axes[1]) is axes[1]
    one = [record for record in three_methods if record["name"] == METHODS[0]]
    assert budgets_by_round(one, ax=axes[2]) is axes[2]
    assert accuracy_by_domain(three_methods, ax=axes[3]) is axes[3]
    embedding = np.eye(4)[:, :2]
    pair = embedding_scatter(embedding, [0] * 4, ["a"] * 4, ax=axes[4:])
    assert pair == (axes[4], axes[5])
    with pytest.raises(ValueError, match="pass two Axes"):
        embedding_scatter(embedding, [0] * 4, ["a"] * 4, ax=axes[0])


RECORD_FIGURES = [
    accuracy_by_domain,
    alpha_by_round,
    bound_by_round,
    budgets_by_round,
    learning_curves,
]


@pytest.mark.parametrize("draw", RECORD_FIGURES)
def test_bad_records_are_named(draw):
    with pytest.raises(ValueError, match="records is empty"):
        draw([])
    with pytest.raises(TypeError, match="record 1 is of type str; pass a dict"):
        draw([*make_records(["CAL"])[:1], "CAL"])
    with pytest.raises(TypeError, match="pass a list"):
        draw(make_records(["CAL"])[0])
    with pytest.raises(ValueError, match="record 0 has no 'seed'"):
        draw([{"name": "CAL", "round": 0}])
    with pytest.raises(ValueError, match="record 0 has no '"):
        draw([{"name": "CAL", "seed": 0, "round": 0}])
    records = make_records(["CAL"])
    with pytest.raises(ValueError, match="the second of 'CAL' with seed 0 in round 0"):
        draw([*records, records[0]])
    apart = [r for r in records if r["seed"] == r["round"]]
    with pytest.raises(ValueError, match="in all 3 runs of 'CAL'"):
        draw(apart)


@pytest.mark.parametrize("draw", [alpha_by_round, bound_by_round, budgets_by_round])
def test_one_method_has_to_be_chosen(draw, three_methods):
    with pytest.raises(ValueError, match="records are of 3 methods; choose one"):
        draw(three_methods)
    with pytest.raises(ValueError, match=r"name='CLUE' is not in .*'CAL \+ GraDS'"):
        draw(three_methods, name="CLUE")


def test_values_that_make_no_sense_are_named(three_methods):
    first = three_methods[0]
    with pytest.raises(ValueError, match=r"accuracy of 'CAL \+ GraDS'=51.0"):
        learning_curves([{**first, "accuracy": 51.0}])
    with pytest.raises(ValueError, match="by_domain spans"):
        accuracy_by_domain([{**first, "by_domain": {"a": 51.0}}])
    with pytest.raises(ValueError, match="pass records that have the same ones"):
        budgets_by_round([first, {**first, "seed": 1, "spent": {"a": 1}}])
    with pytest.raises(ValueError, match="no round has a value of 'alpha'"):
        alpha_by_round([{**first, "alpha": None}])
    with pytest.raises(ValueError, match="alpha has shape"):
        alpha_by_round([{**first, "alpha": [[1.0]]}])


@pytest.mark.parametrize(
    ("alpha", "names", "message"),
    [
        (np.ones((2, 3)) / 3, "ab", "pass a square matrix"),
        (np.ones(2), "ab", "alpha has shape"),
        (np.eye(2), "abc", "names has 3 names for 2 domains"),
        (np.ones((2, 2)), "ab", "row 0 of alpha sums to 2"),
        ([[1.5, -0.5], [0.0, 1.0]], "ab", "alpha contains -0.5"),
        ([[np.nan, 1.0], [0.0, 1.0]], "ab", "NaN"),
    ],
)
def test_bad_alpha_is_named(alpha, names, message):
    with pytest.raises(ValueError, match=message):
        alpha_heat_map(alpha, names)


def test_bad_embeddings_are_named():
    with pytest.raises(ValueError, match="at least two samples and two features"):
        embedding_scatter(np.ones((5, 1)), [0] * 5, ["a"] * 5)
    with pytest.raises(ValueError, match="classes has"):
        embedding_scatter(np.ones((5, 2)), [0] * 4, ["a"] * 5)
    with pytest.raises(ValueError, match="max_points=0"):
        embedding_scatter(np.ones((5, 2)), [0] * 5, ["a"] * 5, max_points=0)


def test_records_are_not_changed(three_methods):
    before = [dict(record) for record in three_methods]
    for draw in (learning_curves, accuracy_by_domain):
        draw(three_methods)
    for draw in (alpha_by_round, bound_by_round, budgets_by_round):
        draw(three_methods, name=METHODS[0])
    assert three_methods == before


def test_every_function_is_listed():
    assert plotting.__all__ == sorted(plotting.__all__)
    assert {draw.__name__ for draw in RECORD_FIGURES} < set(plotting.__all__)

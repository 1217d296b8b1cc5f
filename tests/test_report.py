"""Pages: one file, well formed, with nothing from elsewhere."""

import base64
import os
import re
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from mdal.report import page, picture, table, write_page

VOID = {"meta", "link", "img"}


class Reader(HTMLParser):
    """Tags with attributes and the text in them; checks that tags are balanced."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if data.strip():
            self.texts.append((self.open[-1], data))

    def named(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    def text(self, tag):
        return [text for name, text in self.texts if name == tag]


def small_figure():
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot([0, 1])
    return figure


def crowded_figure():
    figure = Figure(figsize=(2, 1))
    figure.subplots().scatter(*np.random.default_rng(0).normal(size=(2, 4000)), s=1)
    return figure


@pytest.fixture
def whole_page():
    rows = [{"method": "CAL", "labels": 900}, {"method": "Random", "labels": 900}]
    return page(
        "A page",
        [
            ("", "An introduction."),
            ("Results", ["A text.", table(rows, caption="Labels")]),
            ("Figure", picture(small_figure(), "A line that rises", caption="Rising")),
        ],
    )


def test_a_page_is_well_formed_and_complete(whole_page):
    assert whole_page.startswith("<!DOCTYPE html>\n")
    read = Reader(whole_page)
    assert read.named("html") == [{"lang": "en"}]
    assert read.text("title") == read.text("h1") == ["A page"]
    assert read.text("h2") == ["Results", "Figure"]
    assert read.text("p") == ["An introduction.", "A text."]
    assert read.text("caption") == ["Labels"]
    assert read.text("figcaption") == ["Rising"]
    names = [attributes.get("name") for attributes in read.named("meta")]
    assert "viewport" in names
    assert {"charset": "utf-8"} in read.named("meta")


def test_a_page_needs_nothing_from_elsewhere(whole_page):
    read = Reader(whole_page)
    assert "http" not in whole_page
    assert "@import" not in whole_page and "url(" not in whole_page
    assert not {"script", "iframe", "object"} & {tag for tag, _ in read.tags}
    for _, attributes in read.tags:
        for name in ("src", "href"):
            assert attributes.get(name, "data:").startswith("data:")


def test_pages_suit_phones_and_dark_rooms(whole_page):
    (style,) = Reader(whole_page).text("style")
    assert "prefers-color-scheme: dark" in style
    assert re.search(r"img \{[^}]*max-width: 100%[^}]*background: #ffffff", style)
    assert re.search(r"\.scroll \{ overflow-x: auto", style)
    assert whole_page.index('class="scroll"') < whole_page.index("<table>")


@given(st.text(st.characters(exclude_categories=["C"]), min_size=1))
def test_any_text_arrives_as_it_is(text):
    html = page(text, [(text, [text, table([[text]], header=[text], caption=text)])])
    read = Reader(html)
    expected = [text] if text.strip() else []
    for tag in ("title", "h1", "h2", "p", "td", "th", "caption"):
        assert "".join(read.text(tag)) == "".join(expected)


def test_code_in_names_is_text():
    bad = '"><script>alert(1)</script>'
    part = picture(small_figure(), bad, caption=bad)
    html = page(bad, [(bad, [bad, part, table([{bad: bad}], caption=bad)])])
    read = Reader(html)
    assert "<script" not in html
    assert read.named("img")[0]["alt"] == bad
    assert read.named("div")[0]["aria-label"] == bad


def test_tables_of_dicts_and_of_rows_are_the_same():
    dicts = [{"a": "x", "b": 1}, {"a": "y"}]
    rows = [["x", 1], ["y", None]]
    assert table(dicts) == table(rows, header=["a", "b"])
    assert table(iter(dicts)) == table(dicts)


def test_columns_of_numbers_stand_on_the_right():
    row = {
        "method": "CAL",
        "whole": 1234567,
        "share": np.float64(0.12345),
        "spread": "94.1 ± 0.3",
        "change": "\u22121.5 %",
        "mixed": "3 rounds",
        "flag": True,
        "none": None,
    }
    read = Reader(table([row], decimals=3).html)
    marked = {
        name: attributes.get("class") == "number"
        for name, attributes in zip(row, read.named("td"), strict=True)
    }
    assert [name for name in row if marked[name]] == [
        "whole",
        "share",
        "spread",
        "change",
    ]
    heads = [attributes.get("class") == "number" for attributes in read.named("th")]
    assert heads == list(marked.values())
    assert read.text("td") == [
        "CAL",
        "1,234,567",
        "0.123",
        "94.1 ± 0.3",
        "\u22121.5 %",
        "3 rounds",
        "True",
    ]


@pytest.mark.parametrize(
    ("figure", "kind", "magic"),
    [(small_figure(), "svg+xml", b"<?xml"), (crowded_figure(), "png", b"\x89PNG")],
)
def test_figures_are_embedded_in_the_smaller_form(figure, kind, magic):
    (image,) = Reader(picture(figure, "A figure").html).named("img")
    start = f"data:image/{kind};base64,"
    assert image["src"].startswith(start)
    content = base64.b64decode(image["src"].removeprefix(start))
    assert content.startswith(magic)
    assert (image["alt"], image["width"], image["height"]) == ("A figure", "200", "100")


def test_the_same_figure_gives_the_same_bytes_and_no_state_is_left():
    before = matplotlib.rcParams.copy()
    assert picture(small_figure(), "A line") == picture(small_figure(), "A line")
    assert matplotlib.rcParams.copy() == before


def test_axes_stand_for_their_figure():
    figure = small_figure()
    assert picture(figure.axes[0], "A line") == picture(figure, "A line")


def test_writing_replaces_a_page_as_a_whole(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="disk full"):
            write_page(path, "Å", [("", "Text.")])
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["page.html"]
    assert write_page(str(path), "Å", [("", "Text.")], language="sv") == path
    assert path.read_bytes().decode() == page("Å", [("", "Text.")], language="sv")
    assert os.listdir(tmp_path) == ["page.html"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: page("t", ["text"]), TypeError, "section 0 is 'text'; pass pairs"),
        (lambda: page("t", [("h", [3])]), TypeError, "'h' has a part of type int"),
        (lambda: page("t", [("h", 3)]), TypeError, "'h' has parts of type int"),
        (lambda: table([]), ValueError, "rows is empty"),
        (lambda: table([[1]]), ValueError, "header is missing"),
        (lambda: table([[1, 2]], header="a"), ValueError, "2 cells for 1 columns"),
        (lambda: table([{"a": 1}, {"b": 1}]), ValueError, "row 1 has 'b'"),
        (lambda: table([3], header="a"), TypeError, "row 0 is of type int"),
        (lambda: table([[1]], header="a", decimals=-1), ValueError, "decimals=-1"),
        (lambda: picture(small_figure(), " "), ValueError, "alt=' ' says nothing"),
        (lambda: picture("a.png", "A"), TypeError, "pass a matplotlib Figure"),
        (lambda: write_page("no/such/page.html", "t", []), FileNotFoundError, "make"),
    ],
)
def test_wrong_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()

"""The label store: every vote is kept, and one label comes of them."""

import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdal.labels import LabelStore, Vote

IDS, DOMAINS = ["a", "b", "c"], ["shop", "shop", "ward"]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "labels.sqlite"
    LabelStore.create(path, IDS, DOMAINS, classes=["cat", "dog"], about={"k": [1]})
    return path


@pytest.fixture
def store(path):
    with LabelStore(path) as store:
        yield store


def test_a_store_knows_its_samples_again(store):
    assert store.ids.tolist() == IDS
    assert store.domains.tolist() == DOMAINS
    assert store.classes == ["cat", "dog"]
    assert store.about == {"k": [1]}
    assert store.y_mask().tolist() == [None] * 3
    assert store.rounds() == []


def test_every_vote_is_kept_with_who_when_and_in_which_round(store):
    store.add_round([2, 0], ["cat", None], about={"budget": 2})
    store.add([Vote("c", "dog", "Ann", "2026-01-31T13:00:00+01:00")], source="f.csv")
    store.add([Vote("c", "cat", "Ann", "2026-02-01T12:00:00Z")])
    first, second = store.votes()
    assert first == {
        "id": "c",
        "domain": "ward",
        "label": "dog",
        "annotator": "Ann",
        "time": "2026-01-31T12:00:00.000000+00:00",
        "ground_truth": False,
        "round": 0,
        "source": "f.csv",
    }
    assert second["label"] == "cat"
    assert store.y_mask().tolist() == [None, None, "cat"]


def test_the_same_votes_again_are_not_new(store):
    votes = [Vote("a", "cat", "Ann"), Vote("a", "dog", "Bob"), Vote("b", None, "Ann")]
    assert store.add(votes) == 3
    assert store.add(votes) == 0
    assert store.add([Vote("a", "dog", "Ann"), *votes[1:]]) == 1  # a change of mind
    assert store.add([Vote("a", "cat", "Ann")]) == 1  # and back again
    assert len(store.votes()) == 5


def test_an_old_file_does_not_bring_back_an_old_label(store):
    old = Vote("a", "cat", "Ann", "2026-01-01T00:00:00Z")
    new = Vote("a", "dog", "Ann", "2026-01-02T00:00:00Z")
    assert [store.add([vote]) for vote in (new, old, old)] == [1, 1, 0]
    assert store.y_mask()[0] == "dog"


@pytest.mark.parametrize(
    ("votes", "majority", "latest"),
    [
        ("Ann cat, Bob cat", "cat", "cat"),
        ("Ann cat, Bob dog, Cy dog", "dog", "dog"),
        ("Ann dog, Bob cat, Cy dog", "dog", "dog"),
        ("Ann dog, Bob cat", None, "cat"),
        ("Ann cat, Bob skip", "cat", "cat"),
        ("Ann skip", None, None),
        ("Ann cat, Ann skip", None, None),
        ("Ann cat, Bob dog, Ann dog", "dog", "dog"),
        ("Ann cat!, Bob dog, Cy dog", "cat", "cat"),
    ],
)
def test_rules_by_hand(store, votes, majority, latest):
    for text in votes.split(", "):
        who, label = text.split()
        answer = None if label == "skip" else label.rstrip("!")
        store.add([Vote("a", answer, who, ground_truth=label.endswith("!"))])
    assert store.y_mask("majority")[0] == majority
    assert store.y_mask("latest")[0] == latest
    if majority == latest and "dog" not in votes:
        assert store.y_mask("raise")[0] == majority
    assert store.skipped()[0] == (latest is None)


def test_disagreement_is_named(store):
    store.add([Vote(id, "cat", "Ann") for id in IDS])
    store.add([Vote("a", "dog", "Bob"), Vote("c", "dog", "Bob")])
    with pytest.raises(
        ValueError, match="disagree on 2 samples: a, c; choose the rule"
    ):
        store.y_mask()
    assert store.y_mask("leave").tolist() == [None, "cat", None]
    assert store.answered().all() and not store.skipped().any()
    store.add([Vote(id, "dog", "Eve", ground_truth=True) for id in "ac"])
    assert store.y_mask().tolist() == ["dog", "cat", "dog"]


def test_ground_truth_can_be_withdrawn(store):
    time = "2026-01-01T00:00:00Z"
    store.add([Vote("a", "cat", "Bob", time)])
    store.add([Vote("a", "dog", "Ann", time, True)])
    assert store.y_mask()[0] == "dog"
    assert store.add([Vote("a", "dog", "Ann", time, False)]) == 1
    assert store.add([Vote("a", "dog", "Ann", time, False)]) == 0
    assert store.y_mask("leave")[0] is None


def test_a_new_store_does_not_meet_an_old_journal(tmp_path):
    (tmp_path / "labels.sqlite-journal").write_bytes(b"of another store")
    with pytest.raises(FileExistsError, match="-journal is there already"):
        LabelStore.create(tmp_path / "labels.sqlite", IDS, DOMAINS)


def test_of_two_who_make_a_store_one_is_told(tmp_path, monkeypatch):
    path, add = tmp_path / "labels.sqlite", LabelStore.add

    def meanwhile(self, votes, **options):
        monkeypatch.undo()
        LabelStore.create(path, ["first"], ["shop"])
        return add(self, votes, **options)

    monkeypatch.setattr(LabelStore, "add", meanwhile)
    with pytest.raises(FileExistsError, match="was made in between"):
        LabelStore.create(path, IDS, DOMAINS)
    with LabelStore(path) as store:
        assert store.ids.tolist() == ["first"]


LABELS = st.sampled_from(["cat", "dog", None])
VOTES = st.lists(st.tuples(st.sampled_from(IDS), LABELS, st.sampled_from("ABC")))


@given(VOTES)
def test_what_comes_out_is_what_annotators_said_last(tmp_path_factory, votes):
    path = tmp_path_factory.mktemp("store") / "labels.sqlite"
    LabelStore.create(path, IDS, DOMAINS)
    last = {}
    with LabelStore(path) as store:
        for id, label, who in votes:
            store.add([Vote(id, label, who)])
            last.setdefault(id, {}).pop(who, None)
            last[id][who] = label
        labels = store.y_mask("majority")
        skipped = store.skipped()
    for row, id in enumerate(IDS):
        said = [label for label in last.get(id, {}).values() if label is not None]
        counts = {label: said.count(label) for label in said}
        best = [k for k, v in counts.items() if v == max(counts.values())]
        assert labels[row] == (best[0] if len(best) == 1 else None)
        assert skipped[row] == (id in last and not said)


@pytest.mark.parametrize(
    ("vote", "message"),
    [
        (Vote("x", "cat"), "no sample with id 'x'"),
        (Vote("a", "cow"), "has the label 'cow', and classes are cat, dog"),
        (Vote("a", 3), "the label of 'a' is 3; pass a string"),
        (Vote("a", "=1+1"), "would run as a formula"),
        (Vote("a", " "), "pass a printable name"),
        (Vote("a", "cat", 5), "annotator=5"),
        (Vote("a", "cat", "Ann", "yesterday"), "time 'yesterday'; use ISO 8601"),
        (Vote("a", "cat", "Ann", "0001-01-01T00:00:00+05:00"), "use ISO 8601"),
        (
            Vote("a", "cat", "Ann", "2999-01-01T00:00:00"),
            "still to come; give the zone",
        ),
    ],
)
def test_a_wrong_vote_is_named_and_nothing_is_added(store, vote, message):
    with pytest.raises((ValueError, TypeError), match=message):
        store.add([Vote("b", "cat", "Ann"), vote])
    assert store.votes() == []


@pytest.mark.parametrize(
    ("ids", "settings", "message"),
    [
        (["a", "a", "b"], {}, "2 samples have the id 'a'"),
        (["a", "b", "../c"], {}, "an id is '../c', a path"),
        (["a", "b", "/etc/c"], {}, "a path"),
        (["a", "b", "=cmd()"], {}, "would run as a formula"),
        (["a", "b", "c\n"], {}, "pass a printable name"),
        (["a", "b", 3], {}, "an id is 3; pass a string"),
        (["a", "b"], {}, "there are 2 ids, 3 domains"),
        (IDS, {"classes": ["cat"]}, "two or more different names"),
        (IDS, {"classes": "cat"}, "pass a list of names"),
        (IDS, {"votes": [Vote("z", "cat")]}, "no sample with id 'z'"),
        (IDS, {"about": {"a": float("nan")}}, "not JSON compliant"),
    ],
)
def test_a_wrong_pool_is_named_and_no_file_is_made(tmp_path, ids, settings, message):
    with pytest.raises((ValueError, TypeError), match=message):
        LabelStore.create(tmp_path / "labels.sqlite", ids, DOMAINS, **settings)
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_not_written_over(path):
    with pytest.raises(FileExistsError, match="is there already"):
        LabelStore.create(path, IDS, DOMAINS)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        LabelStore(path.parent / "other.sqlite")


OPEN = """
import sys
from mdal.labels import LabelStore
try:
    LabelStore(sys.argv[1])
except BlockingIOError as error:
    print(error)
"""


def test_a_second_process_is_told_to_wait(store):
    store.add([Vote("a", "cat", "Ann")])
    command = [sys.executable, "-c", OPEN, str(store.path)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout.startswith("another process is using")
    store.close()
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout == ""
    with LabelStore(store.path) as again:
        assert again.y_mask().tolist() == ["cat", None, None]


def test_durability_is_asked_for(store):
    settings = {
        name: store._rows(f"PRAGMA {name}")[0][0]
        for name in ("journal_mode", "synchronous", "locking_mode", "trusted_schema")
    }
    assert settings == {
        "journal_mode": "delete",
        "synchronous": 3,  # EXTRA
        "locking_mode": "exclusive",
        "trusted_schema": 0,
    }


def test_a_full_disk_loses_nothing(store):
    store.add([Vote("a", "cat", "Ann")])
    ((pages,),) = store._rows("PRAGMA page_count")
    store._rows(f"PRAGMA max_page_count = {pages}")  # as on a disk that is full
    many = [Vote(id, "dog", f"somebody {n}") for n in range(2000) for id in IDS]
    with pytest.raises(OSError, match="the disk is full; nothing was written"):
        store.add(many)
    assert len(store.votes()) == 1
    store.check_integrity()
    store._rows("PRAGMA max_page_count = 100000")
    assert store.add(many) == 6000


def test_a_really_full_disk_loses_nothing(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "none", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted by this user")
    try:
        LabelStore.create(place / "labels.sqlite", IDS, DOMAINS)
        with LabelStore(place / "labels.sqlite") as store:
            store.add([Vote("a", "cat", "Ann")])
            many = [Vote(id, "dog", f"Bob {n}") for n in range(2000) for id in IDS]
            with pytest.raises(OSError, match=r"the disk is full|cannot be"):
                store.add(many)
            assert len(store.votes()) == 1
        with LabelStore(place / "labels.sqlite") as store:
            store.check_integrity()
            assert store.y_mask().tolist() == ["cat", None, None]
            assert store.add([Vote("b", "dog", "Ann")]) == 1
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_damaged_and_foreign_files_are_named(path, tmp_path):
    content = path.read_bytes()
    broken = bytearray(content)
    broken[4096:8192] = bytes(4096)
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE t (x)")
    for damaged in (content[:5000], bytes(broken), b"PK\x03\x04" * 500):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="no label store of this library, or dam"):
            LabelStore(path)
        assert path.read_bytes() == damaged
    with pytest.raises(ValueError, match="no label store of this library"):
        LabelStore(foreign)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("PRAGMA user_version = 2", "format 2 of a newer version of mdal"),
        ("CREATE TRIGGER t AFTER INSERT ON votes BEGIN DELETE FROM votes; END", "no l"),
        ("CREATE VIEW v AS SELECT * FROM votes", "no label store"),
        ("DELETE FROM meta", "no label store"),
        ("UPDATE meta SET value = '{'", "no label store"),
        ("UPDATE meta SET value = '[]'", "no label store"),
        ("UPDATE meta SET value = replace(hex(zeroblob(9999)), '0', '[')", "no label"),
        ("INSERT INTO rounds VALUES (0, '', '[]')", "no label store"),
    ],
)
def test_files_that_were_changed_are_refused(path, change, message):
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(ValueError, match=message):
        LabelStore(path)


def test_rounds_are_as_they_were_written(store):
    assert store.add_round(np.array([1, 2]), about={"budget": {"shop": 1}}) == 0
    assert store.add_round([0], ["dog"]) == 1
    first, second = store.rounds()
    assert (first.rows, first.predictions) == ([1, 2], [None, None])
    assert first.about == {"budget": {"shop": 1}}
    assert (second.number, second.rows, second.predictions) == (1, [0], ["dog"])
    for wrong in ([0, 0], [3], [-1]):
        with pytest.raises(ValueError, match="pass different row numbers below 3"):
            store.add_round(wrong)
    assert len(store.rounds()) == 2


def test_votes_with_the_same_time_are_each_known(store):
    time = "2026-01-02T00:00:00Z"
    votes = [Vote("b", "cat", "Ann", time), Vote("b", "dog", "Ann", time)]
    assert store.add(votes) == 2
    assert store.add(votes) == store.add(votes[:1]) == 0


def test_what_was_added_under_a_digest_is_not_added_again(store):
    assert store.add([Vote("b", "cat", "Ann")], digest="one") == 1
    assert store.add([Vote("b", "dog", "Ann")], digest="two") == 1
    assert store.add([Vote("b", "cat", "Ann")], digest="one") == 0
    assert store.y_mask()[1] == "dog"


def test_an_import_that_fails_is_not_remembered(store):
    with pytest.raises(ValueError, match="no sample with id"):
        store.add([Vote("nobody", "cat", "Ann")], digest="one")
    assert store.add([Vote("b", "cat", "Ann")], digest="one") == 1


@pytest.mark.parametrize("name", ["Ann\n", "x\0", "a" * 201, "\ud800"])
def test_annotators_have_names_that_can_be_shown(store, name):
    with pytest.raises(ValueError, match="is not printable, or longer"):
        store.add([Vote("b", "cat", name)])

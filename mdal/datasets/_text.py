"""Sentences rated for sentiment, from four kinds of text."""

import io
import tarfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize

from .._validation import check_count, check_option
from ._bunch import SUBSETS, dataset, generator, wanted
from ._files import content, data_folder, located, missing, verified
from ._split import check_share, held_out

# By domain, the file and its SHA-256, unzipped.
FILES = {
    "amazon": (
        "amazonReviewSnippets_GroundTruth.txt",
        "11a9807a0974a2506a2d3b4851eaf69b3d6d20688ce4923adda2312a4f6dd6c2",
    ),
    "editorials": (
        "nytEditorialSnippets_GroundTruth.txt",
        "7d8fbcce7dde5d716da53e78f4ef4be6b706e9ef1e1d51887e6d0ad4b69cc27e",
    ),
    "films": (
        "movieReviewSnippets_GroundTruth.txt",
        "c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350",
    ),
    "tweets": (
        "tweets_GroundTruth.txt",
        "dfbe7102e2f92579ed8b19df9a3822491880697c67adf712fb66e520cc05102f",
    ),
}
_ARCHIVES = ("vaderSentiment-3.3.2.tar.gz", "vadersentiment-3.3.2.tar.gz")
_INNER = "additional_resources/hutto_ICWSM_2014.tar.gz"

# What `n_features` is if it is not given; None is all words and pairs of words.
_N_FEATURES = {"text": None, "tfidf": None, "hashed": 2**14, "lsa": 100}

_DESCR = """VADER's sentences: negative or positive, in four domains.

Sentences of Amazon reviews, newspaper editorials, film reviews and tweets, each rated
by twenty people. The class is the sign of the mean rating; sentences with mean 0 are
left out. From the source package of vaderSentiment 3.3.2 (MIT licence).

Hutto and Gilbert, "VADER: A Parsimonious Rule-based Model for Sentiment Analysis of
Social Media Text", ICWSM 2014.
"""


def fetch_vader4(
    *,
    data_home=None,
    features="tfidf",
    n_features=None,
    test_size=0.2,
    subset="all",
    random_state=0,
    return_X_y_domains=False,
):
    """Return sentences of four kinds of text, negative or positive.

    Amazon reviews, newspaper editorials, film reviews and tweets: 23,320 sentences.
    The source package of vaderSentiment has them; this gets it::

        pip download --no-deps --no-binary :all: vaderSentiment==3.3.2 -d DATA_HOME

    Parameters
    ----------
    data_home : path, default=None
        Folder of that package as it was downloaded, or of its four files
        ``*_GroundTruth.txt``, gzipped or not, or with a folder ``vader4`` of either;
        None is the folder ``mdal`` in scikit-learn's data folder. The texts are checked
        by their SHA-256.
    features : {"tfidf", "hashed", "lsa", "text"}, default="tfidf"
        TF-IDF of words and pairs of words (CSR); hashed counts of them (CSR); the
        TF-IDF's leading singular directions, each row of length 1 (dense); or the
        sentences themselves (an object array). What is fitted is fitted to the training
        sentences alone; the row of a sentence without any known word, such as "!", is
        0. Numbers are float32.
    n_features : int, default=None
        Number of columns; None is all words for "tfidf", 16,384 for "hashed" and 100
        for "lsa".
    test_size : float, default=0.2
        Share of each domain's documents that is for tests, stratified by the class that
        most of their sentences have. Tweets and sentences on films are their own
        documents.
    subset : {"all", "train", "test"}, default="all"
        Which rows to return.
    random_state : int, RandomState or None, default=0
        Seed of the split, and of "lsa".
    return_X_y_domains : bool, default=False
        Whether to return ``(X, y, domains)`` alone.

    Returns
    -------
    Bunch
        See :mod:`mdal.datasets`. ``groups`` has the document of each sentence.

    Examples
    --------
    >>> from mdal.datasets import fetch_vader4
    >>> data = fetch_vader4(data_home="data", features="lsa")  # doctest: +SKIP
    >>> data.names.tolist()  # doctest: +SKIP
    ['amazon', 'editorials', 'films', 'tweets']
    >>> fetch_vader4(features="words")
    Traceback (most recent call last):
    ...
    ValueError: features='words' is unknown; choose one of hashed, lsa, text, tfidf
    """
    check_option(subset, "subset", SUBSETS)
    n_features = _check_columns(features, n_features)
    test_size, rng = check_share(test_size), generator(random_state)
    texts, y, codes, groups = _sentences(_contents(data_folder(data_home)))
    test = held_out(codes, y, groups, test_size, rng)
    data = dataset(
        _features(texts, ~test, features, n_features, int(rng.integers(2**31))),
        y,
        codes,
        names=np.array(list(FILES)),
        classes=np.array(["negative", "positive"]),
        test=test,
        groups=groups,
        DESCR=_DESCR,
    )
    return wanted(data, subset, return_X_y_domains)


def _check_columns(features: str, n_features) -> int | None:
    check_option(features, "features", _N_FEATURES)
    if n_features is None:
        return _N_FEATURES[features]
    if features == "text":
        raise ValueError(
            f"n_features={n_features!r} with features='text', which has no columns; "
            "leave it out, or choose tfidf, hashed or lsa"
        )
    return check_count(n_features, "n_features", minimum=1)


def _contents(home: Path) -> list[bytes]:
    """Return what the four files hold, from wherever they are."""
    folders = (home, home / "vader4")
    files = [file for file, _ in FILES.values()]
    paths = [located(folders, (file, f"{file}.gz")) for file in files]
    archive = located(folders, _ARCHIVES)
    if None not in paths:
        found = [(path, content(path)) for path in paths]
    elif archive is not None:
        found = [(f"{file} in {archive}", data) for file, data in _unpacked(archive)]
    else:
        raise missing(
            "VADER's data",
            [file for file, path in zip(files, paths, strict=True) if path is None],
            home,
            "get them with: pip download --no-deps --no-binary :all: "
            f'vaderSentiment==3.3.2 -d "{home}"',
        )
    return [
        verified(data, sha256, origin)
        for (origin, data), (_, sha256) in zip(found, FILES.values(), strict=True)
    ]


def _unpacked(archive: Path):
    """Yield the name and content of each file, out of the archive in the archive."""
    folder = _ARCHIVES[0].removesuffix(".tar.gz")
    try:
        with tarfile.open(archive) as outer:
            packed = outer.extractfile(f"{folder}/{_INNER}").read()
        with tarfile.open(fileobj=io.BytesIO(packed)) as inner:
            for file, _ in FILES.values():
                yield file, inner.extractfile(f"hutto_ICWSM_2014/{file}").read()
    except (EOFError, KeyError, OSError, tarfile.TarError) as error:
        raise ValueError(
            f"{archive} does not hold the four files ({error}); it is damaged or not "
            "vaderSentiment's source package: get it again"
        ) from error


def _sentences(contents: list[bytes]):
    """Return texts, classes, domains and documents of the sentences with a class."""
    texts, ratings, codes, groups = [], [], [], []
    for code, (domain, data) in enumerate(zip(FILES, contents, strict=True)):
        for line in data.decode("utf-8").splitlines():
            identifier, rating, text = line.split("\t", 2)
            texts.append(text)
            ratings.append(float(rating))
            codes.append(code)
            groups.append(f"{domain}/{identifier.partition('_')[0]}")
    ratings = np.array(ratings)
    kept = ratings != 0
    texts = np.array(texts, dtype=object)[kept]
    y = (ratings[kept] > 0).astype(np.int64)
    return texts, y, np.array(codes)[kept], np.array(groups)[kept]


def _features(texts: NDArray, train: NDArray, features: str, n_features, seed: int):
    if features == "text":
        return texts
    settings = {"ngram_range": (1, 2), "dtype": np.float32}
    if features == "hashed":
        return HashingVectorizer(n_features=n_features, **settings).transform(texts)
    # A word of one sentence says nothing about another.
    settings |= {"min_df": 2, "sublinear_tf": True}
    if features == "tfidf":
        words = TfidfVectorizer(max_features=n_features, **settings)
        return words.fit(texts[train]).transform(texts)
    words = TfidfVectorizer(**settings).fit(texts[train])
    n_words = len(words.vocabulary_)
    if n_features > n_words:
        raise ValueError(
            f"n_features={n_features} exceeds the {n_words} words of the training "
            f"sentences; ask for at most {n_words}"
        )
    counts = words.transform(texts)
    directions = TruncatedSVD(n_features, random_state=seed).fit(counts[train])
    return normalize(directions.transform(counts)).astype(np.float32, copy=False)

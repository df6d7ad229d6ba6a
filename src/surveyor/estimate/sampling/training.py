"""Train a topic classifier from labelled pages, and measure its quality by cross-validation.

Each class is split at random into folds; terms and weights are learnt from the other folds, and the held-out fold is
predicted. The predictions of all folds form one confusion matrix. The returned model is trained on all pages. The same
pages and `rng` give the same model.

**Labelled pages** come from surveys, files, folders and lists. A *location* is a folder of HTML and text files, one
such file, the URL of a page that a survey has fetched, or a list of these, one per line (`#` starts a comment). A text
file is a list if each of its lines is a URL or names a file.

Labels come from locations and rules (`positive`, `negative`), from one rule that separates both classes, or from a
table of two columns, page and label (`1`, `yes`, `on`, `true` or `0`, `no`, `off`, `false`), separated by commas or
tabs, with or without a header. A label of a named page overrides all rules.
"""

from __future__ import annotations

import csv
import importlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from surveyor.arrays import BoolArray, IdArray, IntArray, read_only
from surveyor.crawler.topics.classifier import LEAF, Classifier, ConfusionMatrix, Kind, Tree, count_terms
from surveyor.crawler.topics.page_content import PageContent, SampledPage
from surveyor.crawler.topics.rules import RULES, Topic
from surveyor.errors import InputError, MissingExtra, UsageError
from surveyor.estimate.sampling.sample_pages import archived_pages
from surveyor.fetch.bodies import MAX_DECODED
from surveyor.stopping import ProgressCallback, silent
from surveyor.web.html import MOST_TEXT, read_page
from surveyor.web.urls import normalise

if TYPE_CHECKING:
    from surveyor.store.directory import SurveyFolder

MAX_TERMS = 20_000
MAX_PAGES = 5_000  # of each class; more are sampled
RARE_TERMS_UP_TO = 50  # pages: in a larger training set, a term must occur in two pages
FOLDS = 5
MIN_PAGES = 2  # of each class
INVERSE_REGULARISATION = 10.0  # C of the logistic regression
PRUNING = 0.005  # minimum entropy, in bits, that a split must save

HTML_SUFFIXES, TEXT_SUFFIXES = (".html", ".htm", ".xhtml"), (".txt", ".text", ".md")
SUFFIXES = ", ".join(HTML_SUFFIXES + TEXT_SUFFIXES)
SNIFFED = 4096  # bytes that show whether a file is text
YES, NO = ("1", "yes", "y", "on", "true", "positive"), ("0", "no", "n", "off", "false", "negative")
FETCH_HINT = "fetch it first: surveyor crawl --seeds LIST --depth 0 --out examples.survey, and give that survey"
_HTML = re.compile(
    rb"(?s)\s*(?:\xef\xbb\xbf)?\s*(?:<!--.*?-->\s*)*<(?:!doctype|html|head|body|title|meta|p|h[1-6]|div)\b", re.I
)
_URL = re.compile(r"https?://\S+", re.IGNORECASE)
LabelledPage = tuple[SampledPage, bool | None]


# --- training ---


class TrainingSet:
    """Labelled pages as term counts, without duplicates; at most `max_pages` of each class, sampled uniformly."""

    def __init__(self, rng: int = 7, max_pages: int = MAX_PAGES) -> None:
        self.distinct = {True: 0, False: 0}  # pages with distinct texts
        self.duplicates = self.empty = 0
        self.unreadable: list[str] = []  # pages that are not archived, and files that are no text
        self._random, self._max_pages = np.random.default_rng(rng), max_pages
        self._term_ids: dict[str, int] = {}
        self._pages: dict[bool, list[tuple[IdArray, IdArray]]] = {True: [], False: []}
        self._hashes: set[tuple[bool, int]] = set()

    def add(self, page: SampledPage, *, label: bool) -> None:
        """Add a page, unless it is empty or a duplicate; beyond the maximum, it may replace a random page."""
        if not page.is_readable:
            self.unreadable.append(page.url)
            return
        counts = count_terms(page)
        key = label, hash(frozenset(counts.items()))
        if not counts or key in self._hashes:
            self.empty += not counts
            self.duplicates += bool(counts)
            return
        self._hashes.add(key)
        pages = self._pages[label]
        self.distinct[label] += 1
        is_full = len(pages) >= self._max_pages
        index = int(self._random.integers(self.distinct[label])) if is_full else len(pages)
        if index < self._max_pages:
            ids = [self._term_ids.setdefault(term, len(self._term_ids)) for term in counts]
            pages[index : index + 1] = [(np.array(ids, np.int32), np.array([*counts.values()], np.int32))]

    @property
    def labels(self) -> BoolArray:
        """The labels of the pages, positive ones first."""
        return np.repeat([True, False], [len(self._pages[True]), len(self._pages[False])])

    @property
    def terms(self) -> list[str]:
        """All terms by id."""
        return list(self._term_ids)

    def matrix(self, chosen: IntArray) -> Any:
        """Return the term counts of some pages as a sparse matrix with one row per page."""
        pages = self._pages[True] + self._pages[False]
        rows = [pages[row] for row in chosen.tolist()]
        ends = np.cumsum([0, *(ids.size for ids, _ in rows)])
        ids, counts = (np.concatenate([row[column] for row in rows]) for column in (0, 1))
        shape = len(rows), len(self._term_ids)
        matrix = _import("scipy.sparse").csr_matrix((counts.astype(np.float64), ids, ends), shape=shape)
        matrix.sort_indices()
        return matrix


def train(
    positive: Iterable[SampledPage],
    negative: Iterable[SampledPage],
    *,
    kind: Kind = "linear",
    rng: int = 7,
    progress: ProgressCallback = silent,
) -> Classifier:
    """Train a classifier on pages on topic and off topic; it carries its cross-validated quality."""
    training_set = TrainingSet(rng)
    for pages, label in ((positive, True), (negative, False)):
        for page in pages:
            training_set.add(page, label=label)
    return train_on(training_set, kind=kind, rng=rng, progress=progress)


def train_on(
    training_set: TrainingSet, *, kind: Kind = "linear", rng: int = 7, progress: ProgressCallback = silent
) -> Classifier:
    """Train a classifier on a training set."""
    if kind not in get_args(Kind):
        raise UsageError(
            f"kind must be {' or '.join(get_args(Kind))}, got {kind!r}", hint="linear is logistic regression"
        )
    labels = training_set.labels
    positive, negative = int(labels.sum()), int((~labels).sum())
    _check_classes(positive, negative)
    folds = min(FOLDS, positive, negative)
    random, fold_of = np.random.default_rng(rng), np.empty(labels.size, np.int64)
    for label in (True, False):
        own = np.flatnonzero(labels == label)
        fold_of[random.permutation(own)] = np.arange(own.size) % folds
    predictions = np.zeros(labels.size, np.bool_)
    for fold in range(folds):
        progress("training", fold, folds + 1, "fold")
        model = _fit(training_set, np.flatnonzero(fold_of != fold), kind, rng)
        predictions[fold_of == fold] = predict(model, training_set, np.flatnonzero(fold_of == fold))
    progress("training", folds, folds + 1, "fold")
    trained = {
        "positive": positive,
        "negative": negative,
        "duplicates": training_set.duplicates,
        "empty": training_set.empty,
        "distinct_positive": training_set.distinct[True],
        "distinct_negative": training_set.distinct[False],
        "rng": rng,
    }
    quality = ConfusionMatrix.of(labels.tolist(), predictions.tolist(), folds)
    return replace(_fit(training_set, np.arange(labels.size), kind, rng), trained=trained, quality=quality)


def predict(model: Classifier, training_set: TrainingSet, chosen: IntArray) -> BoolArray:
    """Predict some pages one by one, with the code that uses the model later."""
    terms, matrix = training_set.terms, training_set.matrix(chosen)
    predictions = []
    for first, last in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        names = (terms[term] for term in matrix.indices[first:last].tolist())
        counts = dict(zip(names, matrix.data[first:last].tolist(), strict=True))
        predictions.append(model.score_counts(counts) > model.threshold)
    return np.array(predictions, np.bool_)


def _check_classes(positive: int, negative: int) -> None:
    if min(positive, negative) < MIN_PAGES:
        raise UsageError(
            f"training needs at least {MIN_PAGES} pages on topic and {MIN_PAGES} off topic with distinct texts, got"
            f" {positive} and {negative}",
            hint="add labelled pages; some dozens of each are better",
        )


def _fit(training_set: TrainingSet, chosen: IntArray, kind: Kind, rng: int) -> Classifier:
    """Fit terms and weights to some pages."""
    counts, labels = training_set.matrix(chosen), training_set.labels[chosen]
    page_counts: IntArray = np.bincount(counts.indices, minlength=counts.shape[1])
    order = np.argsort(-page_counts, kind="stable")[:MAX_TERMS]  # ties in order of first occurrence
    kept = np.sort(order[page_counts[order] >= (2 if chosen.size > RARE_TERMS_UP_TO else 1)])
    terms = training_set.terms
    idf = 1 + np.log((1 + chosen.size) / (1 + page_counts[kept]))
    unfitted = Classifier(kind, tuple(terms[term] for term in kept.tolist()), read_only(idf))
    matrix = counts[:, kept]
    matrix.data = (1 + np.log(matrix.data)) * idf[matrix.indices]
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1)).A1
    matrix.data /= np.repeat(np.maximum(lengths, 1e-300), np.diff(matrix.indptr))
    if kind == "linear":
        regression = _import("sklearn.linear_model").LogisticRegression(
            C=INVERSE_REGULARISATION, class_weight="balanced", max_iter=1000, random_state=rng % 2**32
        )
        regression.fit(matrix, labels)
        weights = read_only(regression.coef_[0].copy())
        return replace(unfitted, weights=weights, intercept=float(regression.intercept_[0]))
    estimator = _import("sklearn.tree").DecisionTreeClassifier(
        criterion="entropy", ccp_alpha=PRUNING, class_weight="balanced", random_state=rng % 2**32
    )
    estimator.fit(matrix, labels)
    fitted = estimator.tree_
    class_weights = fitted.value[:, 0, :]
    tree = Tree(
        np.where(fitted.children_left < 0, LEAF, fitted.feature).astype(np.int64),
        fitted.threshold.copy(),
        fitted.children_left.copy(),
        fitted.children_right.copy(),
        class_weights[:, 1] / class_weights.sum(axis=1),
    )
    return replace(unfitted, tree=tree, threshold=0.5)


def check_installed() -> None:
    """Raise if scikit-learn is not installed."""
    _import("sklearn")


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtra("training a topic", "scikit-learn", "topics") from error


# --- labelled pages ---


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of pages by URL, file or rule."""

    urls: dict[str, bool] = field(default_factory=dict)  # of pages of a survey
    files: dict[Path, bool] = field(default_factory=dict)
    rules: list[tuple[Topic, bool]] = field(default_factory=list)  # of other pages; the first match is used
    default: bool | None = None  # of pages without a label

    @classmethod
    def of(
        cls, positive: Sequence[str] = (), negative: Sequence[str] = (), label: str = "", *, default: bool | None = None
    ) -> Labels:
        """Collect labels from locations and rules, and from a rule or table that separates both classes."""
        labels = cls(default=default)
        for locations, is_positive in ((positive, True), (negative, False)):
            for location in locations:
                if _is_rule(location):
                    labels.rules.append((Topic.parse(location), is_positive))
                    continue
                for page in expand_location(location):
                    labels._add(page, is_positive=is_positive)
        if label and Path(label).is_file():
            for page, is_positive in _read_table(Path(label)):
                labels._add(page, is_positive=is_positive)
        elif label:
            labels.rules.extend([(Topic.parse(label), True), (Topic.parse("everything"), False)])
        return labels

    def _add(self, page: str | Path, *, is_positive: bool) -> None:
        label = is_positive
        known = self.files.setdefault(page, label) if isinstance(page, Path) else self.urls.setdefault(page, label)
        if known != label:
            raise UsageError(f"{page} is labelled both on topic and off topic", hint="remove one of the labels")

    def label(self, page: SampledPage) -> bool | None:
        """Return the label of a page."""
        label = self.files.get(Path(page.url)) if "://" not in page.url else self.urls.get(page.url)
        return label if label is not None else next((on for rule, on in self.rules if rule(page)), self.default)


def _is_rule(location: str) -> bool:
    """Return whether a location is a rule, such as words:solar, and not a path or URL."""
    kind, colon, rest = location.partition(":")
    return bool(colon) and kind in RULES and not rest.startswith("//")


def labelled_pages(
    labels: Labels, folder: SurveyFolder | None = None, locations: Sequence[str] = ()
) -> Iterator[LabelledPage]:
    """Yield pages and their labels: labelled files, the files at `locations`, and the pages of a survey."""
    if labels.urls and folder is None:
        raise UsageError(f"{min(labels.urls)} needs a survey that has fetched it", hint=FETCH_HINT)
    for path in dict.fromkeys([*_files(locations), *labels.files]):
        page = SampledPage(str(path), load=partial(_load_file, path))
        yield page, labels.label(page)
    for page in () if folder is None else archived_pages(folder):
        yield page, labels.label(page)


def _load_file(path: Path) -> PageContent:
    body = _read_bytes(path)
    if not is_text(body):
        return PageContent(is_readable=False)
    is_html = path.suffix.lower() in HTML_SUFFIXES or (not path.suffix and _HTML.match(body) is not None)
    page = read_page(body, "", content_type="text/html" if is_html else "text/plain")
    return PageContent(page.title, page.language, page.text[:MOST_TEXT])


def is_text(body: bytes) -> bool:
    """Return whether bytes may be text: binary files have zero bytes, UTF-16 has them after a byte order mark."""
    return b"\0" not in body[:SNIFFED] or body.startswith((b"\xff\xfe", b"\xfe\xff"))


def _files(locations: Sequence[str]) -> Iterator[Path]:
    for location in locations:
        for page in expand_location(location):
            if not isinstance(page, Path):
                raise UsageError(f"{page} needs a survey that has fetched it", hint=FETCH_HINT)
            yield page


def expand_location(location: str, base: Path | None = None) -> Iterator[str | Path]:
    """Yield the files and URLs of a location; names in a list are relative to its folder, `base`."""
    if "://" in location:
        url = normalise(location)
        if url is None:
            raise UsageError(f"{location!r} is not a valid URL", hint="for example https://example.org/")
        yield url
        return
    path = Path(location) if base is None else base / location
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if _may_be_page(file) and file.is_file())
        if not files:
            raise InputError(f"the folder {path} contains no pages", hint=f"pages end in {SUFFIXES}, or have no suffix")
        yield from files
    elif not path.is_file():
        raise InputError(f"{path} is neither a file nor a folder", hint="give files, folders, lists or URLs of pages")
    elif base is not None or path.suffix.lower() in HTML_SUFFIXES or not (lines := _read_list(path)):
        yield path
    else:
        for line in lines:
            yield from expand_location(line, path.parent)


def _may_be_page(path: Path) -> bool:
    """Return whether the name of a file in a folder is that of a page; without a suffix, its content decides."""
    suffix = path.suffix.lower()
    return suffix in HTML_SUFFIXES + TEXT_SUFFIXES or (not suffix and not path.name.startswith("."))


def _read_list(path: Path) -> list[str]:
    """Return the entries of a list; empty if the file is an ordinary text."""
    lines = [line.strip() for line in _read_text(path).splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    return lines if all(_URL.fullmatch(line) or _exists(path.parent / line) for line in lines) else []


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # the name is too long
        return False


def _read_table(path: Path) -> Iterator[tuple[str | Path, bool]]:
    text = _read_text(path)
    separator = "\t" if "\t" in text.partition("\n")[0] else ","
    for number, row in enumerate(csv.reader(text.splitlines(), delimiter=separator), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith("#"):
            continue
        label = cells[1].lower() if len(cells) > 1 else ""
        if label not in YES + NO:
            if number == 1 and label and "://" not in cells[0]:  # header
                continue
            raise InputError(
                f"{path}:{number}: {label[:40]!r} is not a label", hint=f"labels are {', '.join(YES + NO)}"
            )
        for page in expand_location(cells[0], path.parent):
            yield page, label in YES


def _read_text(path: Path) -> str:
    return _read_bytes(path).decode("utf-8-sig", "replace")


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_DECODED)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", hint="check the path and permissions") from error

"""Search an index: which pages match, their scores, and what each score consists of."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IntArray
from surveyor.errors import SurveyError
from surveyor.search.generation import Generation
from surveyor.search.query import Terms
from surveyor.search.ranking import combined, first_of_groups, idf, saturated
from surveyor.search.segment import FIELDS, Segment, Texts, Values, mean_length
from surveyor.search.state import Indexed
from surveyor.search.words import LONGEST, STEMMERS, stem, tokens
from surveyor.stopping import ProgressCallback, silent
from surveyor.store.signed_files import REMOVE

SHORTEST = 4  # letters of a word that may be misspelt
MOST_LETTERS = 100  # tried in the place of one


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a query in the index."""

    word: str
    stems: tuple[bytes, ...]
    frequency: FloatArray  # weighted, by row
    pages: int  # that have it
    idf: float
    instead_of: str = ""  # the word as it was asked for, if no page has it


@dataclass(frozen=True, slots=True)
class Matches:
    """The pages that match a query."""

    words: tuple[Word, ...]
    rows: IntArray
    scores: FloatArray  # by words
    is_complete: bool  # they have all words


@dataclass(frozen=True, slots=True)
class Hits:
    """The first results of a query."""

    rows: list[int]
    scores: list[float]
    words: list[float]  # relative to the best match
    importance: list[float]  # relative to the most important match
    copies: list[int]  # matching pages with nearly the same text
    total: int  # of matching pages, without copies


class Searcher:
    """An index, open for searching."""

    def __init__(self, generation: Generation, progress: ProgressCallback = silent) -> None:
        self.generation = generation
        with self._sound():
            progress("opening the index", 0, 0, "")
            self.segments = [Segment(path) for path in generation.segments]
            self.indexed = Indexed.read(generation.state)
            self._rows = [np.full(one.size, -1, np.int64) for one in self.segments]
            self.lengths = np.zeros(self.pages)
            languages = np.zeros(self.pages, "S3")
            for number, segment in enumerate(self.segments):
                own = np.flatnonzero(self.indexed.segment == number)
                docs = self.indexed.doc[own]
                self._rows[number][docs] = own
                self.lengths[own], languages[own] = segment.length[docs], segment.language[docs]
            self.languages = languages
            self.mean_length = mean_length(self.lengths)
            self.relative = self.lengths / self.mean_length

    @property
    def pages(self) -> int:
        """Number of pages."""
        return int(self.indexed.page.size)

    @cached_property
    def stemmed(self) -> tuple[str, ...]:
        """Languages of the pages whose words are stemmed."""
        found = (bytes(one).decode() for one in np.unique(self.languages))
        return tuple(one for one in found if one in STEMMERS)

    def match(self, terms: Terms, chosen: BoolArray | None = None, language: str = "") -> Matches:
        """Return the pages that match; `chosen` are those that filters select."""
        with self._sound():
            allowed = np.ones(self.pages, np.bool_) if chosen is None else chosen.copy()
            words = tuple(self._word(word, language, allowed) for word in terms.words)
            instead = {one.instead_of: one.word for one in words if one.instead_of}
            for phrase in terms.phrases:
                allowed &= self._has_phrase([instead.get(word, word) for word in phrase], language)
            for phrase in terms.excluded:
                if len(phrase) == 1:
                    allowed &= self._frequency(self._stems(phrase[0], language)) == 0
                else:
                    allowed &= ~self._has_phrase(phrase, language)
            having = np.zeros(self.pages, np.int64)
            for word in words:
                having += word.frequency > 0
            rows = np.flatnonzero(allowed & (having == len(words)))
            is_complete = bool(rows.size)
            if not is_complete:
                rows = np.flatnonzero(allowed & (having > 0))
            scores = np.zeros(rows.size)
            for word in words:
                scores += word.idf * saturated(word.frequency[rows], self.relative[rows])
            return Matches(words, rows, scores, is_complete)

    def best(self, found: Matches, importance: FloatArray, least: float, weight: float, count: int) -> Hits:
        """Return the first results of matching pages; `importance` is by row."""
        ordered = combined(found.rows, found.scores, importance[found.rows], weight, least)
        is_first, copies = first_of_groups(ordered.rows, np.asarray(self.indexed.group, np.int64))
        at = np.flatnonzero(is_first)
        first = at[:count]
        return Hits(
            ordered.rows[first].tolist(),
            ordered.scores[first].tolist(),
            ordered.words[first].tolist(),
            ordered.importance[first].tolist(),
            copies[first].tolist(),
            at.size,
        )

    def texts(self, row: int) -> Texts:
        """Return the texts of a page."""
        with self._sound():
            return self.segments[int(self.indexed.segment[row])].texts(self.indexed.doc[row])

    def frequencies(self, row: int, word: Word) -> dict[str, int]:
        """Return how often each field of a page has a word."""
        segment, doc = self.segments[int(self.indexed.segment[row])], int(self.indexed.doc[row])
        counts = np.zeros(len(FIELDS), np.int64)
        for term in segment.find(word.stems):
            counts += np.bincount(segment.places(term, doc) & 7, minlength=len(FIELDS))
        return {name: count for name, count in zip(FIELDS, counts.tolist(), strict=True) if count}

    def _stems(self, word: str, language: str) -> tuple[bytes, ...]:
        """Return the forms of a folded word in the index."""
        if language:
            return (stem(word, language),)
        return tuple(dict.fromkeys([stem(word, ""), *(stem(word, one) for one in self.stemmed)]))

    def _frequency(self, stems: Sequence[bytes]) -> FloatArray:
        """Return the weighted frequency of a word in each page."""
        found = np.zeros(self.pages)
        for segment, rows in zip(self.segments, self._rows, strict=True):
            for term in segment.find(stems):
                docs, weights = segment.postings(term)
                own = rows[docs]
                live = own >= 0
                found[own[live]] += weights[live]
        return found

    def _word(self, word: str, language: str, selected: BoolArray) -> Word:
        """Return a word; if none of the selected pages has it, one that they have and that differs little."""
        stems = self._stems(word, language)
        frequency = self._frequency(stems)
        instead_of = ""
        if not frequency[selected].any():
            near = self._nearest(word, language, selected)
            if near is not None:
                instead_of, (word, stems, frequency) = word, near
        having = int(np.count_nonzero(frequency))
        return Word(word, stems, frequency, having, idf(self.pages, having), instead_of)

    def _nearest(
        self, word: str, language: str, selected: BoolArray
    ) -> tuple[str, tuple[bytes, ...], FloatArray] | None:
        """Return the word of most of the selected pages that one edit turns a word into, as a page has it."""
        if len(word) < SHORTEST or not word.isalpha():
            return None
        forms = [form.decode("utf-8", "ignore") for form in self._stems(word, language)]
        asked = sorted({one for form in forms for one in _edits(form, self._letters)})
        counts: dict[bytes, int] = {}
        wanted = np.array([one.encode()[:LONGEST] for one in asked], f"S{LONGEST}")
        for segment, rows in zip(self.segments, self._rows, strict=True):
            if not segment.terms.size:
                continue
            at = np.minimum(np.searchsorted(segment.terms, wanted), segment.terms.size - 1)
            for term in np.unique(at[segment.terms[at] == wanted]).tolist():
                name = bytes(segment.terms[term])
                own = rows[segment.postings(term)[0]]
                counts[name] = counts.get(name, 0) + int(selected[own[own >= 0]].sum())
        alive = {name: count for name, count in counts.items() if count}
        if not alive:
            return None
        best = min(alive, key=lambda name: (-alive[name], name))
        frequency = self._frequency((best,))
        texts = self.texts(int(np.flatnonzero((frequency > 0) & selected)[0]))
        parts = (part for field in texts.fields() for part in field)
        shown = next(
            (part[one.start : one.end] for part in parts for one in tokens(part, texts.language) if one.word == best),
            best.decode("utf-8", "replace"),
        )
        return shown.lower(), (best,), frequency

    @cached_property
    def _letters(self) -> str:
        """The most frequent letters of the words of the index."""
        counts: dict[str, int] = {}
        for segment in self.segments:
            data = b"".join(segment.terms[:: max(1, segment.terms.size // 20_000)].tolist())
            for letter in data.decode("utf-8", "ignore"):
                counts[letter] = counts.get(letter, 0) + 1
        return "".join(sorted(filter(str.isalpha, counts), key=lambda letter: (-counts[letter], letter))[:MOST_LETTERS])

    def _has_phrase(self, phrase: Sequence[str], language: str) -> BoolArray:
        """Return which pages have words next to each other in one text."""
        stems = [self._stems(word, language) for word in phrase]
        found = np.zeros(self.pages, np.bool_)
        for segment, rows in zip(self.segments, self._rows, strict=True):
            starts: Values | None = None
            for offset, forms in enumerate(stems):
                parts = [segment.occurrences(term) for term in segment.find(forms)]
                keys = [(docs.astype(np.int64) << 32) + places + 8 * (len(stems) - offset) for docs, places in parts]
                own = np.unique(np.concatenate([np.empty(0, np.int64), *keys]))
                starts = own if starts is None else np.intersect1d(starts, own, assume_unique=True)
            assert starts is not None  # noqa: S101
            own_rows = rows[starts >> 32]
            found[own_rows[own_rows >= 0]] = True
        return found

    @contextmanager
    def _sound(self) -> Iterator[None]:
        """Report files that are not what was written as damage."""
        try:
            yield
        except (OSError, ValueError, IndexError, TypeError, zlib.error) as error:
            raise SurveyError(f"{self.generation.place} is damaged ({error})", hint=REMOVE) from error


def _edits(word: str, letters: str) -> Iterator[str]:
    """Yield the words that one inserted, left out, replaced or swapped letter makes of a word."""
    cuts = [(word[:at], word[at:]) for at in range(min(len(word), LONGEST) + 1)]
    for before, after in cuts:
        for letter in letters:
            yield before + letter + after
            if after:
                yield before + letter + after[1:]
        if after:
            yield before + after[1:]
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]

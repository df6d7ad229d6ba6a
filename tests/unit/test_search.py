"""Search of a survey: its order equals exhaustive scoring by a slow oracle, however the index was built."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("snowballstemmer")
pytest.importorskip("resiliparse")

import surveyor as sv
from search_surveys import HOME, Page, Site, counts_of, oracle, random_pages, scores_of
from surveyor.search import index, search
from surveyor.search.query import Query, parse
from surveyor.search.result import SearchResult
from surveyor.search.words import STEMMERS, fold, pairs, stem, words
from surveyor.survey import texts

pytestmark = pytest.mark.compiled
RIVER = Page(
    "The river",
    "Every 1 river runs to the sea, and every 2 boat follows the river to the harbour of the town.",
    ((HOME, "home"), (f"{HOME}sea", "sea level")),
    heading="Source of rivers",
)
SITE = {
    HOME: Page("Home", "Welcome to the valley.", ((f"{HOME}guide/river", "The great river"), (f"{HOME}sea", "Meer"))),
    f"{HOME}guide/river": RIVER,
    f"{HOME}guide/copy": Page("The river", RIVER.text, ((HOME, "home"),), heading=RIVER.heading),
    f"{HOME}sea": Page("Meer", "Das Meer ist tief, und die Häuser stehen am Ufer. " * 3, ((HOME, "home"),), "", "de"),
    f"{HOME}tokyo": Page("東京", "東京都は日本の首都です。京都ではない。これはその町のことです。" * 3, (), "", "ja"),
}


def handmade(path: Path, **settings: Any) -> Site:
    site = Site(path, **settings)
    site.visit({HOME: SITE[HOME], f"{HOME}guide/copy": SITE[f"{HOME}guide/copy"], f"{HOME}tokyo": SITE[f"{HOME}tokyo"]})
    site.visit({url: page for url, page in SITE.items() if url in (f"{HOME}guide/river", f"{HOME}sea")})
    return site


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return handmade(tmp_path_factory.mktemp("search") / "a.survey").path


def urls_of(found: SearchResult) -> list[str]:
    return [page.url.removeprefix(HOME) for page in found.pages]


def documents_of(survey: sv.Survey, site: dict[str, Page], ids: dict[str, int]) -> dict[int, Any]:
    """Return the words of each field of the pages of a site, from its definition and its exported texts."""
    live = {url: page for url, page in site.items() if page.kind == "fetched"}
    bodies = {page.url: page for page in survey.texts(duplicates=True)}
    anchors: dict[str, dict[str, None]] = {}
    for url, page in live.items():
        for goal, text in page.links:
            if goal != url and text:
                anchors.setdefault(goal, {})[fold(text)] = None
    return {
        ids[url]: counts_of(
            {
                "title": [page.title],
                "anchors": list(anchors.get(url, {})),
                "headings": [page.heading],
                "body": [bodies[url].text],
                "url": [url.removeprefix(HOME).replace("/", " ")],
            },
            bodies[url].language,
        )
        for url, page in live.items()
    }


def stems_of(word: str, languages: set[str]) -> list[bytes]:
    return list(dict.fromkeys([stem(fold(word), ""), *(stem(fold(word), one) for one in languages & set(STEMMERS))]))


def test_the_order_equals_exhaustive_scoring_and_updates_equal_a_rebuild(tmp_path: Path) -> None:
    rng, site, now = np.random.default_rng(3), Site(tmp_path / "a.survey"), dict[str, Page]()
    for step in range(4):
        pages = random_pages(rng, 61 if step == 0 else 12)
        site.visit(pages)
        now |= pages
        with sv.open(site.path) as survey:
            index.update(survey)
    rebuilt = tmp_path / "b.survey"
    shutil.copytree(site.path, rebuilt, ignore=shutil.ignore_patterns("search"))
    with sv.open(site.path) as survey, sv.open(rebuilt) as other:
        documents = documents_of(survey, now, site.ids)
        languages = {page.language for page in survey.texts(duplicates=True)}
        ranked = survey.as_graph()
        importance = dict(zip(ranked.pages.tolist(), survey.ranking.scores.tolist(), strict=True))
        importance = {page: share for page, share in importance.items() if share > 0}
        compared = 0
        some = ["river", "sea", "level", "wind", "haus", "cafe", "x", "market"]
        for _ in range(25):
            query = rng.choice(some, int(rng.integers(1, 4)))
            asked = [str(word) for word in dict.fromkeys(query.tolist())]
            scores = scores_of(documents, [stems_of(word, languages) for word in asked])
            for weight in np.linspace(0, 1, 11).round(1).tolist():
                expected = oracle(scores, importance, weight)
                if not expected:
                    continue
                found = survey.search(" ".join(asked), weight=weight)
                assert [page.id for page in found.pages] == expected[:10], (asked, weight)
                assert found.total == len(expected)
                again = other.search(" ".join(asked), weight=weight)
                assert [page.to_dict() for page in again.pages] == [page.to_dict() for page in found.pages]
                compared += 1
        assert compared > 100


def test_every_part_of_a_page_is_found_and_explained(small: Path) -> None:
    with sv.open(small) as survey:
        found = survey.search("river", weight=0.5)
        (page,) = [page for page in found.pages if page.copies]
        parts = page.explanation
        word = parts["words"]["river"]
        assert word["frequency"] == sum(
            {"title": 5, "anchors": 3, "headings": 2, "body": 1, "url": 2}[name] * count
            for name, count in word["fields"].items()
        )
        assert parts["bm25f"] == pytest.approx(sum(one["adds"] for one in parts["words"].values()))
        assert page.score == pytest.approx(parts["relative_words"] ** 0.5 * parts["relative_importance"] ** 0.5)
        assert page.snippet[slice(*page.matches[0])].lower().startswith("river")
        assert urls_of(survey.search("great")) == ["guide/river"]  # only in the text of a link
        assert urls_of(survey.search("welcome valley")) == [""]
        assert urls_of(survey.search("guide", weight=0)) == ["guide/copy"]  # of near-duplicates
        assert found.to_dict()["pages"][0]["url"] == found.pages[0].url
        assert found.to_pandas().url.tolist() == [one.url for one in found.pages]
        assert "<mark>river</mark>" in found._html()


def test_near_duplicates_are_one_result_and_the_best_of_them_is_shown(small: Path) -> None:
    with sv.open(small) as survey:
        found = survey.search("boat")
        assert (urls_of(found), found.total, found.pages[0].copies) == (["guide/river"], 1, 1)
        assert urls_of(survey.search("boat -great")) == ["guide/copy"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"sea level"', ["sea"]),
        ('"level sea"', []),
        ('"great river"', ["guide/river"]),
        ('river -"great river"', ["guide/copy"]),
        ("meer -haus", []),
        ("HAUS", ["sea"]),
        ("hauser", ["sea"]),
        ("京都", ["tokyo"]),
        ("東京都は", ["tokyo"]),
        ("都京", []),
        ('river "', ["guide/river"]),
    ],
)
def test_phrases_excluded_words_accents_and_unspaced_scripts(small: Path, query: str, expected: list[str]) -> None:
    with sv.open(small) as survey:
        assert urls_of(survey.search(query, weight=0))[: len(expected) or 5] == expected


def test_a_misspelt_word_is_replaced_and_reported(small: Path) -> None:
    with sv.open(small) as survey:
        for misspelt, right in (("rivr", "river"), ("rievr", "river"), ("harbuor", "harbour"), ("welcomme", "welcome")):
            found = survey.search(misspelt)
            assert found.notes == (f"No page has {misspelt}; showing {right}.",)
            assert found.pages
        assert survey.search("meeer", language="de").notes == ("No page has meeer; showing meer.",)
        assert survey.search("meeer", language="en").notes == ("No page has meeer.",)  # no English page has Meer
        assert survey.search("welcomme", folder="/guide/").notes == ("No page has welcomme.",)
        found = survey.search("zzzzzzzz")
        assert (found.pages, found.notes) == ((), ("No page has zzzzzzzz.",))
        found = survey.search("welcome boat")
        assert found.notes == ("No page has all words; showing pages with some of them.",)
        assert set(urls_of(found)) == {"", "guide/river"}


def test_filters(small: Path) -> None:
    with sv.open(small) as survey:
        assert urls_of(survey.search("river", folder="/guide")) == ["guide/river"]
        assert urls_of(survey.search("river", folder=f"{HOME}guide/")) == ["guide/river"]
        assert urls_of(survey.search("river", folder="/gui")) == []
        assert urls_of(survey.search("river", host="b.example")) == []
        assert urls_of(survey.search("meer", language="de")) == ["sea"]
        assert urls_of(survey.search("meer", language="en")) == []
        assert urls_of(survey.search("river", since="2030-01-01")) == []
        assert urls_of(survey.search("river", since="2020-01-01")) == urls_of(survey.search("river"))


def test_importance_from_opic_and_from_files(small: Path, tmp_path: Path) -> None:
    ranks, domains = tmp_path / "ranks.csv", tmp_path / "domains.csv"
    ranks.write_text(f"url,share\n{HOME}sea,0.9\n{HOME},0.001\n")
    domains.write_text("domain,score\na.example,3\n")
    with sv.open(small) as survey:
        assert urls_of(survey.search("meer", weight=0))[0] == "sea"
        assert urls_of(survey.search("meer", rank="global", ranks=ranks, weight=1))[0] == "sea"
        shares = [page.explanation["importance"] for page in survey.search("meer", rank="opic", weight=1).pages]
        assert shares == sorted(shares, reverse=True)
        by_domain = survey.search("meer", rank="domain", ranks=domains, weight=0.5)
        assert {page.explanation["importance"] for page in by_domain.pages} == {3.0}
        assert survey.search("meer", rank="none").weight == 0
        half = survey.search("river", rank="global", ranks=ranks, weight=1).pages[0].explanation
        assert half["importance"] is None
        for options, problem in (
            ({"rank": "global"}, "needs a file of ranks"),
            ({"ranks": ranks}, "reads no file"),
            ({"rank": "none", "weight": 0.5}, "weight must be 0"),
            ({"weight": math.nan}, "weight"),
            ({"weight": 1.5}, "weight"),
            ({"top": 0}, "top"),
            ({"top": 100_000}, "top"),
            ({"language": "?"}, "language"),
            ({"rank": "best"}, "rank"),
            ({"top": 2.5}, "top must be a whole number"),
            ({"host": 3}, "host must be text"),
            ({"host": "a.example:80"}, "host must be a name without scheme and port"),
            ({"host": "https://a.example"}, "host must be a name without scheme and port"),
            ({"folder": "guide"}, "folder must begin with /"),
        ):
            with pytest.raises(sv.UsageError, match=problem):
                survey.search("meer", **options)
        extreme = tmp_path / "extreme.csv"
        extreme.write_text(f"url,share\n{HOME}sea,1e300\n{HOME},5e-324\n{HOME}guide/river,1e-300\n")
        assert urls_of(survey.search("welcome boat meer", rank="global", ranks=extreme, weight=1))[:2] == [
            "sea",
            "guide/river",
        ]
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(sv.InputError, match="is a pipe"):
            survey.search("meer", rank="global", ranks=tmp_path / "pipe")
        ranks.write_text("url,share\nhttps://b.example/,0.9\n")
        with pytest.raises(sv.InputError, match="no page of"):
            sv.open(small).search("meer", rank="global", ranks=ranks)


def test_a_survey_without_an_archive_is_searched_by_titles_links_and_urls(tmp_path: Path) -> None:
    with sv.open(handmade(tmp_path / "a.survey", archive=False).path) as survey:
        found = survey.search("great")
        assert urls_of(found) == ["guide/river"]
        assert "no archived responses" in found.notes[0]
        assert urls_of(survey.search("boat")) == []


def test_an_update_indexes_only_what_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, read = handmade(tmp_path / "a.survey"), list[str]()

    def noted(survey: sv.Survey, visit: Any) -> Any:
        read.append(survey.url(visit.page).removeprefix(HOME))
        return texts.body_of(survey, visit)

    monkeypatch.setattr(index, "body_of", noted)
    with sv.open(site.path) as survey:
        survey.search("river")
        assert len(read) == len(SITE)
        read.clear()
        survey.search("sea")
        assert read == []
        changed = Page("The river", "Now about otters.", ((f"{HOME}sea", "Brandung"),))
        site.visit({f"{HOME}guide/river": changed, HOME: SITE[HOME], f"{HOME}tokyo": Page(kind="gone")})
        assert urls_of(survey.search("otter")) == ["guide/river"]
        assert read == ["guide/river"]
        assert urls_of(survey.search("brandung")) == ["sea"]  # its text was not read again
        assert urls_of(survey.search("東京")) == []
        assert urls_of(survey.search("boat")) == ["guide/copy"]


@pytest.mark.slow
def test_segments_are_merged_and_old_files_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MOST_SEGMENTS", 3)
    rng, site = np.random.default_rng(1), Site(tmp_path / "a.survey", archive=False)
    with sv.open(site.path) as survey:
        for _ in range(12):
            site.visit(random_pages(rng, 9))
            found = survey.search("river")
            place = site.path / "search"
            assert len(list(place.glob("segment-*"))) <= 4
            assert len(list(place.glob("state-*"))) == 1
        shutil.rmtree(place)
        again = survey.search("river")
    assert [page.to_dict() for page in again.pages] == [page.to_dict() for page in found.pages]


def test_a_long_page_is_indexed_again_from_what_was_indexed(tmp_path: Path) -> None:
    """Its text is longer than what is indexed; a link text changes, so that it is indexed from what is stored."""
    words_of = " ".join(f"longest{number:05d}" for number in range(25_000))
    long = Page("Long", f"{words_of} marker {words_of}", ((HOME, "home"),))
    site = handmade(tmp_path / "a.survey")
    with sv.open(site.path) as survey:
        site.visit({f"{HOME}long": long})
        before = survey.search("marker longest24999", weight=0)
        assert urls_of(before) == ["long"]
        site.visit({HOME: Page("Home", "Welcome.", ((f"{HOME}long", "novel"),))})
        assert urls_of(survey.search("novel marker")) == ["long"]
        updated = survey.search("marker longest24999", weight=0.5)
    shutil.rmtree(site.path / "search")
    with sv.open(site.path) as survey:
        fresh = survey.search("marker longest24999", weight=0.5)
    assert [page.to_dict() for page in updated.pages] == [page.to_dict() for page in fresh.pages]


def test_an_index_that_is_replaced_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, real = handmade(tmp_path / "a.survey"), search._generation
    with sv.open(site.path) as survey:
        survey.search("river")
        old = real(survey, search.SearchOptions(), lambda *_: None)
        site.visit({f"{HOME}more": Page("More", "Another river.", ((HOME, "home"),))})
        with sv.open(site.path) as other:
            other.search("river")  # removes the state that the first one has found
        answers = iter([old])
        monkeypatch.setattr(search, "_generation", lambda *given: next(answers, None) or real(*given))
        with sv.open(site.path) as late:
            found = late.search("river")
    assert "more" in urls_of(found)
    assert found.notes == ()


def test_the_data_of_a_deleted_host_leaves_the_index(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from surveyor.store.directory import SurveyFolder

    copy = tmp_path / "a.survey"
    shutil.copytree(small, copy)
    with sv.open(copy) as survey:
        assert survey.search("river").pages
    with SurveyFolder.open(copy) as folder:
        delete = folder.journal.delete_host

        def later(*args: Any) -> None:  # another process searches meanwhile
            with sv.open(copy) as other:
                assert other.search("river").pages
            delete(*args)

        monkeypatch.setattr(folder.journal, "delete_host", later)
        folder.delete_host("a.example")
    assert not (copy / "search").exists()
    with sv.open(copy) as survey:
        assert survey.search("river").pages == ()


def test_words() -> None:
    assert words("The Rivers’ SOURCE_1, ﬁne", "en") == [b"the", b"river", b"source_1", b"fine"]
    assert (fold("ÄÖ ΆΣ Ёж ｶﾞ"), pairs("京"), pairs("東京都")) == ("ao ασ еж ガ", ["京"], ["東京", "京都"])
    assert words("हिन्दी한국어 สวัสดี") == ["हिन्दी한국어".encode(), *(pair.encode() for pair in pairs("สวัสดี"))]
    assert words("x" * 1000) == [b"x" * 40]
    assert parse('a "b c" -d -"e f" "') == Query(("a", "b c", '"'), ("b c",), ("d", "e f"))

"""Page content from the archive of a survey, with content encodings and character sets."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from example_site import HOME, site, survey_of
from fake_web import page as answer
from surveyor.crawler.topics.page_content import PageContent
from surveyor.errors import SurveyError
from surveyor.estimate.sampling.sample_pages import archived_pages, parse_exchange
from surveyor.fetch import bodies
from surveyor.outcome import Exchange, Visit
from surveyor.store.directory import SurveyFolder

SUN = "<html lang=de><title>Sonne &amp; Wind</title><p>Strom vom Dach<script>no text</script>"


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    answers = site()
    answers[HOME + "news/"] = answer(HOME + "news/", HOME, HOME + "library/", extra=SUN)
    return survey_of(tmp_path_factory.mktemp("archived") / "a.survey", answers)


def exchange(body: bytes, *headers: str) -> Exchange:
    head = "\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode("latin-1")
    return Exchange("https://a.example/x/", b"", head, body, 1e9)


def test_archived_pages(survey: Path) -> None:
    with SurveyFolder.open(survey, write=False) as folder:
        pages = {page.url: page for page in archived_pages(folder)}
        assert set(pages) == {HOME, HOME + "library/", HOME + "news/", HOME + "library/deep"}
        sun = pages[HOME + "news/"]
        assert (sun.title, sun.language, sun.links) == ("Sonne & Wind", "de", (HOME, HOME + "library/"))
        assert "Strom vom Dach" in sun.text
        assert "no text" not in sun.text
        assert sun.out_degree == 2
        assert (pages[HOME].out_degree, len(pages[HOME].links)) == (8, 8)  # one out of scope, one nofollow


def test_title_and_language_without_an_archive(tmp_path: Path) -> None:
    answers = site() | {HOME + "news/": answer(HOME + "news/", HOME, extra=SUN)}
    path = survey_of(tmp_path / "a.survey", answers, archive=False)
    with SurveyFolder.open(path, write=False) as folder:
        sun = next(page for page in archived_pages(folder) if page.url == HOME + "news/")
        assert (sun.title, sun.language, sun.text, sun.links) == ("Sonne & Wind", "de", "", ())


def test_blocked_page_keeps_its_last_content(tmp_path: Path) -> None:
    path = survey_of(tmp_path / "a.survey")
    with SurveyFolder.open(path) as folder:
        news = next(number for number, url in enumerate(folder.journal.urls()) if url == HOME + "news/")
        folder.commit([Visit(news, "blocked", reason="http 403", status=403)])
        assert {page.url: page.title for page in archived_pages(folder)}[HOME + "news/"] == "News"
        folder.commit([Visit(news, "gone", status=410)])
        assert HOME + "news/" not in {page.url for page in archived_pages(folder)}


def test_missing_archive_file(tmp_path: Path) -> None:
    path = survey_of(tmp_path / "a.survey")
    with SurveyFolder.open(path, write=False) as folder:
        (path / "warc" / "00000.warc.gz").unlink()
        with pytest.raises(SurveyError, match=r"00000\.warc\.gz"):
            _ = next(archived_pages(folder)).text


def test_encodings_and_character_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    html = "<title>Sonnenstraße</title><p>" + "Öl " * 50_000
    packed = gzip.compress(html.encode("latin-1"))
    headers = "Content-Type: text/html; charset=iso-8859-1", "Content-Encoding: gzip"
    whole = parse_exchange(exchange(packed, *headers))
    assert (whole.title, whole.text[:8]) == ("Sonnenstraße", "Öl Öl Öl")
    part = parse_exchange(exchange(packed[:-20], *headers))
    assert part.title == "Sonnenstraße"
    assert parse_exchange(exchange(b"junk", *headers)) == PageContent()
    assert parse_exchange(exchange(b"junk", "Content-Encoding: exi")) == PageContent()
    monkeypatch.setattr(bodies, "MAX_DECODED", 1000)
    assert len(parse_exchange(exchange(packed, *headers)).text) < 2_000
    assert parse_exchange(exchange("plain Öl".encode(), "Content-Type: text/plain")).text == "plain Öl"
    assert parse_exchange(exchange(b"\x89PNG", "Content-Type: image/png")) == PageContent()

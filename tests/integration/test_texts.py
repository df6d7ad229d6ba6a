"""Texts of a survey over HTTP: order, near-duplicates, budgets, formats, hostile pages, wrong input."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from attack import attack
from hostile_pages import hostile_pages
from markdown_it import MarkdownIt

from slow_cases import pairs

pytest.importorskip("resiliparse")

import surveyor as sv
from console import CommandResult
from example_site import survey_of
from loopback import QUICK, served
from surveyor.survey import sitemap_export
from surveyor.survey.sitemap_export import sitemap
from surveyor.survey.texts import TextPage
from surveyor.testing import WebSettings, running
from surveyor.web.sitemaps import read_listing
from surveyor.web.tokens import estimate_tokens

RIVER = "The river rises in the mountains and reaches the sea after four hundred miles of forest and farmland. "
OTHER = "Every ship that enters the harbour needs a pilot who knows the tides, the sand banks and the wind. "
CROP = "Farmers in the valley grow barley, beans and onions, and sell them at the market on the first of May. "
GERMAN = "Der Fluss entspringt in den Bergen und erreicht nach vierhundert Meilen durch Wald und Felder das Meer. "
EVIL = "# Fake heading <script>alert(1)</script> =HYPERLINK(1) [x](javascript:alert(1)) "


def page(title: str, text: str, *links: str, head: str = "") -> str:
    menu = "".join(f'<a href="{link}">go</a> ' for link in links)
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    return (
        f"<html lang=en><head><title>{title}</title>{head}</head><body><nav>{menu}</nav>"
        f"<main><h1>{title}</h1><p>{escaped}</p></main><footer>© everyone</footer></body></html>"
    )


def long(sentence: str, start: int = 0) -> str:
    """Return a text of many different word shingles."""
    words = sentence.split()
    return " ".join(f"{' '.join(words[:at])} {start + at} {' '.join(words[at:])}" for at in range(1, 13))


def site() -> dict[str, Any]:
    every = ("/river", "/copy", "/guide/harbour", "/guide/fields", "/fluss", "/evil", "/hidden")
    more = ("/plain.txt", "/paper.pdf", "/empty", "/binary", "/image.png")
    pages: dict[str, Any] = {
        "/": page("Home", long(RIVER.replace("river", "valley"), 500), *every, *more),
        "/river": page("The river", long(RIVER), "/", "/guide/harbour"),
        "/copy": page("The river", long(RIVER), "/"),
        "/guide/harbour": page("The harbour", long(OTHER), "/", "/river", "/guide/fields"),
        "/guide/fields": page("Fields", long(CROP), "/", "/river"),
        "/fluss": page("Der Fluss", long(GERMAN), "/"),
        "/evil": page("=1+1 | <b>[x](y)\u202e", long(EVIL), "/"),
        "/hidden": page("Hidden", long(CROP[::-1]), "/", head='<meta name="robots" content="noindex">'),
        "/plain.txt": ("text/plain", ("A note.\n\n" + OTHER[::-1]).encode()),
        "/paper.pdf": ("application/pdf", b"%PDF-1.4 \x00\x01\x02" * 50),
        "/image.png": ("image/png", b"\x89PNG\r\n\x1a\n" + bytes(200)),
        "/empty": "<html><body></body></html>",
        "/binary": ("text/html", bytes(range(256)) * 100),
    }
    return pages


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts") / "site.survey"
    with served(site()) as home:
        crawl(home, folder)
    return folder


def crawl(home: str, folder: Path, **settings: Any) -> None:
    given = {"delay": 0, "contact": "me@example.org", "allow": ["127.0.0.1"], "backoff": 0.02, **settings}
    sv.crawl([home], until="pages=1000", out=folder, **given).close()


def path_of(one: TextPage) -> str:
    return "/" + one.url.split("/", 3)[3]


def test_texts_come_in_order_of_importance(survey: Path) -> None:
    with sv.open(survey) as opened:
        texts = opened.texts()
        found = list(texts)
        best = [row["url"] for row in opened.top(100) if row["fetched"]]
        shares = {row["url"]: row["share"] for row in opened.top(100)}
    assert [one.url for one in found] == [url for url in best if url in {one.url for one in found}]
    assert {path_of(one) for one in found} >= {"/", "/guide/harbour", "/fluss", "/evil"}
    assert all(one.share == shares[one.url] and best[one.position - 1] == one.url for one in found)
    assert found[0].text.startswith("Home\n\nThe 501 valley rises")
    assert not any("everyone" in one.text for one in found)
    languages = {path_of(one): one.language for one in found}
    assert (languages["/fluss"], languages["/guide/harbour"]) == ("de", "en")  # although all pages declare English
    counts = texts.counts
    assert (counts.pages, counts.tokens) == (len(found), sum(one.tokens for one in found))
    assert counts.share == pytest.approx(sum(one.share for one in found))
    assert (counts.duplicates, counts.empty, counts.not_archived, counts.unreadable) == (1, 3, 0, 0)


def test_near_duplicates_have_the_most_important_page_as_representative(survey: Path) -> None:
    with sv.open(survey) as opened:
        left_out = {path_of(one) for one in opened.texts()}
        kept = {path_of(one): one for one in opened.texts(duplicates=True)}
        first, second = (path for path in kept if path in ("/river", "/copy"))
    assert second not in left_out
    assert first in left_out
    assert kept[second].duplicate_of == kept[first].url
    assert {one.duplicate_of for path, one in kept.items() if path != second} == {""}


def test_the_text_of_one_page(survey: Path) -> None:
    with sv.open(survey) as opened:
        found = opened.text("/guide/harbour")
        assert found.text.startswith("The harbour\n\nEvery 1 ship that enters")
        assert found.markdown.startswith("# The harbour\n\n")
        assert found.language == "en"
        for path, problem in (("/plain.txt", "has no text: it is text/plain"), ("/x", "no known page")):
            with pytest.raises(sv.UsageError, match=problem):
                opened.text(path)


@pytest.mark.parametrize(("budget", "kind"), pairs([40, 300, 1_000, 100_000], ["markdown", "llms.txt", "jsonl"]))
def test_a_budget_holds_for_what_is_written(survey: Path, tmp_path: Path, budget: int, kind: str) -> None:
    table = {"table": "text"} if kind == "jsonl" else {}
    with sv.open(survey) as opened:
        (path,) = opened.export(tmp_path / "out", format=kind, tokens=budget, **table)
        (whole,) = opened.export(tmp_path / "whole", format=kind, **table)
    text, complete = path.read_text("utf-8"), whole.read_text("utf-8")
    if kind == "jsonl":
        rows = [json.loads(line) for line in text.splitlines()]
        assert sum(row["tokens"] for row in rows) <= budget
        assert sum(estimate_tokens(row["text"]) for row in rows) <= budget
        assert [row["cut"] for row in rows[:-1]] == [None] * (len(rows) - 1)
    elif kind == "markdown":
        assert estimate_tokens(text) <= budget + text.count("\n# ") + 1
    else:
        lines = [line for line in text.split("\n") if line.startswith("- ")]
        assert sum(map(estimate_tokens, lines)) <= budget
    assert text != complete or budget >= 1_000
    assert text == complete or budget < 100_000


@attack("titles and texts that are markup", area="output", must_hold="Markdown, llms.txt and workbooks hold text only")
def test_exports_hold_no_markup_of_pages(survey: Path, tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter")
    with sv.open(survey) as opened:
        (document,) = opened.export(tmp_path / "site.md")
        (index,) = opened.export(tmp_path / "llms.txt")
        (book,) = opened.export(tmp_path / "texts.xlsx", table="text")
        best = [path_of(one) for one in opened.texts()]
    for path in (document, index):
        tokens = [
            token
            for one in MarkdownIt("commonmark").parse(path.read_text("utf-8"))
            for token in (one, *(one.children or []))
        ]
        assert not {token.type for token in tokens} & {"html_block", "html_inline", "image"}
        assert all(
            str(token.attrs["href"]).startswith("http://127.0.0.1") for token in tokens if token.type == "link_open"
        )
        assert "\u202e" not in path.read_text("utf-8")
    headings = re.findall(r"^# (.*)", document.read_text("utf-8"), re.MULTILINE)
    assert len(headings) == len(best)  # no page inserts one
    with zipfile.ZipFile(book) as opened_book:
        sheet = opened_book.read("xl/worksheets/sheet1.xml").decode()
    assert "=HYPERLINK(1)" in sheet
    assert "<f>" not in sheet
    assert "hyperlink" not in sheet.replace("HYPERLINK", "")


def test_markdown_is_one_document_with_a_section_for_each_page(survey: Path, tmp_path: Path) -> None:
    with sv.open(survey) as opened:
        (path,) = opened.export(tmp_path / "site.md")
        found = list(opened.texts(form="markdown"))
    text = path.read_text("utf-8")
    places = [text.index(f"<{one.url}>\n") for one in found]
    assert places == sorted(places)
    assert (
        f"# The harbour\n\n<{next(one.url for one in found if path_of(one) == '/guide/harbour')}>\n\n## The harbour"
        in text
    )


def test_llms_txt_has_a_section_for_each_folder(survey: Path, tmp_path: Path) -> None:
    with sv.open(survey) as opened:
        (path,) = opened.export(tmp_path / "llms.txt")
        texts = opened.texts()
        count = len(list(texts))
    lines = path.read_text("utf-8").splitlines()
    assert lines[0] == "# Home"
    assert lines[2].startswith(f"> {count} pages, the most important first in each section, with ")
    assert f" {texts.counts.share:.1%} of the importance" in lines[2]
    assert [line for line in lines if line.startswith("## ")] == ["## guide", "## Other pages"]
    harbour = next(line for line in lines if "harbour" in line)
    assert re.fullmatch(
        r"- \[The harbour\]\(http://127\.0\.0\.1:\d+/guide/harbour\): Every 1 ship that enters .*…", harbour
    )
    assert sum(line.startswith("- ") for line in lines) == count


def test_tables_of_texts(survey: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    with sv.open(survey) as opened:
        found = list(opened.texts(top=3))
        paths = [opened.export(tmp_path / f"t.{kind}", table="text", top=3)[0] for kind in ("jsonl", "csv", "parquet")]
        (marked,) = opened.export(tmp_path / "m.jsonl", table="text", top=1, markdown=True)
    rows = [json.loads(line) for line in paths[0].read_text("utf-8").splitlines()]
    assert [(row["url"], row["text"], row["position"]) for row in rows] == [(f.url, f.text, f.position) for f in found]
    with paths[1].open(encoding="utf-8", newline="") as file:
        assert [row["url"] for row in csv.DictReader(file)] == [one.url for one in found]
    assert [row["text"] for row in parquet.read_table(paths[2]).to_pylist()] == [one.text for one in found]
    assert json.loads(marked.read_text("utf-8"))["text"].startswith("# Home\n")


def test_the_command(survey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "site.md")
    answer = CommandResult(capsys, "export", str(survey), "--out", out, "--until", "tokens=1k", "--json")
    result = answer.json()
    assert answer.code == 0
    assert result["texts"]["tokens"] <= 1_000
    assert result["texts"]["remaining"] > 0
    assert set(result["texts"]) >= {"pages", "share", "duplicates", "empty", "not_archived", "unreadable", "cut"}
    again = CommandResult(capsys, "export", str(survey), "--out", out)
    assert (again.code, "already exists" in again.err) == (2, True)
    text = CommandResult(capsys, "export", str(survey), "--out", out, "--replace")
    assert "near-duplicates" in text.out
    stream = CommandResult(
        capsys, "export", str(survey), "--out", "-", "--format", "jsonl", "--table", "text", "--top", "2"
    )
    assert [json.loads(line)["position"] for line in stream.out.splitlines()] == [1, 2]
    listed = CommandResult(capsys, "export", str(survey), "--out", "-", "--format", "sitemap")
    assert listed.out.startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--until", "pages=5"], "must be tokens=N, such as tokens=100k, got 'pages=5'"),
        (["--until", "tokens=many"], "must be an amount"),
        (["--until", "tokens=0"], "must be at least tokens=1"),
        (["--until", "tokens=1"], "no text fits into 1 tokens"),
        (["--table", "links"], "markdown does not hold the table links"),
        (["--format", "csv", "--markdown"], "markdown is for texts"),
        (["--format", "csv", "--until", "tokens=5"], "tokens is for texts"),
        (["--format", "jsonl", "--duplicates"], "duplicates is for texts"),
        (["--format", "sitemap", "--table", "text"], "sitemap does not hold the table text"),
        (["--top", "0"], "must be at least 1"),
    ],
)
def test_wrong_input_is_one_sentence(
    survey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    answer = CommandResult(capsys, "export", str(survey), "--out", str(tmp_path / "out.md"), *words)
    assert answer.code == 2
    assert problem in answer.err
    assert list(tmp_path.iterdir()) == []


def test_texts_are_no_folder_and_no_stream_of_binaries(
    survey: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, problem in (
        (["--out", str(tmp_path), "--table", "text"], "texts are one file, not a folder"),
        (["--out", "-", "--format", "xlsx"], "cannot hold an Excel workbook"),
    ):
        answer = CommandResult(capsys, "export", str(survey), *words)
        assert (answer.code, problem in answer.err) == (2, True)


def test_a_survey_without_archive_names_the_next_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(site()) as home:
        crawl(home, tmp_path / "bare.survey", archive=False)
        answer = CommandResult(capsys, "export", str(tmp_path / "bare.survey"), "--out", str(tmp_path / "a.md"))
        assert answer.code == 2
        assert "has no archived responses" in answer.err
        command = re.search(r"`surveyor (crawl [^`]*)`", answer.err)
        assert command is not None
        words = command[1].replace("bare.survey.archived", str(tmp_path / "again.survey")).split()
        assert CommandResult(capsys, *words, *QUICK, "--until", "pages=3").code in (0, 3)
    with sv.open(tmp_path / "bare.survey") as opened, pytest.raises(sv.UsageError, match="no archived responses"):
        opened.text("/river")
    assert CommandResult(capsys, "export", str(tmp_path / "again.survey"), "--out", str(tmp_path / "a.md")).code == 0


def test_erased_pages_are_counted(tmp_path: Path) -> None:
    with served(site()) as home:
        crawl(home, tmp_path / "a.survey")
    for path in (tmp_path / "a.survey" / "warc").iterdir():
        path.unlink()
    with sv.open(tmp_path / "a.survey") as opened, pytest.raises(sv.UsageError, match="no page with a text"):
        list(opened.texts())


def test_a_survey_without_links_is_ordered_by_opic(tmp_path: Path) -> None:
    with served(site()) as home:
        crawl(home, tmp_path / "a.survey", graph=False, strategy="opic")
    with sv.open(tmp_path / "a.survey") as opened:
        found = list(opened.texts())
        best = [row["url"] for row in (opened.own_importance or opened.importance()).top(100)]
    assert [one.url for one in found] == [url for url in best if url in {one.url for one in found}]
    assert len(found) >= 7


@attack("hostile pages in an export of texts", area="pages", must_hold="each costs seconds and harms no other page")
@pytest.mark.slow
def test_hostile_pages_do_not_stop_an_export(tmp_path: Path) -> None:
    pages: dict[str, Any] = {"/robots.txt": ("text/plain", b"")}
    for number, (_, body, headers) in enumerate(hostile_pages()):
        pages[f"/h{number}"] = (headers.get("content-type", "text/html"), body)
    pages["/"] = page("Home", RIVER * 8, *pages, "/last")
    pages["/last"] = page("Last", OTHER * 8, "/")
    with served(pages) as home:
        crawl(home, tmp_path / "a.survey")
    with sv.open(tmp_path / "a.survey") as opened:
        texts = opened.texts(form="markdown")
        found = {path_of(one) for one in texts}
    assert found >= {"/", "/last"}
    assert texts.counts.pages + texts.counts.empty + texts.counts.unreadable + texts.counts.duplicates >= 30


def test_the_embedded_web(tmp_path: Path) -> None:
    with running(WebSettings.plain(documents=0.05, garbled=0.05)) as web:
        given = {"scope": "any", "delay": 0, "allow": web.hosts, "resolver": web.resolver, "rng": 1}
        path = tmp_path / "w.survey"
        sv.crawl(web.seeds, until="pages=60", out=path, contact="me@example.org", **given).close()  # type: ignore[arg-type]
    with sv.open(path) as opened:
        declared = {url: visit.language for _, url, visit in opened.pages() if visit is not None}
        texts = opened.texts(duplicates=True)
        found = list(texts)
    assert len(found) >= 40
    assert texts.counts.unreadable == 0
    agree = [one.language == declared[one.url] for one in found]
    assert sum(agree) / len(agree) >= 0.9  # the words of a language, two thirds of the text


def test_a_sitemap_lists_what_may_be_indexed(survey: Path, tmp_path: Path) -> None:
    with sv.open(survey) as opened:
        (path,) = opened.export(tmp_path / "sitemap.xml")
        best = [row["url"] for row in opened.top(100) if row["fetched"]]
        scores = {row["url"]: row["score"] for row in opened.top(100)}
        made = sitemap(opened)
    listing = read_listing(path.read_bytes())
    assert listing is not None
    assert list(listing.pages) == [url for url in best if not url.endswith("/hidden")]
    assert (made.noindex, made.other_origins) == (1, 0)
    root = ElementTree.parse(path).getroot()  # noqa: S314  # our own file
    space = {"s": sitemap_export.NAMESPACE}
    for one in root.findall("s:url", space):
        url, priority = (one.findtext(f"s:{name}", "", space) for name in ("loc", "priority"))
        assert float(priority) == pytest.approx(max(0.1, scores[url] / 100), abs=0.051)


def test_a_large_sitemap_is_split(
    survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sitemap_export, "MOST_URLS", 4)
    with sv.open(survey) as opened:
        count = len(sitemap(opened).entries)
        paths = opened.export(tmp_path / "map.xml")
        with pytest.raises(sv.UsageError, match="already exists"):
            opened.export(tmp_path / "map.xml")
    parts = [read_listing(path.read_bytes()) for path in paths]
    index = parts[0]
    assert index is not None
    assert (
        [url.rpartition("/")[2] for url in index.lists]
        == [path.name for path in paths[1:]]
        == ["map-1.xml", "map-2.xml", "map-3.xml"]
    )
    assert [len(part.pages) for part in parts[1:] if part] == [4, 4, count - 8]
    answer = CommandResult(capsys, "export", str(survey), "--out", "-", "--format", "sitemap")
    assert (answer.code, "need 3 files and an index" in answer.err) == (2, True)
    monkeypatch.setattr(sitemap_export, "MOST_URLS", 50_000)
    monkeypatch.setattr(sitemap_export, "MOST_BYTES", 600)
    with sv.open(survey) as opened:
        small = opened.export(tmp_path / "bytes.xml")
    assert len(small) > 2
    assert all(path.stat().st_size <= 600 for path in small[1:])


def test_a_sitemap_lists_pages_of_one_origin(tmp_path: Path) -> None:
    with running(WebSettings.plain()) as web:
        given = {"scope": "any", "delay": 0, "allow": web.hosts, "resolver": web.resolver, "rng": 1}
        path = tmp_path / "w.survey"
        sv.crawl(web.seeds, until="pages=40", out=path, contact="me@example.org", **given).close()  # type: ignore[arg-type]
    with sv.open(path) as opened:
        made = sitemap(opened)
        fetched = opened.pages_fetched
    assert made.other_origins > 0
    assert len(made.entries) + made.other_origins + made.noindex == fetched
    assert all(f"<loc>{made.origin}/" in entry for entry in made.entries)


def test_workbooks_hold_text_as_text(tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter")
    path = survey_of(tmp_path / "a.survey")  # a title of it is a formula
    with sv.open(path) as opened:
        (book,) = opened.export(tmp_path / "pages.xlsx")
        count = opened.pages_known
    with zipfile.ZipFile(book) as archive:
        assert archive.testzip() is None
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
        names = archive.namelist()
    root = ElementTree.fromstring(sheet)  # noqa: S314  # our own file
    space = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
    rows = root.findall(".//m:row", space)
    assert len(rows) >= 1 + count
    cells = ["".join(cell.itertext()) for cell in rows[1]]
    assert any(cell.startswith("=HYPERLINK(1) & <b>") for cell in cells)
    assert root.findall(".//m:f", space) == []
    assert not any("vba" in name.lower() or "externalLink" in name for name in names)

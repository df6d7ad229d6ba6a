"""`surveyor check` of sites with sitemaps that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from console import CommandResult
from loopback import QUICK, linked, served
from surveyor.check.audit import audit
from surveyor.survey.survey import Survey

DTD = b'<!DOCTYPE x [<!ENTITY a "b">]><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"></urlset>'
RULES = ["--rule", "orphan", "--rule", "sitemap-error", "--fail-on", "never"]


def listing(*urls: str) -> bytes:
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'.encode()


@pytest.mark.parametrize("answer", [("text/xml", DTD), 500, ("text/xml", b"<urls/>")], ids=["DTD", "500", "other"])
def test_a_sitemap_that_cannot_be_read_is_an_error_until_it_can(
    answer: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages: dict[str, Any] = {"/": linked("/a"), "/a": linked("/"), "/sitemap.xml": answer}
    folder, html = str(tmp_path / "a.survey"), tmp_path / "a.html"
    with served(pages) as url:
        crawl = ["check", url, *RULES, *QUICK, "--out", folder]
        first = CommandResult(capsys, *crawl, "--json").json()
        assert first["skipped"] == {"orphan": "sitemaps that could not be read: 1, which may list more pages"}
        (one,) = first["findings"]
        assert (one["rule"], one["url"]) == ("sitemap-error", f"{url}sitemap.xml")
        assert one["message"].startswith("cannot be read: ")
        shown = CommandResult(capsys, "check", folder, *RULES, "--html", str(html)).out
        assert f"{url}sitemap.xml\n             cannot be read: " in shown
        assert "not judged: orphan (sitemaps that could not be read: 1" in shown
        assert "cannot be read: " in html.read_text("utf-8")
        assert "which may list more pages" in html.read_text("utf-8")
        pages["/sitemap.xml"] = "text/xml", listing(f"{url}a")
        again = CommandResult(capsys, *crawl, "--json").json()
    assert (again["skipped"], again["findings"]) == ({}, [])


def test_orphans_in_the_sitemaps_that_were_read_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages: dict[str, Any] = {"/": linked("/"), "/b": linked("/"), "/bad.xml": ("text/xml", DTD)}
    with served(pages) as url:
        pages["/robots.txt"] = f"Sitemap: {url}bad.xml\nSitemap: {url}good.xml\n"
        pages["/good.xml"] = "text/xml", listing(f"{url}b")
        found = CommandResult(
            capsys, "check", url, *RULES, *QUICK, "--out", str(tmp_path / "a.survey"), "--json"
        ).json()
    assert {(one["rule"], one["url"]) for one in found["findings"]} == {
        ("orphan", f"{url}b"),
        ("sitemap-error", f"{url}bad.xml"),
    }
    assert not found["skipped"]


@pytest.mark.parametrize(
    "pages",
    [
        {},
        {"/sitemap.xml": linked("/")},
        {"/robots.txt": "User-agent: *\nDisallow: /sitemap.xml\n", "/sitemap.xml": 500},
    ],
    ids=["none", "an HTML page", "not to be requested"],
)
def test_a_site_without_a_sitemap_has_no_error(
    pages: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "a.survey"
    with served({"/": linked("/"), **pages}) as url:
        CommandResult(capsys, "check", url, *RULES, *QUICK, "--out", str(folder))
    with Survey(folder) as survey:
        assert not [*survey.journal.events("sitemaps")]
        assert not audit(survey).by_rule().get("sitemap-error")

"""`surveyor check` on a site with planted faults: all are found, and nothing else is."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from console import CommandResult
from loopback import QUICK, Pages, linked, served
from planted_site import HOME, PLANTED, survey_of
from surveyor.check.answers import read_answers, write_answers
from surveyor.check.audit import AuditResult, audit
from surveyor.check.findings import Finding, Source
from surveyor.check.page_facts import read_facts
from surveyor.check.rules import RULES, selected
from surveyor.errors import UsageError
from surveyor.report.check_formats import file_of, github, junit, sarif
from surveyor.report.check_text import write_html
from surveyor.store.layout import ANSWERS
from surveyor.survey.survey import Survey
from tls import certificate

jsonschema: Any = pytest.importorskip("jsonschema")

TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
REGION = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"startLine": {"type": "integer", "minimum": 1}},
}
PLACE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["artifactLocation"],
    "properties": {
        "artifactLocation": {"type": "object", "properties": {"uri": {"type": "string", "format": "uri-reference"}}},
        "region": REGION,
    },
}
RESULT = {
    "type": "object",
    "required": ["message"],
    "additionalProperties": False,
    "properties": {
        "ruleId": {"type": "string"},
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": LEVEL,
        "rank": {"type": "number", "minimum": 0, "maximum": 100},
        "message": TEXT,
        "locations": {"type": "array", "items": {"type": "object", "properties": {"physicalLocation": PLACE}}},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
REPORTED_RULE = {
    "type": "object",
    "required": ["id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string"},
        **dict.fromkeys(("shortDescription", "fullDescription", "help"), TEXT),
        "defaultConfiguration": {"type": "object", "additionalProperties": False, "properties": {"level": LEVEL}},
    },
}
DRIVER = {
    "type": "object",
    "required": ["name"],
    "properties": {"rules": {"type": "array", "uniqueItems": True, "items": REPORTED_RULE}},
}
RUN = {
    "type": "object",
    "required": ["tool"],
    "additionalProperties": False,
    "properties": {
        "tool": {"type": "object", "required": ["driver"], "properties": {"driver": DRIVER}},
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": {"type": "array", "items": RESULT},
    },
}
SARIF = jsonschema.Draft7Validator(  # the part of the schema of SARIF 2.1.0 that is used
    {
        "type": "object",
        "required": ["version", "runs"],
        "additionalProperties": False,
        "properties": {
            "$schema": {"type": "string", "format": "uri"},
            "version": {"enum": ["2.1.0"]},
            "runs": {"type": "array", "items": RUN},
        },
    },
    format_checker=jsonschema.FormatChecker(),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return survey_of(tmp_path_factory.mktemp("check") / "a.survey")


@pytest.fixture(scope="module")
def result(folder: Path) -> AuditResult:
    with Survey(folder) as survey:
        return audit(survey)


@pytest.fixture
def annotated(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    done = CommandResult(capsys, "check", str(folder), "--github", "--map", f"{HOME}*=docs/*.md")
    return done.out.splitlines()


def test_all_planted_faults_are_found_and_nothing_else(result: AuditResult) -> None:
    found: dict[str, set[str]] = {}
    for one in result.findings:
        found.setdefault(one.rule, set()).add(one.url.removeprefix(HOME))
    assert found == PLANTED


def test_orphans_are_judged_only_if_the_survey_is_complete(result: AuditResult, tmp_path: Path) -> None:
    assert result.skipped["orphan"] == "0 pages are queued and 1 blocked, 1 need JavaScript, which may hold links"
    with Survey(survey_of(tmp_path / "b.survey", fails=False)) as survey:
        complete = audit(survey, selected(["orphan"]))
    assert not complete.skipped  # the redirects in a circle cannot hold links
    assert [one.url for one in complete.findings] == [f"{HOME}listed-noindex", f"{HOME}orphan"]
    with Survey(survey_of(tmp_path / "c.survey", fails=False, until="pages=20")) as survey:
        partial = audit(survey, selected(["orphan"]))
    assert not partial.findings
    assert "pages are queued" in partial.skipped["orphan"]


def test_findings_are_ordered_by_severity_and_importance(result: AuditResult) -> None:
    severities = [one.severity for one in result.findings]
    assert severities == sorted(severities, key=("error", "warning", "note").index)
    first = result.by_rule()["broken-link"]
    assert [one.url for one in first] == [f"{HOME}broken", f"{HOME}moved-to-gone"]
    assert first[0].weight > first[1].weight
    assert first[0].pages == 2  # home and source


def test_the_source_line_and_anchor_of_a_broken_link(result: AuditResult) -> None:
    broken = next(one for one in result.findings if one.url == f"{HOME}broken")
    home, source = broken.sources
    assert (home.url, home.text, home.position, home.element) == (HOME, "to broken", "main", "a")
    assert (source.url, source.text, source.line) == (f"{HOME}source", "Second link", 4)
    fragment = next(one for one in result.findings if one.rule == "missing-fragment")
    assert (fragment.sources[0].line, fragment.pages) == (5, 1)  # the attribute is on the line after its tag
    moved = next(one for one in result.findings if one.url == f"{HOME}moved-to-gone")
    assert moved.message == f"redirects to {HOME}broken: http 404"


def test_a_survey_without_bodies_is_checked_as_far_as_possible(tmp_path: Path) -> None:
    with Survey(survey_of(tmp_path / "c.survey", archive=False)) as survey:
        found = audit(survey)
    assert {"broken-link", "redirect-chain", "slow-page"} <= found.by_rule().keys()
    assert found.skipped["missing-title"] == "36 of 36 pages have no archived body"
    assert next(one for one in found.findings if one.url == f"{HOME}broken").sources[0].text == "to broken"


def test_rules_can_be_selected(folder: Path) -> None:
    with Survey(folder) as survey:
        assert {one.rule for one in audit(survey, selected(["thin-page", "heavy-page"])).findings} == {
            "thin-page",
            "heavy-page",
        }
    assert "thin-page" not in selected(without=["thin-page"])
    with pytest.raises(UsageError, match="did you mean broken-link"):
        selected(["broken-links"])


def test_exit_codes_and_the_baseline(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "old.json"
    done = CommandResult(capsys, "check", str(folder), "--json")
    assert done.code == 3
    old.write_text(done.out, "utf-8")
    document = json.loads(done.out)
    assert (document["schema"], document["command"]) == (3, "check")
    assert document["counts"] == {"error": 6, "warning": 18, "note": 8}
    assert document["coverage"]["at_least"] > 0.8
    again = CommandResult(capsys, "check", str(folder), "--baseline", str(old))
    assert (again.code, again.out.splitlines()[0]) == (0, "No finding on 36 pages, 32 known findings left out.")
    assert CommandResult(capsys, "check", str(folder), "--fail-on", "never").code == 0
    notes = ["check", str(folder), "--rule", "missing-heading"]
    assert CommandResult(capsys, *notes).code == 0
    assert CommandResult(capsys, *notes, "--fail-on", "note").code == 3
    old.write_text("[]", "utf-8")
    wrong = CommandResult(capsys, "check", str(folder), "--baseline", str(old))
    assert wrong.code == 2
    assert "is not a result of check" in wrong.err


def test_text_csv_and_html(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "check.html"
    done = CommandResult(capsys, "check", str(folder), "--html", str(page), "-n", "100")
    assert f"{HOME}broken\n" in done.out
    assert "“Second link”" not in done.out  # the most important source is shown
    assert "“to broken” in the main content, and 1 other page" in done.out
    html = page.read_text("utf-8")
    assert html.count("<h2 id=") == len(PLANTED)
    policy = re.search(r"script-src 'sha256-([A-Za-z0-9+/=]+)'", html)
    assert policy
    assert html.count("<script>") == 1
    table = CommandResult(capsys, "check", str(folder), "--csv").out.splitlines()
    assert len(table) == 1 + 32
    assert table[0].startswith("severity,rule,weight,pages,url,message,source,line,text,position,fingerprint")


def test_sarif(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = tmp_path / "check.sarif"
    CommandResult(capsys, "check", str(folder), "--sarif", str(to), "--map", f"{HOME}*=docs/*.md")
    log = json.loads(to.read_text("utf-8"))
    assert log["version"] == "2.1.0"
    SARIF.validate(log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert sorted(rules) == sorted(PLANTED)
    assert len(run["results"]) == 32
    for one in run["results"]:
        assert rules[one["ruleIndex"]] == one["ruleId"]
        assert one["level"] in ("error", "warning", "note")
        assert 0 <= one["rank"] <= 100
        assert one["message"]["text"]
        assert one["locations"]
    broken = next(one for one in run["results"] if one["message"]["text"].startswith(f"{HOME}broken"))
    places = [place["physicalLocation"] for place in broken["locations"]]
    assert {"artifactLocation": {"uri": "docs/source.md"}, "region": {"startLine": 4}} in places


def test_junit(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = tmp_path / "check.xml"
    CommandResult(capsys, "check", str(folder), "--junit", str(to))
    (suite,) = ElementTree.fromstring(to.read_text("utf-8"))  # noqa: S314  # our own file
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["skipped"]) == (
        str(len(RULES)),
        str(len(PLANTED)),
        "4",
    )
    assert [part.tag for part in suite] == ["properties", *["testcase"] * len(RULES), "system-out", "system-err"]
    assert {"id", "package", "hostname", "timestamp", "name", "time", "errors"} <= suite.attrib.keys()
    cases = {case.attrib["name"]: case for case in suite.findall("testcase")}
    assert {name for name, case in cases.items() if case.find("failure") is not None} == PLANTED.keys()
    assert cases["orphan"].find("skipped") is not None


def test_annotations(annotated: list[str]) -> None:
    assert len(annotated) == 32
    assert any(re.match(r"::error file=docs/index\.html\.md,line=\d+,title=broken-link::", line) for line in annotated)


def test_a_site_over_http(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pages = {"/": linked("/a", "/none", title="Home"), "/a": linked("/", title="A")}
    with served(pages) as url:
        done = CommandResult(capsys, "check", url, "--rule", "broken-link", *QUICK)
    assert done.code == 3, done.err
    assert f"{url}none\n" in done.out
    assert f"on {url} line 1 “a link” in the main content" in done.out
    with served({**pages, "/": linked("/a", title="Home")}) as url:
        fixed = CommandResult(capsys, "check", url, "--rule", "broken-link", *QUICK)
    assert (fixed.code, fixed.out.splitlines()[0]) == (0, "No finding on 2 pages.")


def test_a_site_that_cannot_be_fetched_is_not_free_of_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with served({"/robots.txt": "User-agent: *\nDisallow: /\n"}) as url:
        done = CommandResult(capsys, "check", url, *QUICK)
    assert done.code == 5
    assert "No finding" not in done.out


def test_a_wrong_map_is_reported_before_the_crawl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log: list[str] = []
    with served({"/": linked(title="Home")}, log) as url:
        done = CommandResult(capsys, "check", url, "--map", "docs", *QUICK)
    assert (done.code, log) == (2, [])
    assert "map must be PREFIX=FOLDER" in done.err


@pytest.mark.parametrize("text", ["[" * 100_000, '{"findings": 1}', "\x00", '{"findings": [1]}'])
def test_a_hostile_baseline_is_one_message(text: str, folder: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "old.json").write_text(text, "utf-8")
    done = CommandResult(capsys, "check", str(folder), "--rule", "orphan", "--baseline", str(tmp_path / "old.json"))
    assert done.code not in (0, 3)
    assert "result of check" in done.err


def test_answers_that_a_stranger_wrote_are_ignored(tmp_path: Path) -> None:
    for entries in ('{"https://a.example/": [1' + "0" * 400 + ', "", ""]}', "[" * 100_000):
        (tmp_path / ANSWERS).write_text(f'{{"schema": 1, "answers": {entries}}}', "utf-8")
        assert read_answers(tmp_path, 1.0, 1.0) == {}
    (tmp_path / ANSWERS).write_text('{"schema": 1, "answers": {"https://a.example/\\ud800": [1, "", ""]}}', "utf-8")
    known = read_answers(tmp_path, 1.0, 1.0)
    write_answers(tmp_path, {url: one._replace(at=time.time()) for url, one in known.items()}, ())
    assert read_answers(tmp_path, time.time() + 1, 60.0).keys() == known.keys()


def test_fragments_with_line_ends_and_very_long_ones() -> None:
    body = b"<a href='/b#x&#10;::error::y'>1</a><a href='/b#" + b"z" * 5_000 + b"'>2</a>"
    assert read_facts(body, HOME, {}).fragments == ((f"{HOME}b", "x::error::y"),)


def test_pages_cannot_name_files_outside_the_source_folder() -> None:
    places = {"https://a.example/": "docs/"}
    for path in ("..%2f..%2fetc/passwd", "x/..%5c..%5cb", "%2e%2e/b"):
        assert file_of(f"https://a.example/{path}", places) == f"https://a.example/{path}"
    source = Source("https://a.example/a%20b%0Ac%3A.html", 0.1, 1)
    found = Finding("missing-title", source.url, "no title", 0.1, (source,))
    result = AuditResult("a.survey", (found,), {}, 1, 0, 0, None)
    place = json.loads(sarif(result, places))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "docs/a%20b%0Ac%3A.html"
    assert github(result, places)[0].startswith("::warning file=docs/a b\\nc%3A.html,line=1,title=missing-title::")


def test_rules_that_were_judged_in_part_fail_in_junit() -> None:
    found = Finding("external-broken", "https://b.example/", "link: http 404", 0.1, ())
    skipped = {"external-broken": "5 of 6 URLs were not requested"}
    result = AuditResult("a.survey", (found,), skipped, 1, 0, 0, None)
    written = junit(result, ["external-broken"])
    assert 'failures="1" errors="0" skipped="0"' in written
    assert "<failure " in written
    assert "<skipped" not in written


def test_external_links_and_resources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log: list[str] = []
    with served({"/robots.txt": "User-agent: *\nDisallow: /private\n", "/there": "x"}, log) as other:
        outside = [f"{other.replace('127.0.0.1', 'localhost')}{name}" for name in ("there", "lost", "private/x")]
        head = '<link rel=stylesheet href="/none.css"><img src="/there.png" alt=x>'
        pages = {"/": linked(*outside, title="Home") + head, "/there.png": "x"}
        with served(pages) as url:
            words = ["check", url, "--rule", "external-broken", "--rule", "broken-resource", "--json"]
            more = ["--external", "--resources", "--allow", "localhost", *QUICK]
            done = CommandResult(capsys, *words, *more)
    found = json.loads(done.out)
    assert [(one["rule"], one["message"]) for one in found["findings"]] == [
        ("broken-resource", "resource: http 404"),
        ("external-broken", "link: http 404"),
    ]
    assert [one["url"] for one in found["findings"]] == [f"{url}none.css", outside[1]]
    assert found["findings"][1]["sources"][0]["text"] == "a link"
    assert not found["skipped"]
    assert not any(path.startswith("/private") for path in log)


def test_rules_are_switched_in_the_project_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "surveyor.toml"
    project.write_text('[check]\nthin-page = "off"\nmissing-heading = "error"\n', "utf-8")
    sarif = tmp_path / "a.sarif"
    found = json.loads(CommandResult(capsys, "check", str(folder), "--json", "--sarif", str(sarif)).out)["findings"]
    severities = {one["rule"]: one["severity"] for one in found}
    assert "thin-page" not in severities
    assert (severities["missing-heading"], severities["slow-page"]) == ("error", "warning")
    order = [("error", "warning", "note").index(one["severity"]) for one in found]
    assert order == sorted(order)
    named = json.loads(CommandResult(capsys, "check", str(folder), "--json", "--rule", "thin-page").out)
    assert [one["rule"] for one in named["findings"]] == ["thin-page"]  # named on the command line
    project.write_text('[check]\nthin-pages = "off"\n', "utf-8")
    wrong = CommandResult(capsys, "check", str(folder))
    assert (wrong.code, "did you mean thin-page?" in wrong.err) == (2, True)
    project.write_text('[check]\nthin-page = "no"\n', "utf-8")
    assert "check of thin-page must be off, error, warning or note" in CommandResult(capsys, "check", str(folder)).err


def test_only_findings_since_an_earlier_survey(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repaired = survey_of(tmp_path / "repaired.survey", fails=False)
    worse = json.loads(CommandResult(capsys, "check", str(folder), "--since", str(repaired), "--json").out)
    assert [(one["rule"], one["url"]) for one in worse["findings"]] == [
        ("failing-link", f"{HOME}fails"),
        ("needs-javascript", f"{HOME}script"),
    ]
    better = CommandResult(capsys, "check", str(repaired), "--since", str(folder))
    assert (better.code, "failing-link" in better.out) == (0, False)


def test_images_of_all_sizes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    body = """<picture><source srcset="/large.avif 2x,
        /lost.avif"></picture><img alt=x srcset="/there.png 1x, /none.png 2x"><video poster="/dark.png"></video>"""
    names = ("/there.png", "/large.avif")
    pages = {"/": linked("/", title="Home") + "\n" + body, **dict.fromkeys(names, "x")}
    with served(pages) as url:
        words = ["check", url, "--rule", "broken-resource", "--resources", "--json", *QUICK]
        found = json.loads(CommandResult(capsys, *words).out)["findings"]
    assert {one["url"]: one["sources"][0]["line"] for one in found} == {
        f"{url}lost.avif": 2,
        f"{url}none.png": 3,
        f"{url}dark.png": 3,
    }


def test_answers_of_external_sites_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log: list[str] = []
    survey = tmp_path / "a.survey"
    more = ["--rule", "external-broken", "--external", "--allow", "localhost", "--json", *QUICK]
    with served({"/there": "x"}, log) as other:
        outside = [f"{other.replace('127.0.0.1', 'localhost')}{name}" for name in ("there", "lost")]
        with served({"/": linked(*outside, title="Home")}) as url:
            first = CommandResult(capsys, "check", url, "--out", str(survey), *more)
        asked = len(log)
        again = CommandResult(capsys, "check", str(survey), *more)
        assert (len(log), json.loads(again.out)["findings"]) == (asked, json.loads(first.out)["findings"])
        assert "0 requests sent, robots.txt included; 2 answers were known" in again.err
        CommandResult(capsys, "check", str(survey), *more, "--max-age", "0")
        assert len(log) > asked
    (survey / "answers.json").write_text('{"schema": 1, "answers": {"x": [1]}}', "utf-8")
    assert CommandResult(capsys, "check", str(survey), *more).code == 3  # refused connections now


@pytest.mark.parametrize(("days", "message"), [(10.5, "the certificate expires in 10 days"), (60.0, "")])
def test_certificates_that_expire_soon(
    days: float, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file, context = certificate(tmp_path / "tls", days)
    monkeypatch.setenv("SURVEYOR_CA_FILE", str(file))
    with served({"/": linked("/a"), "/a": linked("/")}, tls=context) as url:
        done = CommandResult(capsys, "check", url, "--rule", "certificate-expiry", "--json", *QUICK)
    found = json.loads(done.out)["findings"]
    assert [one["url"] for one in found] == ([url] if message else []), done.err
    assert all(one["message"].startswith(message) for one in found)
    assert done.code == (3 if message else 0)


def test_a_certificate_that_has_expired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    survey, pages = tmp_path / "a.survey", {"/": linked("/a"), "/a": linked("/")}
    file, context = certificate(tmp_path / "valid", 60)
    monkeypatch.setenv("SURVEYOR_CA_FILE", str(file))
    with served(pages, tls=context) as url:
        CommandResult(capsys, "check", url, "--out", str(survey), *QUICK)
    file, context = certificate(tmp_path / "expired", -1)
    monkeypatch.setenv("SURVEYOR_CA_FILE", str(file))
    with served(pages, tls=context, port=int(url.rpartition(":")[2].rstrip("/"))):
        done = CommandResult(
            capsys, "check", str(survey), "--certificates", "--rule", "certificate-expiry", "--json", *QUICK
        )
    (found,) = json.loads(done.out)["findings"]
    assert found["message"] == "the certificate has expired"


def test_lists_of_links_are_text_if_they_have_words_of_their_own() -> None:
    items = "".join(
        f"<li><a href=/{name}>{name}</a> wrote part {name} of the program and its tests" for name in "abcdef"
    )
    menu = "<nav>" + "<a href=/x>a menu entry</a> " * 30 + "</nav>"
    assert read_facts(f"<title>t</title>{menu}<ul>{items}</ul>".encode(), HOME, {}).words >= 40
    assert read_facts(f"<title>t</title>{menu}<p>Nothing here</p>".encode(), HOME, {}).words < 5


def test_linked_files_are_requested_as_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log: list[str] = []
    with served({"/": linked("/a.pdf", "/b.json", title="Home"), "/a.pdf": "x"}, log) as url:
        words = ["check", url, "--rule", "broken-link", "--rule", "external-broken", "--json", *QUICK]
        assert json.loads(CommandResult(capsys, *words).out)["findings"] == []
        assert "/b.json" not in log
        found = json.loads(CommandResult(capsys, *words, "--resources", "--external").out)["findings"]
    assert [(one["rule"], one["url"], one["message"]) for one in found] == [
        ("broken-link", f"{url}b.json", "link to a file: http 404")
    ]


def test_files_that_style_sheets_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    css = "a { background: url(there.png) } b { background: url('none.png') } /* url(no.png) */ @import 'x.css';"
    head = "<link rel=stylesheet href=/css/a.css><link rel=stylesheet href=/lost.css>"
    head += "<link rel=author href=/me><form action=/find></form><form method=post action=/do></form>"
    pages: Pages = {
        "/": linked("/", title="Home") + head,
        "/css/a.css": ("text/css", css.encode()),
        "/css/there.png": "x",
    }
    with served(pages) as url:
        words = ["check", url, "--rule", "broken-resource", "--resources", "--json", *QUICK]
        found = json.loads(CommandResult(capsys, *words).out)["findings"]
    assert {one["url"].removeprefix(url): one["message"] for one in found} == {
        "lost.css": "resource: http 404",
        "css/none.png": "named by a style sheet: http 404",
        "css/x.css": "named by a style sheet: http 404",
        "find": "resource: http 404",
        "me": "resource: http 404",
    }


def test_the_report_is_bounded(tmp_path: Path) -> None:
    """Every rule has many findings with the longest names, which need escapes."""
    tail = "&" * 2_000
    found = [
        Finding(rule, f"https://h{number}.example/{tail}", tail, 0.5, (Source(f"https://h{number}.example/{tail}"),))
        for rule in RULES
        for number in range(300)
    ]
    many = AuditResult("a.survey", tuple(found), {}, 300, 0, 0, None)
    size = write_html(many, tmp_path / "a.html", "t").stat().st_size
    assert 500_000 < size < 3_000_000
    text = (tmp_path / "a.html").read_text("utf-8")
    assert text.count("most important of 300") == len(RULES)


def test_a_survey_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, "check", "typo.survey")
    assert result.code == 2
    assert "there is no survey at typo.survey" in result.err


@pytest.mark.parametrize(
    ("site", "code", "problem", "hint"),
    [
        ("small.graph", 4, "small.graph is not a survey (it has no survey.toml)", "https://small.graph/"),
        ("small.graph/", 4, "small.graph/ is not a survey (it has no survey.toml)", "https://small.graph/"),
        ("page.html", 4, "page.html is not a survey (it has no survey.toml)", "https://page.html/"),
        ("nosuch", 2, "'nosuch' is neither a survey nor an http or https URL", "https://nosuch/"),
        ("ftp.survey", 2, "there is no survey at ftp.survey", "URL"),
    ],
)
def test_what_is_neither_a_survey_nor_a_url_is_not_looked_up(
    site: str,
    code: int,
    problem: str,
    hint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.graph").mkdir()
    (tmp_path / "page.html").touch()
    monkeypatch.setattr("surveyor.cli.check._crawl", lambda *_: pytest.fail("a crawl begins"))
    result = CommandResult(capsys, "check", site, "--contact", "me@example.org")
    assert result.code == code
    first, second = result.err.splitlines()
    assert first == problem
    assert hint in second


@pytest.mark.parametrize(
    ("given", "flags"),
    [
        (["--until", "foo", "--scope", "bar", "--delay", "99"], "--until, --scope, --delay"),
        (["--fresh", "--out", "b.survey"], "--fresh, --out"),
        (["--external", "--delay", "1", "--exclude", "*/x/*", "--exclude", "--y"], "--exclude"),
        (["--allow", "127.0.0.1"], "--allow"),
    ],
)
def test_options_of_a_crawl_without_one_are_named(
    given: list[str], flags: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = CommandResult(capsys, "check", str(folder), *given)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"{flags} without a crawl: {folder} is a survey\n")
    assert ("only with --external" in result.err) == (flags in ("--until, --scope, --delay", "--allow"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("option", ["--html", "--sarif", "--junit"])
def test_a_file_that_cannot_be_written_is_named(option: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = CommandResult(capsys, "check", str(folder), option, "/dev/full", "--rule", "thin-page")
    assert result.code == 2
    assert result.err.startswith("/dev/full cannot be written: No space left on device\n")


def test_the_number_of_words_of_a_thin_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"/": "home of all", "/one": "single", "/none": ""}
    pages = {path: f"<title>{path}</title><p>{text}</p>" for path, text in words.items()}
    pages["/"] += "<nav><a href=/one>1</a><a href=/none>0</a></nav>"
    with served(pages) as url:
        check = ["check", url, *QUICK, "--rule", "thin-page", "--out", str(tmp_path / "a.survey"), "--json"]
        found = CommandResult(capsys, *check).json()["findings"]
    assert {one["url"].removeprefix(url): one["message"] for one in found} == {
        "": "3 words of text",
        "one": "1 word of text",
        "none": "0 words of text",
    }

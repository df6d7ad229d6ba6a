"""Findings of an audit for other programs: SARIF 2.1.0, JUnit XML and annotations of GitHub Actions.

A *map* from URL prefixes to source folders names the file that a page is built from, so that findings appear beside the
source: with `https://docs.example.org/=docs/`, a finding on `https://docs.example.org/a/b.html` is in `docs/a/b.html`;
with `https://docs.example.org/*.html=docs/*.md` it is in `docs/a/b.md`. The longest prefix wins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import quote, unquote
from xml.sax.saxutils import escape, quoteattr

from surveyor import __version__
from surveyor.check.audit import AuditResult
from surveyor.check.findings import Finding, Source
from surveyor.check.rules import RULES
from surveyor.errors import UsageError
from surveyor.report.numbers import counted, printable
from surveyor.survey.export import NOT_XML

LEVELS = {"error": "error", "warning": "warning", "note": "note"}
COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
OUTSIDE = frozenset((".", ".."))  # in a path: it would leave its folder
INDEX = "index.html"  # of a URL that ends with a slash


def source_map(words: Sequence[str]) -> dict[str, str]:
    """Parse PREFIX=FOLDER pairs; both may contain one `*`, in place of the rest of the path without its suffix."""
    found = {}
    for word in words:
        prefix, equals, folder = word.rpartition("=")
        if not equals or "://" not in prefix or prefix.count("*") != folder.count("*") or prefix.count("*") > 1:
            raise UsageError(
                f"map must be PREFIX=FOLDER, got {word!r}",
                hint="example: https://docs.example.org/=docs/ or https://docs.example.org/*.html=docs/*.md",
            )
        found[prefix] = folder
    return found


def file_of(url: str, places: Mapping[str, str]) -> str:
    """Return the source file of a page; the URL itself if no prefix matches, or if the file were outside the folder.

    >>> places = {"https://a.example/": "docs/", "https://a.example/b/*.html": "src/*.md"}
    >>> file_of("https://a.example/x/", places), file_of("https://a.example/b/c.html?d", places)
    ('docs/x/index.html', 'src/c.md')
    """
    plain = url.partition("#")[0].partition("?")[0]
    plain += INDEX if plain.endswith("/") else ""
    best = ("", "")
    for prefix, folder in places.items():
        start, star, end = prefix.partition("*")
        if not plain.startswith(start) or not plain.endswith(end) or len(start) < len(best[0].partition("*")[0]):
            continue
        rest = plain[len(start) : len(plain) - len(end)] if end else plain[len(start) :]
        name = unquote(rest)
        if not OUTSIDE.isdisjoint(name.replace("\\", "/").split("/")):
            continue
        best = prefix, folder.replace("*", name) if star else folder + name
    return best[1] or url


def sarif(result: AuditResult, places: Mapping[str, str]) -> str:
    """Return the findings as one SARIF log."""
    by_rule = result.by_rule()
    names = list(by_rule)
    rules = [
        {
            "id": name,
            "shortDescription": {"text": RULES[name].what},
            "fullDescription": {"text": RULES[name].why},
            "help": {"text": RULES[name].fix},
            "defaultConfiguration": {"level": LEVELS[by_rule[name][0].severity]},
        }
        for name in names
    ]
    results = [
        {
            "ruleId": one.rule,
            "ruleIndex": names.index(one.rule),
            "level": LEVELS[one.severity],
            "rank": round(100 * one.weight, 6),
            "message": {"text": printable(f"{one.url}: {one.message} ({counted(one.pages, 'page')})")},
            "locations": [_location(source, places) for source in one.sources[:10]],
            "partialFingerprints": {"surveyor/v1": one.fingerprint},
        }
        for one in result.findings
    ]
    driver = {"name": "surveyor", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=1) + "\n"


def _location(source: Source, places: Mapping[str, str]) -> dict[str, object]:
    uri = file_of(source.url, places)
    place: dict[str, object] = {"artifactLocation": {"uri": uri if uri == source.url else quote(uri)}}
    if source.line:
        place["region"] = {"startLine": source.line}
    return {"physicalLocation": place}


def junit(result: AuditResult, names: Sequence[str]) -> str:
    """Return the findings as JUnit XML: one test case for each rule that was judged, failed if there is a finding.

    The file is valid in the schema of Ant as well, which is stricter than what CI servers read.
    """
    by_rule = result.by_rule()
    skipped = sum(name in result.skipped and name not in by_rule for name in names)
    failed = sum(name in by_rule for name in names)
    counts = f'tests="{len(names)}" failures="{failed}" errors="0" skipped="{skipped}" time="0"'
    cases = [_case(name, by_rule.get(name, []), result.skipped.get(name, "")) for name in names]
    place = f'id="0" package="surveyor" hostname="localhost" timestamp="{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"'
    inside = f"<properties/>\n{''.join(cases)}<system-out/><system-err/>"
    suite = f'<testsuite name="surveyor check" {place} {counts}>\n{inside}</testsuite>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>{suite}</testsuites>\n'


def _case(name: str, findings: Sequence[Finding], skipped: str) -> str:
    start = f'<testcase classname="surveyor.check" name={quoteattr(name)} time="0">'
    if skipped and not findings:  # a rule that was judged in part may have both
        return f"{start}<skipped message={_quoted(skipped)}/></testcase>\n"
    if not findings:
        return f"{start}</testcase>\n"
    lines = "\n".join(_line(one) for one in findings)
    message = _quoted(f"{counted(len(findings), 'finding')}: {RULES[name].what}")
    kind = quoteattr(findings[0].severity)
    return f"{start}<failure type={kind} message={message}>{escape(_clean(lines))}</failure></testcase>\n"


def _line(one: Finding) -> str:
    first = one.sources[0] if one.sources else None
    place = ""
    if first is not None and first.url != one.url:
        place = f" on {first.url}" + (f":{first.line}" if first.line else "")
    return f"{one.url}: {one.message}{place} ({counted(one.pages, 'page')})"


def _clean(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)


def _quoted(text: str) -> str:
    return quoteattr(_clean(text))


def github(result: AuditResult, places: Mapping[str, str]) -> list[str]:
    """Return the findings as workflow commands of GitHub Actions, one per line."""
    lines = []
    for one in result.findings:
        first = one.sources[0] if one.sources else None
        where = "" if first is None else f"file={_property(file_of(first.url, places))},"
        line = f"line={first.line}," if first is not None and first.line else ""
        text = f"{one.url}: {one.message} ({counted(one.pages, 'page')})"
        lines.append(f"::{COMMANDS[one.severity]} {where}{line}title={one.rule}::{_data(text)}")
    return lines


def _data(text: str) -> str:
    """Escape the message of a workflow command: text from a page must not end the line."""
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

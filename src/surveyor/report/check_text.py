"""Findings of an audit on a terminal, as CSV and as one HTML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from surveyor.check.audit import LINKED, AuditResult
from surveyor.check.findings import Finding, Source
from surveyor.check.rules import RULES
from surveyor.report import charts, html_page
from surveyor.report.numbers import counted, percent, share_at_least
from surveyor.report.tables import Table
from surveyor.web.urls import origin

KEYS = ("severity", "rule", "weight", "pages", "url", "message", "source", "line", "text", "position", "fingerprint")
LEAST = 1e-5  # smaller importances are not distinguished
MOST_ROWS = 200  # of one rule in the HTML file
MOST_LENGTH = 100_000  # characters of the table of one rule, about, so that the file stays below 3 MB
PLACES = {"main": "main content", "": ""}


def headline(result: AuditResult) -> str:
    """Return the number of findings by severity, or that there is none."""
    counts = [counted(number, severity) for severity, number in result.counts().items() if number]
    known = f", {counted(result.known, 'known finding')} left out" if result.known else ""
    return f"{', '.join(counts) or 'No finding'} on {counted(result.pages, 'page')}{known}."


def scope_line(result: AuditResult) -> str:
    """Return what the findings cover."""
    captured = ""
    if result.coverage is not None:
        captured = f"at least {share_at_least(result.coverage['at_least'])} of the importance captured"
    rest = [
        f"{counted(number, 'page')} {what}"
        for number, what in ((result.queued, "queued"), (result.blocked, "blocked"))
        if number
    ]
    return "; ".join([captured, *(rest or ["no page queued or blocked"])])


def skipped_lines(result: AuditResult) -> list[str]:
    """Return the rules that were not judged, with the reasons."""
    reasons: dict[str, list[str]] = {}
    for name, why in result.skipped.items():
        reasons.setdefault(why, []).append(name)
    return [f"not judged: {', '.join(names)} ({why})" for why, names in reasons.items()]


def archive_lines(result: AuditResult) -> list[str]:
    """Return how many pages were read without their content, or without its end, and the first of these."""
    found = []
    if result.not_archived and result.not_archived < result.pages:
        found.append(f"not archived: {counted(result.not_archived, 'page')}, judged without content")
    if result.in_part:
        more = f" and {len(result.in_part) - 3:,} more" if len(result.in_part) > 3 else ""
        named = ", ".join(result.in_part[:3])
        found.append(f"received in part: {named}{more}; what the missing part may hold is not judged")
    return found


def lines(result: AuditResult, count: int) -> Iterator[str]:
    """Yield the most important findings, grouped by rule."""
    left = count
    for name, found in result.by_rule().items():
        if left <= 0:
            return
        rule = RULES[name]
        yield ""
        yield f"{found[0].severity}  {name}  {counted(len(found), 'finding')}: {rule.what}"
        yield f"  fix: {rule.fix}"
        for one in found[: min(left, PER_RULE)]:
            yield from finding_lines(one)
        if len(found) > PER_RULE:
            yield f"    … {len(found) - PER_RULE:,} more"
        left -= min(len(found), PER_RULE)


PER_RULE = 5


def importance(weight: float) -> str:
    """Format an importance: 2.02 %; very small ones as below a limit.

    >>> importance(0.0202), importance(1e-24)
    ('2.02 %', '< 0.001 %')
    """
    return percent(weight) if weight == 0 or weight >= LEAST else "< 0.001 %"


def finding_lines(one: Finding) -> Iterator[str]:
    """Yield the lines of one finding: the page, the message, the most important page that links to it."""
    yield f"  {importance(one.weight):>9}  {one.url}"
    yield f"             {one.message}"
    for source in one.sources[:1] if one.rule in LINKED else ():
        more = f", and {counted(one.pages - 1, 'other page')}" if one.pages > 1 else ""
        where = f" (in a template: {place(one.template)})" if one.template else ""
        yield f"             on {source.url}{_line(source)}{anchor(source)}{more}{where}"


def _line(source: Source) -> str:
    return f" line {source.line:,}" if source.line else ""


def anchor(source: Source) -> str:
    """Return the anchor text and position of a link, to follow other details."""
    text = f" “{source.text}”" if source.text else ""
    return f"{text} in the {place(source.position)}" if source.position else text


def place(position: str) -> str:
    """Return the name of a position on a page."""
    return PLACES.get(position, position)


def table(result: AuditResult) -> Table:
    """Return all findings as a table, one row each."""
    rows = [_row(one) for one in result.findings]
    return Table(KEYS, [[str(cell) for cell in row] for row in rows], KEYS, rows, left=7)


def _row(one: Finding) -> tuple[object, ...]:
    first = one.sources[0] if one.sources else Source("")
    start = one.severity, one.rule, one.weight, one.pages, one.url, one.message
    return *start, first.url, first.line, first.text, first.position, one.fingerprint


def write_html(result: AuditResult, path: Path, title: str) -> Path:
    """Write the findings as one HTML file with sortable tables; return its path."""
    base = main_origin(result)
    parts = [
        *([f"<p>{html_page.link(f'{base}/')}</p>"] if base else []),
        f'<p class="soft">{html_page.text(scope_line(result))}</p>',
        html_page.facts(
            {
                **{f"{severity}s": f"{number:,}" for severity, number in result.counts().items()},
                "pages checked": f"{result.pages:,}",
            }
        ),
        *(f'<p class="soft">{html_page.text(line)}</p>' for line in [*skipped_lines(result), *archive_lines(result)]),
        *_contents(result),
    ]
    for name, found in result.by_rule().items():
        parts += _section(name, found, base)
    if result.overview is not None:
        parts += charts.overview_parts(result.overview)
    return html_page.write(html_page.document(title, parts, sortable=True), path)


def _contents(result: AuditResult) -> list[str]:
    """Return the table of rules with findings; each leads to its section."""
    rows = "".join(
        f'<tr><td><span class="{found[0].severity}">{found[0].severity}</span></td><td>{len(found):,}</td>'
        f'<td><a href="#{name}">{name}</a><div class="soft">{html_page.text(RULES[name].what)}</div></td></tr>\n'
        for name, found in result.by_rule().items()
    )
    if not rows:
        return []
    head = "<thead><tr><th>severity</th><th>findings</th><th>rule</th></tr></thead>"
    return [f'<div class="scroll"><table class="keyed left0 rules">{head}\n<tbody>{rows}</tbody></table></div>']


def main_origin(result: AuditResult) -> str:
    """Return the origin of most pages with findings; empty if there is none."""
    origins = Counter(origin(source.url) for one in result.findings for source in one.sources[:1])
    return origins.most_common(1)[0][0] if origins else ""


def _section(name: str, found: Sequence[Finding], base: str) -> Iterator[str]:
    rule = RULES[name]
    yield f'<h2 id="{name}">{html_page.text(f"{name}: {counted(len(found), found[0].severity)}")}</h2>'
    yield f"<p>{html_page.text(rule.what)} {html_page.text(rule.why)} <b>Fix:</b> {html_page.text(rule.fix)}</p>"
    grid = _grid(name, found[:MOST_ROWS], len(found), base)
    if len(grid) > MOST_LENGTH:  # names as long as may be
        grid = _grid(name, found[: MOST_ROWS * MOST_LENGTH // len(grid)], len(found), base)
    yield f'<div class="findings">{grid}</div>'


def _grid(name: str, shown: Sequence[Finding], total: int, base: str) -> str:
    """Return the table of the first findings of a rule."""
    cells = [[importance(one.weight), f"{one.pages:,}", _where(one), f"{one.url}\n{one.message}"] for one in shown]
    titles = ["importance", "pages", "most important page with it", "target"]
    if name not in LINKED:
        cells, titles = [[first, pages, page] for first, pages, _, page in cells], [*titles[:2], "page"]
    more = f"The {len(shown)} most important of {total:,}. " if total > len(shown) else ""
    about = f"{more}Importance is that of the pages concerned together."
    return html_page.grid(Table(titles, cells, (), (), left=len(titles) - 2), about, links=True, base=base)


def _where(one: Finding) -> str:
    first = one.sources[0] if one.sources else None
    if first is None:
        return ""
    template = f"\nin a template: {place(one.template)}" if one.template else ""
    return f"{first.url}\n{(_line(first) + anchor(first)).strip()}{template}".rstrip()

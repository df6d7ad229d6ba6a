"""Tables and text lines of a survey: top pages, status of a URL, hosts, blocked pages, settings, SQL results."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from surveyor.config import FIELDS, LIST, RULES, SWITCH, TABLE
from surveyor.report.numbers import count, counted, percent
from surveyor.report.tables import Formats, Table, table_of
from surveyor.web.urls import origin

if TYPE_CHECKING:
    from surveyor.outcome import Visit
    from surveyor.report.ranking import Page
    from surveyor.report.survey_html import HostSummary
    from surveyor.store.manifest import Manifest
    from surveyor.survey.sql import QueryResult
    from surveyor.survey.survey import Survey
    from surveyor.survey.url_status import UrlStatus

SQL_TYPES = {"int32": "integer", "int64": "integer", "float64": "number"}
HOST_COUNTS: Formats = {"share": percent, "fetched": count, "known": count, "blocked": percent}
HOST_COUNTS |= {"requests": count, "errors": count}
PAGE = re.compile(r"https?://[^/]+/")
LONGEST_URL = 120  # characters of a URL in a sentence


def top_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Format the best pages; pages that were not fetched are marked."""
    keys = ("score", "share", "in_links", "fetched", "url")
    cells = []
    for row in rows:
        page = row["url"] + ("" if row["fetched"] else "  (not fetched)")
        cells.append((f"{row['score']:.0f}", percent(row["share"]), count(row["in_links"]), page))
    return Table(("score", "share", "in-links", "page"), cells, keys, [[row[key] for key in keys] for row in rows])


def url_status_lines(url: UrlStatus) -> list[str]:
    """Describe the status of a URL and its reason in one to three lines."""
    when = f"{datetime.fromtimestamp(url.fetched_at, UTC):%Y-%m-%d %H:%M} UTC" if url.fetched_at else ""
    code = f"HTTP {url.status}" if url.status else ""
    mass = f"{percent(url.mass)} of all importance waits on it"
    queue = f"position {count(url.queue_position)} of {count(url.queue_length)} in the queue"
    redirect = f"HTTP redirect ({url.status})" if 300 <= url.status < 400 else "canonical URL" if url.status else ""
    parts = {
        "fetched": ["fetched", url.reason, when, code, url.title and f"“{url.title}”"],
        "queued": ["queued", mass, queue if url.queue_position else "waiting for a retry"],
        "blocked": [f"blocked: {url.reason or 'no reason recorded'}", when, code, mass],
        "gone": ["gone", url.reason, when],
        "redirected": [f"redirected to {url.target}", redirect, when],
        "out of scope": [f"out of scope: {url.reason}", "links to it are recorded and carry no importance"],
    }
    lines = [", ".join(filter(None, parts[url.kind]))]
    if url.rule:
        lines.append(f"robots.txt: {url.rule}")
    if url.failures:
        lines.append(f"{counted(url.failures, 'failed request')}, last error: {url.last_error}")
    return lines


def of_one_site(table: Table, key: str = "url") -> Table:
    """Move the origin into the column title if all pages have the same one; commands accept paths as well."""
    names = [str(record[table.keys.index(key)]) for record in table.records]
    sites = {origin(name) if PAGE.match(name) else "" for name in names}
    if len(sites) != 1 or not (site := sites.pop()):
        return table
    column = list(table.titles).index("page")
    titles = [f"page of {site}" if title == "page" else title for title in table.titles]
    cells = [(*row[:column], row[column].removeprefix(site), *row[column + 1 :]) for row in table.cells]
    return replace(table, titles=titles, cells=cells)


def blocked_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Format the reasons of blocked pages."""
    return table_of(rows, {"mass": percent, "pages": count, "reason": str})


def blocked_pages_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Format blocked pages."""
    return table_of(rows, {"mass": percent, "url": str, "reason": str}, left=2)


def javascript_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Format pages that need JavaScript."""
    return table_of(rows, {"share": percent, "url": str})


def importance_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Format pages by estimated importance."""
    return table_of(rows, {"share": percent, "fetches": count, "url": str}, titles={"url": "page"})


def javascript_lines(survey: Survey) -> list[str]:
    """Return lines about pages that need JavaScript, if there are any."""
    if not (pages := survey.javascript()):
        return []
    part = f"{percent(survey.javascript_share)} of the captured importance"
    lines = [f"{counted(len(pages), 'page')} with {part} need JavaScript and are empty without it: {pages[0]['url']}"]
    if survey.needs_javascript:
        lines.append("Scripts are not run, so their links are unknown: this coverage is not the coverage of the site.")
    return lines


def budget_lines(survey: Survey) -> list[str]:
    """Return a warning about domains that automatic budgets cannot distinguish from a farm, if there are such."""
    if (found := survey.unguarded) is None:
        return []
    domains, pages = counted(found["domains"], "domain"), counted(found["pages"], "page")
    others = f" and {counted(found['others'], 'other page')} of its site" if found["others"] else ""
    url = found["url"] if len(found["url"]) <= LONGEST_URL else f"{found['url'][: LONGEST_URL - 1]}…"
    return [
        f"! {domains} known only through {url}{others} may take {pages} of the crawl,",
        "  and so may a farm among them. Add seeds through which these domains are known in more than one way,",
        "  or leave out what is not wanted with --exclude.",
    ]


def topic_lines(survey: Survey) -> list[str]:
    """Return a line about the topic of a focused crawl, if there is one."""
    if (topic := survey.topic) is None:
        return []
    judged = f"{topic['on_topic']:,} of {counted(topic['judged'], 'judged page')} on topic"
    return [f"{topic['rule']}: {judged}, with at least {percent(topic['at_least'])} of all importance"]


def listed_line(survey: Survey) -> str:
    """Return how many listed pages there are, and how many of them were fetched."""
    listed = survey.listed
    known = counted(listed["pages"], "page")
    return f"{known} known in advance, {listed['fetched']:,} fetched, {listed['queued']:,} queued"


def listed_lines(survey: Survey) -> list[str]:
    """Return a line about the listed pages of a survey, if it has any."""
    if not survey.listed["pages"]:
        return []
    found = len(survey.orphans())
    verb = "is an orphan" if found == 1 else "are orphans"
    return [f"{listed_line(survey)}; {found:,} {verb}: no links from a seed lead there"]


def orphans_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Format pages that no link from a seed leads to."""
    return table_of(rows, {"url": str, "title": str}, left=2)


def scope_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Format the links by scope."""
    return table_of(rows, {"mass": percent, "links": count, "where": str})


def ranked_table(
    rows: Sequence[Page], visits: Sequence[Visit | None], true: Mapping[str, float] | None = None
) -> Table:
    """Format the top pages with their status; `visits` are the latest ones, `true` the true shares by URL."""
    known = true is not None
    titles = ("score", "share", *(["true share"] if known else []), "in-links", "status", "page")
    cells, records = [], []
    for row, visit in zip(rows, visits, strict=True):
        truth = [] if true is None else [true.get(row.name, 0.0)]
        title = "" if visit is None else " ".join(visit.title.split())
        page = f"{row.name}\n{title}" if title else row.name
        status = _visit_status(visit)
        cells.append((f"{row.score:.0f}", percent(row.share), *map(percent, truth), count(row.in_links), status, page))
        records.append((row.score, row.share, *truth, row.in_links, status.partition("\n")[0], row.name))
    keys = ("score", "share", *(["true_share"] if known else []), "in_links", "status", "url")
    return Table(titles, cells, keys, records, left=2)


def _visit_status(visit: Visit | None) -> str:
    """Return the status of a page by its latest visit, with the reason on a second line."""
    if visit is None:
        return "queued"
    return f"{visit.kind}\n{visit.reason}" if visit.kind in ("blocked", "gone") and visit.reason else visit.kind


def hosts_table(hosts: Sequence[HostSummary]) -> Table:
    """Format hosts with their counts and delays."""
    delays = {"delay": "{:g} s".format, "shortest": lambda gap: "–" if gap is None else f"{gap:.2f} s"}
    return table_of(hosts, {**HOST_COUNTS, **delays, "name": str}, titles={"name": "host"})


def domains_table(domains: Sequence[HostSummary]) -> Table:
    """Format registrable domains with their counts."""
    return table_of(domains, {**HOST_COUNTS, "name": str}, titles={"name": "domain"})


def reasons_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Format the reasons of blocked pages with their hosts."""

    def where(hosts: Sequence[str]) -> str:
        return hosts[0] if len(hosts) == 1 else f"{count(len(hosts))} hosts"

    return table_of(rows, {"mass": percent, "pages": count, "reason": str, "hosts": where}, left=2)


def statuses_table(statuses: Mapping[str, int]) -> Table:
    """Format the HTTP statuses of requests."""
    total = sum(statuses.values()) or 1
    rows = [{"requests": number, "share": number / total, "status": word} for word, number in statuses.items()]
    return table_of(rows, {"requests": count, "share": percent, "status": str})


def values_table(values: Mapping[str, Any], origins: Mapping[str, str]) -> Table:
    """Format settings with their origins."""
    rows = [(name, format_setting(value), str(origins.get(name, ""))) for name, value in values.items()]
    return Table(("setting", "value", "origin"), rows, ("setting", "value", "origin"), rows, left=3)


def format_setting(value: object) -> str:
    """Return the value of a setting as text: lists with commas, tables as name: value."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {item}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.15g}"
    return "" if value is None else str(value)


def command_of(manifest: Manifest) -> str:
    """Return a command that creates such a survey: its seeds and all settings that are not defaults."""
    words = ["surveyor", "crawl", *manifest.written_seeds]
    for name, value in manifest.settings.items():
        if manifest.origins.get(name, "default") == "default" or name not in FIELDS:
            continue
        kind, flag = FIELDS[name].metadata["kind"], "--" + name.replace("_", "-")
        if kind is SWITCH:
            words.append(flag if value else f"--no-{flag[2:]}")
        elif kind in (LIST, RULES):
            items = value.split(", ") if isinstance(value, str) else value
            words += [word for item in items for word in (flag, str(item))]
        elif kind is not TABLE:  # there are no flags for tables
            words += [flag, format_setting(value)]
    return shlex.join([*words, "--rng", str(manifest.rng)])


def query_table(result: QueryResult) -> Table:
    """Format the result of a query; columns are right-aligned up to the first one with text."""
    numbers = 0
    for column in range(len(result.columns)):
        if any(isinstance(row[column], str | list | dict) for row in result.rows):
            break
        numbers += 1
    return Table(
        titles=result.columns,
        cells=[tuple(map(_cell, row)) for row in result.rows],
        keys=result.columns,
        records=[
            tuple(json.dumps(cell) if isinstance(cell, list | dict) else cell for cell in row) for row in result.rows
        ],
        left=len(result.columns) - numbers,
    )


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def tables_table(tables: Mapping[str, Mapping[str, str]]) -> Table:
    """Format the columns of the tables."""
    rows = [(name, column, SQL_TYPES.get(kind, "text")) for name in tables for column, kind in tables[name].items()]
    lines = [(name, ", ".join(columns)) for name, columns in tables.items()]
    return Table(titles=("table", "columns"), cells=lines, keys=("table", "column", "type"), records=rows, left=2)

"""Tables of a survey: the best pages, hosts, what could not be read, and the settings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from surveyor.config import FIELDS, LIST, RULES, SWITCH, TABLE
from surveyor.report.numbers import count, counted, percent
from surveyor.report.tables import Table
from surveyor.web.urls import origin

if TYPE_CHECKING:
    from surveyor.outcome import Visit
    from surveyor.report.census import Place
    from surveyor.report.pages import Page
    from surveyor.store.manifest import Manifest
    from surveyor.survey.survey import Survey
    from surveyor.survey.url_status import UrlStatus

PAGE = re.compile(r"https?://[^/]+/")


def top_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Format the best pages; pages that were not fetched are marked."""
    keys = ("score", "share", "in_links", "fetched", "url")
    cells = []
    for row in rows:
        page = row["url"] + ("" if row["fetched"] else "  (not fetched)")
        cells.append((f"{row['score']:.0f}", percent(row["share"]), count(row["in_links"]), page))
    return Table(
        titles=("score", "share", "in-links", "page"),
        cells=cells,
        keys=keys,
        records=_records(rows, keys),
    )


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
    """Name the site once, in the title, if all pages of a table are of one; commands take paths as well."""
    names = [str(record[table.keys.index(key)]) for record in table.records]
    sites = {origin(name) if PAGE.match(name) else "" for name in names}
    if len(sites) != 1 or not (site := sites.pop()):
        return table
    column = list(table.titles).index("page")
    titles = [f"page of {site}" if title == "page" else title for title in table.titles]
    cells = [(*row[:column], row[column].removeprefix(site), *row[column + 1 :]) for row in table.cells]
    return replace(table, titles=titles, cells=cells)


def blocked_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out why pages could not be read."""
    keys = ("mass", "pages", "reason")
    return Table(
        titles=("mass", "pages", "why"),
        cells=[(percent(row["mass"]), count(row["pages"]), row["reason"]) for row in rows],
        keys=keys,
        records=_records(rows, keys),
    )


def refused_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out pages that could not be read."""
    keys = ("mass", "url", "reason")
    return Table(
        titles=("mass", "page", "why"),
        cells=[(percent(row["mass"]), row["url"], row["reason"]) for row in rows],
        keys=keys,
        records=_records(rows, keys),
        left=2,
    )


def scripted_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out pages that need JavaScript."""
    keys = ("share", "url")
    return Table(
        titles=("share", "page"),
        cells=[(percent(row["share"]), row["url"]) for row in rows],
        keys=keys,
        records=_records(rows, keys),
        left=1,
    )


def javascript_lines(survey: Survey) -> list[str]:
    """Return what to print about pages that need JavaScript, if there are any."""
    if not (pages := survey.javascript()):
        return []
    held = f"{percent(survey.javascript_share)} of the captured importance"
    lines = [f"{counted(len(pages), 'page')} with {held} needed JavaScript and came without content: {pages[0]['url']}"]
    if survey.needs_javascript:
        lines.append("Scripts are not run, so links behind them are unknown: this coverage is not that of the site.")
    return lines


def leaving_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out where links lead."""
    keys = ("mass", "links", "where")
    return Table(
        titles=("mass", "links", "where to"),
        cells=[(percent(row["mass"]), count(row["links"]), row["where"]) for row in rows],
        keys=keys,
        records=_records(rows, keys),
    )


def ranked_table(
    rows: Sequence[Page], visits: Sequence[Visit | None], true: Mapping[str, float] | None = None
) -> Table:
    """Lay the best pages out with what became of each; `visits` are the latest ones, `true` shares by URL."""
    known = true is not None
    titles = ("score", "share", *(["true share"] if known else []), "in-links", "status", "page")
    cells, records = [], []
    for row, visit in zip(rows, visits, strict=True):
        truth = [] if true is None else [true.get(row.name, 0.0)]
        title = "" if visit is None else " ".join(visit.title.split())
        page = f"{row.name}\n{title}" if title else row.name
        became = status(visit)
        cells.append((f"{row.score:.0f}", percent(row.share), *map(percent, truth), count(row.in_links), became, page))
        records.append((row.score, row.share, *truth, row.in_links, became.partition("\n")[0], row.name))
    keys = ("score", "share", *(["true_share"] if known else []), "in_links", "status", "url")
    return Table(titles, cells, keys, records, left=2)


def status(visit: Visit | None) -> str:
    """Say what became of a page: waiting, read, or why not."""
    if visit is None:
        return "waiting"
    return f"{visit.kind}\n{visit.reason}" if visit.kind in ("blocked", "gone") and visit.reason else visit.kind


def hosts_table(places: Sequence[Place]) -> Table:
    """Lay hosts out, and how they were treated."""
    titles = ("share", "read", "known", "blocked", "requests", "errors", "delay", "kept", "host")
    keys = ("share", "read", "known", "blocked", "requests", "errors", "delay", "pause", "name")
    cells = [
        (
            percent(one.share), count(one.read), count(one.known), percent(one.blocked), count(one.requests),
            count(one.errors), f"{one.delay:g} s", "–" if one.pause is None else f"{one.pause:.2f} s", one.name,
        )
        for one in places
    ]  # fmt: skip
    return Table(titles, cells, keys, [tuple(getattr(one, key) for key in keys) for one in places])


def domains_table(places: Sequence[Place]) -> Table:
    """Lay registrable domains out."""
    keys = ("share", "read", "known", "blocked", "requests", "errors", "name")
    cells = [
        (percent(one.share), count(one.read), count(one.known), percent(one.blocked), count(one.requests),
         count(one.errors), one.name)
        for one in places
    ]  # fmt: skip
    return Table((*keys[:-1], "domain"), cells, keys, [tuple(getattr(one, key) for key in keys) for one in places])


def reasons_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Lay out what keeps pages from being read, and where."""
    keys = ("mass", "pages", "reason", "hosts")
    cells = []
    for row in rows:
        hosts = row["hosts"]
        where = hosts[0] if len(hosts) == 1 else f"{count(len(hosts))} hosts"
        cells.append((percent(row["mass"]), count(row["pages"]), row["reason"], where))
    return Table(("mass", "pages", "why", "where"), cells, keys, _records(rows, keys), left=2)


def statuses_table(statuses: Mapping[str, int]) -> Table:
    """Lay out how requests ended."""
    total = sum(statuses.values()) or 1
    rows = [(number, number / total, word) for word, number in statuses.items()]
    cells = [(count(number), percent(part), word) for number, part, word in rows]
    return Table(("requests", "part", "answer"), cells, ("requests", "part", "answer"), rows)


def values_table(values: Mapping[str, Any], origins: Mapping[str, str]) -> Table:
    """Lay settings out, and where each came from."""
    rows = [(name, in_words(value), str(origins.get(name, ""))) for name, value in values.items()]
    return Table(("setting", "value", "from"), rows, ("setting", "value", "origin"), rows, left=3)


def in_words(value: object) -> str:
    """Write the value of a setting as people write it: lists with commas, tables as name: value."""
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
    """Return a command that makes such a survey: its seeds, and every setting that is not the default."""
    words = ["surveyor", "crawl", *manifest.seeds]
    for name, value in manifest.settings.items():
        if manifest.origins.get(name, "default") == "default" or name not in FIELDS:
            continue
        kind, flag = FIELDS[name].metadata["kind"], "--" + name.replace("_", "-")
        if kind is SWITCH:
            words.append(flag if value else f"--no-{flag[2:]}")
        elif kind in (LIST, RULES):
            items = value.split(", ") if isinstance(value, str) else value
            words += [word for item in items for word in (flag, str(item))]
        elif kind is not TABLE:  # which no flag can hold
            words += [flag, in_words(value)]
    return shlex.join([*words, "--rng", str(manifest.rng)])


def _records(rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[tuple[Any, ...]]:
    return [tuple(row[key] for key in keys) for row in rows]

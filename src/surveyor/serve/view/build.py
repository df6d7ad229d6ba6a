"""Build the view of a survey: `python -m surveyor.serve.view.build SURVEY`.

The first build reads all visits; a later one only those since the last, and then updates the rows that differ. Ranks,
depths and sums change with every page, so they are computed again each time, as `Survey` computes them. While a crawl
runs, a build is due when the last one is older than `PATIENCE` times what it took.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import surveyor
from surveyor.arrays import map_npy, save
from surveyor.crawler.replay import SCOPE
from surveyor.errors import SurveyorError
from surveyor.serve.view.database import (
    by_folder,
    by_site,
    changed_rows,
    database,
    words_of,
    write_arrays,
    write_pages,
    write_rows,
)
from surveyor.serve.view.generation import Generation, building, current, draft_of, publish
from surveyor.serve.view.pages import Arrays, Facts, Folders, Interned, computed, domains_of, values_of
from surveyor.serve.view.schema import CODED, COMPUTED, DATABASE, FACETS, GRAPH, KEPT, STATUSES, TABLES
from surveyor.stopping import ProgressCallback, silent
from surveyor.store import published
from surveyor.store.directory import SurveyFolder
from surveyor.survey.overview import folders as top_folders

if TYPE_CHECKING:
    from surveyor.survey.survey import Survey

NICE = 10  # the crawl that is followed comes first
PATIENCE = 20.0
CURVE_VISITS = 50_000  # of a journal that is replayed for its curve, if the crawl has not written one
CURVE_POINTS = 2_000
MOST_FOLDERS = 60  # of a treemap; a survey of many hosts has more


def is_due(folder: Path | str, *, running: bool = False) -> bool:
    """Return whether a view is missing or behind; while a crawl is running, only if the last build is old enough."""
    with SurveyFolder.open(Path(folder), write=False) as survey:
        found = current(Path(folder), survey.journal.identity)
        if found is None or found.about["terms"] != _terms(survey):
            return True
        age = time.time() - float(found.about["as_of"])
        behind = bool(found.about["commit"] != survey.journal.last_commit.number)
        return behind and (not running or not 0 <= age < PATIENCE * float(found.about["seconds"]))


def build(folder: Path | str, progress: ProgressCallback = silent) -> Generation:
    """Bring the view of a survey up to date; return it."""
    from surveyor.survey.survey import Survey

    began, place = time.time(), Path(folder)
    with SurveyFolder.open(place, write=False), building(place) as view, Survey(place) as survey:
        journal = survey.journal
        journal.refresh()
        terms, commit = _terms(survey), journal.last_commit.number
        old = current(place, journal.identity)
        if old is not None and old.about["terms"] != terms:
            old = None
        if old is not None and old.about["commit"] == commit:
            return old
        progress("restoring the state", 0, 0, "")
        _ = survey.state
        with draft_of(view) as draft:
            about = _write(draft, survey, old, progress)
            about |= {"identity": journal.identity, "terms": terms, "commit": commit, "position": journal.position}
            about |= {"as_of": began, "seconds": time.time() - began}
            return publish(view, draft, about)


def _terms(survey: SurveyFolder | Survey) -> str:
    """Return a digest of what the columns depend on beside the journal."""
    manifest = survey.manifest
    settings = {name: manifest.settings.get(name) for name in SCOPE}
    terms = [surveyor.__version__, list(manifest.seeds), settings]
    return hashlib.blake2b(json.dumps(terms, sort_keys=True, default=list).encode(), digest_size=16).hexdigest()


def _write(draft: Path, survey: Survey, old: Generation | None, progress: ProgressCallback) -> dict[str, Any]:
    """Write all files of a generation; return what `view.json` says of them."""
    pages = min(survey.journal.url_count, len(survey.tables.urls))
    urls = survey.tables.urls.added(0)[:pages]
    facts = Facts() if old is None else _facts(old)
    progress("reading visits", 0, survey.visits, "visits")
    facts.add_urls(urls)
    facts.add_visits(survey, 0 if old is None else old.position)
    progress("ranking", 0, 0, "")
    columns = computed(survey, pages)
    facts.add_scope(survey, columns["status"], urls)
    domains, of_host = domains_of(facts.hosts)
    columns["domain"] = of_host[facts.arrays["host"]] if pages else np.empty(0, np.int32)
    columns = {**facts.arrays, **{name: columns[name].astype(kind) for name, kind in COMPUTED.items()}}
    progress("writing tables", 0, pages, "pages")
    before = None if old is None else _arrays(old, (*KEPT, *COMPUTED))
    changed = None if before is None else changed_rows(before, columns, facts.first_new)
    domain_names = np.array([*domains, ""], object)[:-1]
    with database(draft / DATABASE, None if old is None else old.folder / DATABASE) as connection:
        write_pages(connection, facts, columns, urls, changed)
        titles = [title for (title,) in connection.execute("SELECT title FROM pages ORDER BY id")]
        hosts = by_site(columns["host"], columns, len(facts.hosts))
        sites = by_site(columns["domain"], columns, len(domains))
        sites["hosts"] = np.bincount(of_host, minlength=len(domains))
        folders = by_folder(columns["folder"], np.array(facts.folders.parents, np.int32), columns)
        _site_rows(connection, "hosts", list(facts.hosts), domain_names[of_host].tolist(), hosts)
        _site_rows(connection, "domains", list(domains), [], sites)
        _folder_rows(connection, facts.folders, folders)
        write_rows(connection, "words", words_of(facts.words))
        _write_facets(connection, columns, facts, list(domains))
        blocked = survey.blocked()
        write_rows(connection, "blocked", [[row[name] for row in blocked] for name in TABLES["blocked"]])
        write_rows(connection, "curve", _curve(survey))
        summary = _summary(survey, columns, facts)
        plain = {name: value for name, value in summary.items() if not isinstance(value, list | dict)}
        write_rows(connection, "meta", [list(plain), list(plain.values())])
        summary["folders"] = _top_folders(list(facts.folders), folders)
    counts = {"pages": write_arrays(draft / "pages", "pages", columns, {"url": urls, "title": titles})}
    counts["hosts"] = write_arrays(
        draft / "hosts", "hosts", {**hosts, "domain_code": of_host}, {"host": list(facts.hosts)}
    )
    counts["domains"] = write_arrays(draft / "domains", "domains", sites, {"domain": list(domains)})
    (draft / "folders").mkdir()
    for name in ("parent", "depth"):
        save(draft / "folders" / f"{name}.npy", folders[name])
    if survey.keeps_graph:
        progress("writing the graph", 0, 0, "")
        ranked = survey.as_graph()
        ranked.graph.save(draft / GRAPH)
        (draft / "rank").mkdir()
        arrays = {"page": ranked.pages, "teleport": ranked.teleport, "scores": survey.ranking.scores}
        arrays["alias_of"] = survey.state.crawl.ledger.stands_for()[:pages]
        for name, values in arrays.items():
            save(draft / "rank" / f"{name}.npy", np.ascontiguousarray(values))
    rows_of = {"pages": pages, "hosts": len(facts.hosts), "domains": len(domains), "folders": len(facts.folders)}
    return {"summary": summary, "rows": rows_of, "values": counts, "ranking": _ranking(survey)}


def _site_rows(
    connection: sqlite3.Connection, table: str, names: Sequence[str], domains: Sequence[str], sums: Arrays
) -> None:
    """Write the table of hosts or of domains."""
    given: dict[str, Any] = {"id": range(len(names)), table.removesuffix("s"): names, "domain": domains}
    if table == "domains":
        given["domain"] = names
    cells = (given[name] if name in given else values_of(sums[name]) for name in TABLES[table])
    write_rows(connection, table, [*cells])


def _folder_rows(connection: sqlite3.Connection, folders: Folders, sums: Arrays) -> None:
    given: dict[str, Any] = {"id": range(len(folders)), "prefix": folders}
    cells = (given[name] if name in given else values_of(sums[name]) for name in TABLES["folders"])
    write_rows(connection, "folders", [*cells])
    connection.execute("CREATE INDEX folders_of ON folders(parent)")


def _top_folders(prefixes: list[str], sums: Arrays) -> list[dict[str, Any]]:
    """Return the folders of the most important pages, as in the report, and what is in all others as the last one."""
    some = np.flatnonzero(sums["own_share"] > 0).tolist()
    shares, pages = sums["own_share"].tolist(), sums["own_pages"].tolist()
    found = top_folders([prefixes[at] for at in some], [shares[at] for at in some], counts=[pages[at] for at in some])
    rest = found[MOST_FOLDERS:]
    others = {"name": "", "pages": sum(one.pages for one in rest), "share": sum(one.share for one in rest)}
    return [*(one._asdict() for one in found[:MOST_FOLDERS]), *([others] if rest else [])]


def _write_facets(connection: sqlite3.Connection, columns: Arrays, facts: Facts, domains: list[str]) -> None:
    """Write the number of pages by value of each facet."""
    texts: dict[str, list[str]] = {"status": list(STATUSES), "host": list(facts.hosts), "domain": domains}
    texts |= {kind: list(words) for kind, words in facts.words.items()}
    rows: list[tuple[str, Any, int]] = []
    for kind in FACETS:
        codes, counts = np.unique(columns[kind], return_counts=True)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            value = texts[kind][code] or None if kind in texts else (None if code < 0 else code)
            rows.append((kind, value, count))
    write_rows(connection, "facets", [[row[place] for row in rows] for place in range(3)])


def _curve(survey: Survey) -> list[list[Any]]:
    """Return pages, seconds, at_least, at_most and sampled after some of the fetched pages."""
    if not survey.keeps_graph or survey.visits > CURVE_VISITS or published.has_curve(survey.folder):
        return [[] for _ in TABLES["curve"]]
    history = survey.history()
    count = history.pages.size
    at = np.unique(np.linspace(0, max(count - 1, 0), min(count, CURVE_POINTS)).round().astype(np.int64))
    if not count:
        at = at[:0]
    sampled = [None] * at.size if history.sampled is None else history.sampled[at].tolist()
    return [(at + 1).tolist(), [None] * at.size, history.at_least[at].tolist(), history.at_most[at].tolist(), sampled]


def _summary(survey: Survey, columns: Arrays, facts: Facts) -> dict[str, Any]:
    """Return the counts and bounds of a survey."""
    counts = np.bincount(columns["status"], minlength=len(STATUSES)).tolist()
    manifest, graph = survey.manifest, survey.keeps_graph
    own = None if graph else survey.own_importance
    at = columns["fetched_at"]
    return {
        "name": survey.folder.name,
        "visits": survey.visits,
        "known": survey.pages_known,
        "fetched": survey.pages_fetched,
        "queued": survey.pages_queued,
        "urls": int(columns["status"].size),
        "hosts": len(facts.hosts),
        "bytes": survey.bytes,
        "statuses": dict(zip(STATUSES, counts, strict=True)),
        "coverage": survey.coverage_fields,
        "unsettled": survey.unsettled if graph else None,
        "importance": "pagerank" if graph else (None if own is None else own.method),
        "error": survey.ranking.error if graph else (None if own is None else own.error),
        "damping": survey.damping,
        "keeps_graph": graph,
        "javascript_share": survey.javascript_share if graph else None,
        "until": str(manifest.setting("until")),
        "strategy": str(manifest.setting("strategy")),
        "seeds": list(manifest.seeds)[:100],
        "last_visit_at": None if np.isnan(at).all() else float(np.nanmax(at)),
    }


def _ranking(survey: Survey) -> dict[str, Any] | None:
    """Return the parameters of the ranking; None without a link graph."""
    if not survey.keeps_graph:
        return None
    names = ("error", "sweeps", "damping", "tolerance", "solver", "dangling")
    return {name: getattr(survey.ranking, name) for name in names}


def _arrays(old: Generation, names: Sequence[str]) -> Arrays:
    return {name: map_npy(old.folder / "pages" / f"{name}.npy") for name in names}


def _facts(old: Generation) -> Facts:
    """Return what an earlier build read from URLs and visits."""
    facts = Facts()
    facts.arrays = {name: np.array(values) for name, values in _arrays(old, tuple(KEPT)).items()}
    uri = f"{(old.folder / DATABASE).absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as connection:
        ask = connection.execute
        facts.hosts = Interned({text: code for code, text in ask("SELECT id, host FROM hosts ORDER BY id")})
        prefixes = ask("SELECT id, prefix, parent FROM folders ORDER BY id").fetchall()
        facts.folders = Folders(
            {text: code for code, text, _ in prefixes}, [-1 if parent is None else parent for *_, parent in prefixes]
        )
        for kind in CODED:
            rows = ask("SELECT id, value FROM words WHERE kind = ? ORDER BY id", (kind,))
            facts.words[kind] = Interned({text: code for code, text in rows})
    return facts


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the view of the survey that is named on the command line."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if len(words) != 1 or words[0].startswith("-"):
        sys.stderr.write("usage: python -m surveyor.serve.view.build SURVEY\n")
        return 2
    if arguments is None:  # a process of its own
        with suppress(AttributeError, OSError):
            os.nice(NICE)
    try:
        found = build(words[0])
    except SurveyorError as error:
        sys.stderr.write(f"error: {error}\n")
        return int(getattr(error, "exit_code", 4))
    sys.stdout.write(json.dumps({"tables": str(found.folder), "seconds": found.about["seconds"]}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

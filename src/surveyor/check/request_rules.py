"""Rules that request something: external links (`--external`), resources (`--resources`) and certificates.

Each URL is requested once, by HEAD, and by GET if the answer to HEAD is an error: some servers answer only GET. Style
sheets are requested by GET, for the files that they name.
Requests obey robots.txt and the crawl delay of each host; hosts are independent of each other. What robots.txt or the
server refuses is not judged. The most important URLs come first, up to a limit. Answers of external sites are kept in
the survey (`answers.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np

from surveyor.check.answers import KEPT, Probe, read_answers, write_answers
from surveyor.check.findings import Finding, Source
from surveyor.check.link_rules import finding
from surveyor.check.site import Site
from surveyor.check.style_sheets import references
from surveyor.config import Settings
from surveyor.crawler.preview import PoliteClient, polite_client
from surveyor.crawler.sources.live import REAL, Connection
from surveyor.fetch.event_loops import run_sync
from surveyor.fetch.http import REDIRECTS, Fetched
from surveyor.web.urls import host, normalise, origin

HOSTS_AT_ONCE = 16
MOST_REDIRECTS = 5
PASSING = frozenset((401, 403, 407, 429, 999))  # the server refuses this program, or anyone without a login
FRAMES, STYLE = "frame", "style sheet"
FILE = "file type"  # reason why a file is out of scope
SILENT = frozenset(("no-host", "refused", "timeout-connect", "tls", "reset"))  # errors of a host that cannot be used
UNKNOWN = frozenset(("dns", "offline", "forbidden-address"))  # errors that are not those of the other site
SOON = 21 * 86_400.0  # seconds before a certificate expires


@dataclass(slots=True)
class Requests:
    """What an audit may request, and what it did."""

    settings: Settings
    external: bool = False
    resources: bool = False
    certificates: bool = False
    most: int = 1000  # URLs of each kind
    max_age: float = 86_400.0  # seconds that the answers of external sites are used again
    connection: Connection = REAL
    say: Callable[[str], None] = lambda _: None
    sent: int = 0
    reused: int = 0  # answers of an earlier audit
    skipped: dict[str, str] = field(default_factory=dict)  # rules not judged completely, and why
    sheets: dict[str, str] = field(default_factory=dict)  # style sheets to read, by URL; their text once it is there

    @property
    def rules(self) -> frozenset[str]:
        """The rules that are permitted."""
        chosen = {
            "external-broken": self.external,
            "broken-resource": self.resources,
            "broken-link": self.resources,  # to files, which a crawl does not request
            "certificate-expiry": self.certificates,
        }
        return frozenset(name for name, wanted in chosen.items() if wanted)


def check(site: Site, requests: Requests, rules: Collection[str]) -> Iterator[Finding]:
    """Find external links and resources that do not exist."""
    for name, gather, what in (
        ("external-broken", _external, "link"),
        ("broken-resource", partial(_resources, sheets=requests.sheets), "resource"),
        ("broken-link", _files, "link to a file"),
    ):
        if name not in requests.rules or name not in rules:
            continue
        wanted = gather(site)
        best = sorted(wanted, key=lambda url: (-site.weight(site.number[one.url] for one in wanted[url]), url))
        if len(best) > requests.most:
            requests.skipped[name] = f"{len(best) - requests.most:,} of {len(best):,} URLs were not requested"
        kept = site.survey.folder if name == "external-broken" else None
        yield from _broken(site, name, what, wanted, _answers(best[: requests.most], requests, kept))
        if name == "broken-resource":
            more = {url: wanted[sheet] for url, sheet in _named_by_sheets(requests).items() if url not in wanted}
            chosen = [*more][: max(0, requests.most - len(best))]
            yield from _broken(site, name, "named by a style sheet", more, _answers(chosen, requests, None))
    if "certificate-expiry" in requests.rules and "certificate-expiry" in rules:
        yield from _certificates(site, requests)


def _broken(
    site: Site, rule: str, what: str, wanted: dict[str, list[Source]], probes: Iterable[Probe]
) -> Iterator[Finding]:
    """Yield the problems among answers, with the pages that need the URLs."""
    for probe in probes:
        if probe.problem:
            sources = sorted(wanted[probe.url], key=lambda source: (-source.share, source.url))
            yield finding(site, rule, probe.url, f"{what}: {probe.problem}", sources)


def _named_by_sheets(requests: Requests) -> dict[str, str]:
    """Return the files on the hosts of style sheets that these name, each with its style sheet."""
    hosts = {host(sheet) for sheet in requests.sheets}
    named = {url: sheet for sheet, css in requests.sheets.items() for url in references(css, sheet)}
    return {url: sheet for url, sheet in named.items() if host(url) in hosts}


def _answers(urls: list[str], requests: Requests, kept: Path | None) -> Iterator[Probe]:
    """Yield the answers to requests for URLs, those kept in a folder first; new ones are added to it."""
    known = {} if kept is None else read_answers(kept, time.time(), KEPT)
    usable = {url: one for url in urls if (one := known.get(url)) and time.time() - one.at <= requests.max_age}
    requests.reused += len(usable)
    yield from usable.values()
    new: list[Probe] = []
    try:
        run_sync(probe_all([url for url in urls if url not in usable], requests, new))
    finally:  # also if Ctrl-C ends it: the next audit has these answers
        if kept is not None and new:
            write_answers(kept, known, new)
    yield from new


def _certificates(site: Site, requests: Requests) -> Iterator[Finding]:
    """Find certificates of the site's hosts that have expired or expire soon."""
    pages: defaultdict[str, list[int]] = defaultdict(list)
    for page, visit in enumerate(site.last):
        if visit is not None and visit.fetched_at > 0 and site.urls[page].startswith("https:"):
            pages[origin(site.urls[page])].append(page)
    every = sorted(pages, key=lambda place: -site.weight(pages[place]))
    if len(every) > requests.most:
        requests.skipped["certificate-expiry"] = f"{len(every) - requests.most:,} hosts were not requested"
    for place, problem in run_sync(_ask_certificates(every[: requests.most], requests)):
        if problem:
            sources = sorted(map(site.page_source, pages[place]), key=lambda source: (-source.share, source.url))
            yield finding(site, "certificate-expiry", f"{place}/", problem, sources)


async def _ask_certificates(origins: Collection[str], requests: Requests) -> list[tuple[str, str]]:
    """Return what is wrong with the certificates of origins, empty for those that are valid."""
    found = []
    async with polite_client(requests.settings, requests.connection, requests.say) as client:
        for place in origins:
            why = await client.ready(f"{place}/")
            answer = None if why else await client.head(f"{place}/")
            found.append((place, certificate_problem(answer, why, time.time())))
        requests.sent += client.requests
    return found


def certificate_problem(answer: Fetched | None, refusal: str, now: float) -> str:
    """Return what is wrong with the certificate of a host that answered, or that was refused for a reason.

    >>> certificate_problem(Fetched("https://a.example/", 200, certified_until=1_000_000.0), "", now=0.0)
    'the certificate expires in 11 days, at 1970-01-12 13:46 UTC'
    """
    detail = answer.detail if answer is not None and answer.error == "tls" else refusal
    if "certificate has expired" in detail:
        return "the certificate has expired"
    if answer is None or answer.certified_until is None:
        return ""
    left = answer.certified_until - now
    at = datetime.fromtimestamp(answer.certified_until, UTC)
    return f"the certificate expires in {int(left / 86_400)} days, at {at:%Y-%m-%d %H:%M} UTC" if left < SOON else ""


def _external(site: Site) -> dict[str, list[Source]]:
    """Return the URLs of other sites that pages link to, with these pages."""
    return _outside(site, lambda reason, is_own: not (is_own and reason.startswith(FILE)))


def _files(site: Site) -> dict[str, list[Source]]:
    """Return the files of the site that pages link to and a crawl does not request, with these pages."""
    return _outside(site, lambda reason, is_own: is_own and reason.startswith(FILE))


def _outside(site: Site, chosen: Callable[[str, bool], bool]) -> dict[str, list[Source]]:
    """Return the out-of-scope URLs that are chosen by the reason and by whether they are on a host of the site."""
    hosts = {host(site.urls[page]) for page, _ in site.fetched()}
    pages = []
    for page in np.flatnonzero(site.survey.tables.statuses == 0).tolist():
        reason = site.survey.tables.out_of_scope(site.urls[page]) if page < len(site.urls) else None
        if reason and chosen(reason, host(site.urls[page]) in hosts):
            pages.append(page)
    return {site.urls[page]: sources for page, sources in site.links_to(pages).items()}


def _resources(site: Site, sheets: dict[str, str]) -> dict[str, list[Source]]:
    """Return the images, styles, scripts and media on the hosts of the site, with the pages that load them.

    Style sheets are added to `sheets`.
    """
    hosts = {host(site.urls[page]) for page, _ in site.fetched()}
    found: defaultdict[str, list[Source]] = defaultdict(list)
    for page, facts in site.facts.items():
        for kind, url in facts.resources if site.is_fetched(page) else ():
            if kind != FRAMES and host(url) in hosts:
                found[url].append(site.page_source(page))
                if kind == STYLE:
                    sheets[url] = ""
    return found


async def probe_all(urls: Iterable[str], requests: Requests, found: list[Probe]) -> None:
    """Request URLs, those of different hosts at the same time, and append the answers as they arrive."""
    by_host: defaultdict[str, list[str]] = defaultdict(list)
    for url in urls:
        by_host[host(url)].append(url)
    places = asyncio.Semaphore(HOSTS_AT_ONCE)

    async def probe_host(mine: list[str]) -> None:
        async with places, polite_client(requests.settings, requests.connection, requests.say) as client:
            for url in mine:
                probe = await _probe(client, url, requests.sheets)
                found.append(probe)
            requests.sent += client.requests

    await asyncio.gather(*map(probe_host, by_host.values()))


async def _probe(client: PoliteClient, url: str, sheets: dict[str, str]) -> Probe:
    """Request one URL and what it redirects to; keep the text of a style sheet."""
    at = url
    now = time.time()
    for _ in range(MOST_REDIRECTS):
        if why := await client.ready(at):
            return _refused(client, url, at, why, now)
        answer = await (client.fetch(at, types=("text/css",)) if url in sheets else client.head(at))
        if url in sheets:
            sheets[url] = answer.body.decode("utf-8", "replace") if answer.status == 200 else ""
        elif answer.error or (answer.status or 0) >= 400:
            if why := await client.ready(at):
                return _refused(client, url, at, why, now)
            answer = await client.fetch(at, types=())
        if answer.status not in REDIRECTS:
            return Probe(url, *judged(answer), now)
        target = None if answer.target is None else normalise(answer.target)
        if target is None:
            return Probe(url, "redirects to no page", at=now)
        at = target
    return Probe(url, f"more than {MOST_REDIRECTS} redirects", at=now)


def _refused(client: PoliteClient, url: str, at: str, why: str, now: float) -> Probe:
    """Return the answer for a URL that may not be requested; it is a problem if its host does not answer at all."""
    if client.troubles.get(origin(at)) in SILENT:
        return Probe(url, why, at=now)
    return Probe(url, refused=why, at=now)


def judged(answer: Fetched) -> tuple[str, str]:
    """Return why a URL cannot be read, and why that is not known; both empty if it can be read."""
    if answer.error and not answer.status:
        why = answer.detail or answer.error
        return ("", why) if answer.error in UNKNOWN else (why, "")
    status = answer.status or 0
    if status in PASSING:
        return "", f"http {status}"
    return f"http {status}" if status >= 400 else "", ""

"""Page budgets per domain, so that a link farm of a million pages cannot use up a crawl.

A plan maps domain ranks (1 is the best domain) to pages. Budgets never increase with rank, and none is below `least`:

- *auto* (written `star`, or `star:2x` for twice as many pages): numbers that follow from the crawl (`budgeting.py`);
- *star* (IRLbot): linear in rank from `most` to `least` for the best R domains, `least` for all others:
  least + (most − least) · (1 − (rank − 1)/(R − 1))
- *power*: most · rank^−gamma, for webs in which a few domains hold nearly all pages;
- *flat*: the same for all domains.

Trusted domains (those of the seeds) may get extra pages. A plan is written in one line:

    >>> plan = parse("star:10-10000@10000")
    >>> plan.pages(np.array([1, 5_000, 10_000, 2_000_000, 0])).tolist()  # 0: unranked
    [10000, 5005, 10, 10, 10]
    >>> plan == Plan(), str(parse("2k")), str(parse("power:0.8:10-50000+500")), str(parse("star,p=1%"))
    (True, 'flat:2000', 'power:0.8:10-50000+500', 'star,p=0.01')
    >>> f"{plan.total(1_000_000):,}"
    '59,950,000'

**During a crawl.** Limits are recorded in the journal as an event `budgets`, so a resumed crawl keeps the same ones.
The pages a domain has spent are counted from the visits since the survey was created or since the last retry of blocked
pages (`--again`), which starts a new period. A page over its budget is blocked, and so is its mass. When limits change,
domains below their limit again are *opened*, and the event lists them: their blocked pages are queued again as if they
had never been blocked. A replay therefore needs no ranking and reaches the state of the crawl.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, IntArray
from surveyor.errors import InputError, UsageError
from surveyor.graph.formats.streams import reject_pipe
from surveyor.outcome import Event
from surveyor.web import urls
from surveyor.web.suffixes import spelt
from surveyor.web.urls import domain, host

if TYPE_CHECKING:
    from surveyor.arrays import IdArray
    from surveyor.config import Settings
    from surveyor.crawler.domain_graph import Established
    from surveyor.store.directory import SurveyFolder
    from surveyor.web.urls import Urls

Kind = Literal["auto", "star", "power", "flat"]
MOST = 10**9  # upper limit of pages per domain and of ranks: their product fits a 64-bit integer
SLACK, PART = 6, 4  # an automatic star plan: all ranks together may take SLACK times the crawl, the best 1 / PART of it
MULTIPLE, OWN = 8, 10  # times its share of the mass that an established domain may take; the least pages it must get
PER_PAGE, PER_DOMAIN, UNKNOWN = 0.03, 0.1, 0.005  # parts of a crawl: known through a page, a domain; not yet ranked
RANKED, SEEDED = 3, 2  # times its share of the mass that may take: an established domain, what a page of a seed lists
FARM = 0.05  # share of a crawl that a farm may take
FIRST, GROWTH = 20, 1.5  # fetched pages at the first ranking, and growth factor until each later one
LEAST_SIZE = 1_000  # pages that budgets are meant for, in a smaller crawl
GROUP = "via "  # before the page of a group; not part of a domain name
AT_ONCE = 1 << 20  # ranks summed at a time
NUMBER = r"(\d[\d_]*(?:\.\d+)?[kmg]?)"
STAR = re.compile(rf"star:{NUMBER}-{NUMBER}(?:@{NUMBER})?")
POWER = re.compile(rf"power:(\d*\.?\d+)(?::{NUMBER}-{NUMBER})?")
FLAT = re.compile(rf"(?:flat:)?{NUMBER}")
TIMES = re.compile(r"star:(\d{1,9})x")
MOST_TIMES = 1024  # factor of automatic budgets
FORMS = "write star, star:2x, star,score=supp, star:10-10000@10000, power:0.8, flat:500 or a number of pages"
SCORES = ("tse", "supp", "in")  # by which domains are ranked
OPTIONS = f"options are score={'|'.join(SCORES)}, p=auto or p=0.01, and error=10%, as in star,score=tse,p=auto"
ERROR = 0.1  # relative standard deviation of tse at the last rank that matters
SCALES = {"k": 10**3, "m": 10**6, "g": 10**9}


@dataclass(frozen=True, slots=True)
class Plan:
    """Page budget as a function of the rank of a domain."""

    kind: Kind = "star"
    least: int = 10
    most: int = 10_000
    ranks: int = 10_000  # R: ranks with distinct budgets in a star plan
    gamma: float = 1.0  # exponent of the power law
    trusted: int = 0  # extra pages for trusted domains
    score: str = "tse"  # one of SCORES
    p: float | None = None  # sampling probability of tse; None: chosen for `error`
    error: float = ERROR
    times: int = 1  # factor of automatic budgets

    def __post_init__(self) -> None:
        if self.score not in SCORES:
            raise UsageError(f"a budget by the score {self.score!r}", hint=f"choose {', '.join(SCORES)}")
        if self.p is not None and not 0 < self.p <= 1:
            raise UsageError(f"a budget with p = {self.p:g}", hint="p is auto, or a probability in (0, 1]")
        if not 0 < self.error < 1:
            raise UsageError(f"a budget with an error of {self.error:g}", hint="the error is in (0, 1), such as 10%")
        if not 1 <= self.least <= self.most <= MOST or not 0 <= self.trusted <= MOST:
            problem = f"a budget from {self.least:,} to {self.most:,} pages"
            raise UsageError(problem, hint="give each domain at least one page, and good ones no fewer than others")
        if not 1 <= self.ranks <= MOST or not 0.01 <= self.gamma < 100:
            parameter = f"{self.ranks:,} ranks" if self.is_star else f"power {self.gamma:g}"
            raise UsageError(
                f"a budget with {parameter}", hint="give at least one rank, or a power from 0.01 on such as 0.8"
            )

    @property
    def is_star(self) -> bool:
        """Whether budgets are linear in rank."""
        return self.kind in ("auto", "star")

    def for_graph(self, domains: int) -> Plan:
        """Return the plan for a ranking of this many domains outside a crawl: automatic ranks are all, up to 10,000."""
        if self.kind != "auto":
            return self
        least, most = self.least * self.times, self.most * self.times
        ranks = max(min(self.ranks, domains), 1)
        return replace(self, kind="star", least=least, most=most, ranks=ranks, times=1)

    def for_crawl(self, pages: int, established: int) -> Plan:
        """Return the automatic plan for a crawl of this many pages with this many established domains."""
        ranks = max(established, 1)
        most = max(pages // PART, SLACK * pages // ranks, OWN)
        return replace(self, kind="star", least=OWN, most=most, ranks=ranks)

    @property
    def reach(self) -> int:
        """Number of top-ranked domains whose budget depends on their rank; all others get `least`."""
        if self.kind == "flat" or self.least == self.most:
            return 0
        if self.is_star:
            return self.ranks
        doublings = np.log2(self.most / self.least) / self.gamma
        return MOST if doublings > 29 else min(int(2.0**doublings) + 1, MOST)

    def pages(self, ranks: AnyIntArray, trusted: BoolArray | None = None) -> IntArray:
        """Return the page budget for each of these ranks; ranks below 1 mean unranked."""
        place = np.asarray(ranks, np.int64)
        known = np.maximum(place, 1)
        if self.is_star:
            steps = max(self.ranks - 1, 1)
            left = np.maximum(steps + 1 - known, 0)  # of the steps from the best rank to the last
            pages = self.least + (2 * (self.most - self.least) * left + steps) // (2 * steps)  # rounded
        elif self.kind == "power":
            wanted = np.rint(self.most * known.astype(np.float64) ** -self.gamma)
            pages = np.maximum(wanted, self.least).astype(np.int64)
        else:
            pages = np.full(place.shape, self.least)
        pages = np.where(place < 1, self.least, pages)
        return pages if trusted is None else pages + self.trusted * trusted.astype(np.int64)

    def total(self, domains: int, trusted: int = 0) -> int:
        """Return the sum of the budgets of `domains` domains, `trusted` of them trusted: an upper bound on a crawl."""
        ranked = min(domains, self.reach)
        steps = range(0, ranked, AT_ONCE)
        best = sum(int(self.pages(np.arange(at, min(at + AT_ONCE, ranked)) + 1).sum()) for at in steps)
        return best + (domains - ranked) * self.least + trusted * self.trusted

    def __str__(self) -> str:
        more = f"+{self.trusted}" if self.trusted else ""
        span, ranking = f"{self.least}-{self.most}", self._ranking
        forms = {
            "auto": "star" if self.times == 1 else f"star:{self.times}x",
            "star": f"star:{span}@{self.ranks}",
            "power": f"power:{self.gamma!r}:{span}",
            "flat": f"flat:{self.least}",
        }
        return forms[self.kind] + more + ranking

    @property
    def _ranking(self) -> str:
        """The options of the ranking that differ from the defaults, as they are written."""
        score = f",score={self.score}" * (self.score != "tse")
        error = f",error={self.error!r}" * (self.error != ERROR)
        return score + (f",p={self.p!r}" if self.p is not None else "") + error


def parse(text: str) -> Plan:
    """Parse a plan from the command line or the settings."""
    plain, *options = (part.strip() for part in text.lower().split(","))
    plan = _formula(plain, text)
    if options and plan.kind == "flat":
        raise UsageError(f"{text!r} is not a budget: {plain} needs no ranking", hint=FORMS)
    return replace(plan, **_ranking_options(options, text)) if options else plan


def _ranking_options(options: Sequence[str], text: str) -> dict[str, Any]:
    """Parse the options of the ranking, such as score=tse."""
    found: dict[str, Any] = {}
    for option in options:
        name, _, value = (part.strip() for part in option.partition("="))
        if name not in ("score", "p", "error") or name in found:
            raise UsageError(f"{text!r} is not a budget: {option!r} is not an option", hint=OPTIONS)
        try:
            found[name] = value if name == "score" else None if (name, value) == ("p", "auto") else _share(value)
        except ValueError as error:
            raise UsageError(f"{text!r} is not a budget: {value!r} is not a share", hint=OPTIONS) from error
    if found.get("score", "tse") != "tse" and len(found) > 1:
        raise UsageError(f"{text!r} is not a budget: only tse has p and error", hint=OPTIONS)
    return found


def _share(text: str) -> float:
    """Parse 0.01 or 1%."""
    return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)


def _formula(plain: str, text: str) -> Plan:
    """Parse the part of a plan that maps ranks to pages."""
    spec, plus, more = plain.partition("+")
    trusted = _whole(more, text) if plus else 0
    if spec == "star":
        return Plan("auto", trusted=trusted)
    if match := TIMES.fullmatch(spec):
        if not 1 <= int(match[1]) <= MOST_TIMES:
            raise UsageError(f"{text!r} is not a budget: the factor must be in [1, {MOST_TIMES}]", hint=FORMS)
        return Plan("auto", trusted=trusted, times=int(match[1]))
    if match := STAR.fullmatch(spec):
        usual = Plan()
        given = zip(match.groups(), (usual.least, usual.most, usual.ranks), strict=True)
        least, most, ranks = (usually if part is None else _whole(part, text) for part, usually in given)
        return Plan("star", least, most, ranks, trusted=trusted)
    if match := POWER.fullmatch(spec):
        least, most = (10, 10_000) if match[2] is None else (_whole(match[2], text), _whole(match[3], text))
        return Plan("power", least, most, gamma=float(match[1]), trusted=trusted)
    if match := FLAT.fullmatch(spec):
        pages = _whole(match[1], text)
        return Plan("flat", pages, pages, trusted=trusted)
    raise UsageError(f"{text!r} is not a budget", hint=FORMS)


def _whole(number: str, text: str) -> int:
    """Parse an integer such as 500 or 2k."""
    if re.fullmatch(NUMBER, number):
        scale = SCALES.get(number[-1], 1)
        value = round(float(number.rstrip("kmg").replace("_", "")) * scale, 6)
        if value.is_integer():
            return int(value)
    raise UsageError(f"{text!r} is not a budget: {number!r} is not a number of pages", hint=FORMS)


@dataclass(frozen=True, slots=True)
class Limits:
    """Page budgets by domain name; domains without an entry get `rest`.

    With `groups`, the domains of a group share `rest` pages, and so do all domains without an entry and a group.
    """

    rest: int
    pages: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, str] | None = None  # domains and the page through which each is known

    def of(self, domain: str) -> int:
        """Return the page budget of a domain, or of its group."""
        return self.pages.get(self.account(domain), self.rest)

    def account(self, domain: str) -> str:
        """Return what the pages of a domain are charged to: the domain, or its group."""
        if self.groups is None or domain in self.pages:
            return domain
        return f"{GROUP}{self.groups.get(domain, '')}"

    @property
    def digest(self) -> str:
        """BLAKE2b digest of these limits."""
        lines = [str(self.rest), *(f"{domain},{pages}" for domain, pages in sorted(self.pages.items()))]
        if self.groups is not None:
            lines += ["groups", *(f"{domain},{via}" for domain, via in sorted(self.groups.items()))]
        return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()

    @classmethod
    def automatic(cls, plan: Plan, pages: int, found: Established, trusted: Iterable[str]) -> Limits:
        """Return the budgets for a crawl of this many pages, given the established domains."""
        ranks = np.arange(1, len(found.best) + 1)
        by_rank = plan.for_crawl(pages, len(found.best)).pages(ranks)
        mass = np.array(found.mass)
        least = np.maximum(PER_PAGE, RANKED * mass) * pages
        best = np.minimum(np.maximum(by_rank, least), MULTIPLE * pages * mass).astype(np.int64)
        limits = dict(zip(found.best, best.tolist(), strict=True)) | dict.fromkeys(trusted, MOST)
        for page, gateway in found.gateways.items():
            together = PER_DOMAIN if gateway.is_trusted else min(PER_DOMAIN, MULTIPLE * gateway.site_mass)
            most = min(PER_PAGE, together / gateway.siblings) * pages
            if gateway.is_trusted:
                most = max(most, SEEDED * gateway.mass * pages)
            limits[f"{GROUP}{page}"] = max(int(most), 1)
        groups = {name: str(page) for name, page in found.groups.items()}
        return cls(max(int(UNKNOWN * pages), 1), limits, groups)

    @classmethod
    def by_rank(cls, plan: Plan, best: Iterable[str], trusted: Iterable[str] = ()) -> Limits:
        """Return the budgets for a list of domains, best first."""
        names = list(best)
        pages = dict(zip(names, plan.pages(np.arange(1, len(names) + 1)).tolist(), strict=True))
        if plan.trusted:
            pages |= {domain: pages.get(domain, plan.least) + plan.trusted for domain in dict.fromkeys(trusted)}
        return cls(plan.least, {domain: count for domain, count in pages.items() if count != plan.least})


def read_limits(lines: Iterable[str], file: str, rest: int) -> Limits:
    """Read page budgets from CSV with the columns domain and pages, or with a header line that names them.

    >>> read_limits(["position,domain,pages", "1,example.org,500"], "budgets.csv", rest=10).of("example.org")
    500
    """
    rows = csv.reader(line for line in chain(lines, [""]) if not line.lstrip().startswith("#"))
    domain, count, pages = 0, 1, dict[str, int]()
    for number, row in enumerate((cell for cell in rows if any(part.strip() for part in cell)), 1):
        cells = [cell.strip().strip("\ufeff") for cell in row]
        titles = [cell.lower() for cell in cells]
        if number == 1 and "domain" in titles:
            if "pages" not in titles:
                raise InputError(f"{file} has no column `pages`", hint="its first line names domain and pages")
            domain, count = titles.index("domain"), titles.index("pages")
            continue
        if len(cells) <= max(domain, count) or not cells[domain]:
            # a setting may name any file, so rows are quoted only if the file looks like a table of budgets
            quoted = number > 1 or (urls.domain(cells[0]) == cells[0] != "" and "." in cells[0])
            what = f": {','.join(row)!r}" if quoted else ""
            raise InputError(f"{file}, row {number}{what} is not a domain and its pages", hint=_EXAMPLE)
        name, limit = cells[domain].lower().rstrip("."), cells[count].replace(",", "").replace("_", "")
        if (whole := urls.domain(name)) != name or spelt(name) != name:
            if number == 1:
                raise InputError(f"{file}, row 1 names no registrable domain", hint=_EXAMPLE)
            raise InputError(
                f"{file}, row {number}: {name!r} is no registrable domain", hint=f"budgets go by domain: {whole}"
            )
        if not (limit.isascii() and limit.isdecimal()) or not 1 <= int(limit[:20]) <= MOST:
            if number == 1 and "." not in name:
                raise InputError(f"{file}, row 1 is not a domain and its pages", hint=_EXAMPLE)
            raise InputError(f"{file}, row {number}: {cells[count]!r} is not a number of pages", hint=_EXAMPLE)
        if pages.setdefault(name, int(limit)) != int(limit):
            raise InputError(f"{file}, row {number}: {name} has two budgets", hint="name each domain once")
    if not pages:
        raise InputError(f"{file} names no domain", hint=_EXAMPLE)
    return Limits(rest, pages)


_EXAMPLE = "a row looks like: example.org,500"


EVENT, REASON = "budgets", "budget"
NONE = frozenset({"", "none"})


@dataclass(frozen=True, slots=True)
class Choice:
    """Budget chosen in the settings: a plan, limits from a file, or neither."""

    spec: str  # as recorded in the journal
    plan: Plan | None = None
    file: Path | None = None

    @property
    def ranks(self) -> bool:
        """Whether limits depend on ranks."""
        return self.plan is not None and self.file is None and self.plan.reach > 0


def limits_pages(settings: Settings) -> bool:
    """Return whether settings limit the pages of domains, by a plan or a file."""
    text = settings.budget.strip().lower()
    return text not in NONE or bool(settings.budget_file and not text)


def chosen(settings: Settings) -> Choice:
    """Return the budget chosen in the settings; a budget that names a file is read from it."""
    text, file = settings.budget.strip(), settings.budget_file
    if text and not file and (text.lower().endswith(".csv") or Path(text).is_file()):
        text, file = "", text
    plan = None if text.lower() in NONE else parse(text)
    if not file or text.lower() == "none":
        return Choice("none" if plan is None else str(plan), plan)
    return Choice(f"{plan or Plan()} file:{file}", plan or Plan(), Path(file))


def check(settings: Settings, before: Mapping[str, Any] | None) -> None:
    """Reject invalid budgets before the crawl; an unchanged file may be missing, as the journal has its limits."""
    choice = chosen(settings)
    kept = before and all(before.get(name, "") == getattr(settings, name) for name in ("budget", "budget_file"))
    if choice.file is not None and choice.plan is not None and (choice.file.exists() or not kept):
        from_file(choice.file, choice.plan)


def from_file(file: Path, plan: Plan) -> Limits:
    """Read limits from a file; domains that it does not list get the minimum of the plan."""
    reject_pipe(file, "budgets")
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            return read_limits(lines, str(file), plan.least)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not a table"
        raise InputError(f"the budgets in {file} cannot be read: {why}", hint="check its name") from error


def doubled(settings: Mapping[str, Any]) -> str:
    """Return a budget of twice as many pages, for a hint; "none" for a budget in a file.

    >>> doubled({"budget": "star"}), doubled({"budget": "500"}), doubled({"budget": "", "budget_file": "a.csv"})
    ('star:2x', 'flat:1000', 'none')
    """
    try:
        plan = None if settings.get("budget_file") else parse(str(settings.get("budget", "")))
    except UsageError:  # the name of a file
        plan = None
    if plan is None or 2 * plan.most > MOST:
        return "none"
    if plan.kind == "auto":
        return str(replace(plan, times=2 * plan.times)) if 2 * plan.times <= MOST_TIMES else "none"
    return str(replace(plan, least=2 * plan.least, most=2 * plan.most))


def events(folder: SurveyFolder) -> Iterator[Event]:
    """Yield the budget events of the journal."""
    return folder.journal.events(EVENT)


def latest(folder: SurveyFolder) -> Event | None:
    """Return the latest budget event; None if there is none."""
    return next(iter([*events(folder)][-1:]), None)


def limits_of(event: Event) -> Limits:
    """Return the limits that an event set."""
    groups = event.detail.get("groups")
    pages = dict(event.detail["pages"])
    return Limits(int(event.detail["default"]), pages, None if groups is None else dict(groups))


def ranked_at(ranking: Event) -> int:
    """Return the pages fetched at a ranking: at most the visits before it, whatever a journal from elsewhere says."""
    return min(int(ranking.detail["fetched"]), ranking.visit)


class WideGroup(NamedTuple):
    """Domains known through single pages of one site, to which automatic budgets leave much of a crawl.

    A farm among them shares it.
    """

    page: int  # through which most may be fetched
    others: int  # such pages on the same site
    domains: int
    pages: int  # that they may take together
    share: float  # of the pages of the crawl


def widest_group(folder: SurveyFolder, urls: Urls) -> WideGroup | None:
    """Return the groups of the site with the largest budget, if a farm could take too much of it; None if none could.

    That is more than `FARM` of a crawl through one page, or more than `PER_DOMAIN` through all pages of the site.
    """
    last = latest(folder)
    sizes = Counter[str]() if last is None else Counter((limits_of(last).groups or {}).values())
    if last is None or not sizes:
        return None
    crawl = max(LEAST_SIZE, GROWTH * ranked_at(last))
    limits = {page: int(last.detail["pages"].get(f"{GROUP}{page}", 0)) for page in sizes}
    sites = defaultdict[str, list[str]](list)
    for page in sorted(sizes, key=limits.__getitem__, reverse=True):
        sites[domain(host(urls[int(page)]))].append(page)
    wide = []
    for pages in sites.values():
        together = sum(limits[page] for page in pages)
        if limits[pages[0]] > FARM * crawl or together > PER_DOMAIN * crawl:
            domains = sum(sizes[page] for page in pages)
            wide.append(WideGroup(int(pages[0]), len(pages) - 1, domains, together, min(together / crawl, 1.0)))
    return max(wide, key=lambda group: group.pages, default=None)


def opened(folder: SurveyFolder) -> dict[str, int]:
    """Return the domains that were opened, each with the number of visits before the last time."""
    return {name: event.visit for event in events(folder) for name in event.detail["reopened"]}


class DomainBudgets:
    """Budgets of a live crawl; accounts (domains, or groups that share a budget) are numbered as pages come up."""

    def __init__(self, limits: Limits, urls: Urls) -> None:
        self._limits, self._urls = limits, urls
        self._numbers: dict[str, int] = {}
        self._most: list[int] = []

    def domain(self, page: int) -> int:
        """Return the number of the account of a page."""
        return self.number(self.name(page))

    def name(self, page: int) -> str:
        """Return the domain of a page."""
        return domain(host(self._urls[page]))

    def number(self, domain: str) -> int:
        """Return the number of the account of a domain."""
        number = self._numbers.setdefault(self._limits.account(domain), len(self._most))
        if number == len(self._most):
            self._most.append(self._limits.of(domain))
        return number

    def limit(self, domain: int) -> int:
        """Return the page budget of an account."""
        return self._most[domain]

    def spent(self, folder: SurveyFolder) -> dict[int, int]:
        """Count the pages requested from each account in this period."""
        counted: dict[int, int] = {}
        pages = asked(folder)
        hosts, first, counts = np.unique(self._urls.host_ids(pages), return_index=True, return_counts=True)
        for entry in range(hosts.size):
            number = self.domain(int(pages[first[entry]]))
            counted[number] = counted.get(number, 0) + int(counts[entry])
        return counted


def asked(folder: SurveyFolder) -> IdArray:
    """Return the pages requested in this period, one entry per request."""
    again = [event.visit for event in folder.journal.events("retry_blocked")]
    return folder.journal.asked(since=again[-1] if again else 0)

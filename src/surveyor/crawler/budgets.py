"""Page budgets per domain, derived from domain ranks, so that a link farm of a million pages cannot use up a crawl.

A plan maps ranks (1 is the best domain) to pages. Budgets never increase with rank, and none is below `least`:

- *star* (IRLbot; the default): linear in rank from `most` to `least` for the best R domains, `least` for all others:
  least + (most − least) · (1 − (rank − 1)/(R − 1))
- *power*: most · rank^−gamma, for webs in which a few domains hold nearly all pages;
- *flat*: the same for all domains.

Trusted domains (those of the seeds) may get extra pages. A plan is written in one line:

    >>> plan = parse("star:10-10000@10000")
    >>> plan.pages(np.array([1, 5_000, 10_000, 2_000_000, 0])).tolist()  # 0: unranked
    [10000, 5005, 10, 10, 10]
    >>> plan == Plan(), str(parse("2k")), str(parse("power:0.8:10-50000+500"))
    (True, 'flat:2000', 'power:0.8:10-50000+500')
    >>> f"{plan.total(1_000_000):,}"
    '59,950,000'
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

import numpy as np

from surveyor.arrays import AnyIntArray, BoolArray, IntArray
from surveyor.errors import InputError, UsageError
from surveyor.web import urls
from surveyor.web.suffixes import spelt

Kind = Literal["star", "power", "flat"]
MOST = 10**9  # upper limit of pages per domain and of ranks: their product fits a 64-bit integer
AT_ONCE = 1 << 20  # ranks summed at a time
NUMBER = r"(\d[\d_]*(?:\.\d+)?[kmg]?)"
STAR = re.compile(rf"star(?::{NUMBER}-{NUMBER}(?:@{NUMBER})?)?")
POWER = re.compile(rf"power:(\d*\.?\d+)(?::{NUMBER}-{NUMBER})?")
FLAT = re.compile(rf"(?:flat:)?{NUMBER}")
FORMS = "write star, star:10-10000@10000, power:0.8, flat:500 or a number of pages"
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

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.most <= MOST or not 0 <= self.trusted <= MOST:
            problem = f"a budget from {self.least:,} to {self.most:,} pages"
            raise UsageError(problem, hint="give each domain at least one page, and good ones no fewer than others")
        if not 1 <= self.ranks <= MOST or not 0.01 <= self.gamma < 100:
            parameter = f"{self.ranks:,} ranks" if self.kind == "star" else f"power {self.gamma:g}"
            raise UsageError(
                f"a budget with {parameter}", hint="give at least one rank, or a power from 0.01 on such as 0.8"
            )

    @property
    def reach(self) -> int:
        """Number of top-ranked domains whose budget depends on their rank; all others get `least`."""
        if self.kind == "flat" or self.least == self.most:
            return 0
        if self.kind == "star":
            return self.ranks
        doublings = np.log2(self.most / self.least) / self.gamma
        return MOST if doublings > 29 else min(int(2.0**doublings) + 1, MOST)

    def pages(self, ranks: AnyIntArray, trusted: BoolArray | None = None) -> IntArray:
        """Return the page budget for each of these ranks; ranks below 1 mean unranked."""
        place = np.asarray(ranks, np.int64)
        known = np.maximum(place, 1)
        if self.kind == "star":
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
        if self.kind == "flat":
            return f"flat:{self.least}{more}"
        span = f"{self.least}-{self.most}"
        return (f"star:{span}@{self.ranks}" if self.kind == "star" else f"power:{self.gamma!r}:{span}") + more


def parse(text: str) -> Plan:
    """Parse a plan from the command line or the settings."""
    plain = text.strip().lower()
    spec, plus, more = plain.partition("+")
    trusted = _whole(more, text) if plus else 0
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
    raise UsageError(f"{text!r} is not a budget: {number!r} is no number of pages", hint=FORMS)


@dataclass(frozen=True, slots=True)
class Limits:
    """Page budgets by domain name; domains without an entry get `rest`."""

    rest: int
    pages: Mapping[str, int] = field(default_factory=dict)

    def of(self, domain: str) -> int:
        """Return the page budget of a domain."""
        return self.pages.get(domain, self.rest)

    @property
    def digest(self) -> str:
        """BLAKE2b digest of these limits."""
        lines = [str(self.rest), *(f"{domain},{pages}" for domain, pages in sorted(self.pages.items()))]
        return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()

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
            raise InputError(f"{file}, row {number}: {cells[count]!r} is no number of pages", hint=_EXAMPLE)
        if pages.setdefault(name, int(limit)) != int(limit):
            raise InputError(f"{file}, row {number}: {name} has two budgets", hint="name each domain once")
    if not pages:
        raise InputError(f"{file} names no domain", hint=_EXAMPLE)
    return Limits(rest, pages)


_EXAMPLE = "a row looks like: example.org,500"

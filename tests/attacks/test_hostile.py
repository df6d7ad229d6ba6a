"""Sites that mean no good, or are just broken: crawls end, stay polite, and need little time and memory."""

from __future__ import annotations

import asyncio
import gzip
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from attack import attack
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fake_web import CONTACT, Alone, Answers, Sites, Time, crawled, moved, page
from surveyor.config import Settings
from surveyor.crawler.seeds import MOST_LISTS, SeedLists, gather_seeds
from surveyor.crawler.sources.live import Connection
from surveyor.crawler.start import politeness_policy
from surveyor.fetch.http import Fetched, FetchRequest, Timings
from surveyor.fetch.politeness.hosts import DAY, Hosts
from surveyor.store.directory import SurveyFolder
from surveyor.survey.survey import Survey
from surveyor.web.robots import Robots
from surveyor.web.sitemaps import DEEPEST, LONGEST_SPACE, read_listing

A, B, X = "http://a.org", "http://b.org", "http://x.net"
ROBOTS = f"{A}/robots.txt"


class Slow(Sites):
    """Sites one file of which takes long."""

    slow, takes = f"{X}/a.txt", 20.0

    async def fetch(self, request: FetchRequest) -> Fetched:
        answer = await super().fetch(request)
        if request.url == self.slow:
            await self.time.sleep(self.takes)
        return answer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.survey"


def asked(client: Sites) -> list[str]:
    return [url for url, _ in client.log]


def gather(client: Sites, *places: str, **given: Any) -> SeedLists:
    chosen = Settings(contact=CONTACT, **given)
    hosts = Hosts(policy=politeness_policy(chosen), clock=client.time)
    sites = () if places else (f"{A}/",)
    return asyncio.run(
        gather_seeds(places, chosen, sitemaps_of=sites, connection=Connection(client, None, hosts, client.time.wait))
    )


# --- robots.txt ---


@attack("a group of 20,000 user agents and 20,000 rules", area="robots.txt", must_hold="each rule is stored once")
def test_a_group_of_very_many_agents_costs_no_more_than_its_lines() -> None:
    text = b"useragent *\n" * 20_000 + b"useragent x\n" + b"disallow /a\n" * 20_000
    rules = Robots.from_text(text)
    assert not rules.permits(f"{A}/a")
    assert len(rules._ours[0]) == 1


@attack(
    "a robots.txt redirect whose connection is cut", area="robots.txt", must_hold="the rules at its target are obeyed"
)
def test_a_redirect_that_is_cut_off_leads_to_the_rules_all_the_same(path: Path) -> None:
    rules = Fetched(f"{A}/r.txt", 200, body=b"User-agent: *\nDisallow: /")
    cut = Fetched(ROBOTS, 301, target=rules.url, error="reset")
    client = Sites(Time(), {ROBOTS: cut, rules.url: rules, f"{A}/": page(f"{A}/")})
    crawled(path, [f"{A}/"], client)
    assert asked(client) == [ROBOTS, rules.url]


@attack("Retry-After on a missing robots.txt", area="robots.txt", must_hold="no request before that time")
def test_a_retry_after_holds_though_there_is_no_robots_txt(path: Path) -> None:
    client = Sites(Time(), {ROBOTS: Fetched(ROBOTS, 404, retry_after=100.0), f"{A}/": page(f"{A}/")})
    crawled(path, [f"{A}/"], client)
    assert client.times(f"{A}/") == [100.1]


@attack(
    "a robots.txt that moves to another host when it expires",
    area="robots.txt",
    must_hold="expired rules permit nothing while the new ones are fetched",
)
def test_rules_that_have_expired_do_not_count_while_new_ones_are_asked_for_elsewhere(path: Path) -> None:
    later = Fetched(f"{X}/a.txt", 200, body=b"User-agent: *\nDisallow: /p")
    answers: dict[str, Answers] = {
        ROBOTS: [Fetched(ROBOTS, 404), moved(ROBOTS, later.url)],
        later.url: later,
        f"{A}/": page(f"{A}/", "/p"),
        f"{A}/p": [Fetched(f"{A}/p", 503, retry_after=3000.0), page(f"{A}/p")],
    }
    client = Slow(Time(), answers)
    crawled(path, [f"{A}/"], client, until="pages=1")
    client.time.now += DAY - 10  # they expire while the host is left alone
    crawled(path, [f"{A}/"], client)
    assert asked(client) == [ROBOTS, f"{A}/", f"{A}/p", ROBOTS, later.url]


@attack(
    "a robots.txt that redirects to a closed port", area="robots.txt", must_hold="four attempts, then the crawl ends"
)
def test_a_robots_txt_that_leads_to_a_closed_port_ends_the_crawl(path: Path) -> None:
    """The redirect shows that the network is there, so the failure counts."""
    there = "https://a.org/robots.txt"
    client = Sites(Time(), {ROBOTS: moved(ROBOTS, there), there: Fetched(there, error="refused")})
    assert crawled(path, [f"{A}/"], client) == "exhausted"
    assert len(client.times(there)) == 4


@attack(
    "a robots.txt redirect to a host with a Retry-After of 300 years",
    area="robots.txt",
    must_hold="the crawl ends within a minute",
)
def test_waits_for_a_redirected_robots_txt_are_bounded(path: Path) -> None:
    there = f"{X}/a.txt"
    client = Sites(Time(), {ROBOTS: moved(ROBOTS, there), there: Fetched(there, 503, retry_after=1e10)})
    began = client.time.now
    assert crawled(path, [f"{A}/"], client) == "exhausted"
    assert client.time.now < began + 60


# --- hosts to which a robots.txt leads ---


@attack(
    "robots.txt files of many hosts that redirect to one victim",
    area="robots.txt",
    must_hold="the victim gets one request at a time, with its delay",
)
def test_a_host_that_is_asked_for_the_rules_of_others_is_asked_for_nothing_else_meanwhile(path: Path) -> None:
    """Behind a proxy, where no gate of an address holds."""
    answers = {
        ROBOTS: moved(ROBOTS, f"{X}/a.txt"),
        f"{X}/": page(f"{X}/", f"{A}/"),
        f"{B}/": page(f"{B}/", "/1"),
        f"{B}/1": page(f"{B}/1", "/2"),
        f"{B}/2": page(f"{B}/2", f"{X}/p"),
        f"{X}/p": page(f"{X}/p"),
    }
    client = Slow(Time(), answers)
    crawled(path, [f"{X}/", f"{B}/"], client, scope="any", proxy="http://proxy.example:3128")
    (rules,), (then,) = client.times(f"{X}/a.txt"), client.times(f"{X}/p")
    assert then >= rules + Slow.takes + 1.0


@pytest.mark.parametrize("delay", [30, 300])
def test_what_a_host_asked_for_before_a_restart_holds_for_the_rules_of_others(path: Path, delay: int) -> None:
    robots = f"{X}/robots.txt"
    answers = {
        robots: Fetched(robots, 200, body=f"User-agent: *\nCrawl-delay: {delay}".encode()),
        f"{X}/": page(f"{X}/", f"{A}/"),
        f"{B}/": page(f"{B}/", f"{A}/"),
        ROBOTS: moved(ROBOTS, f"{X}/a.txt"),
    }
    client = Sites(Time(), answers)
    seeds = [f"{X}/"] if delay < 60 else [f"{X}/", f"{B}/"]
    crawled(path, seeds, client, scope="any", until="pages=1")
    crawled(path, seeds, client, scope="any")
    if delay < 60:
        assert client.times(f"{X}/a.txt")[0] >= client.times(f"{X}/")[0] + 30
    else:
        assert not client.times(f"{X}/a.txt")


def test_a_slow_answer_makes_the_very_next_request_wait(path: Path) -> None:
    home = page(f"{A}/", "/1", timings=Timings(0.1, 10.0, 10.0))
    client = Sites(Time(), {f"{A}/": home, f"{A}/1": page(f"{A}/1")}, seconds=10.0)
    crawled(path, [f"{A}/"], client)
    assert client.times(f"{A}/1")[0] - client.times(f"{A}/")[0] == pytest.approx(30.0, abs=0.1)


# --- lists of pages ---


@attack("a robots.txt that redirects to an excluded host", area="robots.txt", must_hold="that host gets no request")
def test_the_polite_client_does_not_follow_robots_txt_to_an_avoided_host() -> None:
    client = Sites(Alone(), {ROBOTS: moved(ROBOTS, "http://never.org/r.txt")})
    assert not gather(client, avoid=("never.org",)).urls
    assert asked(client) == [ROBOTS]


@attack(
    "a redirect with a Retry-After of 300 years",
    area="sitemaps and lists",
    must_hold="it is not followed and nothing waits for it",
)
@pytest.mark.parametrize("url", [ROBOTS, f"{A}/sitemap.xml"])
def test_the_polite_client_waits_are_bounded(url: str) -> None:
    client = Sites(Alone(), {url: Fetched(url, 302, target=f"{A}/x", retry_after=1e10)})
    assert not gather(client).urls
    assert client.time.now < client.log[-1][1] + 10
    assert f"{A}/x" not in asked(client)


@attack(
    "a sitemap that lists pages of another site",
    area="sitemaps and lists",
    must_hold="only pages of its own site count; the others are counted as foreign",
)
def test_lists_of_a_site_name_its_pages_wherever_they_lie_and_no_others() -> None:
    lists = {f"{X}/1": f"{A}/x", f"{X}/2": f"{X}/y"}
    answers: dict[str, Answers] = {
        place: Fetched(place, 200, body=f"<urlset><url><loc>{url}</loc></url></urlset>".encode())
        for place, url in lists.items()
    }
    named = "".join(f"Sitemap: {place}\n" for place in lists)
    client = Sites(Alone(), {**answers, ROBOTS: Fetched(ROBOTS, 200, body=named.encode())})
    found = gather(client)
    assert (list(found.urls), found.foreign) == ([f"{A}/x"], 1)


@attack(
    "a robots.txt that names twice as many sitemaps as the limit",
    area="sitemaps and lists",
    must_hold="requests stop at the limit",
)
def test_a_site_may_not_name_lists_without_end() -> None:
    named = "".join(f"Sitemap: /{number}\n" for number in range(2 * MOST_LISTS))
    client = Sites(Alone(), {ROBOTS: Fetched(ROBOTS, 200, body=named.encode())})
    gather(client)
    assert len(client.log) == 1 + MOST_LISTS


ONE = b"<urlset><url><loc>http://a.org/1</loc></url>"


@attack(
    "XML bombs: two million nested elements, default attributes, long namespaces",
    area="sitemaps and lists",
    must_hold="reading ends at a bound; entries before it count",
)
@pytest.mark.parametrize(
    ("bomb", "pages"),
    [
        (ONE + b"<a>" * 2_000_000 + b"<url><loc>http://a.org/2</loc></url>", 1),
        (b'<!DOCTYPE u [<!ATTLIST a b CDATA "' + b"x" * 10**7 + b'">]>' + ONE + b"<a/>" * 10**6, None),
        (ONE + b'<n:a xmlns:n="' + b"x" * 10**7 + b'">' + b"<n:a/>" * 10**6, 1),
    ],
    ids=["depth", "attributes", "namespace"],
)
def test_what_would_take_hours_or_gigabytes_ends_the_reading(bomb: bytes, pages: int | None) -> None:
    """Each takes minutes or gigabytes if it is read to its end."""
    listing = read_listing(gzip.compress(bomb, 1))
    assert (None if listing is None else len(listing.pages)) == pages


def test_what_is_usual_is_read() -> None:
    deep = b"<a>" * (DEEPEST - 1) + b"</a>" * (DEEPEST - 1)
    named = b'<urlset xmlns="' + b"x" * LONGEST_SPACE + b'">' + deep + b"<url><loc>http://a.org/</loc></url></urlset>"
    listing = read_listing(named)
    assert listing is not None
    assert listing.pages == ("http://a.org/",)


@attack(
    "JSON feeds whose URLs are not strings",
    area="sitemaps and lists",
    must_hold="the entry is skipped, the rest is read",
)
@pytest.mark.parametrize("url", ["5", "[1]", "{}", "null", '""'])
def test_a_feed_names_its_pages_by_texts(url: str) -> None:
    listing = read_listing(b'{"items": [{"url": %s}, {"url": "http://a.org/"}]}' % url.encode())
    assert listing is not None
    assert listing.pages == ("http://a.org/",)


# --- whatever comes together ---


def anything(url: str, names: list[str], chance: random.Random) -> Fetched:
    retry_after = chance.choice([None, None, 0.0, 5.0, 400.0, 5000.0, 1e10])
    what = chance.choice(["moved", "moved", "status", "error", "rules"])
    if what == "moved":
        place = chance.choice(["robots.txt", "r.txt", "p0", "p1"])
        return Fetched(url, 302, target=f"http://{chance.choice(names)}/{place}", retry_after=retry_after)
    if what == "status":
        return Fetched(url, chance.choice([403, 404, 429, 500, 503]), retry_after=retry_after)
    if what == "error":
        troubles = ["reset", "refused", "dns", "no-host", "timeout-connect", "tls", "forbidden-address"]
        return Fetched(url, error=chance.choice(troubles))  # type: ignore[arg-type]  # they are words for it
    return Fetched(url, 200, body=b"User-agent: *\nDisallow: /p1\nCrawl-delay: %d" % chance.choice([0, 5, 70]))


@attack(
    "random webs of redirects, errors, delays and excluded hosts",
    area="traps and limits",
    must_hold="every crawl ends within 40 requests per URL, and no excluded host is asked",
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=True), st.sampled_from([1, 2, 64]), st.sampled_from([0.0, 1.0]))
@pytest.mark.slow
def test_every_crawl_ends(
    tmp_path_factory: pytest.TempPathFactory, chance: random.Random, concurrency: int, delay: float
) -> None:
    """Time is pretended and passes only if somebody waits: to turn round and round without an end is found as well."""
    names = [f"h{number}.s{chance.randrange(2)}.org" for number in range(chance.randint(1, 4))]
    pages = [f"http://{name}/p{number}" for name in names for number in range(chance.randint(1, 3))]
    answers: dict[str, Answers] = {}
    for url in [*pages, *(f"http://{name}/{file}" for name in names for file in ("robots.txt", "r.txt"))]:
        some = [anything(url, [*names, "never.org", "new.net"], chance) for _ in range(chance.randint(1, 4))]
        answers[url] = page(url, *chance.sample(pages, 1)) if url in pages and chance.random() < 0.6 else some
    answers[pages[0]] = page(pages[0], *pages)
    addresses = {name: chance.choice(["10.0.0.1", "10.0.0.2", ""]) for name in names}
    client = Sites(Time(), answers, seconds=0.3, addresses=addresses)
    folder = tmp_path_factory.mktemp("ends") / "a.survey"
    given: dict[str, Any] = {"scope": "any", "avoid": ["never.org"], "concurrency": concurrency, "delay": delay}
    for goal in ("pages=2", "pages=1000"):
        crawled(folder, [pages[0]], client, until=goal, max_wait=1000.0, **given)
    assert len(client.log) < 40 * (len(answers) + 1)
    assert not [url for url in asked(client) if "never.org" in url]


@attack(
    "four hosts whose robots.txt redirects ten times with a long Retry-After",
    area="traps and limits",
    must_hold="all 20 pages of the honest host are fetched within a minute",
)
def test_misleading_hosts_do_not_delay_others(path: Path) -> None:
    answers: dict[str, Answers] = {f"{A}/": page(f"{A}/", *(f"/p{number}" for number in range(20)))}
    answers |= {f"{A}/p{number}": page(f"{A}/p{number}") for number in range(20)}
    evil = [f"http://e{number}.evil.org" for number in range(4)]
    for number, site in enumerate(evil):
        way = [f"{site}/robots.txt", *(f"{X}/{number}{'x' * step}" for step in range(9))]
        answers |= {here: Fetched(here, 302, target=there, retry_after=3000.0) for here, there in pairwise(way)}
    client = Sites(Time(), answers)
    crawled(path, [f"{A}/", *(f"{site}/" for site in evil)], client, scope="any", concurrency=4)
    times = [at - client.log[0][1] for url, at in client.log if url.startswith(A)]
    assert len(times) == 22
    assert max(times) < 60


@attack("a Retry-After on a nested sitemap", area="sitemaps and lists", must_hold="the crawl obeys it")
def test_what_a_host_asked_for_while_lists_were_read_holds_for_the_crawl() -> None:
    place = f"{A}/map.xml"
    answers: dict[str, Answers] = {
        place: [
            Fetched(place, 200, body=f"<sitemapindex><sitemap><loc>{A}/2.xml</loc></sitemap></sitemapindex>".encode())
        ],
        f"{A}/2.xml": Fetched(f"{A}/2.xml", 503, retry_after=9000.0),
    }
    client = Sites(Alone(), answers)
    found = gather(client, place)
    assert found.waits == {"a.org": pytest.approx(client.log[-1][1] + 9000.0, abs=1)}


@pytest.mark.parametrize("rest", [True, False])
def test_a_restart_during_a_backoff_does_not_extend_it(path: Path, rest: bool) -> None:
    client = Sites(Time(), {f"{A}/": page(f"{A}/", "/x"), f"{A}/x": page(f"{A}/x")})
    crawled(path, [f"{A}/"], client, until="pages=1")
    with SurveyFolder.open(path) as folder:
        folder.note(
            "backoff", host="a.org", until=client.time.now + 500.0, why="http 500", **({"own": True} if rest else {})
        )
    crawled(path, [f"{A}/"], client, max_wait=30.0)
    with Survey(path) as survey:
        assert survey.pages_fetched == (2 if rest else 1)
    assert client.time.now - client.log[0][1] > 500 or not rest

"""Links that cannot be reached must not make a crawl believe that its own network is down."""

from __future__ import annotations

from pathlib import Path

import pytest
from attack import attack

from fake_web import Answers, Sites, Time, crawled, page
from surveyor.fetch.http import TRIES, Fetched, Trouble
from surveyor.store.directory import SurveyFolder

SITE = "http://a.org"
PAGES = [f"{SITE}/p{number}" for number in range(30)]


def offline_events(path: Path) -> int:
    with SurveyFolder.open(path, write=False) as folder:
        return [event.kind for event in folder.journal.events()].count("offline")


def crawl(path: Path, unreachable: dict[str, Trouble]) -> Sites:
    """Crawl a site that links to what cannot be reached first, then to its own pages."""
    answers: dict[str, Answers] = {url: page(url) for url in PAGES}
    for origin, error in unreachable.items():
        answers[f"{origin}/robots.txt"] = Fetched(f"{origin}/robots.txt", error=error)
        answers[f"{origin}/x"] = Fetched(f"{origin}/x", error=error)
    answers[f"{SITE}/"] = page(f"{SITE}/", *(f"{origin}/x" for origin in unreachable), *PAGES)
    client = Sites(Time(), answers)
    assert crawled(path, [f"{SITE}/"], client, scope="any") == "exhausted"
    return client


CLOSED = ["https://a.org", "http://a.org:9", "https://b.org", "https://www.a.org"]


@attack(
    "a page that links to a closed or filtered port, of its own host or another",
    area="connections",
    must_hold="nothing pauses: 4 attempts at that origin, and all other pages are fetched within two minutes",
)
@pytest.mark.parametrize("error", ["refused", "timeout-connect", "dns"])
@pytest.mark.parametrize("origin", CLOSED)
def test_one_link_to_a_closed_port(tmp_path: Path, origin: str, error: Trouble) -> None:
    path = tmp_path / "a.survey"
    client = crawl(path, {origin: error})
    assert offline_events(path) == 0
    assert len(client.times(f"{origin}/robots.txt")) == TRIES
    times = [client.times(url) for url in PAGES]
    assert [len(each) for each in times] == [1] * len(PAGES)
    assert max(at for each in times for at in each) < 120


@attack(
    "links to ten hosts of one domain that all time out",
    area="connections",
    must_hold="nothing pauses, and all other pages are fetched within two minutes",
)
def test_many_hosts_of_one_domain(tmp_path: Path) -> None:
    path = tmp_path / "a.survey"
    client = crawl(path, {f"http://{number}.evil.org": "timeout-connect" for number in range(10)})
    assert offline_events(path) == 0
    assert max(client.times(url)[0] for url in PAGES) < 120


@attack(
    "a link to an address of which a distant router says that its network cannot be reached",
    area="connections",
    must_hold="a bounded number of attempts, then the crawl ends; other pages are fetched within two minutes",
)
def test_an_address_without_a_route(tmp_path: Path) -> None:
    client = crawl(tmp_path / "a.survey", {"http://evil.org": "offline"})
    assert len(client.times("http://evil.org/robots.txt")) <= 20
    assert max(client.times(url)[0] for url in PAGES) < 120


@pytest.mark.parametrize("others", [0, 1, 5])
def test_a_real_outage_costs_no_page(tmp_path: Path, others: int) -> None:
    """For 400 seconds no name can be looked up; without the pauses pages are given up after 210."""

    class Outage(Sites):
        async def fetch(self, request: object) -> Fetched:
            found = await super().fetch(request)  # type: ignore[arg-type]
            if 10 < self.time.now - self.log[0][1] < 410:
                return Fetched(found.url, error="dns", detail="no such host")
            return found

    path, sites = tmp_path / "a.survey", [SITE, *(f"http://{number}.net" for number in range(others))]
    answers: dict[str, Answers] = {
        f"{site}/": page(f"{site}/", *(f"/p{number}" for number in range(20))) for site in sites
    }
    answers |= {f"{site}/p{number}": page(f"{site}/p{number}") for site in sites for number in range(20)}
    client = Outage(Time(), answers)
    crawled(path, [f"{site}/" for site in sites], client, scope="any")
    with SurveyFolder.open(path, write=False) as folder:
        kinds = [visit.kind for _, _, visit in folder.pages() if visit]
    assert kinds == ["fetched"] * 21 * len(sites)
    assert offline_events(path)

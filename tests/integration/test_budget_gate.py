"""Budgets of live crawls: no domain is asked for more pages than it may take, and what is refused is blocked."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surveyor as sv
from console import CommandResult
from fake_web import CONTACT, Sites, Time, crawled, moved, page, rules
from slow_cases import one_in
from surveyor.config import Settings
from surveyor.crawler.budgeting import Budgeting
from surveyor.crawler.budgets import DomainBudgets, events, latest, limits_of
from surveyor.crawler.replay import derive
from surveyor.crawler.start import start
from surveyor.errors import InputError, SurveyError, UsageError
from surveyor.fetch.http import Fetched
from surveyor.graph.synthetic.generate import WebShape
from surveyor.report.survey_tables import budget_lines
from surveyor.store.directory import SurveyFolder
from surveyor.survey.survey import Survey
from surveyor.testing import EmbeddedWeb, WebSettings, running
from surveyor.testing.web_plan import CALENDAR

# a web with a calendar that never ends: a farm of as many pages as anyone cares to ask for
TRAP = WebSettings.plain(
    web=WebShape(pages=300, smallest_site=4, largest_site=30, topics=2, external=0.4), rng=5, seeds=2, calendar=0.02
)
HOME, BLOG, OTHER = "http://www.a.org/", "http://blog.a.org/", "http://b.org/"


@pytest.fixture(scope="module")
def web() -> Iterator[EmbeddedWeb]:
    with running(TRAP) as made:
        yield made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.survey"


def http_crawl(web: EmbeddedWeb, path: Path, until: str = "pages=100000", **settings: Any) -> str:
    given = {"contact": CONTACT, "proxy": f"http://127.0.0.1:{web.port}", "delay": 0.0, "scope": "any", "rng": 3}
    with sv.crawl(web.seeds, until=until, out=path, archive=False, backoff=0.01, **{**given, **settings}) as survey:
        return survey.ending


def pages_of(web: EmbeddedWeb) -> dict[str, set[str]]:
    """Return the pages of each host that the server was asked for."""
    found: dict[str, set[str]] = defaultdict(set)
    for request in web.log:
        if request.path != "/robots.txt":
            found[request.host].add(request.path)
    return found


def check(path: Path) -> Survey:
    """Check that the accounts are honest, and that a replay comes to the state that was saved."""
    with SurveyFolder.open(path, write=False) as folder:
        kept, replayed = derive(folder), derive(folder, watch=lambda _state, _outcome: None)
    for name in ("residual", "settled", "state"):
        assert np.array_equal(getattr(kept.crawl.ledger.mass, name), getattr(replayed.crawl.ledger.mass, name))
    survey = Survey(path)
    now = survey.coverage
    assert abs(now.captured + now.moving + now.waiting + now.blocked + now.lost - 1) < 1e-9
    assert sum(row["mass"] for row in survey.blocked()) == pytest.approx(now.blocked)
    return survey


def test_no_domain_gets_more_than_its_budget_and_the_rest_is_blocked(web: EmbeddedWeb, path: Path) -> None:
    web.reset()
    assert http_crawl(web, path, "pages=30", budget=4) == "reached"
    assert http_crawl(web, path) == "exhausted"  # resumes with the same budget
    asked = pages_of(web)
    assert max(len(pages) for pages in asked.values()) == 4
    assert sum(len(pages) == 4 for pages in asked.values()) > 3
    with check(path) as survey:
        assert survey.blocked()[0]["reason"] == "budget"
        assert survey.coverage.blocked > 0.1
        assert survey.coverage.waiting == 0
        assert survey.coverage.lost < 0.1


def test_a_larger_budget_opens_what_was_refused_and_nothing_is_read_twice(web: EmbeddedWeb, path: Path) -> None:
    web.reset()
    http_crawl(web, path, budget="flat:3")
    with check(path) as survey:
        before = survey.coverage
    http_crawl(web, path, budget="flat:6")
    with check(path) as survey:
        assert survey.coverage.at_least > before.at_least
        assert survey.coverage.blocked < before.blocked
    asked = Counter((one.host, one.path) for one in web.log if one.status == 200 and one.path != "/robots.txt")
    assert set(asked.values()) == {1}
    assert max(len(pages) for pages in pages_of(web).values()) == 6


def test_a_reputable_domain_gets_more_and_a_trap_the_least(web: EmbeddedWeb, path: Path) -> None:
    web.reset()
    assert http_crawl(web, path, budget="star:3-20@5") == "exhausted"
    with SurveyFolder.open(path, write=False) as folder:
        last = latest(folder)
        assert last is not None
        limits, history = limits_of(last), [limits_of(event) for event in events(folder)]
        opened = [event.detail["reopened"] for event in events(folder)]
    asked = {host: len(pages) for host, pages in pages_of(web).items()}
    assert all(count <= max(each.of(host) for each in history) for host, count in asked.items())
    best = max(limits.pages, key=lambda name: limits.pages[name])
    assert asked[best] > 3
    assert asked[CALENDAR] == 3
    assert any(opened)
    check(path).close()


# --- without sockets: what counts, and for whom ---


def site(**answers: Any) -> dict[str, Any]:
    names = [f"{root}{number}" for root in (HOME, BLOG, OTHER) for number in range(6)]
    return {**{url: page(url) for url in names}, HOME: page(HOME, *names), **answers}


def asked_for(client: Sites) -> Counter[str]:
    """Count what was asked for by the last two labels of the host."""
    urls = [url for url, _ in client.log if not url.endswith("/robots.txt")]
    return Counter(".".join(url.split("/")[2].split(".")[-2:]) for url in urls)


def test_the_hosts_of_a_domain_share_its_budget(path: Path) -> None:
    client = Sites(Time(), site())
    crawled(path, [HOME], client, scope="any", budget=5)
    assert asked_for(client) == {"a.org": 5, "b.org": 5}
    with check(path) as survey:
        assert survey.blocked()[0]["pages"] == 19 - 10


def test_every_requested_page_counts_and_disallowed_pages_do_not(path: Path) -> None:
    answers = {
        HOME: page(HOME, *(f"{HOME}{number}" for number in range(6)), f"{HOME}private/1"),
        f"{HOME}0": Fetched(f"{HOME}0", 404),
        f"{HOME}1": Fetched(f"{HOME}1", 403),
        f"{HOME}2": Fetched(f"{HOME}2", 301, target=f"{HOME}9"),
        f"{HOME}9": page(f"{HOME}9"),
        **rules("http://www.a.org", "User-agent: *\nDisallow: /private/"),
    }
    client = Sites(Time(), site(**answers))
    crawled(path, [HOME], client, scope="any", budget=5, strategy="breadth")
    assert len({url for url, _ in client.log if not url.endswith("robots.txt")}) == 5
    with check(path) as survey:
        reasons = {row["reason"]: row["pages"] for row in survey.blocked()}
    assert reasons.pop("robots.txt disallows it (Disallow: /private/)") == 1
    assert reasons["budget"] == 3  # of six pages and the one that has moved: 0, 1, 2 and 3 were asked for
    assert reasons["http 403"] == 1


def test_pages_that_become_known_later_are_covered(path: Path) -> None:
    chain = {f"{HOME}{n}": page(f"{HOME}{n}", f"{HOME}{n + 1}") for n in range(50)}
    client = Sites(Time(), {HOME: page(HOME, f"{HOME}0"), **chain})
    crawled(path, [HOME], client, budget=7)
    assert asked_for(client) == {"a.org": 7}


def test_a_page_that_is_tried_again_takes_one_place(path: Path) -> None:
    flaky = {f"{HOME}{n}": [Fetched(f"{HOME}{n}", 503), page(f"{HOME}{n}")] for n in range(6)}
    client = Sites(Time(), site(**flaky))
    crawled(path, [HOME], client, budget=4)
    assert asked_for(client) == {"a.org": 1 + 3 * 2}
    with check(path) as survey:
        assert survey.pages_fetched == 4


def test_another_try_begins_a_new_period(path: Path) -> None:
    client = Sites(Time(), site())
    crawled(path, [HOME], client, scope="any", budget=3)
    start(path, [HOME], Settings(contact=CONTACT), {}, again=True)[0].close()
    with Survey(path) as survey:
        assert survey.coverage.blocked == 0
    crawled(path, [HOME], client, scope="any", budget=3)
    assert asked_for(client) == {"a.org": 6, "b.org": 6}
    check(path).close()


def test_none_lifts_budgets_and_smaller_ones_hold_from_then_on(path: Path) -> None:
    client = Sites(Time(), site())
    crawled(path, [HOME], client, scope="any", budget=3, until="pages=2")
    crawled(path, [HOME], client, scope="any", budget=2)
    assert asked_for(client) == {"a.org": 2, "b.org": 2}
    crawled(path, [HOME], client, scope="any", budget="none")
    assert asked_for(client) == {"a.org": 13, "b.org": 6}
    with check(path) as survey:
        assert survey.coverage.blocked == 0


def test_what_is_spent_is_counted_from_the_journal_as_the_crawl_did(path: Path) -> None:
    spent: list[dict[int, int]] = []
    client = Sites(Time(), site(**{f"{HOME}1": Fetched(f"{HOME}1", 403)}))
    crawled(path, [HOME], client, lambda run, _: spent.append(run.state.crawl.frontier.spent), scope="any", budget=5)
    with SurveyFolder.open(path, write=False) as folder:
        last = latest(folder)
        assert last is not None
        gate = DomainBudgets(limits_of(last), derive(folder).urls)
        assert gate.spent(folder) == spent[-1]


# --- tables in files ---


def test_a_file_has_the_budgets_and_the_journal_keeps_them(path: Path, tmp_path: Path) -> None:
    table = tmp_path / "budgets.csv"
    table.write_text("domain,pages\na.org,2\n", "utf-8")
    client = Sites(Time(), site())
    crawled(path, [HOME], client, scope="any", budget=str(table), until="pages=3")
    table.unlink()
    crawled(path, [HOME], client, scope="any", budget=str(table))
    assert asked_for(client) == {"a.org": 2, "b.org": 6}  # those that are not named may take 10
    table.write_text("a.org,4\n", "utf-8")
    crawled(path, [HOME], client, scope="any", budget="", budget_file=str(table))
    assert asked_for(client) == {"a.org": 4, "b.org": 6}
    check(path).close()


def test_a_plan_holds_for_domains_that_a_file_does_not_name(path: Path, tmp_path: Path) -> None:
    table = tmp_path / "budgets.csv"
    table.write_text("a.org,2\n", "utf-8")
    client = Sites(Time(), site())
    crawled(path, [HOME], client, scope="any", budget=3, budget_file=str(table))
    assert asked_for(client) == {"a.org": 2, "b.org": 3}


def test_the_budgets_of_a_file_hold_for_canonical_pages(path: Path, tmp_path: Path) -> None:
    table = tmp_path / "budgets.csv"
    table.write_text("a.org,4\n", "utf-8")
    answers: dict[str, Any] = {HOME: page(HOME, *(f"{HOME}{number}" for number in range(6)))}
    for number in range(6):
        url, canonical = f"{HOME}{number}", f"{HOME}c{number}"
        answers[url] = page(url, extra=f'<head><link rel="canonical" href="{canonical}"></head>')
        answers[canonical] = page(canonical)
    client = Sites(Time(), answers)
    crawled(path, [HOME], client, scope="any", budget="", budget_file=str(table))
    assert asked_for(client) == {"a.org": 4}


def test_bad_budgets_are_refused_before_anything_is_asked(path: Path, tmp_path: Path) -> None:
    client, bad = Sites(Time(), site()), tmp_path / "bad.csv"
    bad.write_bytes(b"\xff\xfe\x00")
    for settings, kind, says in [
        ({"budget": "moon"}, UsageError, "'moon' is not a budget"),
        ({"budget": 0}, UsageError, "from 0 to 0 pages"),
        ({"budget": str(tmp_path / "nowhere.csv")}, InputError, "cannot be read: No such file or directory"),
        ({"budget_file": str(bad)}, InputError, "cannot be read: it is not a table"),
        ({"budget": True}, UsageError, "must be text, or a number of pages"),
    ]:
        with pytest.raises(kind, match=says):
            crawled(path, [HOME], client, **settings)  # type: ignore[arg-type]
    assert not client.log
    assert not path.exists()


def test_domains_are_ranked_again_as_the_crawl_grows(path: Path) -> None:
    ranked: list[int] = []

    def rank(folder: SurveyFolder, count: int) -> list[str]:
        assert count == 2
        ranked.append(folder.journal.cost()[0])
        return ["b.org"]

    names = [f"{OTHER}{number}" for number in range(300)]
    client = Sites(Time(), {HOME: page(HOME, *names), **{url: page(url) for url in names}})
    crawled(path, [HOME], client, rank=rank, scope="any", budget="star:110-250@2")
    assert ranked == [
        20,
        30,
        45,
        68,
        102,
        153,
        230,
        251,
    ]  # half as many again each time, and when no other page is left
    assert asked_for(client) == {"a.org": 1, "b.org": 250}
    with SurveyFolder.open(path, write=False) as folder:
        assert [event.detail["reopened"] for event in events(folder)] == [[]] * 9  # it never ran out before
    check(path).close()


def test_there_is_no_gate_unless_it_is_asked_for(path: Path) -> None:
    client = Sites(Time(), site())
    crawled(path, [HOME], client, scope="any")
    assert asked_for(client) == {"a.org": 13, "b.org": 6}
    with SurveyFolder.open(path, write=False) as folder:
        assert latest(folder) is None
        assert not Budgeting(folder, Settings(), lambda _folder, _count: [], Time()).ranks


# --- what is said about it ---


@pytest.mark.usefixtures("nowhere")
@pytest.mark.slow
def test_the_command_line_says_what_was_refused_and_how_to_get_it(
    web: EmbeddedWeb, capsys: pytest.CaptureFixture[str]
) -> None:
    web.reset()
    words = ["--proxy", f"http://127.0.0.1:{web.port}", "--contact", CONTACT, "--delay", "0", "--scope", "any"]
    goal = ["--out", "a.survey", "--until", "coverage=0.99"]
    first = CommandResult(capsys, "crawl", *web.seeds, *words, *goal, "--budget", "2")
    assert first.code == 3
    assert "within the budgets" in first.out + first.err or "cannot be reached" in first.out
    assert "--budget flat:4" in first.err
    status = CommandResult(capsys, "status", "a.survey")
    assert "budget" in next(line for line in status.out.splitlines() if line.startswith("blocked"))
    assert "2 per domain" in status.out
    assert "--budget flat:4" in status.err
    assert CommandResult(capsys, "status", "a.survey", "--json").json()["blocked"][0]["reason"] == "budget"
    table = CommandResult(capsys, "domains", "a.survey", "--budget", "star:3-9@4", "--top", "4", "--csv").out
    Path("budgets.csv").write_text(table, "utf-8")
    second = CommandResult(capsys, "crawl", *web.seeds, *words, *goal, "--budget", "budgets.csv")
    assert second.code == 3
    assert "--budget none" in second.err
    with SurveyFolder.open(Path("a.survey"), write=False) as folder:
        last = latest(folder)
        assert last is not None
        assert sorted(limits_of(last).pages.values()) == [3, 5, 7, 9]
    wrong = CommandResult(capsys, "crawl", *web.seeds, *words, *goal, "--budget", "moon")
    assert (wrong.code, "'moon' is not a budget" in wrong.err) == (2, True)


# --- automatic budgets ---


def farm(honest: int = 40, each: int = 8) -> dict[str, Any]:
    """Return honest sites that link to each other, one of which was hacked, and 300 spam domains of 40 pages each."""
    rng = np.random.default_rng(4)
    answers: dict[str, Any] = {}
    for site in range(honest):
        for number in range(each):
            others = [f"http://h{one}.org/{rng.integers(0, each)}" for one in rng.integers(0, honest, 5)]
            spam = ["http://spam0.org/0"] if (site, number) == (17, 3) else []
            own = [f"http://h{site}.org/{one}" for one in range(each)]
            url = f"http://h{site}.org/{number}"
            answers[url] = page(url, *own, *others, *spam)
    for site in range(300):
        for number in range(40):
            others = [f"http://spam{one}.org/0" for one in rng.integers(0, 300, 6)]
            url = f"http://spam{site}.org/{number}"
            answers[url] = page(url, f"/{number + 1}", f"/{number + 2}", *others)
    return answers


@pytest.mark.parametrize("budget", one_in(4, ["star", "star,score=supp", "star,score=in", "star,p=0.5"]))
def test_automatic_budgets_stop_a_farm_and_not_the_others(path: Path, budget: str) -> None:
    client = Sites(Time(), farm())
    if budget == "star":
        crawled(path.with_name("free.survey"), ["http://h0.org/0"], client, scope="any", until="pages=600", delay=0.0)
        assert sum(count for name, count in asked_for(client).items() if name.startswith("spam")) > 250
        client.log.clear()
    crawled(path, ["http://h0.org/0"], client, scope="any", budget=budget, until="pages=600", delay=0.0)
    asked = asked_for(client)
    assert sum(count for name, count in asked.items() if name.startswith("spam")) <= 40
    assert sum(count for name, count in asked.items() if name.startswith("h")) >= 0.99 * 40 * 8
    with check(path) as survey:
        assert survey.blocked()[0]["reason"] == "budget"
        assert survey.unguarded is None
        assert budget_lines(survey) == []
    with SurveyFolder.open(path, write=False) as folder:
        last = latest(folder)
        assert last is not None
        limits = limits_of(last)
        hacked = list(folder.journal.urls()).index("http://h17.org/3")
    assert {limits.account(f"spam{one}.org") for one in range(1, 300)} <= {f"via {hacked}", "via "}
    assert not [name for name in limits.pages if name.startswith("spam")]


def test_a_redirect_of_the_farm_changes_no_budget(path: Path) -> None:
    """The mass of a redirected page counts once, for its target."""
    answers = farm()
    answers["http://spam0.org/0"] = moved("http://spam0.org/0", "http://spam0.org/1")
    client = Sites(Time(), answers)
    crawled(path, ["http://h0.org/0"], client, scope="any", budget="star", until="pages=600", delay=0.0)
    assert sum(count for name, count in asked_for(client).items() if name.startswith("spam")) <= 40


@pytest.mark.parametrize("to", ["honest", "next", "none"])
@pytest.mark.slow
def test_domains_that_only_redirect_share_the_budget_of_their_group(path: Path, to: str) -> None:
    """Their pages belong to other domains, so they are not in the domain graph."""
    answers, names = farm(), [f"http://way{number}.org/" for number in range(400)]
    hacked_page = answers["http://h17.org/3"]
    spam = b"".join(f'<a href="{url}">x</a>'.encode() for url in names)
    answers["http://h17.org/3"] = replace(hacked_page, body=hacked_page.body + spam)
    for url, following in zip(names, [*names[1:], "http://spam0.org/0"], strict=True):
        target = {"honest": "http://h0.org/0", "next": following}.get(to)
        answers[url] = Fetched(url, 404) if target is None else moved(url, target)
    client = Sites(Time(), answers)
    crawled(path, ["http://h0.org/0"], client, scope="any", budget="star", until="pages=600", delay=0.0)
    asked = {url for url, _ in client.log if "//way" in url or "//spam" in url}
    pages = {url for url in asked if not url.endswith("/robots.txt")}
    assert 20 < len(pages) <= 40
    assert len(asked - pages) <= len(pages) + 32  # a refused page costs no request for a robots.txt
    with SurveyFolder.open(path, write=False) as folder:
        last = latest(folder)
        assert last is not None
        groups = {limits_of(last).account(url.split("/")[2]) for url in pages}
        hacked = list(folder.journal.urls()).index("http://h17.org/3")
    assert groups == {f"via {hacked}"}


def test_a_seed_that_redirects_to_another_domain_is_trusted_there(path: Path) -> None:
    answers = {"http://old.org/": moved("http://old.org/", "http://h0.org/0"), **farm()}
    client = Sites(Time(), answers)
    crawled(path, ["http://old.org/"], client, scope="any", budget="star", until="pages=600", delay=0.0)
    assert sum(count for name, count in asked_for(client).items() if name.startswith("h")) >= 0.99 * 40 * 8


def test_a_domain_that_all_others_link_to_has_most_pages(path: Path) -> None:
    """It has no supporters at exactly two links, but the most mass."""
    answers: dict[str, Any] = {}
    for site in range(40):
        for number in range(8):
            url = f"http://h{site}.org/{number}"
            own = [f"http://h{site}.org/{one}" for one in range(8)]
            answers[url] = page(url, *own, f"http://h{(site + 1) % 40}.org/0", f"http://pop.org/{8 * site + number}")
    answers |= {f"http://pop.org/{number}": page(f"http://pop.org/{number}") for number in range(320)}
    client = Sites(Time(), answers)
    crawled(path, ["http://h0.org/0"], client, scope="any", budget="star", until="pages=1000", delay=0.0)
    assert asked_for(client)["pop.org"] > 300


@pytest.mark.parametrize("inner", [1, 3])
def test_a_site_of_links_leads_to_the_sites_it_links_to(path: Path, inner: int) -> None:
    """The links are on inner pages of the site of the seed."""
    lists = [f"http://a.org/{one}" for one in range(1, inner + 1)]
    answers: dict[str, Any] = {HOME: page(HOME, *lists)}
    for place, url in enumerate(lists):
        answers[url] = page(url, *(f"http://o{site}.org/0" for site in range(place, 30, inner)))
    for site in range(30):
        for number in range(10):
            url = f"http://o{site}.org/{number}"
            answers[url] = page(url, *(f"http://o{site}.org/{one}" for one in range(10)))
    client = Sites(Time(), answers)
    crawled(path, [HOME], client, scope="any", budget="star", until="pages=1000", delay=0.0)
    assert sum(count for name, count in asked_for(client).items() if name.startswith("o")) >= 290
    with sv.open(path) as survey:  # a farm among these sites would look the same
        found, lines = survey.unguarded, budget_lines(survey)
    if inner == 1:
        assert found is not None
        assert found["url"] == lists[0]
        assert found["domains"] == 30
        assert 0.05 < found["share"] <= 1
        assert "30 domains known only through http://a.org/1 may take" in lines[0]
    else:  # ten domains each, but they are all known through pages of one site
        assert found is not None
        assert (found["url"] in lists, found["others"], found["domains"]) == (True, inner - 1, 30)
        assert "and 2 other pages of its site may take" in lines[0]
    assert found["pages"] >= 290
    assert "--budget" not in " ".join(lines)  # a limit for each domain stops no farm of many domains


@pytest.mark.slow
def test_a_ranking_of_more_pages_than_were_visited_is_no_reason_to_wait(path: Path) -> None:
    client = Sites(Time(), farm())
    crawled(path, ["http://h0.org/0"], client, scope="any", budget="star", until="pages=30", delay=0.0)
    with SurveyFolder.open(path) as folder:
        last = latest(folder)
        assert last is not None
        folder.note("budgets", **{**last.detail, "fetched": 10**9})
    crawled(path, ["http://h0.org/0"], client, scope="any", budget="star", until="pages=600", delay=0.0)
    assert sum(count for name, count in asked_for(client).items() if name.startswith("h")) >= 0.99 * 40 * 8


IDS = ("99999999", "-1", "", "x", "9" * 5_000, "\u0661")  # not those of pages


@pytest.mark.parametrize("groups", [5, [1, 2], {"b.org": 5}, {"b.org": ["a.org"]}, *({"b.org": one} for one in IDS)])
def test_groups_that_mean_nothing_are_damage(path: Path, groups: Any) -> None:
    answers = {HOME: page(HOME, OTHER), OTHER: page(OTHER)}
    crawled(path, [HOME], Sites(Time(), answers), scope="any", budget="star", until="pages=1")
    with SurveyFolder.open(path) as folder:
        last = latest(folder)
        assert last is not None
        folder.note("budgets", **{**last.detail, "groups": groups})
    with pytest.raises(SurveyError, match="damaged"):
        crawled(path, [HOME], Sites(Time(), answers), scope="any", budget="star", until="pages=2")

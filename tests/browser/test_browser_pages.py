"""Every page of a survey in a browser: explanation, filters, SQL, copying, keyboard, no scripts, narrow, accessible."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

import surveyor as sv
from browsing import SECONDS, VIEWS, Visitor, built, chromium, serving, visiting
from surveyor.testing import WebSettings, running

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.usefixtures("nowhere")]
expect.set_options(timeout=1000 * SECONDS)

NAME = "web"
FETCHED = 150  # pages of the survey
LARGEST = 150_000  # bytes of a page with its static files
IMPACTS = ("serious", "critical")
NARROW = {"width": 360, "height": 740}
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select {} from n"
SQL = {
    ENDLESS.format("max(i)"): "the query was stopped after 2 s",
    "delete from pages": "a survey is read-only",
    "attach 'x.sqlite' as x": "a survey is read-only",
    "select missing from pages": "there is no column 'missing'",
}
STOPS = """() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
    .filter(one => one.type !== 'hidden' && one.checkVisibility() && one.tabIndex >= 0).length"""
FOCUS = """() => {
    const one = document.activeElement, box = one.getBoundingClientRect(), style = getComputedStyle(one);
    const all = [...document.querySelectorAll('*')];
    return {place: all.indexOf(one), body: one === document.body, area: box.width * box.height,
            seen: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
            marked: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1,
            text: (one.textContent || one.name || '').trim().slice(0, 40)};
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve two surveys whose web is gone: the pages need no network."""
    place = tmp_path_factory.mktemp("surveys")
    with running(WebSettings(slow_seconds=0.01, pace=0.05, crawl_delay=0.02)) as web:
        options: dict[str, Any] = {"proxy": f"http://127.0.0.1:{web.port}", "scope": "any", "delay": 0, "backoff": 0.02}
        goal = f"pages={FETCHED}"
        sv.crawl(
            web.seeds, out=place / f"{NAME}.survey", contact="me@example.org", until=goal, rng=3, **options
        ).close()
    shutil.copytree(place / f"{NAME}.survey", place / "other.survey")
    with serving(place) as address:
        yield address


@pytest.fixture
def visitor(browser: Browser, base: str) -> Iterator[Visitor]:
    with visiting(browser, base) as made:
        built(made, NAME)
        yield made


def addresses() -> list[str]:
    """Return the address of every page."""
    some = [f"/s/{NAME}/page?id=0", f"/s/{NAME}/page?id=0&text=1", f"/s/{NAME}/compare?with=other"]
    some += [f"/s/{NAME}/blocked?show=frontier", f"/s/{NAME}/hosts?level=domains"]
    some += [f"/s/{NAME}/sql?q=select+*+from+pages+limit+9", f"/s/{NAME}/pages?text=nothing-has-this"]
    return ["/", "/start", f"/s/{NAME}/", *(f"/s/{NAME}/{view}" for view in VIEWS if view != "overview"), *some]


def rows(page: Page) -> list[str]:
    """Return the URLs of the table of pages."""
    return page.locator("#found tbody .url a").all_inner_texts()


@pytest.mark.slow
def test_the_explanation_of_a_page_is_two_clicks_away(visitor: Visitor) -> None:
    page = visitor.go(f"/s/{NAME}/")
    page.get_by_role("navigation", name="Pages of this survey").get_by_role("link", name="Pages", exact=True).click()
    first = page.locator("#found tbody .url a").first
    label = first.inner_text()
    first.click()
    why = page.get_by_role("region", name="Where its importance comes from")
    parts = [float(text.rstrip(" %<")) for text in why.locator("tbody td.n").all_inner_texts() if "<" not in text]
    assert 50 < sum(parts) <= 101
    expect(page.get_by_text(label.split("/")[0]).first).to_be_visible()
    source = page.get_by_role("region", name="In-links").locator("tbody a").first
    before = page.url
    source.click()
    page.wait_for_url(lambda url: url != before)
    expect(why).to_be_visible()


def test_filters_sort_orders_and_parts_of_the_table_of_pages(visitor: Visitor) -> None:
    page = visitor.go(f"/s/{NAME}/pages")
    first = rows(page)
    assert len(first) == 50
    page.get_by_role("link", name="next →").click()
    expect(page.get_by_role("status")).to_contain_text("51 to 100")
    second = rows(page)
    assert not set(first) & set(second)
    page.get_by_role("link", name="← previous").click()
    expect(page.get_by_role("status")).to_contain_text("1 to 50")
    assert rows(page) == first

    page.get_by_text("Filters", exact=True).click()
    status = page.locator(".facets section", has=page.get_by_role("heading", name="status", exact=True))
    blocked = status.locator("li", has_text="blocked")
    number = blocked.locator("span").inner_text()
    blocked.get_by_role("link").click()
    expect(page.get_by_role("status")).to_contain_text(re.compile(f"^{number} pages?,"))
    assert all("blocked" in text for text in page.locator("#found tbody td.tight:nth-child(4)").all_inner_texts())
    page.get_by_role("link", name="in-links").click()
    expect(page.locator('th[aria-sort="descending"]')).to_have_text("in-links")
    counts = [int(text.replace(",", "")) for text in page.locator("#found tbody td:nth-child(5)").all_inner_texts()]
    assert counts == sorted(counts, reverse=True)

    page = visitor.go(f"/s/{NAME}/pages")
    page.evaluate("window.notReloaded = true")
    page.keyboard.press("/")  # goes to the filter
    host = first[0].split(":")[0]
    page.keyboard.type(host)
    expect(page).to_have_url(re.compile(f"text={re.escape(host)}"))
    found = rows(page)
    assert found
    assert all(host in url for url in found)
    assert page.evaluate("window.notReloaded")


@pytest.mark.slow
def test_the_limits_of_sql_are_sentences(visitor: Visitor) -> None:
    visitor.record.accepted = ("status of 400",)
    for query, sentence in SQL.items():
        page = visitor.go(f"/s/{NAME}/sql")
        page.locator("textarea").fill(query)
        page.keyboard.press("Control+Enter")
        expect(page.get_by_role("alert")).to_contain_text(sentence)
        expect(page.locator("textarea")).to_have_value(query)  # to correct it
    page.locator("textarea").fill(ENDLESS.format("i"))
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("status")).to_contain_text("1,000 rows, cut at the limit")


def test_commands_and_python_are_copied(visitor: Visitor) -> None:
    visitor.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = visitor.go(f"/s/{NAME}/pages?status=blocked")
    page.get_by_text("The same as a command or in Python").click()
    for label, part in (("copy as command", "surveyor sql "), ("copy as Python", "import surveyor as sv")):
        page.get_by_role("button", name=label).click()
        expect(page.get_by_role("button", name="copied").last).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()").startswith(part)


@pytest.mark.parametrize("path", ["/start", f"/s/{NAME}/", f"/s/{NAME}/pages"])
@pytest.mark.slow
def test_the_keyboard_reaches_everything_in_order_and_shows_where_it_is(visitor: Visitor, path: str) -> None:
    page = visitor.go(path)
    expected = page.evaluate(STOPS)
    page.keyboard.press("Tab")
    first = page.evaluate(FOCUS)
    assert first["text"] == "Skip to the content"
    stops = [first]
    for _ in range(expected + 5):
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUS)
        if stop["body"] or stop["place"] <= stops[-1]["place"]:
            break
        stops.append(stop)
    assert len(stops) == expected, [stop["text"] for stop in stops]
    assert [stop for stop in stops if not (stop["area"] and stop["seen"] and stop["marked"])] == []
    visitor.go(path)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


@pytest.mark.slow
def test_everything_works_without_scripts(browser: Browser, base: str) -> None:
    with visiting(browser, base, java_script_enabled=False) as visitor:
        visitor.record.accepted = ("status of 400",)
        built(visitor, NAME)
        page = visitor.go(f"/s/{NAME}/pages")
        first = rows(page)
        page.get_by_role("searchbox").fill(first[0])
        page.get_by_role("button", name="Filter").click()
        assert first[0] in rows(page)
        page = visitor.go(f"/s/{NAME}/sql")
        page.locator("textarea").fill("select count(*) pages from pages where status = 'fetched'")
        page.get_by_role("button", name="Run").click()
        assert 0 < int(page.locator("tbody td").inner_text()) <= FETCHED
        page = visitor.go("/start")
        page.get_by_label("Address of a site").fill("ftp://nowhere.test/")
        page.get_by_role("button", name="Look at it").click()
        expect(page.get_by_text("is not an address of http or https")).to_be_visible()
        page = visitor.go(f"/s/{NAME}/")
        page.get_by_text("New goal").click()
        page.get_by_label("Goal", exact=True).fill("0")
        page.get_by_role("button", name="Crawl until then").click()
        expect(page.get_by_text("must be above 0 %")).to_be_visible()


def test_every_page_is_small_and_fits_a_narrow_window(browser: Browser, base: str) -> None:
    sizes: dict[str, int] = {}
    with visiting(browser, base, viewport=NARROW, has_touch=True) as visitor:
        built(visitor, NAME)
        for path in addresses():
            visitor.record.requests.clear()
            page = visitor.go(path)
            overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert overflow <= 0, f"{path} is {overflow} pixels too wide"
            loaded = [url for url in dict.fromkeys(visitor.record.requests) if not url.endswith("events")]
            sizes[path] = sum(len(visitor.context.request.get(url).body()) for url in loaded)
    assert {path: size for path, size in sizes.items() if size > LARGEST} == {}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_finding_of_axe(browser: Browser, base: str, scheme: str) -> None:
    axe, found = Axe(), []
    with visiting(browser, base, color_scheme=scheme) as visitor:
        built(visitor, NAME)
        computed(visitor)
        for path in [*addresses(), f"/s/{NAME}/page?id=999999999", "/nothing"]:
            if visitor.page.goto(path) is None:
                continue
            visitor.record.accepted = ("status of 404",)
            visitor.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            serious = [one for one in axe.run(visitor.page).response["violations"] if one["impact"] in IMPACTS]
            found += [(path, one["id"], [node["target"] for node in one["nodes"]][:3]) for one in serious]
    assert found == []


def computed(visitor: Visitor) -> None:
    """Compute what pages show on demand, from their buttons."""
    for view, label in (
        ("fix", re.compile("[Cc]heck")),
        ("hosts", re.compile("Compute")),
        ("freshness", re.compile(".")),
    ):
        page = visitor.go(f"/s/{NAME}/{view}")
        page.locator("main form[method=post] button").filter(has_text=label).first.click()
        expect(page.locator("[data-poll]")).to_have_count(0)
        expect(page.locator("main .warn")).to_have_count(0)

"""`surveyor community` of a survey: pages around it are fetched, with a meter, and stopped in good order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.cli.communities import Told, Wish, told_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.cli.output import Output
    from surveyor.config import Settings
    from surveyor.crawler.session import Run
    from surveyor.estimate.community.beginning import Community
    from surveyor.estimate.community.live import Crawled
    from surveyor.outcome import Outcome


def fetched(output: Output, path: str, wish: Wish, given: Mapping[str, Any]) -> Told:
    """Fetch pages around those of a survey, into a survey of their own."""
    from surveyor.cli.community_page import check_live
    from surveyor.estimate.community.beginning import begin
    from surveyor.estimate.community.community import of_crawled, read_back_links

    check_live(path, wish)
    back = None if wish.back_links is None else read_back_links(wish.back_links)  # refused before the work, if at all
    chosen, origins = _settings(output, path, wish, given)
    start: Any = wish.start or "all"
    begun = begin(path, wish.local, extra=wish.extra, select=wish.select, rounds=wish.rounds,
                  still=wish.still or 0.0, start=start, out=wish.into, settings=chosen, origins=origins)  # fmt: skip
    with begun:
        place, rule = str(begun.folder.folder), begun.terms.rule
        for warning in [*begun.warnings, *_unheeded(begun, wish)]:
            output.warn(warning)
        _introduce(output, begun, origins)
        crawled, code = _crawled(output, begun)
        if crawled is None or crawled.ending == "interrupted":
            remark = f"{begun.asked:,} of {begun.extra:,} pages outside were asked for; all is kept in {place}"
            return Told(None, rule, path, code, place, remark)
        method: Any = wish.estimator
        found = of_crawled(crawled, method, begun.folder.manifest.rng, back, notes=begun.warnings)
    return told_of(output, found, rule, f"{path}, and pages fetched into {place}", place)


def _unheeded(begun: Community, wish: Wish) -> list[str]:
    """Say which wishes come too late for a community that was begun before."""
    from surveyor.estimate.community.beginning import extra_pages
    from surveyor.report.numbers import counted

    if begun.is_new:
        return []
    terms, told = begun.terms, []
    if wish.extra is not None and extra_pages(wish.extra, terms.local) < begun.extra:
        verb = "was" if begun.asked == 1 else "were"
        told.append(f"{counted(begun.asked, 'page')} outside {verb} asked for before, and --extra takes none back")
    if wish.start == "local" and terms.read > terms.local:
        told.append(f"--start local comes too late: {begun.folder.folder} was begun with all; try another --into")
    return told


def _settings(output: Output, path: str, wish: Wish, given: Mapping[str, Any]) -> tuple[Settings, dict[str, str]]:
    """Return the settings that were given; a survey that was begun without a contact asks for one."""
    from surveyor.cli.settings import with_contact
    from surveyor.config import load
    from surveyor.crawler.start import honoured
    from surveyor.store.directory import SurveyFolder

    own = {name: value for name in ("damping", "rng") if (value := getattr(wish, name)) is not None}
    chosen, origins = load({**given, **own})
    with SurveyFolder.open(Path(path), write=False) as base:
        known = chosen.contact or honoured(base.manifest)[0].get("contact")
    if not known:
        chosen = with_contact(output, chosen)
        origins["contact"] = "--contact"
    return chosen, origins


def _introduce(output: Output, begun: Community, origins: Mapping[str, str]) -> None:
    from surveyor.cli.settings import report_settings
    from surveyor.estimate.community.beginning import OWN
    from surveyor.report.numbers import counted

    terms, now = begun.terms, begun.settings
    left = max(0, begun.extra - begun.asked)
    known = f"{counted(terms.local, 'local page')} ({terms.rule}), {counted(terms.read, 'page')} read before"
    if not left:
        output.info(f"{known}; {counted(begun.asked, 'page')} outside asked for before, none to fetch")
        return
    output.info(f"{known}; up to {counted(left, 'page')} outside to fetch   robots.txt obeyed, delay {now.delay:g} s")
    output.info(f"saving to {begun.folder.folder}     Ctrl-C is safe: run the same command to go on")
    report_settings(output, now, {**origins, **dict.fromkeys(("seeds", *OWN), "--local")})


def _crawled(output: Output, begun: Community) -> tuple[Crawled | None, int]:
    """Run the crawl, with a meter and with signals that stop it in good order."""
    from surveyor.cli import interrupts
    from surveyor.estimate.community.live import run

    said = 0
    with output.progress() as progress:

        def watch(now: Run, _: Outcome | None) -> None:
            nonlocal said
            for remark in [] if output.quiet else now.hosts.remarks[said:]:
                output.warn(remark)
            said = len(now.hosts.remarks)
            asked = int(getattr(now.state.crawl.strategy, "asked", 0))
            progress("reading around", asked, begun.extra, "pages")

        return interrupts.run(lambda: run(begun, watch=watch), [])

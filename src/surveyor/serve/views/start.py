"""Start a crawl: what a site allows, how large it may be and how long it would take, then the crawl itself."""

from __future__ import annotations

import asyncio
import re
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from surveyor.crawler.start import folder_for
from surveyor.errors import SurveyorError
from surveyor.serve.jobs import Job
from surveyor.serve.page import Page, Rows
from surveyor.serve.security import Refused
from surveyor.serve.site import Asked
from surveyor.serve.views.overview import GOALS, goal_of
from surveyor.store import layout
from surveyor.web.urls import normalise

SCOPES = {
    "": "the host of the address",
    "domain": "the whole domain",
    "prefix": "this folder and below",
    "any": "anywhere",
}
FIELDS = ("url", "contact", "delay", "scope", "goal_kind", "goal_value")
LONGEST = 2_000  # characters of a field
WAIT = 10.0  # seconds for a survey to appear
LINKS = 12  # listed of each kind
COLUMNS = ("url", "where", "why")


def show(ask: Asked) -> Page:
    """Show the form, and the preview of an address if there is one."""
    preview = ask.text("preview")
    job = ask.site.jobs.find("try", key=f"preview {preview}") if preview else None
    scout = ask.site.jobs.find("scout", key=f"preview {preview}") if preview else None
    crawl = ask.site.jobs.crawl_into(ask.text("crawl")) if ask.text("crawl") else None
    form = dict.fromkeys(FIELDS, "") | {"goal_kind": "coverage", "goal_value": "95", "delay": "1"}
    if job is not None:
        form |= _form_of(job)
    elif ask.text("url"):
        form["url"] = ask.text("url")[:LONGEST]
    found = None if job is None else job.result
    return Page(
        template="start.html",
        title="Start a crawl",
        data={"preview": None if job is None else job.to_dict(), "scout": None if scout is None else scout.to_dict()},
        table=None if found is None else Rows(COLUMNS, found.get("links", [])),
        command=[] if job is None else job.command,
        python="" if job is None else f"import surveyor as sv\n\nsv.preview({form['url']!r})",
        shown={
            "form": form,
            "job": job,
            "scouting": scout,
            "crawling": crawl,
            "found": found,
            "estimate": None if found is None else estimate(found),
            "key": preview,
            "scopes": SCOPES,
            "goals": GOALS,
            "most_links": LINKS,
        },
    )


def estimate(found: dict[str, Any]) -> dict[str, Any]:
    """Return how many pages one page shows, and how long they would take one after another."""
    pages = 1 + found.get("link_counts", {}).get("in scope", 0)
    delay = max([one["delay"] for one in found.get("robots", [])], default=1.0)
    return {"pages": pages, "delay": delay, "seconds": pages * delay}


async def submit(ask: Asked, form: dict[str, str]) -> str:
    """Carry out the form; return the address to show next."""
    step = form.get("step", "preview")
    if step == "stop":
        for kind in ("try", "scout"):
            job = ask.site.jobs.find(kind, key=f"preview {form.get('preview', '')}")
            if job is not None and job.is_running:
                await ask.site.jobs.stop(job)
        return "/start"
    url, options = checked(form)
    if step == "preview":
        key = secrets.token_urlsafe(9)
        job = ask.site.jobs.start("try", ["try", "--json", *options, "--", url], key=f"preview {key}")
        await _until(lambda: not job.is_running, 4.0)
        return f"/start?preview={key}"
    folder = ask.site.surveys.home / await asyncio.to_thread(_folder, url, form.get("scope", ""))
    if step == "scout":
        key = form.get("preview", "")
        if ask.site.jobs.find("try", key=f"preview {key}") is None:
            raise Refused(409, "The preview of this address is no longer known.", "look at the address again")
        words = ["scout", "--json", "--quiet", "--out", str(folder), *options, "--", url]
        ask.site.jobs.start("scout", words, key=f"preview {key}")
        return f"/start?preview={key}"
    if step != "crawl":
        raise Refused(400, f"step must be preview, scout or crawl; got {step!r:.40}.")
    words = ["crawl", "--json", "--quiet", "--out", str(folder), "--until", goal_of(form), *options, "--", url]
    return await _crawl(ask, words, folder)


async def _crawl(ask: Asked, words: list[str], folder: Path) -> str:
    job = ask.site.jobs.start("crawl", words, folder)
    await _until(lambda: not job.is_running or layout.is_survey(folder), WAIT)
    if job.problem:
        raise Refused(409, f"The crawl did not start: {job.problem}", job.hint)
    if not layout.is_survey(folder):
        return f"/start?{urlencode({'crawl': folder.name})}"
    ask.site.surveys.add(folder)
    return f"/s/{ask.site.surveys.name_of(folder)}/"


def checked(form: dict[str, str]) -> tuple[str, list[str]]:
    """Return the address and the options of a form, or refuse it with a sentence."""
    for name in FIELDS:
        if len(form.get(name, "")) > LONGEST or not form.get(name, "").isprintable():
            raise Refused(400, f"{name} is longer than {LONGEST:,} characters, or contains control characters.")
    text = form.get("url", "").strip()
    if text and "://" not in text:
        text = f"https://{text}"
    url = normalise(text) if re.match(r"https?://", text, re.IGNORECASE) else None
    if url is None:
        raise Refused(400, f"{form.get('url', '')!r:.100} is not an address of http or https.", "docs.example.org")
    options = []
    if contact := form.get("contact", "").strip():
        options.append(f"--contact={contact}")
    if delay := form.get("delay", "").strip():
        try:
            seconds = float(delay)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= 3600:
            raise Refused(400, f"The delay must be from 0 to 3,600 seconds; got {delay!r:.40}.", "the default is 1")
        options.append(f"--delay={seconds:g}")
    scope = form.get("scope", "")
    if scope not in SCOPES:
        raise Refused(400, f"scope must be one of host, {', '.join(filter(None, SCOPES))}; got {scope!r:.40}.")
    if scope:
        options.append(f"--scope={scope}")
    return url, options


def _folder(url: str, scope: str) -> str:
    try:
        return folder_for([url], None, scope=scope).name
    except SurveyorError as error:
        raise Refused(400, f"{error.problem}.", error.hint) from None


def _form_of(job: Job) -> dict[str, str]:
    """Return the fields that a preview was started with."""
    found = {"url": str(job.words[-1])}
    for word in job.words:
        name, equals, value = str(word).partition("=")
        if equals and name.removeprefix("--") in FIELDS:
            found[name.removeprefix("--")] = value
    return found


async def _until(done: Any, seconds: float) -> None:
    for _ in range(int(seconds / 0.1)):
        if done():
            return
        await asyncio.sleep(0.1)

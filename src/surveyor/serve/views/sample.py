"""Estimates over the pages on a topic, with their intervals and diagnostics, and a page to read."""

from __future__ import annotations

from typing import Any

from surveyor.serve.page import Page, Rows
from surveyor.serve.security import Refused
from surveyor.serve.site import Asked
from surveyor.serve.views.fix import state_of

COLUMNS = ("statistic", "of", "value", "low", "high", "ess", "pages", "method")
EVERY = "url:."  # the topic that every page is on
DRAWS = 10
BY = ("domain", "host", "tld", "language")
LONGEST = 300  # characters of a rule
GROUPS = 15  # categories


def show(ask: Asked) -> Page:
    """Show the last sample, and the form of another one."""
    job = ask.site.jobs.state("sample", ask.folder)
    result = (job or {}).get("result") or {}
    estimates = [row for row in result.get("estimates") or [] if isinstance(row, dict)]
    topic = str(result.get("topic") or "")
    return Page(
        template="sample.html",
        title=f"Sample of {ask.name}",
        data={"job": state_of(job), "result": result},
        table=Rows(COLUMNS, [row_of(one) for one in estimates]),
        command=["surveyor", "sample", str(ask.folder), "--topic", topic or EVERY, "--by", "language"],
        python=f"import surveyor as sv\n\nsample = sv.sample(sv.open({str(ask.folder)!r}), topic={topic or EVERY!r})\n"
        "sample.estimate(lambda page: page.language == 'en')",
        shown={
            "name": ask.name,
            "result": result,
            "estimates": [row_of(one) for one in estimates],
            "groups": {kind: group_of(found) for kind, found in (result.get("by") or {}).items()},
            "every": EVERY,
            "by": BY,
        },
    )


def row_of(one: dict[str, Any]) -> dict[str, Any]:
    """Return an estimate with the names of the table."""
    return {
        "statistic": str(one.get("statistic") or "share"),
        "of": str(one.get("of") or ""),
        **{name: one.get(name) for name in ("value", "low", "high", "ess", "pages", "method")},
        "is_share": bool(one.get("is_share", True)),
    }


def group_of(found: object) -> list[dict[str, Any]]:
    """Return the shares of categories as rows."""
    if not isinstance(found, dict) or not isinstance(found.get("labels"), list):
        return []
    pairs = zip(found["labels"], found.get("shares") or [], strict=False)
    return [{**row_of(share), "of": str(label) or "not known"} for label, share in pairs][:GROUPS]


def words(ask: Asked, form: dict[str, str]) -> list[str]:
    """Return the command of a sample; it fetches nothing."""
    topic, share, by = form.get("topic", "").strip() or EVERY, form.get("share", "").strip(), form.get("by", "language")
    for name, value in (("topic", topic), ("share", share)):
        if len(value) > LONGEST or not value.isprintable() or "model:" in value or "file:" in value:
            raise Refused(400, f"{name} must be a rule such as words:solar,power; got {value!r:.60}.", "url:/blog/")
    if by not in BY:
        raise Refused(400, f"by must be one of {', '.join(BY)}; got {by!r:.40}.")
    more = [f"--share={share}"] if share else []
    return ["sample", "--json", f"--topic={topic}", f"--by={by}", *more, f"--draws={DRAWS}", "--", str(ask.folder)]

"""The tools that read: each is one query of a view, or a small file of the survey."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from surveyor.errors import SurveyorError, UsageError
from surveyor.integrations.mcp.arguments import Argument
from surveyor.integrations.mcp.context import Context, Tool
from surveyor.integrations.mcp.replies import Reply, one_line, several_lines
from surveyor.report.numbers import counted, percent, share_at_least, share_at_most
from surveyor.serve.status import sentence, snapshot
from surveyor.serve.surveys import changed_at
from surveyor.serve.text import text_of
from surveyor.serve.view.paging import PageQuery
from surveyor.serve.view.schema import STATUSES

if TYPE_CHECKING:
    from pathlib import Path

    from surveyor.serve.jobs import Job
    from surveyor.serve.view.view import View

Row = dict[str, Any]
MOST_ROWS, ROWS = 50, 10
MOST_TEXT, TEXT = 20_000, 4_000  # characters of the main text of a page
MOST_SURVEYS = 50
LONGEST_URL = 4_000  # characters, of an argument
LONGEST_WORDS, MOST_WORDS = 200, 10
CHECKING = 50.0  # seconds to wait for a check
SHOWN = ("position", "id", "url", "title", "share", "score", "status", "in_links", "out_links")
FACTS = (*SHOWN, "reason", "http_status", "depth", "type", "language", "bytes", "seconds", "fetched_at", "visits")
MEANING = {
    "at_least": "Certified: the fetched pages have at least this share of the importance of all pages in scope.",
    "at_most": "Certified: they have at most this share of it, whatever the unfetched pages link to.",
    "sampled": "A lower bound from random walks, which holds with the stated confidence; null without walks.",
    "captured": "Importance that has arrived at fetched pages.",
    "moving": "Importance on fetched pages that was not passed on to their links yet.",
    "waiting": "Importance on known pages that were not fetched yet.",
    "blocked": "Importance on pages that robots.txt, budgets or errors keep from being fetched.",
    "lost": "Importance on pages that are confirmed gone.",
}

NUMBER, TEXTS, ROWS_OF = {"type": ["number", "null"]}, {"type": ["string", "null"]}, {"type": "array"}
WHOLE, SHARE = {"type": ["integer", "null"]}, {"type": ["number", "null"], "minimum": -1e-6, "maximum": 1 + 1e-6}
PAGE = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "url": {"type": "string"},
        "title": TEXTS,
        "share": {**NUMBER, "description": "Share of the importance (PageRank); null if it is not ranked."},
        "status": {"type": "string", "enum": [*STATUSES]},
    },
    "required": ["id", "url"],
}
PAGES = {"type": "array", "items": PAGE}
AS_OF = {**NUMBER, "description": "When the tables were built, in seconds since 1970."}
SURVEY = Argument(
    name="survey", kind="text", about="Name of a survey, as the tool surveys lists.", most=200, required=True
)
PAGE_URL = Argument(name="url", kind="text", about="URL of a known page of the survey.", most=LONGEST_URL)
PAGE_ID = Argument(name="id", kind="whole", about="Id of the page, instead of its URL.", most=2**31)


def limit(about: str) -> Argument:
    """Return the argument for a number of rows."""
    return Argument(name="limit", kind="whole", about=about, least=1, most=MOST_ROWS, default=ROWS)


async def list_surveys(context: Context) -> Reply:
    """List the surveys that the user has named."""
    folders = list((await asyncio.to_thread(context.surveys.all)).items())
    rows = []
    for name, folder in folders[:MOST_SURVEYS]:
        context.tables.want(folder)
        state = await asyncio.to_thread(snapshot, context, folder)
        if state["status"] == "unknown":
            state |= {"pages": None, "known": None}
        coverage = state["coverage"] or {"at_least": None, "at_most": None}
        row = {"survey": name, "at_least": coverage["at_least"], "at_most": coverage["at_most"]}
        row |= {field: state[field] for field in ("status", "pages", "known", "goal", "seeds")}
        rows.append({**row, "changed_at": changed_at(folder), "problem": state["problem"].replace(str(folder), name)})
    web = [f"{row['survey']}: {_size(row['pages'])}, {_bounds(row)}, {row['status']}" for row in rows]
    return Reply(
        says=f"{counted(len(folders), 'survey')}.",
        data={"surveys": rows, "total": len(folders)},
        web=web,
        from_the_web=["surveys[].seeds"],
    )


async def read_coverage(context: Context, survey: str) -> Reply:
    """Return both bounds, the sampled bound and the accounts."""
    folder = context.folder(survey)
    state = await asyncio.to_thread(snapshot, context, folder)
    if not state["running"]:
        await context.view(survey)
        state = await asyncio.to_thread(snapshot, context, folder)
    coverage = state["coverage"]
    if coverage is None:
        says = f"{counted(state['pages'], 'page')} fetched; this survey has no coverage, as it stores no links."
    else:
        says = (
            f"{counted(state['pages'], 'page')} fetched; the certified coverage is {_bounds(coverage)} of the "
            "importance of all pages in scope, relative to the seeds, the damping, the scope and the links as fetched."
        )
        if sampled := coverage["sampled"]:
            at_least = share_at_least(sampled["at_least"])
            says += f" With confidence {percent(sampled['confidence'])} it is at least {at_least}, by random walks."
    fields = ("status", "pages", "known", "queued", "goal", "goal_coverage", "best_possible", "statuses", "as_of")
    data = {"survey": survey, "coverage": coverage, "meaning": MEANING, **{name: state[name] for name in fields}}
    return Reply(says=f"{says} {sentence(state)}", data=data)


async def list_top(context: Context, survey: str, limit: int, status: str | None, host: str | None) -> Reply:
    """List the best pages."""
    view = await context.view(survey)
    filters = {name: value for name, value in (("status", status), ("host", host)) if value is not None}

    def read() -> tuple[dict[str, Any], bool]:
        ranked = bool(view.summary()["importance"])
        return view.pages(PageQuery(filters=filters, sort="share" if ranked else "url", limit=limit)), ranked

    found, ranked = await asyncio.to_thread(read)
    order = "the most important first" if ranked else "by URL, as this survey has no importance"
    return _pages(survey, found, f"{counted(found['total'], 'page')} of {survey}, {order}.")


async def search(context: Context, survey: str, words: str, limit: int) -> Reply:
    """List the pages that contain all words."""
    if not words.split():
        raise UsageError("words is empty", hint="name at least one word")
    view = await context.view(survey)
    found = await asyncio.to_thread(find_pages, view, words.split(), limit)
    return _pages(survey, found, f"{counted(found['total'], 'page')} of {survey} with these words in title or URL.")


def find_pages(view: View, words: list[str], limit: int) -> dict[str, Any]:
    """Return the pages whose title or URL contains all words, the most important first."""
    if len(words) > MOST_WORDS:
        raise UsageError(f"words has {len(words):,} words", hint=f"search for at most {MOST_WORDS}")
    return view.pages(PageQuery(words=words, limit=limit))


async def read_page(context: Context, survey: str, url: str | None, id: int | None, text_limit: int) -> Reply:  # noqa: A002
    """Return the facts of a page, and its main text."""
    view = await context.view(survey)
    row = await asyncio.to_thread(_row, view, url, id)
    text, cut, problem = "", False, ""
    if text_limit:
        try:
            text = await asyncio.to_thread(text_of, context.folder(survey), row["id"])
        except SurveyorError as error:
            problem = f"There is no text: {error.problem}; {error.hint}."
        text, cut = several_lines(text, text_limit)
    facts = {name: row[name] for name in FACTS}
    data = {"survey": survey, "page": facts, "text": text, "text_is_cut": cut, "text_problem": problem}
    about = _facts(row)
    return Reply(
        says=f"Page {row['id']} of {survey}{', its text cut' if cut else ''}. {problem}".strip(),
        data={**data, "as_of": view.as_of},
        web=[about, *([text] if text else [])],
        from_the_web=["page.url", "page.title", "page.reason", "page.language", "page.type", "text"],
        whole=["text"],
    )


async def explain_rank(context: Context, survey: str, url: str | None, id: int | None, limit: int) -> Reply:  # noqa: A002
    """Return the links that give a page its rank."""
    view = await context.view(survey)

    def read() -> tuple[Row, dict[str, Any] | None]:
        row = _row(view, url, id)
        found: dict[str, Any] | None = view.explanation(row["id"], top=limit)["explanation"]
        return row, found

    row, found = await asyncio.to_thread(read)
    if found is None:
        raise UsageError(f"page {row['id']} is not ranked: its status is {row['status']}", hint="use the tool page")
    rows = found["rows"][: limit + 20]
    data = {"survey": survey, "page": {name: row[name] for name in SHOWN}, "contributions": rows}
    data |= {"path": found["path"], "in_links": found["in_links"], "as_of": view.as_of}
    web = [_facts(row), *(f"{percent(one['fraction'])} {one['kind']}: {_cut(one['name'])}" for one in rows)]
    return Reply(
        says=f"Where the score of page {row['id']} of {survey} comes from, as fractions of its score.",
        data=data,
        web=web,
        from_the_web=["page.url", "page.title", "contributions[].name", "contributions[].detail", "path"],
    )


async def list_blocked(context: Context, survey: str, limit: int, reason: str | None) -> Reply:
    """List the pages that cannot be fetched."""
    view = await context.view(survey)
    found = await asyncio.to_thread(lambda: view.blocked(limit=limit, reason=reason))
    columns = ("id", "url", "status", "reason", "mass", "depth", "in_links")
    rows = [{name: row[name] for name in columns} for row in found["rows"]]
    reasons = found["reasons"]
    web = [f"{counted(one['pages'], 'page')}, {percent(one['mass'] or 0)}: {_cut(one['reason'])}" for one in reasons]
    return Reply(
        says=f"{counted(sum(one['pages'] for one in reasons), 'page')} of {survey} blocked: reasons with the "
        "importance that they hold back, then pages, the most important first.",
        data={"survey": survey, "reasons": reasons[:MOST_ROWS], "pages": rows, "total": found["total"]}
        | {"as_of": view.as_of},
        web=[*web[:MOST_ROWS], *(f"{_cut(row['url'])}: {_cut(row['reason'])}" for row in rows)],
        from_the_web=["reasons[].reason", "pages[].url", "pages[].reason"],
    )


async def list_findings(context: Context, survey: str, limit: int, rule: str | None) -> Reply:
    """List what `surveyor check` has found; run it first if it was not run since the survey has changed."""
    folder = context.folder(survey)
    state = await asyncio.to_thread(context.jobs.state, "check", folder)
    if state is None or not state["result"] or (state["started_at"] < changed_at(folder) and not state["running"]):
        state = await _checked(context, folder)
    result = (state or {}).get("result")
    if not result:
        raise SurveyorError("the check is still running", hint="repeat the call in a minute")
    chosen = [one for one in result["findings"] if rule is None or one["rule"] == rule]
    columns = ("severity", "rule", "weight", "url", "message", "pages")
    rows = [{name: one[name] for name in columns} for one in chosen[:limit]]
    heads = [f"{one['severity']} {one['rule']} {percent(one['weight'])}" for one in rows]
    web = [f"{head} {_cut(one['url'])}: {_cut(one['message'])}" for head, one in zip(heads, rows, strict=True)]
    return Reply(
        says=f"{counted(len(chosen), 'finding')} of the check of {survey}, the most severe and important first.",
        data={"survey": survey, "counts": result["counts"], "total": len(chosen), "findings": rows}
        | {"as_of": (state or {})["started_at"]},
        web=web,
        from_the_web=["findings[].url", "findings[].message"],
    )


async def _checked(context: Context, folder: Path) -> dict[str, Any] | None:
    """Run a check, which requests nothing; return its job, finished or not."""
    job: Job | None = context.jobs.find("check", folder)
    if job is None or not job.is_running:
        job = context.jobs.start("check", ["check", "--json", "--fail-on", "never", "--", str(folder)], folder)
    if job.task is not None:
        await asyncio.wait([job.task], timeout=CHECKING)
    if job.problem:
        raise SurveyorError(job.problem.removesuffix("."), hint=job.hint or "run `surveyor check` to see more")
    return await asyncio.to_thread(context.jobs.state, "check", folder)


def _pages(survey: str, found: dict[str, Any], says: str) -> Reply:
    rows = [{name: row[name] for name in SHOWN} for row in found["rows"]]
    return Reply(
        says=says,
        data={"survey": survey, "pages": rows, "total": found["total"], "as_of": found["as_of"]},
        web=[_facts(row) for row in rows],
        from_the_web=["pages[].url", "pages[].title"],
    )


def _row(view: View, url: str | None, number: int | None) -> Row:
    """Return the row of the page that is named by one of these."""
    if (url is None) == (number is None):
        raise UsageError("url or id must be given, and not both", hint="the tools top and search list both")
    try:
        row: Row = view.page(url if number is None else number)["page"]  # type: ignore[arg-type]
    except UsageError as error:
        raise UsageError(error.problem, hint="the tools top and search list known pages") from None
    return row


def _facts(row: Row) -> str:
    share = "–" if row["share"] is None else percent(row["share"])
    return f"id {row['id']}  {share}  {row['status']}  {_cut(row['url'])}  {_cut(row['title'])}"


def _cut(text: str | None) -> str:
    return one_line(text or "", 200)


def _size(pages: int | None) -> str:
    return "not read yet" if pages is None else counted(pages, "page")


def _bounds(coverage: dict[str, Any]) -> str:
    if coverage["at_least"] is None:
        return "no coverage"
    return f"from {share_at_least(coverage['at_least'])} to {share_at_most(coverage['at_most'])}"


def _tool(name: str, run: Any, about: str, arguments: list[Argument], fields: dict[str, Any]) -> Tool:
    return Tool(name=name, run=run, about=about, arguments=arguments, fields=fields)


TOOLS = (
    _tool(
        "surveys",
        list_surveys,
        "List the surveys (crawls of parts of the web) that the user has named, with their coverage.",
        [],
        {"surveys": ROWS_OF, "total": WHOLE},
    ),
    _tool(
        "coverage",
        read_coverage,
        "How much of the importance of a site a survey has: certified lower and upper bound, sampled bound, and the "
        "accounts of importance with their meaning.",
        [SURVEY],
        {
            "survey": {"type": "string"},
            "coverage": {
                "type": ["object", "null"],
                "properties": {name: SHARE for name in MEANING if name != "sampled"},
            },
            "meaning": {"type": "object"},
            "pages": {**WHOLE, "description": "Fetched pages."},
        },
    ),
    _tool(
        "top",
        list_top,
        "List the best pages of a survey by importance (PageRank of the pages in scope, with jumps to the seeds).",
        [
            SURVEY,
            limit("Number of pages."),
            Argument(name="status", kind="text", about="Only pages of this status.", most=20, values=STATUSES),
            Argument(name="host", kind="text", about="Only pages of this host.", most=300),
        ],
        {"pages": PAGES, "total": WHOLE, "as_of": AS_OF},
    ),
    _tool(
        "page",
        read_page,
        "Facts about one page, and its main text as it was archived.",
        [
            SURVEY,
            PAGE_URL,
            PAGE_ID,
            Argument(
                name="text_limit",
                kind="whole",
                about="Characters of the main text; 0 for none.",
                most=MOST_TEXT,
                default=TEXT,
            ),
        ],
        {"page": PAGE, "text": {"type": "string", "maxLength": MOST_TEXT}, "text_is_cut": {"type": "boolean"}},
    ),
    _tool(
        "explain",
        explain_rank,
        "Which links give a page its rank, with the fraction of its score that came over each.",
        [SURVEY, PAGE_URL, PAGE_ID, limit("Number of links.")],
        {"page": PAGE, "contributions": ROWS_OF, "path": ROWS_OF, "as_of": AS_OF},
    ),
    _tool(
        "blocked",
        list_blocked,
        "Pages that could not be fetched, with the rule or error and the importance that it holds back.",
        [
            SURVEY,
            limit("Number of pages."),
            Argument(name="reason", kind="text", about="Only pages with this reason.", most=1000),
        ],
        {"reasons": ROWS_OF, "pages": ROWS_OF, "total": WHOLE, "as_of": AS_OF},
    ),
    _tool(
        "findings",
        list_findings,
        "What to fix on a site, by `surveyor check`, most severe and important first. It requests nothing.",
        [
            SURVEY,
            limit("Number of findings."),
            Argument(name="rule", kind="text", about="Only findings of this rule.", most=60),
        ],
        {"counts": {"type": "object"}, "findings": ROWS_OF, "total": WHOLE, "as_of": AS_OF},
    ),
    _tool(
        "search",
        search,
        "Find pages of a survey by words in their title or URL, the most important first.",
        [
            SURVEY,
            Argument(name="words", kind="text", about="Words that must all occur.", most=LONGEST_WORDS, required=True),
            limit("Number of pages."),
        ],
        {"pages": PAGES, "total": WHOLE, "as_of": AS_OF},
    ),
)

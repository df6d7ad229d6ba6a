"""The application: addresses and their views, the forms that change something, and the pages of errors."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from surveyor.errors import SurveyorError
from surveyor.serve import openapi
from surveyor.serve.events import MOST_STREAMS, Hub
from surveyor.serve.jobs import Busy, Jobs
from surveyor.serve.page import Page, respond, static_version
from surveyor.serve.security import Guard, Identity, Refused, read_form
from surveyor.serve.site import Asked, Site
from surveyor.serve.surveys import Surveys, changed_at
from surveyor.serve.tables import Tables
from surveyor.serve.views import (
    blocked,
    community,
    compare,
    fix,
    freshness,
    hosts,
    overview,
    page,
    pages,
    sample,
    settings,
    site_map,
    sql,
    start,
    surveys,
)

LOG = logging.getLogger("surveyor.serve")
STATIC = {
    "style.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
VIEWS: dict[str, tuple[str, Callable[[Asked], Page]]] = {  # address -> name in the navigation, view
    "overview": ("Overview", overview.show),
    "pages": ("Pages", pages.show),
    "map": ("Map", site_map.show),
    "fix": ("Fix", fix.show),
    "hosts": ("Hosts & domains", hosts.show),
    "blocked": ("Blocked & frontier", blocked.show),
    "community": ("Community", community.show),
    "sample": ("Sample", sample.show),
    "freshness": ("Freshness", freshness.show),
    "compare": ("Compare", compare.show),
    "sql": ("SQL", sql.show),
    "settings": ("Settings", settings.show),
    "page": ("", page.show),
}
TOP_VIEWS: dict[str, Callable[[Asked], Page]] = {"surveys": surveys.show, "start": start.show}
FORMS = ("json", "csv")
COSTLY = {"sql": "q", "page": "text"}  # a query may run for two seconds, and a text is read in another process
MOST_WAITING = 20
JOBS: dict[str, Callable[[Asked, dict[str, str]], Sequence[str]]] = {
    "check": fix.words,
    "domains": hosts.words,
    "community": community.words,
    "sample": sample.words,
    "diff": compare.words,
    "changes": freshness.words,
    "explain": page.words,
}


def site_of(identity: Identity, places: Sequence[Path | str] = (), home: Path | str = ".") -> Site:
    """Return a site over some surveys, or over those of a folder."""
    site = Site(identity, Surveys(places, home), Jobs(), Tables())
    site.hub = Hub(
        lambda key: overview.stamp(site, key) if key else surveys.stamp(site),
        lambda key: overview.parts(site, key) if key else surveys.parts(site),
    )
    return site


def create(site: Site) -> Guard:
    """Return the application of a site, behind its guard."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        site.tables.begin()
        try:
            yield
        finally:
            await site.tables.close()
            await site.jobs.close()

    app = Starlette(
        routes=_routes(),
        exception_handlers={
            HTTPException: _http_error,
            Refused: _refusal,
            SurveyorError: _known_error,
            Busy: _busy,
            Exception: _bug,
        },
        lifespan=lifespan,
    )
    app.state.site = site
    return Guard(app, site.identity, refusal)


def _routes() -> list[Route]:
    routes = [Route("/", _top("surveys"), name="surveys")]
    for name in TOP_VIEWS:
        if name != "surveys":
            routes.append(Route(f"/{name}", _top(name)))
        routes += [Route(f"/{name}.{form}", _top(name, form)) for form in FORMS]
    routes += [Route("/s/{name}", _with_slash), Route("/s/{name}/", _in_survey("overview"))]
    for name in VIEWS:
        routes.append(Route(f"/s/{{name}}/{name}", _in_survey(name)))
        routes += [Route(f"/s/{{name}}/{name}.{form}", _in_survey(name, form)) for form in FORMS]
    return [
        *routes,
        Route("/start", _start, methods=["POST"]),
        Route("/s/{name}/control", _control, methods=["POST"]),
        Route("/s/{name}/jobs/{kind}", _job, methods=["POST"]),
        Route("/s/{name}/jobs/{kind}.json", _job_state),
        Route("/jobs/{kind}.json", _job_state),
        Route("/events", _events),
        Route("/s/{name}/events", _events),
        Route("/openapi.json", _openapi),
        Route("/static/{file}", _static),
        Route("/favicon.ico", _favicon),
        Route("/robots.txt", _robots),
    ]


def _site(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


def asked(request: Request) -> Asked:
    """Return a request with its survey; refuse it if there is none of this name."""
    site, name = _site(request), request.path_params.get("name", "")
    if "name" not in request.path_params:
        return Asked(site, request)
    folder = site.surveys.folder(name)
    if folder is None:
        started = site.jobs.crawl_into(f"{name}.survey")
        if started is not None and started.problem and started.words[1] != str(started.folder):
            raise Refused(404, f"The crawl of {name} ended: {started.problem}", started.hint)
        raise Refused(404, f"There is no survey named {name!r:.100}.", "the list of surveys has all names")
    return Asked(site, request, name, folder)


def _top(name: str, form: str = "html") -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        def make() -> Response:
            ask = asked(request)
            return respond(TOP_VIEWS[name](ask), form, request, context(ask, name))

        return await made(make, request)

    return answer


def _in_survey(name: str, form: str = "html") -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        def make() -> Response:
            ask = asked(request)
            ask.site.tables.want(ask.folder)
            return respond(VIEWS[name][1](ask), form, request, context(ask, name))

        if name in COSTLY and COSTLY[name] in request.query_params:
            return await _one_of_few(lambda: made(make, request), _site(request))
        return await made(make, request)

    return answer


async def _one_of_few(answer: Callable[[], Awaitable[Response]], site: Site) -> Response:
    """Await the answer to a costly request while few others are computed, so that all other pages stay fast."""
    if site.waiting >= MOST_WAITING:
        raise Refused(503, "Too many queries and texts are waiting.", "repeat it in a moment")
    site.waiting += 1
    try:
        async with site.costly:
            return await answer()
    finally:
        site.waiting -= 1


async def made(make: Callable[[], Response], request: Request) -> Response:
    """Make a page in a thread; an unexpected error becomes a page that says so."""
    try:
        return await run_in_threadpool(make)
    except (Refused, SurveyorError, HTTPException):
        raise
    except Exception as error:
        LOG.exception("a page failed: %s", request.url.path)
        return await _bug(request, error)


def context(ask: Asked | None, current: str = "") -> dict[str, Any]:
    """Return the values that the templates of all pages use."""
    name = "" if ask is None else ask.name
    where = f"/s/{name}/" if name else "/"
    form = "" if current in ("overview", "surveys") else current
    return {
        "survey": name,
        "current": current,
        "here": f"{where}{form}",
        "forms_at": f"{where}{current}",
        "navigation": [(key, title) for key, (title, _) in VIEWS.items() if title] if name else [],
        "changed_at": 0.0 if ask is None or not name else changed_at(ask.folder),
        "secret": "" if ask is None else ask.site.identity.form_secret,
    }


async def _with_slash(request: Request) -> Response:
    return RedirectResponse(f"/s/{asked(request).name}/", 308)


async def _start(request: Request) -> Response:
    form = await read_form(request, _site(request).identity)
    return RedirectResponse(await start.submit(asked(request), form), 303)


async def _control(request: Request) -> Response:
    form = await read_form(request, _site(request).identity)
    ask = asked(request)
    await overview.control(ask, form)
    return RedirectResponse(f"/s/{ask.name}/", 303)


async def _job(request: Request) -> Response:
    form = await read_form(request, _site(request).identity)
    ask, kind = asked(request), request.path_params["kind"]
    if kind not in JOBS:
        raise Refused(404, f"There is no computation named {kind!r:.60}.", f"one of {', '.join(JOBS)}")
    back = form.pop("back", "")
    if form.get("action") == "stop":
        job = ask.site.jobs.find(kind, ask.folder)
        if job is not None and job.is_running:
            await ask.site.jobs.stop(job)
    else:
        words = await run_in_threadpool(JOBS[kind], ask, form)
        ask.site.jobs.start(kind, words, ask.folder)
    page_of = {"check": "fix", "domains": "hosts", "diff": "compare", "explain": "page", "changes": "freshness"}
    target = f"/s/{ask.name}/{page_of.get(kind, kind)}"
    return RedirectResponse(f"{target}?{back}" if back and _is_query(back) else target, 303)


def _is_query(text: str) -> bool:
    """Return whether a text may follow the `?` of an address of this server."""
    return len(text) < 4000 and text.isascii() and text.isprintable() and not set(text) & set(' "<>#\\')


async def _job_state(request: Request) -> Response:
    ask, kind = asked(request), request.path_params["kind"]
    job = ask.site.jobs.find(kind, ask.folder) if ask.name else ask.site.jobs.find("try", key=f"preview {kind}")
    if job is None:
        return JSONResponse({"schema": 1, "running": False})
    found = job.to_dict()
    del found["result"]
    return JSONResponse({"schema": 1, **found})


async def _events(request: Request) -> Response:
    ask = asked(request)
    hub = ask.site.hub
    if hub is None or hub.streams >= MOST_STREAMS:
        raise Refused(503, f"There are {MOST_STREAMS:,} open streams already.", "reload the page from time to time")
    return StreamingResponse(hub.stream(ask.name), media_type="text/event-stream")


async def _openapi(request: Request) -> Response:  # noqa: ARG001
    return JSONResponse(openapi.describe())


async def _static(request: Request) -> Response:
    name = request.path_params["file"]
    if name not in STATIC:
        raise HTTPException(404)
    content = files("surveyor.serve").joinpath("static", name).read_bytes()
    current = request.query_params.get("v") == static_version(name)
    headers = {"Cache-Control": "private, max-age=31536000, immutable" if current else "no-cache"}
    return Response(content, media_type=STATIC[name], headers=headers)


async def _favicon(request: Request) -> Response:  # noqa: ARG001
    return Response(files("surveyor.serve").joinpath("static", "icon.svg").read_bytes(), media_type="image/svg+xml")


async def _robots(request: Request) -> Response:  # noqa: ARG001
    return PlainTextResponse("User-agent: *\nDisallow: /\n")


def refusal(request: Request, refused: Refused) -> Response:
    """Return the page of a request that is not answered."""
    data = {"error": refused.why, "hint": refused.hint}
    path = request.url.path
    form = "json" if path.endswith((".json", "/events")) else "html"
    if path.endswith(".csv"):
        return PlainTextResponse(f"{refused.why}\n", refused.status)
    shown = Page(template="error.html", title="Not possible", data=data, status=refused.status)
    return respond(shown, form, request, context(None))


async def _refusal(request: Request, error: Exception) -> Response:
    return refusal(request, error if isinstance(error, Refused) else Refused(500, "This is a bug in surveyor."))


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    why = {404: "There is no such page.", 405: "This address does not accept this method."}
    return refusal(request, Refused(status, why.get(status, "The request cannot be answered.")))


async def _known_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, SurveyorError)  # noqa: S101
    problem = error.problem[:1].upper() + error.problem[1:]
    return refusal(request, Refused(409 if error.exit_code == 4 else 400, f"{problem}.", error.hint))


async def _bug(request: Request, error: Exception) -> Response:
    why = f"This is a bug in surveyor ({type(error).__name__})."
    return refusal(request, Refused(500, why, "start the server with -v and report what it prints"))


async def _busy(request: Request, error: Exception) -> Response:
    text = str(error)
    return refusal(request, Refused(409, f"{text[:1].upper()}{text[1:]}.", "wait until it has ended, or stop it"))

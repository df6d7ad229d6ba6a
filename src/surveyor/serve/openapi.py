"""The OpenAPI description of the addresses, made from the table of views."""

from __future__ import annotations

from typing import Any

from surveyor import __version__

ABOUT = (
    "Pages over surveys. Every page is also JSON and CSV: the same address with .json or .csv at its end. JSON objects "
    "have a `schema` number. A GET changes nothing. A POST needs the Origin of this server and the `secret` that its "
    "forms contain; it answers 303 with the page to show next. Errors are JSON with `error` and `hint`."
)
PAGING = ("after", "string", "token `next` or `previous` of an earlier answer")
SORTING = [("sort", "string", "column"), ("order", "string", "down or up"), PAGING]
PAGES: dict[str, tuple[str, list[tuple[str, str, str]]]] = {
    "overview": ("State of a survey, live if a crawl is running: bounds, accounts, rate, next pages; curve", []),
    "pages": (
        "Known URLs by filter, sort and text, with facets",
        [
            ("text", "string", "that URL or title contain"),
            *((name, "string", "filter; none: without a value") for name in ("status", "reason", "type", "language")),
            *((name, "string", "filter") for name in ("host", "domain", "folder")),
            *((name, "integer", "filter") for name in ("http_status", "depth")),
            ("limit", "integer", "rows, from 1 to 1,000"),
            *SORTING,
        ],
    ),
    "page": (
        "One page: explanation, links in and out, visits",
        [
            ("id", "integer", "number of the page"),
            ("url", "string", "or its URL"),
            ("random", "string", "1: any fetched page"),
            PAGING,
        ],
    ),
    "map": ("Importance of the folders below one, and links between the best hosts", [("prefix", "string", "folder")]),
    "fix": ("Findings of the last `check`", [("rule", "string", "only this rule"), ("start", "integer", "first one")]),
    "hosts": (
        "Hosts or domains, scores of the last `domains`, politeness log",
        [("level", "string", "hosts or domains"), ("text", "string", "that the name contains"), *SORTING],
    ),
    "blocked": (
        "Blocked pages by reason, and the frontier",
        [("show", "string", "blocked or frontier"), ("reason", "string", "only this one"), PAGING],
    ),
    "community": ("The last estimate of `community`", []),
    "sample": ("The last estimates of `sample`", []),
    "freshness": ("Changes that the last `diff --since` found", []),
    "compare": (
        "Another survey beside this one, and the last `diff`",
        [("with", "string", "name of the other survey")],
    ),
    "sql": ("The rows of one SELECT: at most 2 s, 1,000 rows", [("q", "string", "the statement")]),
    "settings": ("Settings with origins, User-Agent, seeds", []),
}
GOAL = {"goal_kind": "coverage (in %), pages or minutes", "goal_value": "number"}
START = {"url": "address", "contact": "e-mail or URL", "delay": "seconds", "scope": "empty (host), domain, prefix, any"}
FORMS: dict[str, tuple[str, dict[str, str]]] = {
    "/start": ("Preview an address, scout it, or start a crawl", {"step": "preview, scout or crawl", **START, **GOAL}),
    "/s/{name}/control": (
        "Steer the running crawl, or resume it",
        {"action": "pause, resume, stop, goal or crawl", **GOAL},
    ),
    "/s/{name}/jobs/{kind}": (
        "Start a computation, or stop it; kind: check, domains, community, sample, changes, diff or explain",
        {"action": "stop, or nothing", "url": "explain", "kind": "community", "value": "community", "topic": "sample"}
        | {"share": "sample", "by": "sample", "since": "changes", "with": "diff"},
    ),
}


def describe() -> dict[str, Any]:
    """Return the description."""
    paths: dict[str, Any] = {
        "/surveys.json": {"get": _get("All surveys with their bounds", [])},
        "/surveys.csv": {"get": _get("All surveys as CSV", [], "text/csv")},
        "/start.json": {"get": _get("A preview", [("preview", "string", "its key")])},
        "/events": {"get": _get("Live parts of the list of surveys", [], "text/event-stream")},
        "/s/{name}/events": {"get": _get("Live parts of an overview", [_NAME], "text/event-stream")},
        "/s/{name}/jobs/{kind}.json": {"get": _get("Whether a computation is running", [_NAME, _KIND])},
    }
    for key, (about, parameters) in PAGES.items():
        paths[f"/s/{{name}}/{key}.json"] = {"get": _get(about, [_NAME, *parameters])}
        paths[f"/s/{{name}}/{key}.csv"] = {"get": _get(f"{about}: the table", [_NAME, *parameters], "text/csv")}
    for address, (about, fields) in FORMS.items():
        paths[address] = {"post": _post(about, fields, [one for one in (_NAME, _KIND) if f"{{{one[0]}}}" in address])}
    info = {"title": "surveyor serve", "version": __version__, "description": ABOUT}
    return {"openapi": "3.1.0", "info": info, "paths": paths}


_NAME = ("name", "string", "name of the survey")
_KIND = ("kind", "string", "check, domains, community, sample, changes, diff or explain")


def _get(about: str, parameters: list[tuple[str, str, str]], kind: str = "application/json") -> dict[str, Any]:
    content = {kind: {"schema": {"type": "object" if kind == "application/json" else "string"}}}
    return {
        "summary": about,
        "parameters": [_parameter(*one) for one in parameters],
        "responses": {"200": {"description": about, "content": content}, "default": {"description": "one sentence"}},
    }


def _post(about: str, fields: dict[str, str], parameters: list[tuple[str, str, str]]) -> dict[str, Any]:
    properties = {name: {"type": "string", "description": text} for name, text in fields.items()}
    properties["secret"] = {"type": "string", "description": "from a form of this server"}
    schema = {"type": "object", "properties": properties, "required": ["secret"]}
    return {
        "summary": about,
        "parameters": [_parameter(*one) for one in parameters],
        "requestBody": {"required": True, "content": {"application/x-www-form-urlencoded": {"schema": schema}}},
        "responses": {"303": {"description": "the page to show next"}, "default": {"description": "one sentence"}},
    }


def _parameter(name: str, kind: str, about: str) -> dict[str, Any]:
    in_path = name in ("name", "kind") and about in (_NAME[2], _KIND[2])
    place = {"in": "path", "required": True} if in_path else {"in": "query"}
    return {"name": name, **place, "description": about, "schema": {"type": kind}}

"""What `surveyor domains` needs around its list: open the graph as one of domains, score it, say how that went."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surveyor.cli import options
from surveyor.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import ExitStack

    from surveyor.arrays import IntArray
    from surveyor.cli.output import Output
    from surveyor.crawler.budgets import Plan
    from surveyor.graph.csr import Graph
    from surveyor.graph.names import Names
    from surveyor.rank.compare.labels import Labels
    from surveyor.report.reputations import Told
    from surveyor.web.suffixes import Suffixes

LOOKED_AT = 100  # names that tell pages from domains


@dataclass(frozen=True, slots=True)
class Source:
    """A graph of domains: its folder if it has one, which can be read as a stream, else the graph."""

    place: Graph | str
    graph: Graph


def opened(output: Output, path: str, stack: ExitStack, suffixes: Suffixes, *, memory: int | None, condense: bool,
           own_list: bool) -> Source:  # fmt: skip
    """Open what was named; pages, and hosts if told so, become domains. What is built goes when the stack does."""
    from surveyor.cli.ranked import is_survey

    if is_survey(path):
        from surveyor.survey.survey import Survey

        survey = stack.enter_context(Survey(path))
        made = survey.domain_graph(suffixes=suffixes)
        _say_condensed(output, made)
        return Source(made.graph, made.graph)
    found = _found(output, path, stack, memory)
    if found.graph.names is not None and (condense or _has_urls(found.graph.names)):
        from surveyor.graph.condense import condense as condensed
        from surveyor.graph.csr import Graph

        room: dict[str, Any] = {}
        if memory is not None:
            room = {"folder": _scratch(stack) / "domains", "memory": memory // 2}
        graph = found.graph if not isinstance(found.place, str) else Graph.open(found.place)  # all of it is read: check
        with output.progress() as progress:
            made = condensed(graph, suffixes=suffixes, progress=progress, **room)
        _say_condensed(output, made)
        return Source(str(room["folder"]) if room else made.graph, made.graph)
    if own_list:
        output.warn("the suffixes were not needed: names are taken as domains; --condense puts hosts together")
    return found


def _found(output: Output, path: str, stack: ExitStack, memory: int | None) -> Source:
    """Open a graph folder, or read a file of links: into a folder if memory is limited."""
    from surveyor.cli.ranked import open_graph

    if (Path(path) / "graph.json").is_file():
        from surveyor.graph.csr import Graph

        return Source(path, Graph.open(path))
    if memory is None:
        graph = open_graph(output, path)
        return Source(graph, graph)
    from surveyor.graph.formats import build_graph

    folder = _scratch(stack) / "graph"
    with output.progress() as progress, options.format_means("`surveyor graph build --format`"):
        graph = build_graph(path, folder, memory=memory // 2, progress=progress)
    output.caveats(graph)
    return Source(str(folder), graph)


def _scratch(stack: ExitStack) -> Path:
    return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="surveyor-")))


def _has_urls(names: Names) -> bool:
    """Say whether names are those of pages."""
    return any("://" in names[node] for node in range(0, len(names), max(1, len(names) // LOOKED_AT)))


def _say_condensed(output: Output, made: Any) -> None:
    from surveyor.report.graphs import condensed_with_care
    from surveyor.report.numbers import counted

    number = int(made.of.size)
    verb = "is" if number == 1 else "are"
    output.say(f"{counted(number, 'name')} {verb} on {counted(made.graph.pages, 'domain')}")
    for line in condensed_with_care(made):
        output.warn(line)


def read(output: Output, paths: Iterable[str], *, hosts: bool) -> list[Labels]:
    """Read lists of domains; say what was left out. Unless `hosts`, one below a domain says nothing of the domain."""
    from surveyor.rank.compare.labels import read_labels
    from surveyor.report.numbers import counted

    lists = [read_labels(path, hosts=hosts) for path in paths]
    for labels in lists:
        if labels.below:
            told = f"{counted(labels.below, 'host')} in {labels.source} below a domain"
            output.warn(f"{told} left out: they say nothing of the whole domain")
        if labels.unread:
            output.warn(f"{counted(labels.unread, 'name')} in {labels.source} left out: no domains")
    return lists


def check_names(source: Source, path: str, asked: Sequence[str], compared: Iterable[str]) -> None:
    """Refuse what goes by name if the graph has none, and a domain to compare that it does not hold."""
    if source.graph.names is None and asked:
        verb = "goes" if len(asked) == 1 else "go"
        raise UsageError(
            f"{' and '.join(asked)} {verb} by name, and {path} has no names", hint="build it from a file with names"
        )
    for name in compared:
        source.graph.page(name)


def scored(
    output: Output, place: Graph | str, vouched: list[Labels], plan: Plan | None, listed: list[Labels], **settings: Any
) -> Told:
    """Work out the scores and look up the lists; say what was chosen and what it cost."""
    from surveyor.kernels.thread_pool import cores
    from surveyor.rank.domains.memory import free_memory, needed, size_in_words
    from surveyor.rank.domains.scores import domains
    from surveyor.report.numbers import counted, duration
    from surveyor.report.reputations import Told

    names = [domain for labels in vouched for domain in labels.domains] if vouched else None
    limit = settings["memory"] or free_memory()
    with output.progress() as progress, output.timed() as seconds:
        told = domains(place, trusted=names, progress=progress, **settings)
    graph, threads = told.graph, settings["threads"] or cores()
    if names and told.trust and (missing := len(names) - told.trust.known):
        verb = "is" if missing == 1 else "are"
        output.warn(f"{missing:,} of {counted(len(names), 'trusted domain')} {verb} not in the graph")
    need = max(needed(name, graph.pages, graph.links, threads) for name in told.scores)
    why = f"{size_in_words(need)} needed, {size_in_words(limit)} allowed"
    size = f"{counted(graph.pages, 'domain')}, {counted(graph.links, 'link')}"
    output.say(f"{size}; {told.mode} ({why}), {duration(seconds[0])}")
    return Told(told, plan, _ids(output, graph, listed), _ids(output, graph, vouched))


def _ids(output: Output, graph: Graph, lists: list[Labels]) -> IntArray | None:
    """Return which domains are on one of the lists; warn of a list that names none of them."""
    import numpy as np

    if not lists or graph.names is None:
        return None
    parts = []
    for labels in lists:
        found = labels.among(graph.names)
        if found.warning:
            output.warn(f"{found.warning}.")
        parts.append(found.ids)
    return np.unique(np.concatenate(parts))


def draw(output: Output, told: Told, path: str) -> None:
    """Draw how many bad domains each score lets in; if there are none, say so."""
    from surveyor.graph.formats.streams import aside
    from surveyor.report.spam_plots import admitted_plot
    from surveyor.report.svg import alone

    found = [here for here in told.admitted if here.places.size]
    if not found:
        output.warn(f"{path} was not written: no bad domain stands in the list, so there is nothing to draw")
        return
    with aside(Path(path)) as draft:
        draft.write_text(alone(admitted_plot(found)), "utf-8")
    output.say(f"plot written to {path}")

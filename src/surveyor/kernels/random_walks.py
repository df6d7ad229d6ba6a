"""Random walks over the pages of a topic on a stored graph: each walk makes one micro-step per round.

A micro-step examines one fetched page and requests the next. All requested pages are fetched first, then the walks act
in order, so that the state of a walk does not depend on fetch times. The same rounds drive walks over a live web;
`estimate/sampling/walks.py` implements each method a second time in plain Python.

Random numbers are hashes of seed, walk and round. The neighbour list of a page is frozen when it is first drawn from.
Two frozen pages list each other or neither does; otherwise the stationary distribution would not be known.

Cost: one hash and a few memory reads per micro-step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surveyor.arrays import AnyInt, BoolArray, ByteArray, FloatArray, IdArray, IntArray
from surveyor.kernels._jit import kernel, kernel_without_refcounts
from surveyor.kernels.hash_random import random_bits

OFF, ON, DEAD = 0, 1, 2  # kinds of pages: off topic, on topic, not fetchable
OUT, IN, REPORTED = 1, 2, 4  # of a neighbour: the page links to it, it links to the page, a back-link source reports it
WEBWALKER, HARD, NONBACKTRACKING, MIXTURE, TRIAL, HARD_PAPER, NEIGHBOURHOOD_PAPER, TRIAL_PAPER = range(8)  # methods
SEARCH, STEP, MIDDLE, END, LOOK, PROBED, LOST = range(7)  # modes of a walk
NOTHING, PAGE, LIST, PROBES = range(4)  # what a walk requests
JUMP_DRAW, COIN_DRAW = 250, 251  # indices of draws: the host to jump to, one hop or two


class UndirectedGraph(NamedTuple):
    """A graph as walks use it: neighbours in both directions, distinct and ascending."""

    starts: IntArray
    neighbours: IdArray
    links: ByteArray  # of each neighbour: OUT, IN, REPORTED
    kind: ByteArray  # of each page
    host: IdArray  # of each page; empty without trap detection


class WalkParameters(NamedTuple):
    """The parameters that all walks share."""

    method: int
    seed: int
    reach: int  # steps off topic (trial), draws from a middle page (mixture), probes (neighbourhood)
    free: int  # 1 if the URL determines the topic, so that off-topic pages need no fetch
    window: int  # moves in which no host may have more than half; 0 for no limit
    hosts: int  # number of recent hosts that a walk may jump back to
    patience: int  # steps that a walk may take to find the topic
    radius: int  # length of the probes (neighbourhood)


class WalkStates(NamedTuple):
    """The state of each walk."""

    mode: IntArray
    current: IntArray  # the current page
    candidate: IntArray  # the page to examine next
    via: IntArray  # the previous page, the middle page, or the off-topic position
    steps: IntArray  # since the walk left its page, or of the search
    request: IntArray
    segment: IntArray
    weight: IntArray  # the stationary probability of `current` is proportional to it
    probes: IdArray  # one row of pages per walk
    recent: IdArray  # hosts of the last moves: a ring buffer
    moves: IntArray
    last_host: IdArray  # the last distinct hosts, latest first
    last_page: IdArray  # and the last page of each


class SharedState(NamedTuple):
    """The state that all walks share."""

    fetched: ByteArray
    degree: IdArray  # of each page whose list is frozen, else -1
    lists: IdArray  # frozen neighbours of each page, at its place in the graph
    hits: IdArray  # probes that found the topic, or -1
    tally: IntArray  # pages fetched, rounds


class StepRows(NamedTuple):
    """The columns of the recorded steps."""

    walk: IdArray
    segment: IdArray
    page: IdArray
    on_topic: BoolArray
    degree: FloatArray
    fetches: IntArray


@kernel_without_refcounts
def random_below(count: AnyInt, seed: AnyInt, walk: int, now: AnyInt, index: int) -> AnyInt:
    """Return a uniform random integer below `count`: draw `index` of a walk in a round."""
    bits = random_bits(np.uint64(seed), np.int64(now), np.int64(walk) * 256 + np.int64(index))
    return np.int64(((bits >> np.uint64(33)) * np.uint64(count)) >> np.uint64(31))


@kernel_without_refcounts
def find_sorted(lists: IdArray, first: AnyInt, last: AnyInt, page: AnyInt) -> AnyInt:
    """Return the position of a page in lists[first:last], which is ascending, or -1."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if lists[middle] < page:
            low = middle + 1
        else:
            high = middle
    return low if low < last and lists[low] == page else -1


@kernel_without_refcounts
def freeze_neighbours(graph: UndirectedGraph, shared: SharedState, page: AnyInt) -> None:
    """Freeze the neighbour list of a page on first use; pages frozen earlier decide about links between the two."""
    if shared.degree[page] >= 0:
        return
    first, count = graph.starts[page], 0
    for place in range(first, graph.starts[page + 1]):
        other, links = graph.neighbours[place], graph.links[place]
        if shared.degree[other] >= 0:
            start = graph.starts[other]
            known = find_sorted(shared.lists, start, start + shared.degree[other], page) >= 0
        else:
            known = links & (OUT | REPORTED) != 0 or (links & IN != 0 and shared.fetched[other] != 0)
        if known:
            shared.lists[first + count] = other
            count += 1
    shared.degree[page] = count


@kernel_without_refcounts
def pick_neighbour(
    graph: UndirectedGraph, plan: WalkParameters, shared: SharedState, page: AnyInt, walk: int, index: int
) -> AnyInt:
    """Choose a random neighbour of a page; a page without neighbours is its own."""
    degree = shared.degree[page]
    if degree == 0:
        return page
    return np.int64(shared.lists[graph.starts[page] + random_below(degree, plan.seed, walk, shared.tally[1], index)])


@kernel_without_refcounts
def pick_neighbour_except(
    graph: UndirectedGraph, plan: WalkParameters, shared: SharedState, page: AnyInt, walk: int, but: AnyInt
) -> AnyInt:
    """Choose a random neighbour of a page except `but`, unless it is the only one."""
    first, degree = graph.starts[page], shared.degree[page]
    barred = find_sorted(shared.lists, first, first + degree, but)
    if barred < 0 or degree == 1:
        return pick_neighbour(graph, plan, shared, page, walk, 0)
    place = first + random_below(degree - 1, plan.seed, walk, shared.tally[1], 0)
    return np.int64(shared.lists[place + (place >= barred)])


@kernel_without_refcounts
def move(
    graph: UndirectedGraph, plan: WalkParameters, states: WalkStates, shared: SharedState, walk: int, page: AnyInt
) -> bool:
    """Move to a page, or jump to another host if its host has too many of the last moves; return whether it jumped."""
    if page == states.current[walk]:
        return False
    if plan.window == 0:
        states.current[walk] = page
        return False
    host, made = graph.host[page], states.moves[walk]
    often = 1
    for place in range(min(made, plan.window)):
        often += states.recent[walk, place] == host
    hosts = 0
    while hosts < plan.hosts and states.last_host[walk, hosts] >= 0:
        hosts += 1
    if 2 * often > plan.window and hosts > 1:
        chosen = random_below(hosts, plan.seed, walk, shared.tally[1], JUMP_DRAW)
        states.current[walk] = states.last_page[walk, chosen]
        states.segment[walk] += 1
        return True
    states.current[walk] = page
    states.recent[walk, made % plan.window] = host
    states.moves[walk] = made + 1
    place = 0
    while place < plan.hosts - 1 and states.last_host[walk, place] >= 0 and states.last_host[walk, place] != host:
        place += 1
    for later in range(place, 0, -1):
        states.last_host[walk, later] = states.last_host[walk, later - 1]
        states.last_page[walk, later] = states.last_page[walk, later - 1]
    states.last_host[walk, 0], states.last_page[walk, 0] = host, page
    return False


@kernel_without_refcounts
def request_neighbour(
    graph: UndirectedGraph,
    plan: WalkParameters,
    states: WalkStates,
    shared: SharedState,
    walk: int,
    page: AnyInt,
    index: int,
) -> None:
    """Request a random neighbour for its kind alone: if the URL determines the topic, off-topic pages need no fetch."""
    states.candidate[walk] = pick_neighbour(graph, plan, shared, page, walk, index)
    states.request[walk] = NOTHING if plan.free and graph.kind[states.candidate[walk]] != ON else PAGE


@kernel_without_refcounts
def settle_on_page(graph: UndirectedGraph, states: WalkStates, shared: SharedState, walk: int) -> None:
    """Freeze the list of the current page; its stationary probability is proportional to its degree."""
    freeze_neighbours(graph, shared, states.current[walk])
    states.weight[walk] = max(shared.degree[states.current[walk]], 1)


@kernel_without_refcounts
def search(graph: UndirectedGraph, plan: WalkParameters, states: WalkStates, shared: SharedState, walk: int) -> bool:
    """Walk at random until a page is on topic; return whether one is found."""
    candidate = states.candidate[walk]
    if graph.kind[candidate] == ON or (plan.method == WEBWALKER and graph.kind[candidate] != DEAD):
        states.mode[walk], states.steps[walk], states.via[walk] = STEP, 0, -1
        return True
    if graph.kind[candidate] != DEAD:
        states.via[walk] = candidate
        freeze_neighbours(graph, shared, candidate)
    states.steps[walk] += 1
    via = states.via[walk]
    if via < 0 or states.steps[walk] > plan.patience or shared.degree[via] == 0:
        states.mode[walk], states.request[walk] = LOST, NOTHING
    else:
        states.candidate[walk] = pick_neighbour(graph, plan, shared, via, walk, 0)
        states.request[walk] = PAGE
    return False


@kernel_without_refcounts
def micro_step(
    graph: UndirectedGraph, plan: WalkParameters, states: WalkStates, shared: SharedState, walk: int
) -> bool:
    """Make one micro-step of a walk; return whether it completed a step to record."""
    if states.mode[walk] == LOST:
        return False
    if states.mode[walk] == SEARCH and not search(graph, plan, states, shared, walk):
        return False
    candidate, method = states.candidate[walk], plan.method
    if method == WEBWALKER:
        if graph.kind[candidate] != DEAD:
            move(graph, plan, states, shared, walk, candidate)
        settle_on_page(graph, states, shared, walk)
        states.candidate[walk] = pick_neighbour(graph, plan, shared, states.current[walk], walk, 0)
        return True
    if method == HARD:
        if graph.kind[candidate] == ON:
            move(graph, plan, states, shared, walk, candidate)
        settle_on_page(graph, states, shared, walk)
        request_neighbour(graph, plan, states, shared, walk, states.current[walk], 0)
        return True
    if method == NONBACKTRACKING:
        return nonbacktracking(graph, plan, states, shared, walk)
    if method == MIXTURE:
        return mixture(graph, plan, states, shared, walk)
    if method in (TRIAL, TRIAL_PAPER):
        return trial(graph, plan, states, shared, walk)
    if method == HARD_PAPER:
        return hard_paper(graph, plan, states, shared, walk)
    return neighbourhood_paper(graph, plan, states, shared, walk)


@kernel_without_refcounts
def nonbacktracking(
    graph: UndirectedGraph, plan: WalkParameters, states: WalkStates, shared: SharedState, walk: int
) -> bool:
    """Hard focus without immediate backtracking; a rejected page counts as the previous page."""
    candidate, before = states.candidate[walk], states.current[walk]
    if graph.kind[candidate] == ON:
        jumped = move(graph, plan, states, shared, walk, candidate)
        states.via[walk] = -1 if jumped else before
    else:
        states.via[walk] = candidate
    settle_on_page(graph, states, shared, walk)
    current = states.current[walk]
    states.candidate[walk] = pick_neighbour_except(graph, plan, shared, current, walk, states.via[walk])
    states.request[walk] = NOTHING if plan.free and graph.kind[states.candidate[walk]] != ON else PAGE
    return True


@kernel_without_refcounts
def mixture(graph: UndirectedGraph, plan: WalkParameters, states: WalkStates, shared: SharedState, walk: int) -> bool:
    """One hop with hard focus, or two hops over any middle page, with probability 1/2 each."""
    candidate, mode = states.candidate[walk], states.mode[walk]
    if mode == MIDDLE and graph.kind[candidate] != DEAD:
        states.via[walk], states.steps[walk], states.mode[walk] = candidate, 1, END
        freeze_neighbours(graph, shared, candidate)
        request_neighbour(graph, plan, states, shared, walk, candidate, 0)
        return False
    if mode == END and graph.kind[candidate] != ON and states.steps[walk] < plan.reach:
        states.steps[walk] += 1
        request_neighbour(graph, plan, states, shared, walk, states.via[walk], 0)
        return False
    if mode != MIDDLE and graph.kind[candidate] == ON:
        move(graph, plan, states, shared, walk, candidate)
    settle_on_page(graph, states, shared, walk)
    request_neighbour(graph, plan, states, shared, walk, states.current[walk], 0)
    states.mode[walk] = STEP
    if random_below(2, plan.seed, walk, shared.tally[1], COIN_DRAW) == 1:
        states.mode[walk], states.request[walk] = MIDDLE, PAGE
    return True


@kernel_without_refcounts
def trial(graph: UndirectedGraph, plan: WalkParameters, states: WalkStates, shared: SharedState, walk: int) -> bool:
    """Leave the topic for a few steps, then return; each return is a step, except in the published variant."""
    candidate, on = states.candidate[walk], graph.kind[states.candidate[walk]] == ON
    back = not on and (graph.kind[candidate] == DEAD or states.steps[walk] >= plan.reach)
    if on:
        move(graph, plan, states, shared, walk, candidate)
    if on or back:
        settle_on_page(graph, states, shared, walk)
        states.via[walk], states.steps[walk] = states.current[walk], 0
    else:
        states.via[walk] = candidate
        states.steps[walk] += 1
        freeze_neighbours(graph, shared, candidate)
    request_neighbour(graph, plan, states, shared, walk, states.via[walk], 0)
    if states.steps[walk] < plan.reach:
        states.request[walk] = PAGE
    if plan.method == TRIAL_PAPER:
        states.weight[walk] = 1
        return bool(on)
    return bool(on or back)


@kernel_without_refcounts
def hard_paper(
    graph: UndirectedGraph, plan: WalkParameters, states: WalkStates, shared: SharedState, walk: int
) -> bool:
    """Hard focus as published: all neighbours are classified; a mutual link counts twice in the degree."""
    if states.mode[walk] == STEP:
        move(graph, plan, states, shared, walk, states.candidate[walk])
        settle_on_page(graph, states, shared, walk)
        states.mode[walk], states.request[walk] = LOOK, NOTHING if plan.free else LIST
        return False
    current = states.current[walk]
    first, last = graph.starts[current], graph.starts[current] + shared.degree[current]
    on_topic, degree, place = 0, 0, graph.starts[current]
    for entry in range(first, last):
        other = shared.lists[entry]
        if graph.kind[other] != ON:
            continue
        while graph.neighbours[place] != other:
            place += 1
        links = graph.links[place]
        known = links & REPORTED != 0 or (links & IN != 0 and shared.fetched[other] != 0)
        degree += (links & OUT != 0) + known
        on_topic += 1
    states.weight[walk] = max(degree, 1)
    if on_topic:
        chosen = random_below(on_topic, plan.seed, walk, shared.tally[1], 0)
        for entry in range(first, last):
            chosen -= graph.kind[shared.lists[entry]] == ON
            if chosen < 0:
                states.candidate[walk] = shared.lists[entry]
                break
    states.mode[walk], states.request[walk] = STEP, PAGE
    return True


@kernel_without_refcounts
def neighbourhood_paper(
    graph: UndirectedGraph, plan: WalkParameters, states: WalkStates, shared: SharedState, walk: int
) -> bool:
    """Topical neighbourhood as published: probes decide which pages are near the topic, and replace the degree.

    A probe ends when it is on topic, or after as many links as the radius.
    """
    candidate = states.candidate[walk]
    known = shared.hits[candidate] >= 0
    if states.mode[walk] == STEP and graph.kind[candidate] != DEAD and not known:
        freeze_neighbours(graph, shared, candidate)
        for probe in range(plan.reach):
            states.probes[walk, probe] = pick_neighbour(graph, plan, shared, candidate, walk, probe)
        states.mode[walk], states.steps[walk] = PROBED, 1
        states.request[walk] = NOTHING if plan.free and plan.radius == 1 else PROBES
        return False
    if states.mode[walk] == PROBED and states.steps[walk] < plan.radius and not known:
        states.steps[walk] += 1
        for probe in range(plan.reach):
            page = np.int64(states.probes[walk, probe])
            if graph.kind[page] == OFF:
                freeze_neighbours(graph, shared, page)
                states.probes[walk, probe] = pick_neighbour(graph, plan, shared, page, walk, probe)
        states.request[walk] = NOTHING if plan.free and states.steps[walk] == plan.radius else PROBES
        return False
    if states.mode[walk] == PROBED and not known:
        landed = 0
        for probe in range(plan.reach):
            landed += graph.kind[states.probes[walk, probe]] == ON
        shared.hits[candidate] = landed
    near = graph.kind[candidate] == ON or shared.hits[candidate] > 0
    if near:
        move(graph, plan, states, shared, walk, candidate)
        states.weight[walk] = max(shared.hits[states.current[walk]], 1)
    states.candidate[walk] = pick_neighbour(graph, plan, shared, states.current[walk], walk, plan.reach)
    states.mode[walk], states.request[walk] = STEP, PAGE
    return bool(near)


@kernel_without_refcounts
def fetch_needed(
    graph: UndirectedGraph, plan: WalkParameters, states: WalkStates, shared: SharedState, walk: int, limit: int
) -> bool:
    """Fetch what a walk requests; return False if that exceeds the fetch limit."""
    wants, first, count = states.request[walk], 0, 0
    if wants == PAGE:
        count = 1
    elif wants == LIST:
        first, count = graph.starts[states.current[walk]], shared.degree[states.current[walk]]
    elif wants == PROBES:
        count = plan.reach
    for place in range(count):
        if wants == PAGE:
            page = states.candidate[walk]
        else:
            page = shared.lists[first + place] if wants == LIST else states.probes[walk, place]
        if shared.fetched[page] == 0:
            if shared.tally[0] >= limit:
                return False
            shared.fetched[page] = 1
            shared.tally[0] += 1
    return True


@kernel_without_refcounts
def advance(
    graph: UndirectedGraph,
    plan: WalkParameters,
    states: WalkStates,
    shared: SharedState,
    rows: StepRows,
    rounds: int,
    limit: int,
) -> tuple[int, bool]:
    """Walk for `rounds` rounds or until the fetch limit; return the rows written and whether the limit was reached."""
    written, walks = 0, states.mode.size
    for _ in range(rounds):
        for walk in range(walks):
            if not fetch_needed(graph, plan, states, shared, walk, limit):
                return written, True
        for walk in range(walks):
            if micro_step(graph, plan, states, shared, walk):
                page = states.current[walk]
                rows.walk[written] = walk
                rows.segment[written] = states.segment[walk]
                rows.page[written] = page
                rows.on_topic[written] = graph.kind[page] == ON
                rows.degree[written] = states.weight[walk]
                rows.fetches[written] = shared.tally[0]
                written += 1
        shared.tally[1] += 1
    return written, False


@kernel
def sorted_row(row: IdArray) -> IdArray:
    """Return a row in ascending order; most rows already are."""
    for place in range(1, row.size):
        if row[place] < row[place - 1]:
            return np.sort(row)
    return row


@kernel
def merge_directions(
    starts: IntArray,
    targets: IdArray,
    in_starts: IntArray,
    sources: IdArray,
    offsets: IntArray,
    neighbours: IdArray,
    links: ByteArray,
) -> None:
    """Merge out-links and in-links into one neighbour list per page: distinct, ascending, without the page itself.

    With empty `neighbours`, only write the list offsets into `offsets`.

    Bits of `links`: 1 if the page links to the neighbour, 2 if the neighbour links to the page.
    """
    for page in range(starts.size - 1):
        out = sorted_row(targets[starts[page] : starts[page + 1]])
        into = sorted_row(sources[in_starts[page] : in_starts[page + 1]])
        i, j, count = 0, 0, 0
        while i < out.size or j < into.size:
            if j == into.size or (i < out.size and out[i] <= into[j]):
                other = out[i]
            else:
                other = into[j]
            kind = 0
            while i < out.size and out[i] == other:
                kind, i = kind | 1, i + 1
            while j < into.size and into[j] == other:
                kind, j = kind | 2, j + 1
            if other != page:
                if neighbours.size:
                    neighbours[offsets[page] + count], links[offsets[page] + count] = other, kind
                count += 1
        if not neighbours.size:
            offsets[page + 1] = offsets[page] + count

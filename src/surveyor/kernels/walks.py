"""Random walks over the pages of a topic on a stored graph: each walk makes one micro-step in each round.

A micro-step looks at one page that was fetched and says which one is needed next. The pages that all walks need are
fetched first, then the walks act in order, so that what a walk knows does not depend on how fast pages come. The same
rounds drive walks over a live web; `estimate/sampling/walks.py` tells each method once more, in plain Python.

Cost: a hash and a few reads of memory a micro-step.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from surveyor.kernels._jit import bare
from surveyor.kernels.footing import (
    DEAD,
    IN,
    ON,
    OUT,
    TOLD,
    Land,
    Memory,
    Plan,
    Rows,
    Walkers,
    below,
    freeze,
    move,
    pick,
    pick_other,
)

Whole: TypeAlias = Any
WEBWALKER, HARD, NONBACKTRACKING, MIXTURE, TRIAL, HARD_PAPER, NEIGHBOURHOOD_PAPER, TRIAL_PAPER = range(8)
SEARCH, STEP, MIDDLE, END, LOOK, PROBED, LOST = range(7)  # what a walk is doing
NOTHING, PAGE, LIST, PROBES = range(4)  # what a walk needs
COIN = 251  # the draw of one hop or two


@bare
def look_for(land: Land, plan: Plan, walkers: Walkers, memory: Memory, walk: Whole, page: Whole, index: Whole) -> None:
    """Need a neighbour of a page for its kind alone: if the URL tells it, off topic is told without a fetch."""
    walkers.at[walk] = pick(land, plan, memory, page, walk, index)
    walkers.wants[walk] = NOTHING if plan.free and land.kind[walkers.at[walk]] != ON else PAGE


@bare
def stand(land: Land, walkers: Walkers, memory: Memory, walk: Whole) -> None:
    """Settle on the page under foot: its list is fixed, and the law there is in proportion to its length."""
    freeze(land, memory, walkers.here[walk])
    walkers.basis[walk] = max(memory.degree[walkers.here[walk]], 1)


@bare
def search(land: Land, plan: Plan, walkers: Walkers, memory: Memory, walk: Whole) -> Whole:
    """Walk at random until a page is on topic; say whether it is found."""
    at = walkers.at[walk]
    if land.kind[at] == ON or (plan.method == WEBWALKER and land.kind[at] != DEAD):
        walkers.mode[walk], walkers.count[walk], walkers.via[walk] = STEP, 0, -1
        return True
    if land.kind[at] != DEAD:
        walkers.via[walk] = at
        freeze(land, memory, at)
    walkers.count[walk] += 1
    via = walkers.via[walk]
    if via < 0 or walkers.count[walk] > plan.patience or memory.degree[via] == 0:
        walkers.mode[walk], walkers.wants[walk] = LOST, NOTHING
    else:
        walkers.at[walk] = pick(land, plan, memory, via, walk, 0)
        walkers.wants[walk] = PAGE
    return False


@bare
def act(land: Land, plan: Plan, walkers: Walkers, memory: Memory, walk: Whole) -> Whole:
    """Make one micro-step of a walk; say whether it was a step to write down."""
    if walkers.mode[walk] == LOST:
        return False
    if walkers.mode[walk] == SEARCH and not search(land, plan, walkers, memory, walk):
        return False
    at, method = walkers.at[walk], plan.method
    if method == WEBWALKER:
        if land.kind[at] != DEAD:
            move(land, plan, walkers, memory, walk, at)
        stand(land, walkers, memory, walk)
        walkers.at[walk] = pick(land, plan, memory, walkers.here[walk], walk, 0)
        return True
    if method == HARD:
        if land.kind[at] == ON:
            move(land, plan, walkers, memory, walk, at)
        stand(land, walkers, memory, walk)
        look_for(land, plan, walkers, memory, walk, walkers.here[walk], 0)
        return True
    if method == NONBACKTRACKING:
        return nonbacktracking(land, plan, walkers, memory, walk)
    if method == MIXTURE:
        return mixture(land, plan, walkers, memory, walk)
    if method in (TRIAL, TRIAL_PAPER):
        return trial(land, plan, walkers, memory, walk)
    if method == HARD_PAPER:
        return hard_paper(land, plan, walkers, memory, walk)
    return neighbourhood_paper(land, plan, walkers, memory, walk)


@bare
def nonbacktracking(land: Land, plan: Plan, walkers: Walkers, memory: Memory, walk: Whole) -> Whole:
    """Hard focus that does not go straight back; a page that is refused counts as the page before."""
    at, before = walkers.at[walk], walkers.here[walk]
    if land.kind[at] == ON:
        jumped = move(land, plan, walkers, memory, walk, at)
        walkers.via[walk] = -1 if jumped else before
    else:
        walkers.via[walk] = at
    stand(land, walkers, memory, walk)
    here = walkers.here[walk]
    walkers.at[walk] = pick_other(land, plan, memory, here, walk, walkers.via[walk])
    walkers.wants[walk] = NOTHING if plan.free and land.kind[walkers.at[walk]] != ON else PAGE
    return True


@bare
def mixture(land: Land, plan: Plan, walkers: Walkers, memory: Memory, walk: Whole) -> Whole:
    """One hop with hard focus, or two hops by any page between, half of the time each."""
    at, mode = walkers.at[walk], walkers.mode[walk]
    if mode == MIDDLE and land.kind[at] != DEAD:
        walkers.via[walk], walkers.count[walk], walkers.mode[walk] = at, 1, END
        freeze(land, memory, at)
        look_for(land, plan, walkers, memory, walk, at, 0)
        return False
    if mode == END and land.kind[at] != ON and walkers.count[walk] < plan.reach:
        walkers.count[walk] += 1
        look_for(land, plan, walkers, memory, walk, walkers.via[walk], 0)
        return False
    if mode != MIDDLE and land.kind[at] == ON:
        move(land, plan, walkers, memory, walk, at)
    stand(land, walkers, memory, walk)
    look_for(land, plan, walkers, memory, walk, walkers.here[walk], 0)
    walkers.mode[walk] = STEP
    if below(2, plan.seed, walk, memory.tally[1], COIN) == 1:
        walkers.mode[walk], walkers.wants[walk] = MIDDLE, PAGE
    return True


@bare
def trial(land: Land, plan: Plan, walkers: Walkers, memory: Memory, walk: Whole) -> Whole:
    """Wander off topic for a few steps, then return; each return is a step, unless as in the paper."""
    at, on = walkers.at[walk], land.kind[walkers.at[walk]] == ON
    back = not on and (land.kind[at] == DEAD or walkers.count[walk] >= plan.reach)
    if on:
        move(land, plan, walkers, memory, walk, at)
    if on or back:
        stand(land, walkers, memory, walk)
        walkers.via[walk], walkers.count[walk] = walkers.here[walk], 0
    else:
        walkers.via[walk] = at
        walkers.count[walk] += 1
        freeze(land, memory, at)
    look_for(land, plan, walkers, memory, walk, walkers.via[walk], 0)
    if walkers.count[walk] < plan.reach:
        walkers.wants[walk] = PAGE
    if plan.method == TRIAL_PAPER:
        walkers.basis[walk] = 1
        return on
    return on or back


@bare
def hard_paper(land: Land, plan: Plan, walkers: Walkers, memory: Memory, walk: Whole) -> Whole:
    """Hard focus by the paper: all neighbours are judged; one that links both ways counts twice in the degree."""
    if walkers.mode[walk] == STEP:
        move(land, plan, walkers, memory, walk, walkers.at[walk])
        stand(land, walkers, memory, walk)
        walkers.mode[walk], walkers.wants[walk] = LOOK, NOTHING if plan.free else LIST
        return False
    here = walkers.here[walk]
    first, last = land.starts[here], land.starts[here] + memory.degree[here]
    found, degree, place = 0, 0, land.starts[here]
    for at in range(first, last):
        other = memory.lists[at]
        if land.kind[other] != ON:
            continue
        while land.neighbours[place] != other:
            place += 1
        links = land.links[place]
        known = links & TOLD != 0 or (links & IN != 0 and memory.fetched[other] != 0)
        degree += (links & OUT != 0) + known
        found += 1
    walkers.basis[walk] = max(degree, 1)
    if found:
        chosen = below(found, plan.seed, walk, memory.tally[1], 0)
        for at in range(first, last):
            chosen -= land.kind[memory.lists[at]] == ON
            if chosen < 0:
                walkers.at[walk] = memory.lists[at]
                break
    walkers.mode[walk], walkers.wants[walk] = STEP, PAGE
    return True


@bare
def neighbourhood_paper(land: Land, plan: Plan, walkers: Walkers, memory: Memory, walk: Whole) -> Whole:
    """Topical neighbourhood by the paper: probes tell who is near the topic, and stand for the degree."""
    at = walkers.at[walk]
    known = memory.landed[at] >= 0
    if walkers.mode[walk] == STEP and land.kind[at] != DEAD and not known:
        freeze(land, memory, at)
        for probe in range(plan.reach):
            walkers.probes[walk, probe] = pick(land, plan, memory, at, walk, probe)
        walkers.mode[walk], walkers.wants[walk] = PROBED, NOTHING if plan.free else PROBES
        return False
    if walkers.mode[walk] == PROBED and not known:
        landed = 0
        for probe in range(plan.reach):
            landed += land.kind[walkers.probes[walk, probe]] == ON
        memory.landed[at] = landed
    near = land.kind[at] == ON or memory.landed[at] > 0
    if near:
        move(land, plan, walkers, memory, walk, at)
        walkers.basis[walk] = max(memory.landed[walkers.here[walk]], 1)
    walkers.at[walk] = pick(land, plan, memory, walkers.here[walk], walk, plan.reach)
    walkers.mode[walk], walkers.wants[walk] = STEP, PAGE
    return near


@bare
def needed(land: Land, plan: Plan, walkers: Walkers, memory: Memory, walk: Whole, limit: Whole) -> Whole:
    """Fetch what a walk needs; false if that is more than may be fetched."""
    wants, first, count = walkers.wants[walk], 0, 0
    if wants == PAGE:
        count = 1
    elif wants == LIST:
        first, count = land.starts[walkers.here[walk]], memory.degree[walkers.here[walk]]
    elif wants == PROBES:
        count = plan.reach
    for place in range(count):
        if wants == PAGE:
            page = walkers.at[walk]
        else:
            page = memory.lists[first + place] if wants == LIST else walkers.probes[walk, place]
        if memory.fetched[page] == 0:
            if memory.tally[0] >= limit:
                return False
            memory.fetched[page] = 1
            memory.tally[0] += 1
    return True


@bare
def advance(
    land: Land, plan: Plan, walkers: Walkers, memory: Memory, rows: Rows, rounds: Whole, limit: Whole
) -> tuple[Whole, Whole]:
    """Walk so many rounds, or until the limit of fetches; return the rows written, and whether the limit was met."""
    written, walks = 0, walkers.mode.size
    for _ in range(rounds):
        for walk in range(walks):
            if not needed(land, plan, walkers, memory, walk, limit):
                return written, True
        for walk in range(walks):
            if act(land, plan, walkers, memory, walk):
                page = walkers.here[walk]
                rows.walk[written] = walk
                rows.segment[written] = walkers.segment[walk]
                rows.page[written] = page
                rows.on_topic[written] = land.kind[page] == ON
                rows.degree[written] = walkers.basis[walk]
                rows.fetches[written] = memory.tally[0]
                written += 1
        memory.tally[1] += 1
    return written, False

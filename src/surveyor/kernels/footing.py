"""What walks stand on: neighbours and how they are frozen, chance, and the way from one page to the next.

Chance is a hash of seed, walk and round. A page's list of neighbours is made once, when it is first drawn from. Two
pages that are both frozen list each other or neither does: otherwise the law of the walk would not be known.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from surveyor.kernels._jit import bare
from surveyor.kernels.synthetic import draw

Whole: TypeAlias = Any
OFF, ON, DEAD = 0, 1, 2  # kinds of pages: off topic, on topic, cannot be read
OUT, IN, TOLD = 1, 2, 4  # of a neighbour: the page links to it, it links to the page, a source of back-links says so
JUMP = 250  # the draw of a host to jump to


class Land(NamedTuple):
    """A graph as walks see it: neighbours in both directions, each once and in ascending order."""

    starts: Whole
    neighbours: Whole
    links: Whole  # of each neighbour: OUT, IN, TOLD
    kind: Whole  # of each page
    host: Whole  # of each page; empty if traps are not watched for


class Plan(NamedTuple):
    """What all walks have in common; whole numbers."""

    method: Whole
    seed: Whole
    reach: Whole  # steps off topic (trial), draws from a page between (mixture), probes (neighbourhood)
    free: Whole  # whether the URL tells the topic, so that pages off topic need no fetch
    window: Whole  # steps in which no host may have more than half; 0 for any
    hosts: Whole  # hosts that a walk may jump back to
    patience: Whole  # steps that a walk may take to find the topic


class Walkers(NamedTuple):
    """The state of each walk."""

    mode: Whole
    here: Whole  # the page that it stands on
    at: Whole  # the page that it looks at next
    via: Whole  # the page before, between, or where it wanders
    count: Whole
    wants: Whole
    segment: Whole
    basis: Whole  # what the law at `here` is in proportion to
    probes: Whole  # one row of pages a walk
    recent: Whole  # hosts of the last moves: a ring
    moves: Whole
    last_host: Whole  # the last hosts, each once, latest first
    last_page: Whole  # and the last page there


class Memory(NamedTuple):
    """What the walks know together."""

    fetched: Whole
    degree: Whole  # of each page whose list is frozen, else -1
    lists: Whole  # of each page, where its neighbours are in the land
    landed: Whole  # probes that met the topic, or -1
    tally: Whole  # pages fetched, rounds


class Rows(NamedTuple):
    """What is written down at each step; see `estimate/sampling/trail.py`."""

    walk: Whole
    segment: Whole
    page: Whole
    on_topic: Whole
    degree: Whole
    fetches: Whole


@bare
def below(count: Whole, seed: Whole, walk: Whole, now: Whole, index: Whole) -> Whole:
    """Return a random number below count: that of one draw of one walk in one round."""
    bits = draw(np.uint64(seed), np.int64(now), np.int64(walk) * 256 + np.int64(index))
    return np.int64(((bits >> np.uint64(33)) * np.uint64(count)) >> np.uint64(31))


@bare
def find(lists: Whole, first: Whole, last: Whole, page: Whole) -> Whole:
    """Return the place of a page between two places of an ascending list, or -1."""
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if lists[middle] < page:
            low = middle + 1
        else:
            high = middle
    return low if low < last and lists[low] == page else -1


@bare
def freeze(land: Land, memory: Memory, page: Whole) -> None:
    """Fix the neighbours of a page when they are first needed; those fixed before decide about links among them."""
    if memory.degree[page] >= 0:
        return
    first, count = land.starts[page], 0
    for place in range(first, land.starts[page + 1]):
        other, links = land.neighbours[place], land.links[place]
        if memory.degree[other] >= 0:
            begin = land.starts[other]
            known = find(memory.lists, begin, begin + memory.degree[other], page) >= 0
        else:
            known = links & (OUT | TOLD) != 0 or (links & IN != 0 and memory.fetched[other] != 0)
        if known:
            memory.lists[first + count] = other
            count += 1
    memory.degree[page] = count


@bare
def pick(land: Land, plan: Plan, memory: Memory, page: Whole, walk: Whole, index: Whole) -> Whole:
    """Choose a neighbour of a page; a page without any is its own."""
    degree = memory.degree[page]
    if degree == 0:
        return page
    return memory.lists[land.starts[page] + below(degree, plan.seed, walk, memory.tally[1], index)]


@bare
def pick_other(land: Land, plan: Plan, memory: Memory, page: Whole, walk: Whole, but: Whole) -> Whole:
    """Choose a neighbour of a page, but not the given one unless there is no other."""
    first, degree = land.starts[page], memory.degree[page]
    barred = find(memory.lists, first, first + degree, but)
    if barred < 0 or degree == 1:
        return pick(land, plan, memory, page, walk, 0)
    place = first + below(degree - 1, plan.seed, walk, memory.tally[1], 0)
    return memory.lists[place + (place >= barred)]


@bare
def move(land: Land, plan: Plan, walkers: Walkers, memory: Memory, walk: Whole, page: Whole) -> Whole:
    """Go to a page; if its host had too many of the last moves, jump to another host instead and say so."""
    if page == walkers.here[walk]:
        return False
    if plan.window == 0:
        walkers.here[walk] = page
        return False
    host, made = land.host[page], walkers.moves[walk]
    often = 1
    for place in range(min(made, plan.window)):
        often += walkers.recent[walk, place] == host
    hosts = 0
    while hosts < plan.hosts and walkers.last_host[walk, hosts] >= 0:
        hosts += 1
    if 2 * often > plan.window and hosts > 1:
        chosen = below(hosts, plan.seed, walk, memory.tally[1], JUMP)
        walkers.here[walk] = walkers.last_page[walk, chosen]
        walkers.segment[walk] += 1
        return True
    walkers.here[walk] = page
    walkers.recent[walk, made % plan.window] = host
    walkers.moves[walk] = made + 1
    place = 0
    while place < plan.hosts - 1 and walkers.last_host[walk, place] >= 0 and walkers.last_host[walk, place] != host:
        place += 1
    for later in range(place, 0, -1):
        walkers.last_host[walk, later] = walkers.last_host[walk, later - 1]
        walkers.last_page[walk, later] = walkers.last_page[walk, later - 1]
    walkers.last_host[walk, 0], walkers.last_page[walk, 0] = host, page
    return False

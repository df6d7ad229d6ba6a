"""OPIC visits: which page OPIC fetches next, and a whole crawl in one kernel.

`visit` and `redirect` account for one event (see `opic_cash.py`) and record whose priority it changed. The strategies
call them for each outcome and pass the changes to the crawl; `run_opic` does the same with its own queue.

- *greedy* fetches the page with most cash; a share `fairness` of the fetches goes to each page in turn, since cash
  alone may take arbitrarily long to reach a page. Jumps give the same to pages of equal weight: with uniform weights,
  priorities leave out what jumps gave since all were last renewed, which happens when that makes up half of all
  cash, so that it costs O(1) per fetch. (Pages that lost their weight may meanwhile come a little early.) With
  trusted seeds, the priorities of the seeds are renewed at each jump.
- *cycle* fetches the page that was fetched or discovered longest ago.
- *random* fetches any known page with equal probability: each is due an exponential time after it was fetched or
  discovered. The exponential distribution is memoryless, so each page is equally likely to be due first.
"""

from __future__ import annotations

from math import inf, log
from typing import NamedTuple

import numpy as np

from surveyor.arrays import BoolArray, FloatArray, IdArray, IntArray, KeyArray
from surveyor.kernels._jit import kernel_without_refcounts
from surveyor.kernels.hash_random import random_unit
from surveyor.kernels.mass import Rows
from surveyor.kernels.opic_cash import (
    BASE,
    BETA,
    BLOCKED,
    FETCHES,
    GONE,
    JUMPS,
    KNOWN,
    MISPLACED,
    NO_LINK_SET,
    OUT,
    PAGES,
    UNIFORM,
    WEIGHTED,
    WEIGHTS,
    Cash,
    cash_of,
    discover,
    distribute,
    forget_half,
    jump,
    lacks_pairs,
    link_set_of,
    merge,
    record_links,
    retire,
    set_debt,
    settle,
    with_pages,
)
from surveyor.kernels.priority_queues import ABSENT, Queue, pop_best, set_priority

GREEDY, CYCLE, RANDOM = map(np.int64, range(3))
POLICY, CHANGED, TURN, TICKET, PLANS = map(np.int64, range(5))
FAIRNESS, CLOCK, PACES = map(np.int64, range(3))
STALE = 0.5  # priorities are renewed when jumps have given this much cash since


class PriorityChanges(NamedTuple):
    """The pages whose priority the last event changed, and the state that priorities depend on."""

    pages: IdArray
    priorities: FloatArray
    due: FloatArray  # random: when each page is due
    plan: IntArray
    pace: FloatArray
    seed: KeyArray


def new_priority_changes(pages: int, policy: np.int64, fairness: float, seed: int) -> PriorityChanges:
    """Allocate room for all changes of one event."""
    plan, pace = np.zeros(PLANS, np.int64), np.zeros(PACES)
    plan[POLICY], pace[FAIRNESS] = policy, fairness
    due = np.zeros(pages if policy == RANDOM else 0)
    room = 2 * pages + 2
    return PriorityChanges(np.empty(room, np.int32), np.empty(room), due, plan, pace, np.array([seed], np.uint64))


def with_room(cash: Cash, changes: PriorityChanges, pages: int) -> tuple[Cash, PriorityChanges]:
    """Return copies with room for this many pages."""
    more = pages - cash.state.size
    columns = {name: np.pad(getattr(cash, name), (0, more)) for name in cash._fields[:7]}
    due = np.pad(changes.due, (0, more)) if changes.due.size else changes.due
    room = 2 * pages + 2
    return (
        cash._replace(**columns, earnings=with_pages(cash.earnings, more)),
        changes._replace(pages=np.empty(room, np.int32), priorities=np.empty(room), due=due),
    )


@kernel_without_refcounts
def start_opic(cash: Cash, changes: PriorityChanges, seeds: IdArray, weights: FloatArray) -> None:
    """Give all cash to the seeds and record their priorities."""
    for spot in range(seeds.shape[0]):
        discover(cash, seeds[spot], weights[spot])
        changes.pages[spot] = seeds[spot]
    jump(cash)
    for spot in range(seeds.shape[0]):
        set_debt(cash.earnings, seeds[spot], cash_of(cash, seeds[spot]))
    cash.totals[BASE] = cash.totals[BETA]
    changes.plan[CHANGED] = seeds.shape[0]
    compute_priorities(cash, changes)


@kernel_without_refcounts
def visit(
    cash: Cash,
    changes: PriorityChanges,
    page: int,
    targets: IdArray,
    span: tuple[int, int],
    status: np.uint8,
    links: np.uint64,
) -> None:
    """Account for a page that was fetched (KNOWN, with targets[first:last]), is GONE or is BLOCKED.

    `links` is the hash of its links before redirects are resolved. A page that was fetched before keeps its state when
    a request fails (BLOCKED), as it will be requested again; its links are then those of a page without links.
    """
    first, last = span
    known, jumps = cash.counts[PAGES], cash.counts[JUMPS]
    if cash.state[page] == 0:
        discover(cash, page, 1.0 if cash.counts[UNIFORM] else 0.0)
    again = cash.state[page] & status & GONE
    if status == GONE or (status == BLOCKED and cash.link_set[page] == NO_LINK_SET):
        retire(cash, page, status)
        cash.state[page] = KNOWN | status
    elif status == KNOWN and cash.state[page] & OUT:
        settle(cash, page)
        cash.state[page] = KNOWN
        cash.totals[WEIGHTS] += cash.weight[page]
    moved = distribute(cash, page, targets, first, last)
    if status != BLOCKED:
        record_links(cash, page, links, moved)
    elif cash.state[page] == KNOWN:
        cash.totals[MISPLACED] += moved
    if again:
        forget_half(cash, page)
    changed = 0
    if changes.plan[POLICY] == GREEDY:
        recorded = changes.pages
        for link in range(first, last):
            recorded[changed] = targets[link]
            changed += 1
    changes.plan[CHANGED] = changed
    finish(cash, changes, page, known, jumps)


@kernel_without_refcounts
def redirect(cash: Cash, changes: PriorityChanges, page: int, target: int) -> None:
    """Account for a page that redirects to another one; record the changed priorities."""
    known, jumps = cash.counts[PAGES], cash.counts[JUMPS]
    for new in (page, target):
        if cash.state[new] == 0:
            discover(cash, new, 1.0 if cash.counts[UNIFORM] else 0.0)
    merge(cash, page, target)
    changes.pages[0] = target
    changes.plan[CHANGED] = 1 if changes.plan[POLICY] == GREEDY else 0
    finish(cash, changes, page, known, jumps)


@kernel_without_refcounts
def finish(cash: Cash, changes: PriorityChanges, page: int, known: int, jumps: int) -> None:
    """Record the page itself, discovered pages, pages that jumps gave to, and the page whose turn it is."""
    recorded, plan, order, counts, totals = changes.pages, changes.plan, cash.order, cash.counts, cash.totals
    changed, greedy, turn = plan[CHANGED], plan[POLICY] == GREEDY, False
    recorded[changed] = page
    changed += 1
    if greedy:  # discovered pages have received cash, so they are recorded
        given = (totals[BETA] - totals[BASE]) * totals[WEIGHTS]
        if counts[JUMPS] > jumps and (given > STALE or not counts[UNIFORM]):
            totals[BASE] = totals[BETA]
            for spot in range(counts[WEIGHTED]):
                recorded[changed] = order[spot]
                changed += 1
        if np.int64(changes.pace[FAIRNESS] * counts[FETCHES]) > plan[TURN]:
            recorded[changed] = order[plan[TURN] % counts[PAGES]]
            changed += 1
            plan[TURN] += 1
            turn = True
    else:
        for spot in range(known, counts[PAGES]):
            recorded[changed] = order[spot]
            changed += 1
        if plan[POLICY] == RANDOM:
            changes.pace[CLOCK] = max(changes.pace[CLOCK], changes.due[page])
    plan[CHANGED] = changed
    compute_priorities(cash, changes)
    if turn:
        changes.priorities[changed - 1] = inf


@kernel_without_refcounts
def compute_priorities(cash: Cash, changes: PriorityChanges) -> None:
    """Compute the priorities of the recorded pages."""
    recorded, priorities, plan, due = changes.pages, changes.priorities, changes.plan, changes.due
    held, weight, settled, state = cash.cash, cash.weight, cash.settled, cash.state
    beta = cash.totals[BETA]
    left_out = beta - cash.totals[BASE] if cash.counts[UNIFORM] else 0.0
    seed, clock, ticket, policy = changes.seed[0], changes.pace[CLOCK], plan[TICKET], plan[POLICY]
    for change in range(plan[CHANGED]):
        page = recorded[change]
        if policy == GREEDY:
            priorities[change] = held[page] - left_out
            if not state[page] & OUT:
                priorities[change] += weight[page] * (beta - settled[page])
        elif policy == CYCLE:
            ticket += 1
            priorities[change] = -float(ticket)
        else:
            ticket += 1
            due[page] = clock - log(random_unit(seed, ticket, 0))
            priorities[change] = -due[page]
    plan[TICKET] = ticket


@kernel_without_refcounts
def run_opic(cash: Cash, changes: PriorityChanges, rows: Rows, dead: BoolArray, queue: Queue, taken: IdArray) -> int:
    """Fetch `taken.size` pages, with repetition, and write their ids to `taken`.

    Returns the number of fetches: fewer if the queue is empty, or if the pool of pairs must grow first.
    """
    for done in range(taken.shape[0]):
        page = pop_best(queue)
        if page < 0:
            return done
        first, last = rows.start[page], rows.end[page]
        if lacks_pairs(cash.earnings, last - first + 2):
            set_priority(queue, page, inf)
            return done
        links = link_set_of(rows.targets, first, last)
        visit(cash, changes, page, rows.targets, (first, last), GONE if dead[page] else KNOWN, links)
        apply_changes(queue, changes)
        taken[done] = page
    return int(taken.shape[0])


@kernel_without_refcounts
def apply_changes(queue: Queue, changes: PriorityChanges) -> None:
    """Apply the recorded changes to a queue."""
    pages, priorities = changes.pages, changes.priorities
    for change in range(changes.plan[CHANGED]):
        set_priority(queue, pages[change], priorities[change])


@kernel_without_refcounts
def copy_queue(larger: Queue, queue: Queue) -> None:
    """Copy all pages of a queue to a larger one."""
    for page in range(queue.priority.shape[0]):
        if queue.before[page] != ABSENT:
            set_priority(larger, page, queue.priority[page])

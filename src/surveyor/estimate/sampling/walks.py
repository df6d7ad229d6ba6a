"""Each way to walk, in plain Python: what a live sample runs, and what the compiled walks are compared with.

A walk is a generator. It yields the pages that it needs, and goes on when they were read: that is one micro-step. A
step is written down whenever the walk stands on a page, be it that it came or that it stayed; the law of that page is
in proportion to what is written down beside it.

**Why the laws hold.** Between frozen pages links go both ways, so choosing a neighbour uniformly is as likely along a
link as against it, but for the degrees of the two ends. Staying after a refusal (`hard`), two hops by a page between
(`mixture`) and wandering with counted returns (`trial`) all keep that balance among the pages on topic, so each is
visited in proportion to its degree. `nonbacktracking` keeps it on links instead of pages, to the same end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field

from surveyor.estimate.sampling.ground import DEAD, ON, WalkGraph
from surveyor.estimate.sampling.walk_methods import Method, WalkPlan, method_named
from surveyor.kernels.random_walks import COIN_DRAW, JUMP_DRAW, random_below

Needs = Generator[list[int], None, None]
Row = tuple[int, int, int, bool, int]  # walk, segment, page, on topic, degree


@dataclass(slots=True)
class Walk:
    """One walk; `needs` runs it."""

    number: int
    start: int
    ground: WalkGraph
    plan: WalkPlan
    write: Callable[[Row], None]
    here: int = -1
    segment: int = 0
    lost: bool = False
    method: Method = field(init=False)
    reach: int = field(init=False)
    recent: deque[int | str] = field(init=False)
    last: dict[int | str, int] = field(default_factory=dict)  # the last page on each of the last hosts, latest last

    def __post_init__(self) -> None:
        self.method = method_named(self.plan.method)
        self.reach = self.method.reach if self.plan.reach is None else self.plan.reach
        self.recent = deque(maxlen=self.plan.window or 1)

    def needs(self) -> Iterator[list[int]]:
        """Walk; yield the pages that are needed for each micro-step."""
        unfocused = self.method.name == "webwalker"
        at, via = self.start, -1
        for _ in range(self.plan.patience + 1):
            yield [at]
            kind = self.ground.kind(at)
            if kind == ON or (unfocused and kind != DEAD):
                yield from getattr(self, "_" + self.method.name.replace("-", "_"))(at)
            via = via if kind == DEAD else at
            if via < 0 or not self.ground.freeze(via):
                break
            at = self._pick(via)
        self.lost = True

    def _webwalker(self, at: int) -> Needs:
        while True:
            if self.ground.kind(at) != DEAD:
                self._move(at)
            self._step()
            at = self._pick(self.here)
            yield [at]

    def _hard(self, at: int) -> Needs:
        while True:
            if self.ground.kind(at) == ON:
                self._move(at)
            self._step()
            at = self._pick(self.here)
            yield self._look(at)

    def _nonbacktracking(self, at: int) -> Needs:
        while True:
            before = at
            if self.ground.kind(at) == ON:
                before = self.here
                before = -1 if self._move(at) else before
            self._step()
            at = self._pick(self.here, but=before)
            yield self._look(at)

    def _mixture(self, at: int) -> Needs:
        while True:
            if self.ground.kind(at) == ON:
                self._move(at)
            while True:
                self._step()
                at = self._pick(self.here)
                if self._below(2, COIN_DRAW) == 0:
                    yield self._look(at)
                    break
                yield [at]
                between = at
                if self.ground.kind(between) == DEAD:
                    continue
                self.ground.freeze(between)
                for _ in range(self.reach):
                    at = self._pick(between)
                    yield self._look(at)
                    if self.ground.kind(at) == ON:
                        break
                break

    def _trial(self, at: int) -> Needs:
        counted = self.method.exact
        wanders = 0
        while True:
            kind = self.ground.kind(at)
            if kind == ON:
                self._move(at)
            if kind != ON and kind != DEAD and wanders < self.reach:
                self.ground.freeze(at)
                via, wanders = at, wanders + 1
            else:
                if kind == ON or counted:
                    self._step(None if counted else 1)
                via, wanders = self.here, 0
            at = self._pick(via)
            yield [at] if wanders < self.reach else self._look(at)

    _trial_paper = _trial

    def _hard_paper(self, at: int) -> Needs:
        while True:
            self._move(at)
            near = self.ground.freeze(self.here)
            yield [] if self.ground.free else near
            on = [other for other in near if self.ground.kind(other) == ON]
            degree = sum(self.ground.links_both_ways(self.here, other) for other in on)
            self._step(max(degree, 1))
            at = on[self._below(len(on), 0)] if on else self.here
            yield [at]

    def _neighbourhood_paper(self, at: int) -> Needs:
        ground, landed = self.ground, self.ground.landed
        while True:
            if at not in landed and ground.kind(at) != DEAD:
                ground.freeze(at)
                probes = [self._pick(at, index) for index in range(self.reach)]
                yield [] if ground.free else probes
                landed.setdefault(at, sum(ground.kind(probe) == ON for probe in probes))
            if landed.get(at, 0) or ground.kind(at) == ON:
                self._move(at)
                self._step(max(landed[self.here], 1))
            at = self._pick(self.here, self.reach)
            yield [at]

    def _below(self, count: int, index: int) -> int:
        """Return a random number below count."""
        return int(random_below(count, self.plan.rng, self.number, self.ground.round, index))

    def _pick(self, page: int, index: int = 0, but: int = -1) -> int:
        """Choose a neighbour of a frozen page, not `but` if there are others; a page without any is its own."""
        near = self.ground.lists[page]
        if but in near and len(near) > 1:
            place = self._below(len(near) - 1, index)
            return near[place + (place >= near.index(but))]
        return near[self._below(len(near), index)] if near else page

    def _look(self, page: int) -> list[int]:
        """Return what is needed to know a page's kind: nothing if its URL says that it is off topic."""
        return [] if self.ground.free and self.ground.kind(page) != ON else [page]

    def _step(self, degree: int | None = None) -> None:
        """Write down where the walk stands."""
        near = self.ground.freeze(self.here)
        on_topic = self.ground.kind(self.here) == ON
        self.write((self.number, self.segment, self.here, on_topic, degree or max(len(near), 1)))

    def _move(self, page: int) -> bool:
        """Go to a page; if its host had too many of the last moves, jump to another one instead and say so."""
        if page == self.here:
            return False
        if self.plan.window and self.ground.host is not None:
            host = self.ground.host(page)
            if 2 * (self.recent.count(host) + 1) > self.plan.window and len(self.last) > 1:
                latest_first = list(reversed(self.last.values()))
                self.here = latest_first[self._below(len(latest_first), JUMP_DRAW)]
                self.segment += 1
                return True
            self.recent.append(host)
            self.last.pop(host, None)
            if len(self.last) >= self.plan.hosts:
                self.last.pop(next(iter(self.last)))
            self.last[host] = page
        self.here = page
        return False

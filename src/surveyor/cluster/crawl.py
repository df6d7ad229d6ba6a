"""Run the shards of a crawl in Ray actors: start them, carry their messages, restart those that die.

Ray only starts processes and carries messages. What must not be lost is on disk before it is sent (`crawler/shards`),
so a call that is lost, repeated or late is harmless, and an actor that dies is started again and restores its shards
from their journals.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import surveyor
from surveyor.cluster.session import load_ray
from surveyor.crawler.shards.bounds import Report
from surveyor.crawler.shards.description import Shards
from surveyor.crawler.shards.director import Director, Orders
from surveyor.crawler.shards.prepare import driving
from surveyor.crawler.shards.worker import ShardWorker
from surveyor.crawler.sources.live import Connection
from surveyor.errors import SurveyError, SurveyorError, UsageError
from surveyor.store.directory import SurveyFolder

if TYPE_CHECKING:
    from surveyor.config import Settings
    from surveyor.crawler.session import Result
    from surveyor.stopping import Rule

TICK = 0.1  # seconds between two rounds of reports
ANSWER = 600.0  # seconds in which an actor must report; a large shard takes long to restore
STOP = 10.0  # seconds in which actors save, if no signal stops the crawl
UNLOCKED, LOOK_EVERY = 20.0, 0.2  # seconds for which a shard may stay locked; between two attempts to open it
MOST_RESTARTS = 20  # of one actor without a page fetched in between
Watch = Callable[[Director], None]


class ShardHost:
    """An actor that runs some of the shards."""

    def __init__(
        self, paths: Mapping[int, str], settings: Settings, resolver: Mapping[str, str] | None, version: str
    ) -> None:
        """Open and restore the shards, by number.

        `resolver` replaces the lookup of hosts, `version` is that of the driver.

        An error is raised by `follow`: one that is raised here is not distinguished from the death of the process.
        """
        self._held = ExitStack()
        self._places: dict[int, Any] = {}  # actor by shard
        self._connected = 0  # number of the call that set them
        self._tasks: list[asyncio.Task[None]] = []
        self._workers: dict[int, ShardWorker] = {}
        self._problem: SurveyorError | None = None
        found = None if resolver is None else FixedResolver(resolver)
        try:
            check_version(version)
            for shard, path in paths.items():
                opened = self._held.enter_context(_opened(Path(path)))
                connection = Connection(resolver=found)
                self._workers[shard] = ShardWorker(opened, settings, self._post, connection=connection)
        except SurveyorError as error:
            self._problem = error
            self._workers.clear()
            self._held.close()

    async def connect(self, number: int, places: dict[int, Any]) -> None:
        """Set the actors of the other shards, and start to crawl; Ray may run an earlier call, by number, later."""
        if number >= self._connected:
            self._connected, self._places = number, places
        if not self._tasks:
            self._tasks = [asyncio.create_task(worker.run()) for worker in self._workers.values()]

    async def receive(self, shard: int, message: bytes) -> None:
        """Accept a message for a shard."""
        self._workers[shard].receive(message)

    async def follow(self, orders: Orders) -> tuple[int, list[list[dict[str, Any]]]]:
        """Follow orders; return the id of this process, and the reports of each shard."""
        if self._problem is not None:
            raise self._problem
        for task in self._tasks:
            if task.done():
                task.result()  # raises what ended it
        found = [[report.to_dict() for report in worker.follow(orders)] for worker in self._workers.values()]
        return os.getpid(), found

    async def stop(self) -> None:
        """Stop and save all shards."""
        for worker in self._workers.values():
            worker.stopping.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._held.close()

    def _post(self, shard: int, message: bytes) -> None:
        """Send a message to a shard."""
        if shard in self._workers:
            asyncio.get_running_loop().call_soon(self._workers[shard].receive, message)
        elif shard in self._places:
            self._places[shard].receive.options(num_returns=0).remote(shard, message)


def check_version(other: str) -> None:
    """Reject another version of surveyor than that of this machine: it may place pages in other shards."""
    if other != surveyor.__version__:
        raise UsageError(
            f"{socket.gethostname()} has surveyor {surveyor.__version__}, and the machine of the command {other}",
            hint="install the same version on all machines (see `surveyor cluster doctor`)",
        )


def _opened(path: Path) -> SurveyFolder:
    """Open a shard; the process that this one replaces may hold its lock until it notices that its machine is gone."""
    end = time.monotonic() + UNLOCKED
    while True:
        try:
            return SurveyFolder.open(path)
        except SurveyError:
            if time.monotonic() > end:
                raise
            time.sleep(LOOK_EVERY)


class FixedResolver:
    """Hosts with fixed addresses."""

    def __init__(self, hosts: Mapping[str, str]) -> None:
        self._hosts = dict(hosts)

    async def resolve(self, host: str, port: int = 0) -> list[str]:  # noqa: ARG002  # protocol of resolvers
        """Return the address of a host."""
        if host.lower() not in self._hosts:
            raise socket.gaierror(socket.EAI_NONAME, f"no host {host}")
        return [self._hosts[host.lower()]]


def _cpus() -> float:
    """Return the number of CPUs of the cluster."""
    found: float = load_ray().cluster_resources().get("CPU", 1.0)
    return found


@dataclass(slots=True)
class ShardedRun:
    """A running sharded crawl."""

    shards: Shards
    settings: Settings
    until: Rule
    workers: int
    resolver: Mapping[str, str] | None = None
    restore: Callable[[], None] = lambda: None  # starts machines again that have died
    director: Director = field(init=False)
    restarts: int = 0
    processes: dict[int, int] = field(default_factory=dict)  # id of the process of each actor
    _orders: Orders = field(init=False)  # of this tick: for all actors, as they need the reports of all shards
    _hosts: list[Any] = field(default_factory=list)
    _failed: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def __post_init__(self) -> None:
        damping, fruitless = self.settings.damping, self.settings.max_fruitless
        self.director = Director(self.shards.count, self.until, damping, fruitless)
        self._orders = self.director.orders()

    async def run(self, watch: Watch = lambda _: None) -> Result:
        """Crawl until the rule is met or the task is cancelled; save in any case."""
        with driving(self.shards.folder):
            self.workers = max(1, min(self.workers, self.shards.count))
            self._hosts = [self._start(number) for number in range(self.workers)]
            try:
                await self._connect()
                return await self._crawl(watch)
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) is not None:
                    task.uncancel()
                return "interrupted"
            finally:
                await self._stop()

    def _shards_of(self, number: int) -> list[int]:
        return list(range(number, self.shards.count, self.workers))

    def _start(self, number: int, *, again: bool = False) -> Any:
        """Start an actor; one that is started again fits on the machines that are left, whatever these do."""
        cpus = 0 if again else max(0.01, min(1.0, _cpus() / self.workers))
        actor = load_ray().remote(ShardHost).options(num_cpus=cpus, max_restarts=0, scheduling_strategy="SPREAD")
        mine = {shard: str(self.shards.paths[shard].resolve()) for shard in self._shards_of(number)}
        return actor.remote(mine, self.settings, self.resolver, surveyor.__version__)

    async def _connect(self) -> None:
        places = {shard: self._hosts[shard % self.workers] for shard in range(self.shards.count)}
        for number, host in enumerate(self._hosts):
            mine = set(self._shards_of(number))
            others = {at: one for at, one in places.items() if at not in mine}
            host.connect.options(num_returns=0).remote(self.restarts, others)

    async def _crawl(self, watch: Watch) -> Result:
        polls = [asyncio.create_task(self._poll(number)) for number in range(self.workers)]
        try:
            while True:
                for poll in polls:
                    if poll.done():
                        poll.result()  # raises what ended it
                self._orders = self.director.orders()
                watch(self.director)
                if (ending := self.director.ending()) is not None:
                    return ending
                await asyncio.sleep(TICK)
        finally:
            for poll in polls:
                poll.cancel()

    async def _poll(self, number: int) -> None:
        """Get the reports of an actor again and again; start it again if it is dead."""
        while True:
            try:
                async with asyncio.timeout(ANSWER):
                    self.processes[number], found = await self._hosts[number].follow.remote(self._orders)
            except load_ray().exceptions.RayTaskError:
                raise  # by the shard itself
            except (load_ray().exceptions.RayError, TimeoutError) as error:
                self.director.ignore_best(self._shards_of(number))
                self._restart(number, error)
                await self._connect()
                continue
            self._failed[number] = 0
            for reports in found:
                self.director.update([Report.from_dict(values) for values in reports])
            await asyncio.sleep(TICK)

    def _restart(self, number: int, error: Exception) -> None:
        self._failed[number] += 1
        self.restarts += 1
        if self._failed[number] > MOST_RESTARTS:
            names = ", ".join(str(self.shards.paths[shard]) for shard in self._shards_of(number))
            raise SurveyError(
                f"the process of {names} ends again and again: {str(error).splitlines()[0][:200]}",
                hint=f"see {names}/crawl.log",
            ) from error
        with contextlib.suppress(load_ray().exceptions.RayError):
            load_ray().kill(self._hosts[number])
        self.restore()
        self._hosts[number] = self._start(number, again=True)

    async def _stop(self) -> None:
        """Stop all actors; one that does not answer is killed, which loses nothing that was committed."""
        with contextlib.suppress(TimeoutError, load_ray().exceptions.RayError):
            async with asyncio.timeout(STOP):
                await asyncio.gather(*(host.stop.remote() for host in self._hosts), return_exceptions=True)
        for host in self._hosts:
            with contextlib.suppress(load_ray().exceptions.RayError):
                load_ray().kill(host)

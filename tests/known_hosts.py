"""Hosts that are resolved and whose robots.txt is known."""

from __future__ import annotations

from surveyor.fetch.politeness.hosts import DAY, Hosts
from surveyor.web.robots import Robots

FREE = Robots.from_answer(404, b"")


def slow(seconds: float) -> Robots:
    return Robots.from_text(f"User-agent: *\nCrawl-delay: {seconds}".encode())


def known(hosts: Hosts, name: str, robots: Robots = FREE, address: str = "") -> int:
    """Add a host with an address and a robots.txt."""
    number = hosts.number(name)
    hosts.set_address(number, address)
    hosts.set_robots(number, f"http://{name}", robots, hosts.clock() + DAY)
    return number

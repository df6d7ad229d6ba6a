"""The processes that this one has started, and the addresses on which they listen, from /proc."""

from __future__ import annotations

import os
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import NamedTuple

from surveyor.cluster.session import Node, Session


class Socket(NamedTuple):
    pid: int
    command: str
    kind: str  # tcp, tcp6, udp or udp6
    address: IPv4Address | IPv6Address
    port: int


def descendants(root: int | None = None) -> dict[int, str]:
    """All processes below this one, with their command lines."""
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdecimal():
            try:
                state = (place / "stat").read_text().rpartition(")")[2].split()
                if state[0] != "Z":
                    parents[int(place.name)] = int(state[1])
                    commands[int(place.name)] = (place / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
    root = os.getpid() if root is None else root
    found, size = {root}, 0
    while len(found) > size:
        size = len(found)
        found |= {pid for pid, parent in parents.items() if parent in found}
    return {pid: commands[pid] for pid in found - {root}}


def listening(processes: dict[int, str]) -> list[Socket]:
    """The sockets of these processes on which anyone can reach them."""
    table = {}
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        path = Path("/proc/net") / kind
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            words = line.split()
            if kind.startswith("udp") or words[3] == "0A":
                text, _, port = words[1].partition(":")
                table[words[9]] = (kind, _address(text), int(port, 16))
    found = []
    for pid, command in processes.items():
        for file in (Path("/proc") / str(pid) / "fd").glob("*"):
            with suppress(OSError):
                inode = str(file.readlink()).removeprefix("socket:[").removesuffix("]")
                if inode in table:
                    found.append(Socket(pid, command, *table[inode]))
    return found


def _address(text: str) -> IPv4Address | IPv6Address:
    """An address of /proc/net: words of four bytes in the order of the machine."""
    data = b"".join(bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8))
    address = ip_address(data)
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


class OneNode:
    """A session of which only one machine is used."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def nodes(self) -> list[Node]:
        return self.session.nodes()[:1]

    def restore(self) -> None:
        self.session.restore()

"""The command line of surveyor with a resolver that knows only this machine; other hosts are not looked up.

python -m benchmarks.loopback_cli check http://127.0.0.1:8000/ --external
"""

from __future__ import annotations

import socket

from surveyor.cli import main
from surveyor.fetch import client

LOCAL = ("localhost", "127.0.0.1")


class LocalResolver:
    """Resolves names of this machine; the lookup of any other fails for now, so that its links are not judged."""

    async def resolve(self, host: str, port: int) -> list[str]:  # noqa: ARG002  # protocol of resolvers
        if host not in LOCAL:
            raise socket.gaierror(socket.EAI_AGAIN, "not looked up")
        return ["127.0.0.1"]

    def close(self) -> None:
        """Nothing is open."""


if __name__ == "__main__":
    vars(client)["SystemResolver"] = LocalResolver
    main()

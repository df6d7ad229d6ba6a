"""`surveyor serve`: a page over surveys on this machine."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output

PORT = 8700
NEEDED = ("starlette", "uvicorn", "jinja2")


@options.command(
    "serve",
    kernels=False,
    epilog="\b\nsurveyor serve --open\nsurveyor serve docs.example.org.survey --port 8700",
)
@click.argument("surveys", nargs=-1, type=click.Path(), metavar="[SURVEY]...")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help=f"Port to listen on; 0: any free one.  [{PORT}, or the next free one]",
)
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="Address to listen on; one that other machines reach needs a token.",
)
@click.option("--token", metavar="TEXT", help="Token that visitors need.  [none on this machine, else a new one]")
@options.flag("--open", "show", "Open the page in the browser.")
def command(
    output: Output, *, surveys: tuple[str, ...], port: int | None, host: str, token: str | None, show: bool
) -> int:
    """Serve a page over SURVEY..., or over the surveys of this folder, until Ctrl-C.

    The page starts crawls, follows and steers those that run, also in other terminals, and shows pages, hosts, findings
    and samples. It needs no network. It listens on this machine only; on another address a token is needed, and whoever
    has it can start crawls here. Crawls that were started from the page are saved and stopped with the server.
    """
    from surveyor.errors import MissingExtra

    for package in NEEDED:
        if find_spec(package) is None:
            raise MissingExtra("surveyor serve", package, "serve")
    from surveyor.serve.server import Place, serve

    def ready(url: str, token: str) -> None:
        output.object("serve", {"url": url, "token": token})
        output.line(f"{url}{f'?token={token}' if token else ''}")
        if token:
            output.info(f"Anyone on the network who has this address can start crawls here; listening on {host}.")
        output.info("Ctrl-C stops the page, and saves the crawls that were started from it.")
        if show:
            _show(output, f"{url}{f'?token={token}' if token else ''}")

    serve(Place(host, port, PORT, token), surveys, ready)
    return 0


def _show(output: Output, url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        output.warn(f"no browser found; open {url} in one")

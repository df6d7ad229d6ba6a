"""`surveyor demo`: a first look without a file or a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output

#: Names of the synthetic webs, kept here so that help needs no import; a test compares them with the presets.
PRESETS = ("small", "site", "web", "domains")


@options.command("demo", table=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default="surveyor-demo",
    show_default=True,
    metavar="DIR",
    help="Folder for graph and report.",
)
@click.option("--preset", type=click.Choice(PRESETS), default="small", show_default=True, help="Which web to make.")
@click.option("--rng", type=options.Whole(0), default=7, show_default=True, help="Seed of the web.")
@click.option("--fresh", is_flag=True, help="Make the web again, even if it is there.")
def command(output: Output, *, out: str, preset: str, rng: int, fresh: bool) -> int:
    """Make a web, rank it, explain its top page and write a report with two plots."""
    from surveyor.cli import explain, rank
    from surveyor.cli.pages import word_for
    from surveyor.cli.ranked import rank_graph

    folder = Path(out)
    path = folder / f"{preset}-{rng}.graph"
    if fresh or not path.exists():
        from surveyor.cli.graph_build import make_web

        folder.mkdir(parents=True, exist_ok=True)
        output.say(f"making a web ({preset}, rng {rng})")
        with output.progress() as progress:
            make_web(preset, str(path), rng=rng, replace=True, progress=progress)
    else:
        output.say(f"using the web in {path} (--fresh makes it again)")
    ranked = rank_graph(output, str(path))
    rank.show(output, "demo", ranked, 10)
    if output.mode == "text" and ranked.graph.pages:
        output.line()
        explain.show(output, ranked, int(ranked.ranking.top(1)[0]), 5)
    report = str(folder / "report.html")
    again = ["demo", "--preset", preset, "--rng", str(rng)]
    rank.write_html(output, ranked, report, title=f"A made-up web ({preset}, rng {rng})", again=again)
    second = word_for(ranked.graph, int(ranked.ranking.top(2)[-1]))
    output.next_steps({
        "why is the second second?": ["surveyor", "explain", str(path), second],
        "more of the list": ["surveyor", "top", str(path), "-n", "50"],
        "your own links": ["surveyor", "graph", "build", "links.txt", "my.graph"],
    })  # fmt: skip
    return ranked.exit_code

"""`surveyor top`: only the list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surveyor.cli import options

if TYPE_CHECKING:
    from surveyor.cli.output import Output


@options.command("top", table=True)
@options.graph_argument
@options.count(20, "Pages to list.")
@options.ranking
def command(output: Output, *, graph: str, count: int, **settings: Any) -> int:
    """List the best pages of GRAPH, a graph folder or any file of links.

    The graph is ranked afresh each time (100 million links take some seconds), so the list is never older
    than the graph. `surveyor rank --out` keeps all ranks in a file.
    """
    from surveyor.cli.rank import show
    from surveyor.cli.ranked import rank_graph

    ranked = rank_graph(output, graph, **settings)
    show(output, "top", ranked, count)
    return ranked.exit_code

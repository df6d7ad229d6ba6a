"""What NetworkX reads about the backend when it is imported: nothing else is loaded then."""

from __future__ import annotations

from typing import Any

NAME = "surveyor"
FUNCTIONS: dict[str, dict[str, Any]] = {
    "pagerank": {
        "additional_docs": "`tol` is the proven L1 distance to the exact ranks. Weights must not be negative.",
    },
    "harmonic_centrality": {"additional_docs": "Exact. Distances must not be negative."},
}


def get_info() -> dict[str, Any]:
    """Return what NetworkX shows about the backend."""
    return {
        "backend_name": NAME,
        "project": "surveyor",
        "package": "surveyor",
        "short_summary": "PageRank with a proven error, on all cores.",
        "functions": FUNCTIONS,
    }

"""Where pages come from: each source turns leased pages into outcomes."""

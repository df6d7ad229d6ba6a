"""Sources of pages: each turns leased pages into outcomes."""

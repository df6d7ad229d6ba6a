"""Full-text search of a survey: the index in `SURVEY/search/`, the ranking, and its results."""

"""Persistence of a survey: journal, checkpoints, WARC files and the survey folder."""

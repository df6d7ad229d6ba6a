"""Results as people read them: terminal tables, CSV, JSON and one HTML file with plots.

numbers   numbers in words, bounds rounded outward
pages     the top of a ranking, as rows
explained where one score comes from
graphs    what a graph holds
scores    all ranks as a file
tables    rows to the terminal and to CSV
svg       a figure that follows the colours of the page
plots     the figures of a ranking; race_plots: those of a race
page      what every HTML file is made of
html      the report of a ranking; race_html: that of a race; survey_html: that of a survey
census    hosts, answers and rules of a survey; surveys: its tables; mass_bar, survey_plots: its pictures
rules     which line of a robots.txt forbids a page
race      a race of strategies as tables
communities   the global rank of local pages in words and tables; community_files, community_plots, community_html
topics    how good a topic is, and which pages it means
column_files  columns as CSV or Parquet
"""

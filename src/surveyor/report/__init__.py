"""Results as people read them: terminal tables, CSV, JSON and one HTML file with plots.

numbers   numbers in words, bounds rounded outward
pages     the top of a ranking, as rows
explained where one score comes from
graphs    what a graph holds
scores    all ranks as a file
tables    rows to the terminal and to CSV
plots     two figures, as SVG that follows the colours of the page
html      the report
"""

"""Site audit: what to fix on a site, most important first.

`rules.py` is the table of rules. `page_facts.py` reads the archived body of each page once, `site.py` joins that with
the survey, `link_rules.py` and `page_rules.py` find the faults, and `audit.py` orders them.
"""

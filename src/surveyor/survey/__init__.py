"""The read side of a survey: tables, SQL, export, diff, URL status; and `sv.crawl`, which creates one."""

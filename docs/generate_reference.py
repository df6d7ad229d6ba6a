"""Generate the reference pages of commands, settings and addresses: `python docs/generate_reference.py`.

A test fails if a page is out of date.
"""

from __future__ import annotations

import ipaddress
from dataclasses import MISSING
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surveyor.check.rules import RULES
from surveyor.cli.lazy import LazyGroup, surveyor
from surveyor.config import FIELDS
from surveyor.fetch import special_addresses as special

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path("docs/reference")
HEAD = """\
# Commands

Generated from `surveyor COMMAND --help` by `python docs/generate_reference.py`.

Results go to stdout; progress, warnings and suggestions go to stderr. On a terminal progress is a bar;
elsewhere it is a line every ten seconds. With `--quiet` only results, warnings and errors are printed.

The exit code is 0 if the command did what was requested. A command with a goal returns 0 if any rule of the goal was
met (`--until coverage=0.9,pages=50` after 50 pages), and 3 if it ended for another reason.

| exit code | meaning |
|--:|---|
| 0 | done; for a command with a goal: one of its rules was met |
| 1 | a bug in surveyor, or a failed check of `doctor` |
| 2 | wrong usage or unreadable input |
| 3 | ended without reaching the goal; the results so far are printed and saved |
| 4 | a missing survey; a damaged, locked or newer graph or survey |
| 5 | nothing could be fetched |
| 130, 143 | interrupted by Ctrl-C or SIGTERM; the crawl or watch is saved |

| command | goal | exit code 3 |
|---|---|---|
| `crawl` | `--until` | no page was left to fetch before the goal was met, or too much mass is blocked |
| `sample` | `--until` | a limit was reached first, the walks ended, or a statistic could not be estimated |
| `community` | an estimate | no outside page could be fetched, and none was known before |
| `simulate` | `--until` | a strategy did not reach it |
| `rank`, `top`, `explain` | `--tolerance` | `--max-sweeps` was reached first |
| `check` | `--fail-on` | there is a finding of this severity or above |

`--json` prints one object; `watch` prints one per line, for each change and at the end. It always has `schema` (now 3;
increased when a field is removed or changes its meaning) and `command`. Everywhere, also in CSV,
Parquet and SQL, `id` is the number of a page and `url` its URL; `name` is the label of a node of a graph, and if it is
a URL, JSON has it as `url` too. `rank`, `top` and `explain` of a survey number the pages of the graph that they rank,
which has no pages that only redirect: join them with the tables of the survey by `url`.

| field | in | meaning |
|---|---|---|
| `survey` | `crawl`, `scout`, `status`, `report`, `demo` | the folder of the survey |
| `coverage` | the same, and `rank`, `top`, `explain` of a survey | `at_least`, `at_most`; and `captured`, `moving`, |
| | | `waiting`, `blocked`, `lost`, which sum to 1 |
| – `sampled` | `crawl`, `status`, `report`, `demo` | null without random walks, or: `at_least` (the larger of the |
| | | sampled and the certified lower bound), its `confidence`, `walks`, `finished` (of them), `epochs`, `fetches` |
| | | (pages that walks waited for) |
| `pages_fetched`, `pages_known`, `rng`, `seeds` | `crawl`, `status`, `report` | counts, random seed, seed URLs |
| `walks`, `finished`, `requests`, `damping` | `scout` | random walks, those that ended, requests, damping |
| `hosts`, `folders` | `scout` | each: `name`, `share`, `at_least`, `at_most`, `count`, `walks` |
| `broken_clicks`, `javascript` | `scout` | the same fields without `name` |
| `unseen` | `scout` | importance of pages that no walk visited: `estimate`, `at_most`, `confidence` |
| `size` | `scout` | `at_least`, `fetched`, `unfetched`, `sampled`, `pages` (of the sample), `is_complete`, `reason` |
| `sitemap_pages`, `sitemaps_unread` | `scout` | pages listed in the sitemaps read (null if there is none), |
| | | sitemaps that a limit left out |
| `forecasts`, `pages_per_second` | `scout` | each: `coverage`, `certified_pages`, `certified_hours`, `sampled_pages`, |
| | | `sampled_hours`, `reason`; null if there is no forecast |
| `pages` | `crawl`, `demo` | top pages: `url`, `share`, `score`, `in_links`, `fetched` (and `true_share`) |
| `goal`, `ending`, `reached` | `crawl` | the rule; reached, unreachable, exhausted, fruitless or |
| | | interrupted; whether the goal was reached |
| `unguarded` | `crawl`, `status` | null, or domains known only through single pages of a site that may take much |
| | | of a crawl (or a farm among them): `url` of the page through which most, `others` (such pages on its |
| | | site), `domains`, `pages` and `share` of the crawl that they may take together |
| `visits`, `bytes`, `settings` | `status` | outcomes, bytes received, settings in effect |
| `importance` | `status`, `top --importance` | of strategies `opic` and `adaptive`, else null: `method`, `error` |
| | | (bound on the L1 error, or null), `reason` (why there is no bound), `fetches`, `pages` |
| `pages` | `top --importance` | each: `url`, `share`, `fetches` |
| `links_by_scope` | `status --by-scope` | each: `where` (in scope, or the reason), `links`, `mass` |
| `blocked` | `status`, `top --blocked` | by `reason`: `mass`, `pages`; or by page: `url`, `mass`, `reason` |
| `report`, `bytes`, `plots` | `report` | path of the file, its size, whether it has plots |
| `settings` | `config show` | a list; each has `setting`, `value` (secrets are `***`), `origin` |
| `user_agent`, `files` | `config show` | the User-Agent (empty without a contact); files checked: `path`, `state` |
| `settings` | `config list` | a list; each has `setting`, `kind`, `default`, `flag`, `variable`, `example`, `meaning` |
| `path`, `settings` | `init` | the file written, and its settings |
| `true_coverage`, `inside`, `killed_after` | `demo` | the ground truth, whether it is between the bounds |
| `graph` | `graph`, `rank`, `top`, `explain`, `simulate` | the graph; in some commands an object of `path`, |
| | | `pages`, `links` |
| `source` | `graph convert` | the input |
| `pages`, `links`, `seconds` | `graph build`, `graph convert` | counts, and the time |
| `named`, `provenance` | `graph build`, `graph info` | whether pages have names; the source of the graph |
| `pages_without_out_links`, `pages_without_in_links` | `graph info` | counts |
| `mean_links`, `max_links`, `max_in_links` | `graph info` | of one page |
| `pieces`, `ghosts`, `largest_piece` | `graph split`, `graph info`, `graph build --pieces` | number of pieces, values |
| | | exchanged per sweep, `pages` and `links` of the largest piece |
| `bytes`, `verified` | `graph info` | size on disk; whether checksums were compared |
| `ranking` | `rank`, `top`, `explain` | an object: |
| – `damping`, `tolerance`, `teleport`, `dangling`, `solver` | | parameters; `teleport` is uniform or custom |
| – `error`, `reached` | | the proven error; whether it is at most `tolerance` |
| – `sweeps`, `seconds` | | passes over the links; time |
| – `cluster`, `recoveries` | | of a graph in pieces: the cluster, and how often workers were lost |
| `pages` | `rank`, `top` | a list; each page has `position`, `id`, `score`, `share`, |
| | | `in_links`, `out_links`, `name` (of a survey, also as `url`) |
| `near_ties` | `rank`, `top` | neighbours in this list, and at its end, whose order is not proven |
| `url`, `token` | `serve` | address of the page, and its token (empty on this machine) |
| `engine`, `columns`, `rows`, `seconds` | `sql` | the SQL engine and all rows; without a query `tables` |
| `query`, `rank`, `weight`, `total`, `indexed`, `visit`, `notes` | `search` | the query, the ranking, numbers |
| | | of matching and of indexed pages, the last visit indexed, what to know of the results |
| `words` | `search` | each: `word`, `pages` (that have it), `idf`, `instead_of` (a word that no page has) |
| `pages` | `search` | each: `position`, `id`, `url`, `title`, `score`, `language`, `fetched_at`, `copies` |
| | | (near-duplicates left out), `snippet`, `matches` (start and end in it), `explanation` |
| `files` | `export` | files written: `path`, `bytes` |
| `old`, `new`, `old_coverage`, `new_coverage` | `diff` | the two surveys |
| `since`, `visited`, `counts`, `changes` | `diff --since` | the time, pages visited since, number of each kind, pages |
| | | (`kind`, `url`, `at`, `importance`, `old_title`, `title`) |
| `differing`, `margin` | `diff` | settings that differ, which makes shares incomparable; error bound of a difference |
| `pages_in_both`, `best`, `overlap`, `kendall`, `l1` | `diff` | similarity of the rankings; |
| | | `overlap` is that of the top `best` pages |
| `counts`, `changes` | `diff` | by kind: number and pages (`url`, `old_share`, `new_share`, `old_position`, |
| | | `new_position`) |
| `url`, `final`, `robots`, `hops` | `try` | the requested URL, its redirects and the final URL |
| `kind`, `reason`, `again`, `fetched` | `try` | outcome in a crawl |
| `content_type`, `size`, `title`, `language`, `charset`, `canonical`, `directives` | `try` | the page |
| `scope`, `links`, `link_counts` | `try` | the scope; each link: `url`, `where`, `why` |
| `url_status` | `explain` of a survey | `kind`, `reason`, `rule`, `target`, `mass`, `queue_position`, … |
| `explanation` | `explain` | an object; all fractions are of the score of the page: |
| – `id`, `name`, `share`, `score`, `position`, `in_links` | | the page |
| – `path` | | a shortest path of links from a teleport page; empty if the teleport is uniform |
| – `templates` | | contributions of templates; each: `host`, `pages`, `fraction`, `shared_links` |
| – `links`, `other_pages`, `other_links`, `dangling`, `teleport` | | contributions of other links (each: `id`, |
| | | `name`, `fraction`, its `out_links`, its `links` to this page), of the other pages, of pages without links, |
| | | of jumps; with `templates` they sum to 1 |
| – `without_templates` | | the rank without the links of templates: `links` (removed), `share`, `error` (proven), |
| | | `position`, `best` and `worst` (proven); null if there are no templates |
| – `origins`, `other_origins` | | where the surfers who reached the page started; they sum to 1 |
| `graph`, `mode` | `domains` | an object of `path`, `domains`, `links`; "in memory" or "streamed" |
| `scores` | `domains` | for each score the parameters that reproduce it, its `error` and `confidence` |
| `domains` | `domains` | a list; each has `position`, `id`, `domain`, `score`, `low`, `high`, `in_links`, |
| | | `out_links`; with options `trust`, `popularity`, `spam_mass`, `pages` (its budget), `bad`, other scores |
| `certain_neighbours` | `domains` | neighbours in this list whose order has a confidence of 95 % or more (tse) |
| `top` | `domains` | with several scores: the names of the best domains by each |
| `bad_domains`, `spam` | `domains --blacklist` | bad domains in the graph; for each score `first_bad`, |
| | | `bad_among_first` (counts by rank), `area` (under these counts, as a fraction of the worst case) |
| `budget`, `budget_total` | `domains --budget` | the rule; the pages of all domains together |
| `compared`, `order_confidence` | `domains --compare` | two domains; confidence that the first has more supporters |
| `source`, `local`, `local_pages`, `requested`, `fetched` | `community` | the graph or survey, the rule, numbers of |
| | | local pages, requested pages and fetched pages |
| `ending` | `community` | complete, stable, exhausted, no_frontier or interrupted |
| `notes` | `community` | remarks, such as missing local pages |
| `select`, `damping`, `rng` | `community` | parameters |
| `rounds` | `community` | a list; each has `fetched`, `requested`, `change` (L1) and `seconds` |
| `estimator_requested`, `estimator`, `explanation`, `weights` | `community` | the estimate and its parts |
| `solver_error` | `community` | the proven error of the solver; no bound is known for the estimate |
| `distance`, `disagreement` | `community` | L1 distance from the local rank; of `crawled` from `frontier` |
| `impact` | `community --truth` | `fetched_share` of the impact of all outside pages, and `pages`: `id`, `name`, |
| | | `impact`, `round` in which it was fetched (0: before; null: not fetched) |
| `pages` | `community` | each: `id`, `name`, `position`, `share`, `local_position`, `local_share`, `change` |
| | | (positions gained), `true_share` |
| `movers` | `community` | outside pages: `id`, `name`, `flow` (rank sent), `change`, `error` (of `change`) |
| `explained` | `community --explain` | one of `pages`, with its `movers` and `local_links`: local `pages` that link |
| | | to it, their `links`, and `leaving`, the share of the rank that leaves the domain instead |
| `comparison` | `community --truth` | for each ranking `l1`, `l2`, `l_inf`, `kendall`, `weighted`, `overlap`, `ties` |
| `errors` | `community --truth` | L1 distance of `crawled` from the true rank at the start of each round |
| `topic`, `method`, `exact`, `location`, `walks`, `rng` | `sample` | the rule; whether the stationary distribution of |
| | | the method is known; what was sampled; parameters |
| `until`, `ending`, `reached` | `sample` | the goal, why the walks ended, whether the goal was reached |
| `steps`, `fetches`, `distinct_pages`, `precision` | `sample` | steps, requested pages, distinct pages on topic, and |
| | | their share of the requested pages |
| `estimates` | `sample` | each: `statistic`, `of`, `value`, `low`, `high`, `level`, `standard_error`, `ess` |
| | | (effective sample size), `steps`, `pages` (distinct), `walks`, `method`, `is_share` |
| `by`, `draws` | `sample` | by property: `labels` and `shares` (estimates); URLs drawn uniformly |
| `in_links` | `sample` | `source`; `reported` (share of in-links that it reports) and `neighbours` (share of |
| | | neighbours known): each `value`, `low`, `high`, `links`; `corrected`, `truncated`, `complete` |
| `diagnostics` | `sample` | by property `ess`, `rhat`, `geweke`; `steps`, `steps_on_topic`, `burn_in_steps`, `walks`, |
| | | `stuck`, `jumps`, `mean_degree_of_steps`, `mean_degree_of_pages`, `max_host_share`, `warnings` |
| `lost_walks`, `notes` | `sample` | walks that never found the topic; warnings |
| `topic`, `kind`, `trained`, `terms`, `digest` | `topic train` | path and kind of the model, numbers of training |
| | | pages, number of terms, hash of the parameters |
| `quality` | `topic train`, `topic test` | `true_positives`, `false_positives`, `false_negatives`, |
| | | `true_negatives`, `folds` of the cross-validation (0: none); `precision`, `recall`, `f1`, `accuracy`: each |
| | | `value`, `low`, `high`; null without labels |
| `positive_terms`, `negative_terms` | `topic train` | the terms with the largest weights for and against the topic |
| `topic`, `pages`, `on_topic` | `topic test` | the rule, and counts |
| `examples` | `topic test` | pages of each kind: `url`, `on_topic`, `label`, `title` |
| `seeds`, `seed_names`, `damping`, `rng`, `notes` | `simulate` | ids and names of the seeds, settings, other |
| | | conditions |
| `until`, `goal`, `reached` | `simulate` | the stopping rule, its coverage (or null), whether all reached it |
| `confidence` | `simulate` | of the goal, if it is sampled; else null |
| `truth_error` | `simulate` | proven error of the true importance |
| `optimal`, `optimal_curve` | `simulate` | fetches of the best possible order, by coverage ("0.5" to "0.98"); |
| | | and its true coverage (`true`) after a number of `fetches` |
| `runs` | `simulate` | a list; an object for each strategy: |
| – `strategy`, `reached`, `stop_reason`, `compiled` | | its name, whether it reached the goal, why it stopped |
| – `fetches`, `requests`, `pages` | | fetches; fetches plus failed requests; different pages fetched |
| – `importance_error` | | mean L1 error of estimated importance in the second half of the fetches, or null |
| – `coverage` | | at the end: `at_least`, `at_most`; and `captured`, `moving`, `waiting`, `blocked`, `lost`, |
| | | which sum to 1 |
| – `guaranteed`, `true` | | fetches until a coverage was guaranteed, and until it was true; null if never |
| – `sampled`, `walks` | | fetches until a coverage was sampled at `confidence`, or null; random walks started |
| – `ratio` | | the same three relative to the fetches of the best possible order |
| – `seconds`, `microseconds_per_page` | | time of ordering and bookkeeping |
| – `link_updates`, `link_updates_per_second` | | pushes of mass over a link |
| – `samples` | | accuracy of the estimates after some `fetches`: `l1` error, Kendall's `tau`, |
| | | `bound` on the error (or null) |
| – `curve` | | `at_least`, `at_most`, `sampled` (or null) and `true` coverage by `fetches`, at most 200 points |
| `event` | `watch` | what was found: changed, new, gone, redirected or back, with `at` (seconds since 1970), `url`, |
| | | `title`; or end |
| `ending` | `watch`, at the end | done, budget or interrupted |
| `rate`, `requests`, `bytes` | | requests per day; those sent, and bytes received |
| `found` | | number of pages by finding |
| `fresh`, `fresh_error` | | forecast share of importance that is fresh, and its standard error |
| `unavailable` | | pages that are gone or blocked |
| `lying` | | hosts that answer 304 for changed pages, with the reason |
| `started` | | seconds since 1970 |
| `healthy`, `machines`, `problems` | `cluster doctor` | each machine has `address`, `cpus`, `versions`, `memory` and |
| | | `disk` (bytes), `spill`, `clock` and `uncertainty` (seconds), `readable`; sentences |
| `healthy`, `checks` | `doctor` | each check has `name`, `value`, `fine` (whether it passed; null: not required) |
| `compiled` | `doctor --compile` | `folder`, `kernels` that are ready, `all_kernels`, `bytes`, `seconds` |

`score` is 100 · log(share / floor) / log(best / floor), with floor the smallest share of any page. It
compares pages of one graph only.

Compiled kernels are cached in `$XDG_CACHE_HOME/surveyor` (`~/.cache/surveyor`), or in `NUMBA_CACHE_DIR`.
`doctor --compile` compiles them in advance.
"""


SETTINGS = """\
# Settings of a crawl

Generated from the settings by `python docs/generate_reference.py`. The same name is an option (`--max-bytes`), a key of
`surveyor.toml` or of `[tool.surveyor]` in `pyproject.toml` (`max_bytes`), a variable (`SURVEYOR_MAX_BYTES`) and an
argument of `sv.crawl`. `surveyor config show` prints all values and their origins, `surveyor init` writes a file. Later
sources override earlier ones: defaults, the user's file (`~/.config/surveyor/config.toml`), the project's file,
variables, options. Unknown names are errors. `headers`, `auth` and `permission` are tables and can only be set in
files; `headers`, `auth`, `proxy` and `ca_file` are not stored in the survey. `surveyor crawl` without a URL starts
from `seeds`; a weight may follow each URL (`"https://example.org/ 5"`), except in the variable.

The project's file may come with a downloaded folder. Settings that widen access are used only after
`surveyor config trust`, which records the real path of the file in `~/.config/surveyor/trusted`:
`allow`, `permission`, `contact`, `proxy`,
`ca_file`, `headers`, `auth`, budgets in files, a `topic`, a `strategy` of the form `module:Class`; `delay`,
`domain_delay` and `backoff` below the default; `max_delay`, `max_wait`, `timeout`, `max_bytes`, `concurrency` and
`max_fruitless` above it. `surveyor init` trusts the file it writes. All other settings and values need no trust, and
`surveyor config show` prints the origin of each value. A resumed survey has its own rules
([surveys from elsewhere](surveys.md#from-elsewhere)).

| setting | default | example | meaning |
|---|---|---|---|
"""

ADDRESSES = """# Addresses that are not connected to

A page is free to link or redirect to any address, also to one inside the network that the crawler runs in. surveyor
therefore looks up each host once, checks every address that it got, and connects to those addresses only. One refused
address among several refuses the host. This page is made from `surveyor.fetch.special_addresses`.

What permits such a host:

- `--allow HOST` or `--allow HOST:PORT`, also `allow` in the user's own configuration;
- **a seed URL on the command line** (or an argument of `sv.crawl` and `sv.preview`) whose host is spelled as a
  loopback or private address, or as `localhost`: `surveyor http://localhost:8000/`. It permits that host and that port,
  no others. Cloud agents, link-local and other addresses are not permitted by being named, nor are seeds from a file, a
  sitemap or a survey; nor is a name such as `wiki.example.org` that resolves to a private address. The survey stores
  the permission in its settings (`allow`, origin `seed`).

**Behind a proxy** it is the proxy that connects. surveyor checks what it can: hosts that are addresses, `localhost`,
the names below, and every address to which the host resolves *here*. A host that does not resolve here within
2 seconds is left to the proxy. Hosts below `.test`, `.example` and `.invalid` are never looked up for this (RFC 6761).
The proxy itself is the user's choice, and its address is not checked.
"""


RULES_HEAD = """\
# Rules of `surveyor check`

Generated from `surveyor/check/rules.py` by `python docs/generate_reference.py`.

`surveyor check URL` crawls a site with its sitemaps and reports what to fix; `surveyor check SURVEY` checks a survey
without a request. Findings are ordered by severity, then by importance: the share of all importance (PageRank with
jumps to the seeds) that the pages with the fault hold together.

- With a SURVEY, options of the crawl (`--until`, `--scope`, `--include`, `--exclude`, `--fresh`, `--out`) are wrong
  (exit code 2), and so are `--delay`, `--allow` and `--backoff` if nothing is requested. A folder or file that is not a
  survey has exit code 4.
- `--rule` and `--without` select rules. `--fail-on` sets the least severity that gives exit code 3.
- The table `[check]` of `surveyor.toml` switches rules: `thin-page = "off"`, or another severity, as in
  `redirected-link = "warning"`. A rule that `--rule` names applies even if it is off there.
- `--baseline FILE` leaves out the findings of an earlier `--json`, `--since SURVEY` those of an earlier survey of the
  site, judged by the same rules. `--fresh` crawls a site again into a new survey.
- Findings are matched by `fingerprint`: the rule and the URL, or what the pages of a group share (a title, a
  description; of near-duplicates their first URL in alphabetical order). Neither the ranking nor the order of the crawl
  changes it, and one more page with a known fault is not a new finding.
- While a site is crawled, the first broken links are printed as they are found. Ctrl-C ends the crawl: what was
  fetched is checked without further requests, the exit code is 130, and the same command resumes.
- Pages of which only a part was received (too large, interrupted, broken encoding) are named. What the missing part
  may hold, such as a fragment, a heading or links to an *orphan*, is not judged.
- `--html`, `--sarif`, `--junit` write files; `--github` prints annotations. `--map PREFIX=FOLDER` names the source
  folder of a URL prefix, `--map 'https://docs.example.org/*.html=docs/*.md'` that of pages with a suffix.
- The line of a link is that of the archived body. Anchor text and position are those of the [journal](surveys.md).
- A link that at least ten pages have with the same text in the same position is reported as one of a template.
- `--external` requests the external links, `--resources` the images, styles and scripts of the site, the files that
  style sheets name, and linked files such as `.pdf` or `.json`, which a crawl does not request (reported as
  `broken-link`): by HEAD, then by GET if HEAD fails, each URL once, at most `--most` of each kind, the most important
  ones. robots.txt and crawl delays apply; URLs that robots.txt or the server refuses (401, 403, 407, 429) are not
  judged.
- Answers of external sites are kept in the survey (`answers.json`) and used again for `--max-age` hours.
- Certificates are read by one HEAD request for each host of the site, if `check` crawled it or with `--certificates`;
  behind a proxy they are not known.
- *bodies* marks rules that need the archived bodies (setting `archive`, on by default); *complete* marks rules that are
  judged only if no page is queued, needs JavaScript, or is blocked and may hold links. Rules that were not judged are
  listed with the reason.
- For *orphan* every link counts, also by nofollow, from pages with another canonical URL, and beyond `--depth`. If
  pages of the site that `--exclude`, `--include` or `--depth` leave out are linked and may hold links, the rule is not
  judged unless each listed page has a link. Pages that only nofollow links lead to and that were not read are counted
  in the message.
- A sitemap that cannot be read is a `sitemap-error`. *orphan* is then judged only for the pages in the other ones, and
  not judged if they have none.

`--json` has `survey`, `coverage`, `pages_fetched`, `pages_queued`, `pages_blocked`, `pages_not_archived`,
`pages_archived_in_part` with the first of them in `archived_in_part`, `interrupted` (by Ctrl-C), `counts` by
severity, `known` (findings of the baseline), `rules` (number of findings by rule), `skipped` (rules not judged:
reason) and `findings`: each `rule`, `severity`, `url`, `message`, `weight`, `pages` (number of pages with the fault),
`template` (position, or empty), `fingerprint` and at most 20 `sources`, most important first: `url`, `share`, `line`
(0 if unknown), `text`, `element`, `position`, `rel`.

| rule | severity | what | why | fix | needs |
|---|---|---|---|---|---|
"""


def rules_reference() -> str:
    """Return the reference of the rules of an audit."""
    rows = []
    for rule in RULES.values():
        needs = [name for name, needed in (("bodies", rule.needs_bodies), ("complete", rule.needs_complete)) if needed]
        needs += [f"`{rule.needs_requests}`"] if rule.needs_requests else []
        rows.append(f"| `{rule.id}` | {rule.severity} | {rule.what} | {rule.why} | {rule.fix} | {', '.join(needs)} |\n")
    return RULES_HEAD + "".join(rows).replace("<meta name=description>", "`<meta name=description>`").replace(
        "<h1>", "`<h1>`"
    )


def settings_reference() -> str:
    """Return the page of settings."""
    rows = []
    for name, field in FIELDS.items():
        default = "" if isinstance(field.default, type(MISSING)) or field.default in (None, "", ()) else field.default
        example = str(field.metadata["example"]).replace("|", "\\|")
        rows.append(f"| `{name}` | {default} | `{example}` | {field.metadata['help']} |")
    return SETTINGS + "\n".join(rows) + "\n"


def reference() -> str:
    """Return the page of commands."""
    return "\n".join([HEAD, *_entries(surveyor, "surveyor", None)])


def _entries(command: click.Command, path: str, parent: click.Context | None) -> Iterator[str]:
    settings = {**command.context_settings, "terminal_width": 100, "color": False}
    context = click.Context(command, parent, path.split(" ")[-1], **settings)
    yield f"## {path}\n\n```text\n{command.get_help(context).strip()}\n```\n"
    if isinstance(command, LazyGroup):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None:
                yield from _entries(child, f"{path} {name}", context)


def addresses_reference() -> str:
    """Return the page of addresses."""
    rows = "| block | refused | kind | name | source |\n|---|---|---|---|---|\n"
    four, six = (
        rows + "".join(f"| `{b.network}` | {_refused(b)} | {b.kind} | {b.name} | {b.source} |\n" for b in blocks)
        for blocks in (special.IPV4, special.IPV6)
    )
    clouds = "".join(f"| `{block.network}` | {block.name} | {block.source} |\n" for block in special.CLOUDS)
    names = "".join(f"| `{name}` | {cloud} |\n" for name, cloud in special.METADATA_NAMES.items())
    return (
        f"{ADDRESSES}\n## IPv4 (IANA special-purpose and multicast registries)\n\n{four}"
        f"\n## IPv6 (IANA special-purpose and multicast registries)\n\n{six}"
        f"\nAll addresses outside `{special.GLOBAL_6}` are refused, listed or not, except NAT64. Addresses that hold "
        "an IPv4 address (NAT64, ISATAP) are refused if that one is.\n"
        f"\n## Agents of clouds\n\n| address | what it is | cloud |\n|---|---|---|\n{clouds}"
        f"\n## Names of metadata services\n\n| name | cloud |\n|---|---|\n{names}"
    )


def _refused(block: special.Block) -> str:
    if not block.reachable:
        return "yes"
    network = ipaddress.ip_network(block.network)
    return "yes, with the block around it" if _around(network) else "no"


def _around(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    others = (ipaddress.ip_network(block.network) for block in (*special.IPV4, *special.IPV6) if not block.reachable)
    return any(type(other) is type(network) and network.subnet_of(other) for other in others)  # type: ignore[arg-type]


if __name__ == "__main__":
    (FOLDER / "commands.md").write_text(reference(), "utf-8")
    (FOLDER / "settings.md").write_text(settings_reference(), "utf-8")
    (FOLDER / "addresses.md").write_text(addresses_reference(), "utf-8")
    (FOLDER / "check.md").write_text(rules_reference(), "utf-8")

"""The local domains of the tables: some of `local_domains`, selected by name, and some of a large synthetic web.

The real ones are sites and parts of sites, small and large, with many or few links to outside pages, and topics. The
synthetic web is the preset `web` with more pages; no estimator was tuned on it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from experiments import local_domains
from experiments.local_domains import Domain
from surveyor.arrays import FloatArray, IdArray
from surveyor.graph.csr import Graph
from surveyor.graph.synthetic.generate import PRESETS, SyntheticWeb, synthetic_web
from surveyor.rank.pagerank import pagerank

DAMPING = 0.85
TRUTH = 1e-10  # L1 error of the true ranks
SEED = 29  # of the synthetic web
SITES, TOPICS = (0.003, 0.0075, 0.015), (0.005, 0.01, 0.02)  # sizes of synthetic domains, as shares of the web
CHOSEN = (
    "debian:python3.11-doc",
    "debian:erlang-doc",
    "debian:installation-guide-amd64",
    "debian:cmake-doc",
    "debian:linux-doc-6.1",
    "debian:debian-handbook",
    "debian:python-pandas-doc",
    "debian:sagemath-doc",
    "debian:python-statsmodels-doc",
    "debian:petsc3.18-doc",
    "hollins:http://www.hollins.edu",
    "hollins:http://www1.hollins.edu/Docs",
    "hollins:http://www1.hollins.edu/classes/dance",
    "cnr:49503-50476",
    "cnr:212169-213137",
    "cnr:0-5543",
    "cnr:118554-124802",
    "cnr:170757-181201",
    "cnr:306524-317493",
    "polblogs:conservative",
    "polblogs:liberal",
    "wiki:People",
    "wiki:Geography",
    "wiki:Science",
    "wiki:Citizenship",
    "debtopic:web",
    "debtopic:pyweb",
    "debtopic:db",
    "debtopic:sphinxy",
    "debword:matrix",
)

Kind = Literal["site", "topic"]


@dataclass(frozen=True, eq=False)
class Web:
    """A web whose true ranks are known, and local domains in it."""

    name: str
    graph: Graph
    domains: tuple[Domain, ...]
    synthetic: bool = False

    @cached_property
    def ranks(self) -> FloatArray:
        """The PageRank of the whole web."""
        return pagerank(self.graph, DAMPING, TRUTH).scores

    def truth(self, domain: Domain) -> FloatArray:
        """Return the true ranks of local pages, summing to 1."""
        ranks = self.ranks[domain.pages]
        return np.asarray(ranks / ranks.sum())


def kind_of(domain: Domain) -> Kind:
    """Return the table of the paper that a domain belongs to; parts of a site count as sites."""
    return "topic" if domain.family == "topic" else "site"


def real(data: Path) -> Iterator[Web]:
    """Yield the real webs in a folder, with the selected domains."""
    webs = 0
    for name, graph, domains in local_domains.real(data):
        webs += 1
        yield Web(name, graph, tuple(one for one in domains if one.name in CHOSEN))
    if not webs:
        say(f"no real graphs in {data}: only a synthetic web is used")


def synthetic(pages: int, seed: int = SEED) -> Web:
    """Generate a web and select sites and topics of several sizes."""
    web = synthetic_web(replace(PRESETS["web"], pages=pages), rng=seed, names=False)
    rng = np.random.default_rng(seed)
    sizes, domains = np.diff(web.first_page), list[Domain]()
    left = np.arange(sizes.size)
    for share in SITES:
        site = int(left[np.argmin(np.abs(sizes[left] - share * pages))])
        left = left[left != site]
        local = np.arange(web.first_page[site], web.first_page[site + 1], dtype=np.int32)
        domains.append(Domain(f"made:site{site}", "site", local, fresh=True))
    whole = np.bincount(web.site_topic, weights=sizes)
    for share in TOPICS:
        topic = int(rng.choice(np.flatnonzero(whole >= min(share * pages, whole.max()))))
        whole[topic] = 0.0  # once is enough
        domains.append(Domain(f"made:topic{topic}", "topic", _subject(web, topic, int(share * pages), rng), fresh=True))
    return Web("synthetic web", web.graph, tuple(domains), synthetic=True)


def say(text: str) -> None:
    """Talk, beside the tables."""
    print(text, file=sys.stderr, flush=True)


def _subject(web: SyntheticWeb, topic: int, most: int, rng: np.random.Generator) -> IdArray:
    """Select random sites of a topic, as a directory would list some of them, up to a number of pages."""
    sizes, parts = np.diff(web.first_page), list[IdArray]()
    sites = np.flatnonzero(web.site_topic == topic)
    left = max(most, int(sizes[sites].min()))
    for site in rng.permutation(sites):
        if sizes[site] <= left:
            parts.append(np.arange(web.first_page[site], web.first_page[site + 1], dtype=np.int32))
            left -= int(sizes[site])
    return np.sort(np.concatenate(parts))

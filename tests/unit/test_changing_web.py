"""A web that changes stays sound, keeps its shape, and changes at the given rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surveyor import Graph
from surveyor.crawler.sources.graph import ChangingWeb
from surveyor.errors import UsageError
from webs import graphs, random_web


@settings(deadline=None, max_examples=60)
@given(graphs(), st.floats(0, 1), st.floats(0, 0.5), st.floats(0, 0.5), st.integers(0, 99))
def test_a_changing_web_stays_sound(graph: Graph, changed: float, born: float, died: float, seed: int) -> None:
    web = ChangingWeb(graph, np.random.default_rng(seed), changed, born, died)
    for _ in range(4):
        rows = [web.links_of(page).copy() for page in range(web.pages)]
        dead = web.dead.copy()
        touched = web.step()
        assert web.rows.start.size == web.rows.end.size == web.dead.size == web.pages
        for page in range(web.pages):
            links = web.links_of(page)
            assert len(set(links.tolist())) == links.size
            assert page not in links
            assert not (web.dead[page] and links.size)
            if page < len(rows) and page not in touched:
                assert np.array_equal(rows[page], links)
            if page < len(rows) and not web.dead[page]:
                assert links.size <= rows[page].size
        assert web.dead[: dead.size][dead].all()
        assert web.graph().links == sum(web.links_of(page).size for page in range(web.pages))


def test_a_changing_web_changes_at_the_given_rates() -> None:
    graph = random_web(2000, 16_000, 1)
    web = ChangingWeb(graph, np.random.default_rng(3), changed=0.1, born=0.02, died=0.03)
    with pytest.raises(UsageError):
        ChangingWeb(graph, np.random.default_rng(3), changed=1.5)
    touched = web.step()
    assert web.pages == 2040
    assert web.dead.sum() == 60
    linking = int((graph.out_degrees > 0).sum())
    assert 0.1 * linking - 20 < touched.size < 0.1 * linking + 60 + 40 + 80
    assert web.graph().out_degrees[:2000].sum() == pytest.approx(graph.links, rel=0.04)
    assert (web.graph().in_links.degrees()[2000:] >= 1).all()
    kept_in = np.corrcoef(graph.in_links.degrees(), web.graph().in_links.degrees()[:2000])[0, 1]
    assert kept_in > 0.9
    other = ChangingWeb(graph, np.random.default_rng(3), changed=0.1, born=0.02, died=0.03)
    other.step()
    assert other.graph() == web.graph()


def test_births_keep_the_number_of_links_per_page() -> None:
    web = ChangingWeb(random_web(2_000, 16_000, 3), np.random.default_rng(1), changed=0.0, born=0.05)
    before = web.graph().out_degrees.mean()
    for _ in range(20):
        web.step()
    assert web.pages > 5_000
    assert web.graph().out_degrees.mean() == pytest.approx(before, rel=0.15)

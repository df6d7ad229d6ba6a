"""The BVGraph reader against an encoder that is slow and obvious."""

from __future__ import annotations

import gzip
from contextlib import suppress
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from surveyor.errors import InputError
from surveyor.graph.csr import Graph
from surveyor.graph.formats import build_graph, detect, read_graph
from surveyor.graph.formats import bvgraph as reader

Lists = list[list[int]]


def unary(x: int) -> str:
    return "0" * x + "1"


def gamma(x: int) -> str:
    bits = f"{x + 1:b}"
    return unary(len(bits) - 1) + bits[1:]


def delta(x: int) -> str:
    bits = f"{x + 1:b}"
    return gamma(len(bits) - 1) + bits[1:]


def zeta(x: int, k: int) -> str:
    block = ((x + 1).bit_length() - 1) // k
    least = 1 << (block * k)
    rest, values = x + 1 - least, (least << k) - least
    size = (values - 1).bit_length()
    short = (1 << size) - values  # so many of the values take one bit less
    coded = f"{rest:0{size}b}"[1:] if rest < short else f"{rest + short:0{size}b}"
    return unary(block) + (coded if size else "")


def nibble(x: int) -> str:
    groups = [x & 7]
    while x := x >> 3:
        groups.insert(0, x & 7)
    return "".join(f"{int(place == len(groups) - 1)}{group:03b}" for place, group in enumerate(groups))


def folded(x: int) -> int:
    return 2 * x if x >= 0 else -2 * x - 1


class Encoder:
    """Writes lists of successors; the choice of references is drawn, not searched for."""

    def __init__(self, flags: dict[str, str], k: int, window: int, interval: int) -> None:
        self.flags, self.k, self.window, self.interval = flags, k, window, interval

    def code(self, what: str, x: int) -> str:
        kind = self.flags[what]
        return zeta(x, self.k) if kind == "ZETA" else globals()[kind.lower()](x)

    def graph(self, lists: Lists, references: list[int]) -> str:
        return "".join(self.row(page, lists, references[page]) for page in range(len(lists)))

    def row(self, page: int, lists: Lists, reference: int) -> str:
        row = lists[page]
        out = self.code("OUTDEGREES", len(row))
        if not row:
            return out
        extra = row
        if self.window:
            back = reference % (min(self.window, page) + 1)
            out += self.code("REFERENCES", back)
            if back:
                model = lists[page - back]
                out += self.copied(model, row)
                extra = [link for link in row if link not in model]
        return out + (self.rest(page, extra) if extra else "")

    def copied(self, model: list[int], row: list[int]) -> str:
        blocks, taking = [0], True
        for link in model:
            if (link in row) != taking:
                blocks.append(0)
                taking = not taking
            blocks[-1] += 1
        blocks.pop()  # the last run follows from the number of blocks
        out = self.code("BLOCK_COUNT", len(blocks))
        return out + "".join(self.code("BLOCKS", size - (place > 0)) for place, size in enumerate(blocks))

    def rest(self, page: int, extra: list[int]) -> str:
        runs: list[list[int]] = []
        for link in extra:
            if runs and link == runs[-1][-1] + 1:
                runs[-1].append(link)
            else:
                runs.append([link])
        out, residuals = "", extra
        if self.interval:
            intervals = [run for run in runs if len(run) >= self.interval]
            residuals = [link for run in runs if len(run) < self.interval for link in run]
            out += gamma(len(intervals))
            right = 0
            for place, run in enumerate(intervals):
                out += gamma(folded(run[0] - page) if place == 0 else run[0] - right - 1)
                out += gamma(len(run) - self.interval)
                right = run[-1] + 1
        for place, link in enumerate(residuals):
            out += self.code("RESIDUALS", folded(link - page) if place == 0 else link - residuals[place - 1] - 1)
        return out


def save(base: Path, lists: Lists, references: list[int], encoder: Encoder) -> Path:
    bits = encoder.graph(lists, references)
    bits += "0" * (-len(bits) % 8)
    base.with_suffix(".graph").write_bytes(bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)))
    flags = "|".join(f"{part}_{code}" for part, code in encoder.flags.items())
    base.with_suffix(".properties").write_text(
        f"#BVGraph properties\nnodes={len(lists)}\narcs={sum(map(len, lists))}\nzetak = {encoder.k}\n"
        f"windowsize={encoder.window}\nminintervallength={encoder.interval}\ncompressionflags={flags}\n"
        "graphclass=it.unimi.dsi.webgraph.BVGraph\nversion=0\n"
    )
    return base


DEFAULT = {
    "OUTDEGREES": "GAMMA",
    "REFERENCES": "UNARY",
    "BLOCK_COUNT": "GAMMA",
    "BLOCKS": "GAMMA",
    "RESIDUALS": "ZETA",
}
small = st.sampled_from(["UNARY", "GAMMA", "DELTA"])
encoders = st.builds(
    Encoder,
    st.fixed_dictionaries(
        {
            "OUTDEGREES": st.sampled_from(["GAMMA", "DELTA"]),
            "REFERENCES": small,
            "BLOCK_COUNT": small,
            "BLOCKS": small,
            "RESIDUALS": st.sampled_from(["GAMMA", "DELTA", "ZETA", "NIBBLE"]),
        }
    ),
    k=st.integers(1, 7),
    window=st.integers(0, 7),
    interval=st.integers(0, 4),
)


@st.composite
def graphs(draw: st.DrawFn) -> Lists:
    pages = draw(st.integers(0, 40))
    rows = st.sets(st.integers(0, max(pages - 1, 0)), max_size=pages)
    return [sorted(draw(rows)) for _ in range(pages)]


quick = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def expected(lists: Lists) -> Graph:
    links = np.array([(page, link) for page, row in enumerate(lists) for link in row], np.int64).reshape(-1, 2)
    return Graph.from_arrays(links[:, 0], links[:, 1], len(lists))


@quick
@given(lists=graphs(), encoder=encoders, data=st.data())
@pytest.mark.slow
def test_what_is_encoded_is_decoded(tmp_path: Path, lists: Lists, encoder: Encoder, data: st.DataObject) -> None:
    references = data.draw(st.lists(st.integers(0, 9), min_size=len(lists), max_size=len(lists)))
    assert read_graph(save(tmp_path / "g", lists, references, encoder)) == expected(lists)


@quick
@given(lists=graphs(), encoder=encoders, data=st.data())
def test_damage_is_rejected_or_harmless(tmp_path: Path, lists: Lists, encoder: Encoder, data: st.DataObject) -> None:
    base = save(tmp_path / "g", lists, [1] * len(lists), encoder)
    stream = bytearray(base.with_suffix(".graph").read_bytes())
    if not stream:
        return
    if data.draw(st.booleans()):
        stream = stream[: data.draw(st.integers(0, len(stream) - 1))]
    else:
        stream[data.draw(st.integers(0, len(stream) - 1))] ^= data.draw(st.integers(1, 255))
    base.with_suffix(".graph").write_bytes(stream)
    with suppress(InputError):
        assert read_graph(base).pages == len(lists)


def a_web(pages: int) -> Lists:
    rng = np.random.default_rng(3)
    lists: Lists = []
    for page in range(pages):
        near = set(range(page, min(page + int(rng.integers(0, 9)), pages)))
        far = set(rng.integers(0, pages, int(rng.integers(0, 5))).tolist())
        copied = set(lists[-1]) if lists and page % 5 else set()
        lists.append(sorted(near | far | copied))
    return lists


def test_blocks_of_rows_and_growing_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lists = a_web(400)
    base = save(tmp_path / "g", lists, [1] * 400, Encoder(DEFAULT, 3, 7, 4))
    for rows, links in ((1, 1), (3, 50), (1000, 8)):
        monkeypatch.setattr(reader, "ROWS_AT_ONCE", rows)
        monkeypatch.setattr(reader, "LINKS_AT_ONCE", links)
        assert read_graph(base) == expected(lists)


def test_its_files_and_names(tmp_path: Path) -> None:
    lists = a_web(30)
    base = save(tmp_path / "g", lists, [0] * 30, Encoder(DEFAULT, 3, 7, 4))
    for path in (base, base.with_suffix(".graph"), base.with_suffix(".properties")):
        assert detect(path).name == "bvgraph"
    assert build_graph(base, tmp_path / "built", memory=1 << 16) == expected(lists)
    urls = [f"http://example.com/{page}/é" for page in range(30)]
    (tmp_path / "g.urls.gz").write_bytes(gzip.compress("\n".join(urls).encode()))
    graph = read_graph(base)
    assert graph.names is not None
    assert list(graph.names) == urls
    (tmp_path / "g.urls.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    with pytest.raises(InputError, match="2 lines but the graph has 30 pages"):
        read_graph(base)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("arcs=", "arcs=9", "links, but g.properties states"),
        ("BVGraph\n", "EFGraph\n", "describes a it.unimi.dsi.webgraph.EFGraph"),
        ("RESIDUALS_ZETA", "RESIDUALS_GOLOMB", "unknown code RESIDUALS_GOLOMB"),
        ("nodes=", "knots=", "does not describe a BVGraph"),
        ("zetak = 3", "zetak = 99", "does not describe"),
        ("windowsize=7", "windowsize=99999999999", "does not describe"),
        ("minintervallength=4", "minintervallength=99999999999999999999", "does not describe"),
        ("version=0", "endianness=little", "little-endian"),
    ],
)
def test_descriptions_that_do_not_fit(tmp_path: Path, old: str, new: str, message: str) -> None:
    base = save(tmp_path / "g", a_web(20), [0] * 20, Encoder(DEFAULT, 3, 7, 4))
    properties = base.with_suffix(".properties")
    text = properties.read_text()
    assert text.count(old) >= 1
    properties.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_graph(base)
    properties.unlink()
    with pytest.raises(InputError, match=r"g\.properties is missing"):
        read_graph(base)


def test_codes_by_hand() -> None:
    assert [gamma(x) for x in range(4)] == ["1", "010", "011", "00100"]
    assert [delta(x) for x in range(4)] == ["1", "0100", "0101", "01100"]
    assert [zeta(x, 3) for x in (0, 1, 6, 7)] == ["100", "1010", "1111", "0100000"]
    assert [nibble(x) for x in (0, 7, 8)] == ["1000", "1111", "00011000"]

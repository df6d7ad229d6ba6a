"""BVGraph: a stream of bits and its properties."""

from __future__ import annotations

from reading import PARTS, check, write_parts

from surveyor.graph.formats import read_graph

NAME = "bvgraph"
TOKENS = [
    PARTS,
    *(b"nodes=", b"arcs=", b"zetak=", b"windowsize=", b"minintervallength=", b"\ncompressionflags=REFERENCES_GAMMA"),
    *(b"OUTDEGREES_DELTA", b"BLOCKS_NIBBLE", b"RESIDUALS_UNARY", b"BLOCK_COUNT_ZETA", b"|", b"\xff" * 8, b"\0" * 8),
]
PROPERTIES = (
    "graphclass=it.unimi.dsi.webgraph.BVGraph\nnodes={}\narcs={}\nwindowsize={}\nminintervallength={}\nzetak={}\n"
    "compressionflags={}\n"
)


def seeds() -> list[bytes]:
    streams = [
        # gamma degrees: page 0 -> 1 2, page 1 -> nothing, page 2 -> 0
        (_bits("0111100110110101100110"), PROPERTIES.format(3, 3, 7, 4, 1, "RESIDUALS_GAMMA")),
        (bytes(range(64)), PROPERTIES.format(40, 100, 7, 4, 3, "")),
        (_bits("1" * 64), PROPERTIES.format(64, 0, 0, 0, 3, "")),
        (bytes(range(255, 0, -1)), PROPERTIES.format(1000, 100, 3, 2, 2, "OUTDEGREES_DELTA | BLOCKS_NIBBLE")),
    ]
    return [_joined(stream, text) for stream, text in streams] + [
        PARTS.join(
            (_bits("1" * 8), PROPERTIES.format(3, 0, 7, 4, 3, "").encode(), b"http://a/\nhttp://b/\nhttp://c/\n")
        )
    ]


def run(data: bytes) -> None:
    folder = write_parts(data, ["web.graph", "web.properties", "web.urls"], "bvgraph")
    check(read_graph(folder / "web.graph", format="bvgraph", threads=1))


def _bits(text: str) -> bytes:
    text += "0" * (-len(text) % 8)
    return int(text, 2).to_bytes(len(text) // 8, "big")


def _joined(stream: bytes, properties: str) -> bytes:
    return stream + PARTS + properties.encode()

"""Link graphs: built in bounded memory, stored as a folder of memory-mapped arrays, read from many formats.

csr        the graph itself, in both directions
names      URLs, hosts or domains by id
build      any stream of links -> a graph (external sort)
folder     the graph on disk
formats/   file formats of other tools
synthetic  webs generated from a random seed
"""

"""Link graphs: built in bounded memory, kept in a folder of memory-mapped arrays, read from any format.

csr        the graph itself, both directions
names      URLs, hosts or domains by id
build      any stream of links -> a graph (external sort)
folder     the graph on disk
formats/   the files that others read and write
synthetic  webs made from a seed
"""

"""surveyor beside its peers, on the same machine in the same run.

Commands:

    python -m benchmarks              everything (`make bench`)
    python -m benchmarks --quick      one real graph, two rounds, small sizes: a few minutes
    python -m benchmarks race         load, build and rank beside the peers
    python -m benchmarks scaling      cost per link from 1 M to 100 M links, memory of streams
    python -m benchmarks startup      `surveyor --help`, import, first ranking
    python -m benchmarks crawling     live crawls of a site that nginx serves, beside Scrapy; a million URLs that wait
    python -m benchmarks walks        random walks over a stored graph, beside tools that walk

Files:

    graphs     the inputs, each as arrays, text and gzip text with its exact ranks
    peers      one small class per tool
    worker     a process that holds one tool and one graph and executes commands
    process    the other end of a worker
    search     the loosest setting of a tool that is accurate enough
    race       rounds in turn over all tools
    targets    what was promised and what was measured
    scaling    sizes; steps: what each of its processes does
    startup    waiting times of the command line
    crawling   live crawls in turn; crawlers: what each process does; handbook: the pages; server: nginx
    shares     where the time of a page goes
    selection  a million URLs that wait: time and memory
    resume     resuming a large survey
    walks      steps a second of each method, longer walks, peers
    memory     what the kernel says a process uses; how fast memory is read
    table      Markdown
"""

"""RankMass as its paper prints it, as a baseline: always push the page that holds most, read or not.

Its guarantee is the settled mass alone. Two mistakes are mended: a page is emptied before it gives, and a page
without links gives to the seeds.
"""

from __future__ import annotations

from surveyor.arrays import FloatArray, IdArray, IntArray
from surveyor.kernels._jit import bare
from surveyor.kernels.mass import Rows
from surveyor.kernels.queue import Queue, place, take


@bare
def rankmass_as_printed(
    rows: Rows, seeds: IdArray, damping: float, queue: Queue, read: IdArray, goals: FloatArray, reads: IntArray
) -> None:
    """Write how many reads it takes to settle each of the goals, which rise; `read` is one zero per page."""
    for seed in range(seeds.shape[0]):
        place(queue, seeds[seed], 1.0 / seeds.shape[0])
    captured, count, goal = 0.0, 0, 0
    while goal < goals.shape[0]:
        page = take(queue)
        if page < 0:
            return
        count += 1 - read[page]
        read[page] = 1
        mass = queue.priority[page]
        queue.priority[page] = 0.0
        captured += (1.0 - damping) * mass
        while goal < goals.shape[0] and captured >= goals[goal]:
            reads[goal] = count
            goal += 1
        first, last = rows.start[page], rows.end[page]
        links = rows.targets
        if first == last:
            first, last, links = 0, seeds.shape[0], seeds
        share = damping * mass / (last - first)
        for link in range(first, last):
            place(queue, links[link], queue.priority[links[link]] + share)

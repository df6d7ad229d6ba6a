"""The ways to walk, and what each of them promises.

Ours have a law on the topic that is known exactly: in proportion to the number of neighbours, so that weights of
1/degree make a uniform sample of the part of the topic that the walk can reach. The paper's are kept to compare with;
what is wrong with each is measured by `experiments.focused`, which also shows why `trial` is the default: of
those with a known law it comes nearest to the truth at equal fetches.
"""

from __future__ import annotations

from dataclasses import dataclass

from surveyor.errors import UsageError
from surveyor.kernels import random_walks

WALKS, HOSTS = 8, 50  # side by side, and hosts that one that is trapped may jump back to
PATIENCE = 1000  # steps that a walk takes to find the topic


@dataclass(frozen=True, slots=True)
class Method:
    """One way to walk."""

    name: str
    code: int  # in kernels/random_walks.py
    about: str
    exact: bool = True  # the law on the topic is known
    reach: int = 0  # default: steps off topic, draws from a page between, or probes


METHODS = {
    method.name: method
    for method in (
        Method("trial", random_walks.TRIAL, "wander off topic for a few steps, then return; returns count", reach=2),
        Method("mixture", random_walks.MIXTURE, "one hop within the topic, or two hops by any page between", reach=4),
        Method("hard", random_walks.HARD, "one hop within the topic, or stay (lazy hard focus)"),
        Method("nonbacktracking", random_walks.NONBACKTRACKING, "as hard, and never straight back"),
        Method("webwalker", random_walks.WEBWALKER, "unfocused: all pages, those on topic are kept"),
        Method(
            "hard-paper", random_walks.HARD_PAPER, "hard focus that judges all neighbours, as published", exact=False
        ),
        Method(
            "neighbourhood-paper",
            random_walks.NEIGHBOURHOOD_PAPER,
            "topic and pages near it, as published",
            exact=False,
            reach=10,
        ),
        Method("trial-paper", random_walks.TRIAL_PAPER, "trial and error, as published", exact=False, reach=2),
    )
}

DEFAULT_METHOD = "trial"


@dataclass(frozen=True, slots=True)
class WalkPlan:
    """How walks go, and how many."""

    method: str = DEFAULT_METHOD
    walks: int = WALKS
    rng: int = 7
    reach: int | None = None  # as usual for the method
    window: int = 0  # steps in which no host may have more than half; 0 for any
    hosts: int = HOSTS  # to jump back to
    patience: int = PATIENCE


def method_named(name: str) -> Method:
    """Return a method.

    >>> method_named("hard").exact, method_named("trial-paper").exact
    (True, False)
    """
    if name not in METHODS:
        raise UsageError(f"there is no method {name!r}", hint=f"choose one of {', '.join(METHODS)}")
    return METHODS[name]

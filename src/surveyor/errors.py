"""Exceptions that surveyor raises, and their exit codes.

    SurveyorError
    ├── UsageError       a wrong argument, option or setting                      exit 2
    │   ├── MissingExtra the command needs `pip install surveyor[…]`              exit 2
    │   └── StrategyError a strategy raised, or named pages that do not exist     exit 2
    ├── InputError       a file that cannot be read as what it should be          exit 2
    ├── GraphError       a graph folder that is damaged, unfinished or newer      exit 4
    ├── SurveyError      a survey that is locked, damaged or newer                exit 4
    ├── NothingFetched   none of the seeds could be fetched                       exit 5
    └── NotConverged     a solver stopped early; `.best` holds the partial answer exit 3

A message states what happened and to what; the hint states what to do next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surveyor.rank.pagerank import Ranking
    from surveyor.rank.pieces.ranking import PiecesRanking


class SurveyorError(Exception):
    """Base class of all exceptions that surveyor raises intentionally."""

    exit_code = 1

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(f"{problem}\n  hint: {hint}")
        self.problem, self.hint = problem, hint

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to restore the error in another process, such as from a worker of a cluster."""
        return _restored, (type(self), self.args, self.__dict__)


class UsageError(SurveyorError):
    """A wrong argument, option or setting."""

    exit_code = 2


class MissingExtra(UsageError):
    """A feature needs a package that is not in the base install."""

    def __init__(self, feature: str, package: str, extra: str) -> None:
        super().__init__(f"{feature} needs {package}", hint=f"pip install 'surveyor[{extra}]'")


class StrategyError(UsageError):
    """A strategy raised an error, or named pages that do not exist."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="fix the strategy; docs/how-to/own-strategy.md describes the contract")


class InputError(SurveyorError):
    """A file that cannot be read as what it should be."""

    exit_code = 2


class GraphError(SurveyorError):
    """A graph folder that is damaged, unfinished or from a newer version."""

    exit_code = 4


class SurveyError(SurveyorError):
    """A survey that is locked, damaged, from a newer version, or on a full disk."""

    exit_code = 4


class NothingFetched(SurveyorError):
    """None of the seeds could be fetched."""

    exit_code = 5


class NotConverged(SurveyorError):
    """A solver ran out of sweeps; the best ranking so far is attached."""

    exit_code = 3

    def __init__(self, best: Ranking | PiecesRanking, tolerance: float, hint: str) -> None:
        super().__init__(
            f"the error bound is still {best.error:.1e}, above {tolerance:.0e}, after {best.sweeps} sweeps",
            hint=hint,
        )
        self.best: Any = best  # a Ranking, or a PiecesRanking for a graph in pieces


def _restored(kind: type[SurveyorError], args: tuple[Any, ...], values: dict[str, Any]) -> SurveyorError:
    """Return an error that was pickled; its arguments may be others than those of an exception."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(values)
    return error


def check_range(name: str, value: float | None, interval: str, *, hint: str) -> None:
    """Raise if an argument is outside an interval such as "(0, 1]"; None is allowed.

    >>> check_range("rounds", 0, "[1, inf)", hint="the default is 10")
    Traceback (most recent call last):
    surveyor.errors.UsageError: rounds must be at least 1, got 0
      hint: the default is 10
    """
    low, high = interval[1:-1].split(", ")
    above = value is None or value > float(low) or (value == float(low) and interval[0] == "[")
    below = value is None or value < float(high) or (value == float(high) and interval[-1] == "]")
    if not (above and below):
        end = "at least" if interval[0] == "[" else "above"
        shown = f"{value:g}" if isinstance(value, float) else str(value)
        expected = f"{end} {low}" if high == "inf" else f"in {interval}"
        raise UsageError(f"{name} must be {expected}, got {shown}", hint=hint)

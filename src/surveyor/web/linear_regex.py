"""Match regular expressions in time linear in the text, for patterns from untrusted surveys.

Python's `re` backtracks, which takes exponential time for patterns such as `(a+)+$`. A survey from someone else brings
its author's patterns, and they are matched against every URL. Here a pattern is compiled to a nondeterministic finite
automaton (Thompson's construction), which is simulated on all its states at once; sets of states are cached (a lazy
DFA). Python parses the pattern and tests single characters, so the semantics are those of `re.search`.

Back-references, lookaround, and atomic or possessive groups cannot be matched in this way and are rejected.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from surveyor.errors import UsageError

_PARSER: Any = importlib.import_module("re._parser")
_COMPILER: Any = importlib.import_module("re._compiler")
MOST_STATES = 2_000  # of one automaton
MOST_WIDE = 50  # states of wildcards, classes, branches and repeats: only these multiply the sets of states
MOST_REPEATS = 1_000
MOST_KEPT = 10_000  # cached transitions
ENDLESS = int(_PARSER.MAXREPEAT)
BORDERS = {"AT_BEGINNING", "AT_BEGINNING_STRING", "AT_END", "AT_END_STRING", "AT_BOUNDARY", "AT_NON_BOUNDARY"}
MATCHED, START, WORD, OTHER = -1, 0, 1, 2  # the accepting state set; kinds of the previous character

State = tuple[str, Any, tuple[int, ...]]  # kind: test (of a character), border, split or match; its test; next states
Key = tuple[frozenset[int], int]


class LinearPattern:
    r"""A regular expression that is searched for in time linear in the text.

    >>> LinearPattern("(a+)+$").search("a" * 40 + "b"), LinearPattern(r"/20\d\d/").search("example.org/2026/x")
    (False, True)
    """

    def __init__(self, text: str, most_states: int = MOST_STATES, most_wide: int = MOST_WIDE) -> None:
        self.wide = self._inside = 0  # states counted towards `most_wide`; nesting depth in branches and repeats
        self._most_wide = most_wide
        self._accepting: dict[str, frozenset[int]] = {}
        try:
            parsed = _PARSER.parse(text)
            self._flags = int(parsed.state.flags)
            self._states: list[State] = [("match", None, ())]
            self._most = most_states
            self._first = self._sequence(parsed, 0)
        except (re.error, OverflowError) as error:
            raise UsageError(
                f"{text!r} is not a regular expression", hint=f"{error}; without re: it is a glob"
            ) from None
        except RecursionError:
            raise self._rejected("is nested too deeply") from None
        self._numbers: dict[Key, int] = {}
        self._sets: list[Key] = []
        self._steps: dict[tuple[int, str], int] = {}

    @property
    def states(self) -> int:
        """Number of states of the automaton."""
        return len(self._states)

    def search(self, text: str) -> bool:
        """Return whether the pattern matches anywhere in a text."""
        steps, now = self._steps, self._number(frozenset((self._first,)), START)
        end = len(text) - text.endswith("\n")  # `$` also matches before a trailing newline
        for place, character in enumerate(text):
            known = steps.get((now, character)) if place < end else None
            now = self._step(now, character, last=place == end) if known is None else known
            if now == MATCHED:
                return True
        return self._step(now, "") == MATCHED

    def _step(self, now: int, character: str, *, last: bool = False) -> int:
        """Return the state set after one more character (empty at the end of the text), or `MATCHED`."""
        if len(self._steps) >= MOST_KEPT:
            key = self._sets[now]
            self._steps.clear()
            self._numbers.clear()
            self._sets.clear()
            self._accepting.clear()
            now = self._number(*key)
        states, before = self._sets[now]
        reached = set(self._reached(states, before, character, last=last))
        if 0 in reached:
            found = MATCHED
        else:
            if (accepting := self._accepting.get(character)) is None:
                accepting = self._accepting[character] = self._accept(character)
            after = frozenset([self._states[state][2][0] for state in reached & accepting])
            found = self._number(after | {self._first}, WORD if self._is_word(character) else OTHER)
        if not last:  # the effect of a trailing newline depends on its position
            self._steps[now, character] = found
        return found

    def _accept(self, character: str) -> frozenset[int]:
        """Return the states whose test accepts a character; none at the end of the text."""
        tests = enumerate(self._states) if character else ()
        return frozenset(state for state, (kind, test, _) in tests if kind == "test" and test(character))

    def _number(self, states: frozenset[int], before: int) -> int:
        key = states, before
        number = self._numbers.setdefault(key, len(self._sets))
        if number == len(self._sets):
            self._sets.append(key)
        return number

    def _reached(self, states: frozenset[int], before: int, character: str, *, last: bool) -> Iterator[int]:
        """Yield the epsilon closure: all states reached without reading a character."""
        met, rest = set(states), list(states)
        while rest:
            state = rest.pop()
            yield state
            kind, test, then = self._states[state]
            if kind == "split" or (kind == "border" and self._holds(test, before, character, last=last)):
                new = [one for one in then if one not in met]
                met.update(new)
                rest += new

    def _holds(self, border: str, before: int, character: str, *, last: bool) -> bool:
        if border.startswith("AT_BEGINNING"):
            return before == START
        if border.startswith("AT_END"):
            return not character or (last and border == "AT_END")
        return ((before == WORD) != self._is_word(character)) == (border == "AT_BOUNDARY")

    def _is_word(self, character: str) -> bool:
        return (character.isalnum() or character == "_") and not (self._flags & re.ASCII and not character.isascii())

    def _sequence(self, parts: Any, then: int) -> int:
        """Add the states of a sequence that continues with state `then`; return its first state."""
        for operation, argument in reversed(list(parts)):
            then = self._part(str(operation), operation, argument, then)
        return then

    def _part(self, name: str, operation: Any, argument: Any, then: int) -> int:
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            if self._inside or name != "LITERAL":
                self._widen()
            return self._add("test", self._test(operation, argument), then)
        if name == "SUBPATTERN" and not argument[1] and not argument[2]:
            return self._sequence(argument[3], then)
        if name == "BRANCH":
            self._inside += 1
            first = self._add("split", None, *[self._sequence(one, then) for one in argument[1]])
            self._inside -= 1
            return first
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            self._inside += 1
            first = self._repeat(argument, then)
            self._inside -= 1
            return first
        if name == "AT" and str(argument) in BORDERS and not self._flags & re.MULTILINE:
            return self._add("border", str(argument), then)
        raise self._rejected(f"uses {name.lower().replace('_', ' ')}")

    def _repeat(self, argument: Any, then: int) -> int:
        least, most, parts = argument
        if least > MOST_REPEATS or MOST_REPEATS < most != ENDLESS:
            raise self._rejected(f"repeats a part more than {MOST_REPEATS:,} times")
        if most == ENDLESS:
            loop = self._add("split", None, then)
            self._states[loop] = ("split", None, (self._sequence(parts, loop), then))
            then = loop
        else:
            for _ in range(most - least):
                then = self._add("split", None, self._sequence(parts, then), then)
        for _ in range(least):
            before, then = then, self._sequence(parts, then)
            if then == before:  # a repeated empty part stays empty and adds no states to count
                break
        return then

    def _widen(self) -> None:
        self.wide += 1
        if self.wide > self._most_wide:
            raise self._rejected(f"has more than {MOST_WIDE} wildcards, classes and characters in branches or repeats")

    def _test(self, operation: Any, argument: Any) -> Callable[[str], object]:
        """Return a test of one character, compiled by Python's own engine."""
        state = _PARSER.State()
        state.flags = self._flags
        state.str = ""
        one = _PARSER.SubPattern(state, [(operation, argument)])
        compiled: Callable[[str], object] = _COMPILER.compile(one, self._flags).match
        return compiled

    def _add(self, kind: str, test: Any, *then: int) -> int:
        if len(self._states) >= self._most:
            raise self._rejected(f"needs more than {self._most:,} states")
        self._states.append((kind, test, then))
        return len(self._states) - 1

    @staticmethod
    def _rejected(why: str) -> UsageError:
        return UsageError(
            f"a regular expression of a survey from elsewhere {why}",
            hint="if the survey is yours, vouch for it with `surveyor config trust SURVEY`",
        )

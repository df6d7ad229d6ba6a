"""Commands for a running crawl or watch: pause, resume, stop, and another goal for a crawl.

They arrive as files (`store/published.py`) and are taken between two steps of the event loop, about twice a second:

- *pause*: no request is started; those in progress finish and count, and waits of hosts continue;
- *resume* ends a pause;
- *stop* cancels the run, as Ctrl-C does: everything is saved, and the ending is *interrupted*;
- *goal* replaces the stopping rule and records it in the manifest, as `crawl SURVEY --until RULE` would. The loop ends
  as if its rule were met (`OrNewGoal`) and starts again with the other rule in the same state, so nothing is replayed.
  Limits of pages, requests and bytes count from the beginning of the survey, and minutes from the start of this run.

A paused crawl is not idle: the time does not count towards a limit in minutes, nor as waiting for pages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from surveyor.crawler.graphless import check_graphless
from surveyor.errors import SurveyError, SurveyorError, UsageError
from surveyor.stopping import Either, Progress, parse_rule, scouting_rule
from surveyor.store import published

if TYPE_CHECKING:
    from surveyor.stopping import Rule
    from surveyor.store.directory import SurveyFolder

REMEMBERED = 20  # commands and messages
ORIGIN = "surveyor steer"  # of a goal


@dataclass(slots=True)
class Controls:
    """What commands do to a run."""

    stop: Callable[[], object]
    wake: Callable[[], object]  # the loop, which may be waiting for a result
    set_goal: Callable[[str], None]


def no_goal(_rule: str) -> None:
    """Refuse a goal."""
    raise UsageError("a watch has no goal", hint="start it again with another --rate")


class Steering:
    """Takes the commands of a run."""

    def __init__(self, folder: SurveyFolder) -> None:
        self._folder, self._controls = folder, Controls(lambda: None, lambda: None, no_goal)
        self._stuck: set[str] = set()  # files that cannot be removed
        self.paused = self.stopping = self.listening = self.has_new_goal = False
        self.taken: deque[dict[str, str]] = deque(maxlen=REMEMBERED)
        self.messages: deque[str] = deque(maxlen=REMEMBERED)

    def control(self, controls: Controls) -> None:
        """Pass commands on to these controls from now on."""
        self._controls, self.listening = controls, True

    def close(self) -> None:
        """Take no more commands: the run has ended."""
        self.listening = False

    def poll(self) -> bool:
        """Take the commands that were sent; return whether there were any."""
        if not self.listening:
            return False
        try:
            found = list(published.take_commands(self._folder.folder, self._stuck))
        except (OSError, SurveyError):  # the folder is missing, or no folder
            return False
        for command in found:
            if isinstance(command, str):
                self.messages.append(command)
            else:
                self.taken.append({**command._asdict(), "problem": self._obey(command)})
        return bool(found)

    def _obey(self, command: published.Command) -> str:
        """Execute a command; return why it was refused, or an empty string."""
        if self.stopping:
            return "the crawl is stopping"
        try:
            if command.command == "goal":
                self._controls.set_goal(command.value)
                self.has_new_goal = True
            elif command.command == "stop":
                self.stopping = True
                self._controls.stop()
            else:
                self.paused = command.command == "pause"
        except SurveyorError as error:
            return error.problem
        self._controls.wake()
        return ""


def change_goal(folder: SurveyFolder, before: Rule, text: str) -> Rule:
    """Record another stopping rule in the manifest, and return it; raise an error if the survey cannot have it."""
    if scouting_rule(before) is not None:
        raise UsageError("a scout has no other goal", hint="crawl the survey when it has ended")
    rule = parse_rule(text)
    settings = {**folder.manifest.settings, "until": text}
    if not folder.journal.keeps_graph:
        check_graphless(replace(folder.manifest, settings=settings), folder.manifest.settings)
    folder.change(settings=settings, origins={**folder.manifest.origins, "until": ORIGIN})
    return rule


@dataclass(frozen=True, slots=True)
class OrNewGoal(Either):
    """Stopping rule that is also met when the run has another goal."""

    steering: Steering

    def done(self, progress: Progress) -> bool:
        """Return whether to stop, for either reason."""
        return self.steering.has_new_goal or Either.done(self, progress)

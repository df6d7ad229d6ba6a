"""`surveyor steer`: pause, resume or stop a running crawl or watch, or change the goal of a crawl."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from surveyor.cli import options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from surveyor.cli.output import Output

DONE = {
    "pause": "Paused: no request is started; {in_progress} in progress will finish.",
    "resume": "Resumed.",
    "stop": "Stopping: the crawl saves what it has.",
    "goal": "New goal: {goal}.",
}


@options.command(
    "steer",
    kernels=False,
    epilog="\b\nsurveyor steer example.org.survey pause\nsurveyor steer example.org.survey goal=coverage=0.95",
)
@click.argument("survey", type=click.Path(), metavar="SURVEY")
@click.argument("action", metavar="pause|resume|stop|goal=RULE")
def command(output: Output, *, survey: str, action: str) -> int:
    """Pause, resume or stop the crawl or watch that is running in SURVEY, or change the goal of a crawl.

    The command is taken within about a second, wherever the crawl was started. A pause starts no request; those in
    progress finish. A stopped crawl is saved, and `surveyor crawl SURVEY` resumes it. RULE is a stopping rule as for
    --until, such as coverage=0.95 or pages=1000; it is stored in the survey.
    """
    from surveyor.store import published

    name, equals, rule = action.partition("=")
    sent = published.send(survey, name, rule if equals else None)
    state = published.wait_until_taken(survey, sent)
    output.object("steer", {"survey": survey, "action": name, "goal": state["goal"], **activity(state)})
    output.line(DONE[name].format(**state))
    output.next_steps({"follow it": ["surveyor", "status", survey]})
    return 0


def activity(state: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the JSON fields of what is running in a survey, from its published state."""
    from surveyor.store import published

    if state is None or not published.is_running(state):
        return {"running": False, "command": None, "status": "stopped", "rate": None, "left": None}
    return {"running": True, **{name: state[name] for name in ("command", "status", "rate", "left")}}


def activity_line(now: Mapping[str, Any]) -> str:
    """Return what is running as a sentence; empty if nothing is."""
    from surveyor.report.numbers import duration

    if not now["running"]:
        return ""
    left = f", about {duration(now['left'])} left" if now["left"] is not None else ""
    return f"{now['command']} is {now['status']}, {now['rate']:.1f} pages/s in the last minute{left}"

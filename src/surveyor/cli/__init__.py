"""The command line: parse, call the library once, print; one file per command.

    lazy        the commands by name, each imported when it runs
    pages       pages as people write them
    options     options that several commands share
    output      results to stdout, talk to stderr
    meter       progress bars
    compiled    where compiled kernels are kept
    plain       output that is not UTF-8
    reference   docs/reference/commands.md

Exit codes: 0 done, 1 a bug, 2 usage or input, 3 the guarantee asked for was not reached, 4 a damaged,
newer or locked graph or survey, 5 nothing could be fetched, 130 and 143 interrupted.
"""

from __future__ import annotations

import atexit
import codecs
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence


class Terminated(BaseException):
    """SIGTERM arrived."""


def main() -> NoReturn:
    """Run the command line of this process."""
    signal.signal(signal.SIGTERM, _terminate)
    code = run(sys.argv[1:])
    if code in (130, 143):
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """End at once: no one who interrupts waits for look-ups that hang in threads, or for modules to be torn down."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(args: Sequence[str]) -> int:
    """Run one command line and return its exit code; every error becomes a sentence on stderr."""
    try:
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # the caller closed it (`>&-`), so nobody listens
                setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115  # open until exit
        if sys.stdin is None:
            sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
        return _run(args)
    except KeyboardInterrupt:
        return _stop("Interrupted.", 130)
    except Terminated:
        return _stop("Terminated.", 143)


def _run(args: Sequence[str]) -> int:
    from difflib import get_close_matches

    import click

    from surveyor.cli import plain
    from surveyor.cli.lazy import surveyor
    from surveyor.errors import SurveyorError

    debug = "--debug" in args
    codecs.register_error(plain.NAME, plain.plainly)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=plain.NAME)
    try:
        code = surveyor.main(list(args), prog_name="surveyor", standalone_mode=False, obj=tuple(args))
        return code if isinstance(code, int) else 0
    except click.NoSuchOption as error:
        nearest = get_close_matches(error.option_name, error.possibilities or [], 1)
        near = f" Did you mean {nearest[0]}?" if nearest else ""
        return _fail(f"No option {error.option_name}.{near}", f"see `{_path_of(error)} --help`", 2)
    except click.UsageError as error:
        return _fail(error.format_message(), f"see `{_path_of(error)} --help`", 2)
    except click.ClickException as error:
        return _fail(error.format_message(), f"see `{_path_of(error)} --help`", 2)
    except SurveyorError as error:
        _trace(debug=debug)
        return _fail(error.problem, error.hint, error.exit_code)
    except click.Abort as abort:  # click has ended the line, but for one with a question
        return _stop("Interrupted." if abort.__cause__ else "\nInterrupted.", 130)
    except MemoryError:
        _trace(debug=debug)
        return _fail("There is not enough memory.", "build a graph folder first: it is read as a stream", 2)
    except OSError as error:
        _trace(debug=debug)
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _fail(what, "check the path, its permissions and the space left on the disk", 2)
    except Exception as error:
        _trace(debug=debug)
        advice = "run it again with --debug and report what it prints"
        return _fail(f"This is a bug in surveyor ({type(error).__name__}: {error}).", advice, 1)


def _terminate(*_: object) -> NoReturn:
    raise Terminated


def _stop(word: str, code: int) -> int:
    sys.stderr.write(f"{word}\n")
    return code


def _fail(problem: str, hint: str, code: int) -> int:
    from surveyor.report.numbers import printable

    lines = [*problem.splitlines(), f"  hint: {hint}"]
    sys.stderr.write("".join(f"{printable(line)}\n" for line in lines))
    return code


def _path_of(error: object) -> str:
    context = getattr(error, "ctx", None)
    return context.command_path if context else "surveyor"


def _trace(*, debug: bool) -> None:
    if debug:
        import traceback

        traceback.print_exc()

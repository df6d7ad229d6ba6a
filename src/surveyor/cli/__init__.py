"""The command line: parse arguments, call the library once, print the result; one module per command.

Exit codes: 0 done, 1 a bug, 2 usage or input, 3 the requested guarantee was not reached, 4 a damaged, newer or locked
graph or survey, 5 nothing could be fetched, 130 and 143 interrupted.
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

ASCII_ERRORS = "surveyor.ascii"  # name of the error handler `to_ascii`
ASCII = {
    **dict.fromkeys("█▉▊▋▌", "#"),
    **dict.fromkeys("▍▎▏", "."),
    **dict.fromkeys("░–—−", "-"),
    "…": "...",
    "“": '"',
    "”": '"',
    "’": "'",
    "±": "+-",
    "≤": "<=",
    "≥": ">=",
    "×": "x",
    "·": "*",
    "▲": "^",
    "▼": "v",
}


class Terminated(BaseException):
    """SIGTERM was received."""


def to_ascii(error: UnicodeError) -> tuple[str | bytes, int]:
    r"""Replace characters that the encoding of a stream lacks: known symbols by ASCII, others by escapes.

    >>> codecs.register_error(ASCII_ERRORS, to_ascii)
    >>> "██▍ 5 % … Ж".encode("ascii", ASCII_ERRORS)
    b'##. 5 % ... \\u0416'
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(ASCII.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in text), error.end


def main() -> NoReturn:
    """Run the command line of this process."""
    signal.signal(signal.SIGTERM, _terminate)
    code = run(sys.argv[1:])
    if code in (130, 143):
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """Exit without waiting for DNS lookups in threads or for module teardown."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(args: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors are printed to stderr as one sentence and a hint."""
    try:
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # the caller closed it (`>&-`)
                setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115  # open until exit
        if sys.stdin is None:
            sys.stdin = open(os.devnull)  # noqa: PTH123, SIM115
        return _run(args)
    except KeyboardInterrupt:
        return _stop("Interrupted.", 130)
    except Terminated:
        return _stop("Terminated.", 143)


def _run(args: Sequence[str]) -> int:
    import click

    from surveyor.cli.lazy import surveyor
    from surveyor.errors import SurveyorError

    debug = "--debug" in args
    codecs.register_error(ASCII_ERRORS, to_ascii)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=ASCII_ERRORS)
    try:
        code = surveyor.main(list(args), prog_name="surveyor", standalone_mode=False, obj=tuple(args))
        return code if isinstance(code, int) else 0
    except click.NoSuchOption as error:
        from surveyor.config import nearest

        options = error.ctx.command.get_params(error.ctx) if error.ctx else ()
        near = nearest(error.option_name, [name for one in options for name in (*one.opts, *one.secondary_opts)])
        guess = f" Did you mean {near}?" if near else ""
        return _fail(f"No option {error.option_name}.{guess}", f"see `{_path_of(error)} --help`", 2)
    except click.UsageError as error:
        return _fail(error.format_message(), f"see `{_path_of(error)} --help`", 2)
    except click.ClickException as error:
        return _fail(error.format_message(), f"see `{_path_of(error)} --help`", 2)
    except SurveyorError as error:
        _trace(debug=debug)
        return _fail(error.problem, error.hint, error.exit_code)
    except click.Abort as abort:  # click ends the line, except after a prompt
        return _stop("Interrupted." if abort.__cause__ else "\nInterrupted.", 130)
    except MemoryError:
        _trace(debug=debug)
        return _fail("not enough memory", "build a graph folder first: it is read as a stream", 2)
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

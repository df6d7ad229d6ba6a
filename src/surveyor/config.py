"""The settings of a crawl, and the origin of each value.

The fields of `Settings` are the one source of names, kinds, ranges, defaults and help: flags, environment variables,
TOML keys and Python arguments derive from them. A later place takes precedence over an earlier one:

    default             as in the table
    the user's file     ~/.config/surveyor/config.toml, or the equivalent of the platform
    the project's file  surveyor.toml in the working folder, else [tool.surveyor] in pyproject.toml there
    a variable          SURVEYOR_DELAY=2; lists are split at white space and commas; an empty one counts as unset
    a flag              --delay 2

It replaces the whole value: lists and tables are not merged (except `avoid`). An invalid value is rejected even if a
later place replaces it. `[headers]`, `[auth]` and `[permission]` are tables; a variable cannot hold one.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import sys
import tempfile
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

from surveyor.errors import UsageError

LONGEST = 1_000_000  # bytes of a settings file
SURVEY_FILE = "survey.toml"  # makes a folder a survey; see `store.layout`
HIDDEN = "***"  # replaces a secret in output
# Variables that are not settings: the folder of benchmark graphs, and whether the tests need a browser.
OTHERS = frozenset({"SURVEYOR_DATA", "SURVEYOR_REQUIRE_BROWSER"})
SWITCHES = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
CONTACT = re.compile(r"[!-'*-;=?A-~]+@[!-'*-;=?A-~]+|https?://[!-'*-.0-;=?A-~][!-'*-;=?-~]*")  # visible ASCII only
CONTACT_LINE = re.compile(r"""^[ \t]*["']?contact["']?[ \t]*=[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*')""", re.MULTILINE)
BUILT_IN = "breadth rankmass windowed sweep printed opic adaptive tracking cho outlinks random complement flow rounds"
STRATEGIES = frozenset(BUILT_IN.split())  # any other name before a colon is a module

Limit = tuple[str, Callable[[Any], object]]  # range of a value (or of each value of a table): text and test
ANY: Limit = ("", lambda _: True)
NATURAL: Limit = ("at least 0", lambda number: number is None or number >= 0)
RANDOM: Limit = ("from 0 to 2**64 - 1", lambda number: number is None or 0 <= number < 1 << 64)
POSITIVE: Limit = ("above 0", lambda number: number > 0)
MOST_DAMPING = 0.999  # pushes and walks take 1 / (1 - damping) steps, in which no signal is handled
DAMPING: Limit = (f"above 0 and at most {MOST_DAMPING:g}", lambda number: 0 < number <= MOST_DAMPING)
SCOPE: Limit = ("host, domain, prefix or any", ("", "host", "domain", "prefix", "any").__contains__)
PROXY: Limit = ("a URL of http or https", lambda text: not text or re.match("https?://.", text))
CALLER: Limit = ("an e-mail address or a URL", lambda text: not text or CONTACT.fullmatch(text))
HEADER: Limit = (f"a value, not the {HIDDEN} that replaces it in output", lambda text: text != HIDDEN)
LOGIN: Limit = ("user:password", lambda text: ":" in text)
REASON: Limit = ("a reason", str.strip)
SWITCHED: Limit = ("off, error, warning or note", ("off", "error", "warning", "note").__contains__)


class Kind(NamedTuple):
    """A kind of value: its description, its validation, and the parser of an environment variable."""

    what: str
    accept: Callable[[Any], Any]
    parse: Callable[[str], Any] | None = str

    def __call__(self, about: str, default: Any, limit: Limit, example: str, *, secret: bool = False) -> Any:
        """Describe a setting of this kind."""
        facts = {"help": about, "kind": self, "limit": limit, "example": example, "secret": secret}
        if isinstance(default, dict):  # a dict is not hashable
            return field(default_factory=dict, hash=False, metadata=facts)
        return field(default=default, metadata=facts)


def _only(value: Any, kind: type | tuple[type, ...], test: Callable[[Any], object] = lambda _: True) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool) or not test(value):
        raise TypeError  # also for True, which is an int in Python
    return value


def _amount(value: Any) -> int:
    if not isinstance(value, str):
        return int(_only(value, Integral))
    match = re.fullmatch(r"(\d[\d_]*(?:\.\d+)?(?:e\d+)?)\s*([kmgt]?)b?", value.strip().lower())
    number, scale = _only(match, re.Match).groups()
    return int(float(number) * 1000 ** " kmgt".index(scale or " "))


def _list(value: Any) -> tuple[str, ...]:
    items = (value,) if isinstance(value, str) else _only(value, (list, tuple))
    return tuple(_only(item, str, str.strip) for item in items)


def _table(value: Any) -> dict[str, str]:
    """Return text by name; TOML parses `example.org = …` as {"example": {"org": …}}, which is flattened."""
    flat: dict[str, str] = {}
    for key, item in _only(value, Mapping).items():
        inner = {f".{rest}": text for rest, text in _table(item).items()} if isinstance(item, Mapping) else {"": item}
        flat |= {_only(key, str) + rest: _only(text, str) for rest, text in inner.items()}
    return flat


TEXT = Kind("text", lambda value: _only(value, str))
FILE = Kind("the name of a file", lambda value: os.path.expanduser(_only(os.fspath(value), str)))  # noqa: PTH111
RULES = Kind("text, or a list of text", lambda value: ", ".join(_list(value)))  # a comma means "or"
LIST = Kind("a list of text", _list, lambda text: re.split(r"[\s,]+", text.strip(" \t\r\n,")))
TABLE = Kind("a table of text", _table, None)
BUDGET = Kind("text, or a number of pages", lambda value: str(value) if type(value) is int else _only(value, str))
SWITCH = Kind("true or false", lambda value: _only(value, bool), lambda text: SWITCHES[text.strip().lower()])
WHOLE = Kind("a whole number", lambda value: int(_only(value, Integral)), int)
PERHAPS = Kind("a whole number", lambda value: None if value is None else WHOLE.accept(value), int)
NUMBER = Kind("a number", lambda value: float(_only(value, Real, math.isfinite)), float)
SECONDS = NUMBER._replace(what="a number of seconds")
AMOUNT = Kind("a whole number, or text such as '10MB'", _amount)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Settings:
    """The settings of a crawl.

    >>> Settings(delay=2, auth={"example.org": "ana:secret"})
    Settings(delay=2.0, auth={'example.org': '***'})
    """

    seeds: tuple[str, ...] = LIST("Seed URLs, if none are given.", (), ANY, "https://docs.example.org/")
    until: str = RULES(
        "When to stop: the first rule that is met; coverage=0.9 is certified, 0.9@95% sampled.",
        "coverage=0.95",
        ANY,
        "pages=5000",
    )
    strategy: str = TEXT("Crawl order: a strategy, or module:Class.", "rankmass", ANY, "rankmass")
    topic: str = TEXT(
        "Focus on a topic: order by importance times topic probability. A rule as for `sample`.", "", ANY, "word:solar"
    )
    scope: str = TEXT("Scope: host, domain, prefix or any; derived from the seeds if empty.", "", SCOPE, "host")
    include: tuple[str, ...] = LIST(
        "Glob patterns, or re:REGEX; a URL must match at least one.", (), ANY, "example.org/docs/*"
    )
    exclude: tuple[str, ...] = LIST("Glob patterns, or re:REGEX; a URL must match none.", (), ANY, "*/print/*")
    depth: int | None = PERHAPS("Maximum number of links from the nearest seed.", None, NATURAL, "5")
    budget: str = BUDGET(
        "Maximum pages per domain: a number, or by reputation: star, star:LEAST-MOST@RANKS.",
        "",
        ANY,
        "star,score=tse,p=auto",
    )
    budget_file: str = FILE("CSV of domains and page budgets; all other domains have --budget.", "", ANY, "budgets.csv")
    damping: float = NUMBER("Probability of following a link.", 0.85, DAMPING, "0.85")
    delay: float = SECONDS("Minimum seconds between two requests to a host.", 1.0, NATURAL, "1.5")
    domain_delay: float = SECONDS(
        "Minimum seconds between two requests to a domain; --delay if that is shorter.", 0.25, NATURAL, "1"
    )
    max_delay: float = SECONDS(
        "Maximum Crawl-delay in seconds; hosts with a longer one are excluded.", 60.0, NATURAL, "600"
    )
    max_wait: float = SECONDS(
        "Maximum Retry-After in seconds; hosts with a longer one are excluded.", 3600.0, NATURAL, "7200"
    )
    avoid: tuple[str, ...] = LIST("Hosts and domains that are never requested.", (), ANY, "example.org")
    backoff: float = SECONDS(
        "Seconds before the first retry of a failed page; each further wait is four times longer.", 10.0, NATURAL, "10"
    )
    patient: bool = SWITCH(
        "Wait for all pending retries, however long they take.", limit=ANY, default=False, example="false"
    )
    keep_busy: bool = SWITCH(
        "Fetch other pages, too, while those in progress or to be retried may reach the goal.",
        limit=ANY,
        default=False,
        example="false",
    )
    max_fruitless: int = WHOLE(
        "End the crawl after N consecutive requests without a page; 0: no limit.", 1000, NATURAL, "1000"
    )
    concurrency: int = WHOLE("Maximum number of concurrent requests.", 32, POSITIVE, "32")
    contact: str = TEXT(
        "E-mail address or URL sent with every request, so that sites can reach you.", "", CALLER, "me@example.org"
    )
    allow: tuple[str, ...] = LIST("Hosts that may be in a private network.", (), ANY, "wiki.internal")
    archive: bool = SWITCH("Store responses in WARC files.", limit=ANY, default=True, example="true")
    graph: bool = SWITCH(
        "Store the links of pages; without them, the strategy must be opic or adaptive.",
        limit=ANY,
        default=True,
        example="true",
    )
    main_text: bool = SWITCH(
        "Hash main texts, so that changed boilerplate is no change on a later visit.",
        limit=ANY,
        default=False,
        example="true",
    )
    follow_nofollow: bool = SWITCH("Follow links marked nofollow.", limit=ANY, default=False, example="false")
    timeout: float = SECONDS("Maximum seconds for one page.", 60.0, POSITIVE, "60")
    max_bytes: int = AMOUNT("Maximum bytes of one page.", 10_000_000, POSITIVE, "10MB")
    proxy: str = TEXT("Proxy for all requests.", "", PROXY, "http://proxy.example.org:3128", secret=True)
    ca_file: str = FILE("Additional certificates to trust (PEM).", "", ANY, "company.pem")
    headers: Mapping[str, str] = TABLE("Additional request headers.", {}, HEADER, 'Accept-Language = "de"', secret=True)
    auth: Mapping[str, str] = TABLE("Logins, by host.", {}, LOGIN, '"example.org" = "user:password"', secret=True)
    rng: int | None = PERHAPS("Random seed; drawn and recorded if unset.", None, RANDOM, "7")
    permission: Mapping[str, str] = TABLE(
        "Your own hosts whose robots.txt is not applied, with the reason.", {}, REASON, '"example.org" = "my own site"'
    )
    check: Mapping[str, str] = TABLE(
        "Rules of `surveyor check` that are off, or that have another severity.", {}, SWITCHED, 'thin-page = "off"'
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            object.__setattr__(self, one.name, _checked(one, getattr(self, one.name), one.name))

    def shown(self) -> dict[str, Any]:
        """Return all values by name, with *** in place of secrets."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in (one.name for one in fields(self) if one.metadata["secret"]):
            url = isinstance(value := values[name], str)
            values[name] = re.sub("//.*@", f"//{HIDDEN}@", value) if url else dict.fromkeys(value, HIDDEN)
        return values

    def __repr__(self) -> str:
        values, defaults = self.shown(), Settings().shown()
        return f"Settings({', '.join(f'{name}={v!r}' for name, v in values.items() if v != defaults[name])})"


#: What replaced the removed names of options and settings; of several, the first that a command has.
RENAMED: Mapping[str, tuple[str, ...]] = {
    "count": ("top",),
    "dead": ("gone",),
    "force": ("replace",),
    "into": ("out",),
    "pages": ("save",),
    "pause": ("backoff",),
    "plots": ("plot",),
    "to": ("out", "level"),
}
ADDED = frozenset({"avoid"})  # merged over all places, so that no file can remove a host
FIELDS: Mapping[str, Field[Any]] = {one.name: one for one in fields(Settings)}


def _not_lower(name: str) -> Callable[[Any], bool]:
    return lambda value: value >= FIELDS[name].default


def _not_higher(name: str) -> Callable[[Any], bool]:
    return lambda value: value <= FIELDS[name].default


NO_FILE = re.compile(  # budgets that name no file
    r"\s*(none|(star|power:|flat:)?[\d_.:@+kmg-]*(,\s*(score|p|error)\s*=\s*[a-z\d.%]+\s*)*)\s*", re.IGNORECASE
)
LOWER = ("delay", "domain_delay", "backoff")  # wide if lower than the default
NARROW: Mapping[str, Callable[[Any], object]] = {  # settings that could widen access, and when they do not
    **{name: _not_lower(name) for name in LOWER},
    **{name: _not_higher(name) for name in ("max_delay", "max_wait", "timeout", "max_bytes", "concurrency")},
    "max_fruitless": lambda value: 0 < value <= FIELDS["max_fruitless"].default,
    **{name: lambda value: not value for name in ("allow", "permission", "contact", "budget_file")},
    "budget": NO_FILE.fullmatch,
    "topic": lambda value: not value,  # it may name a file, or a slow pattern
}
SECRETS = frozenset({"headers", "auth", "proxy", "ca_file"})  # not stored in a survey
VARIABLES = {"SURVEYOR_" + name.upper(): one for name, one in FIELDS.items()}
FLAGS = {"--" + name.replace("_", "-"): one for name, one in FIELDS.items()}


def load(
    flags: Mapping[str, object] | None = None, *, folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> tuple[Settings, dict[str, str]]:
    """Return the settings in a folder and the origin of each; `flags` holds only those that were given.

    >>> settings, origins = load({"depth": 3}, folder=Path("nowhere"), environ={"XDG_CONFIG_HOME": "/nowhere"})
    >>> settings.depth, origins["depth"], origins["delay"]
    (3, '--depth', 'default')
    """
    environ = os.environ if environ is None else environ
    path, user = _user_file(environ)
    project = project_file(folder or Path())
    variables = {name: text for name, text in environ.items() if name.startswith("SURVEYOR_") and name not in OTHERS}
    places: list[tuple[Mapping[str, Field[Any]], str, Mapping[str, Any]]] = [
        (FIELDS, user, _parsed(_read(path, user) or "", user)),
        (FIELDS, *project),
        (VARIABLES, "", variables),
        (FLAGS, "", {"--" + name.replace("_", "-"): value for name, value in (flags or {}).items()}),
    ]
    values: dict[str, Any] = {}
    origins = dict.fromkeys(FIELDS, "default")
    for known, file, table in places:
        for name, value in table.items():
            one, label = _known(name, known, file), f"{file}: {name}" if file else name
            if known is not VARIABLES or value.strip():
                checked, before = _checked(one, value, label, variable=known is VARIABLES), values.get(one.name)
                adds = one.name in ADDED and before is not None
                values[one.name] = tuple(dict.fromkeys((*(before or ()), *checked))) if adds else checked
                origins[one.name] = f"{origins[one.name]}, {file or name}" if adds else file or name
    _check_trust((folder or Path()) / project[0], *project, environ)
    return Settings(**values), origins


def from_arguments(given: Mapping[str, Any], others: Collection[str] = ()) -> Settings:
    """Return settings that are given as Python arguments; an unknown name may be meant for one of `others` too."""
    for name in given:
        if name not in FIELDS:
            known = [*others, *FIELDS]
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else f"the options are {', '.join(known)}"
            raise UsageError(f"unknown option {name!r}", hint=hint)
    return Settings(**given)


def user_file(environ: Mapping[str, str] | None = None) -> Path:
    """Return the path of the user's settings file, which may not exist."""
    return _user_file(environ)[0]


def save_contact(contact: str, environ: Mapping[str, str] | None = None) -> Path:
    """Store a contact in the user's settings file without changing its other lines; return the file."""
    _checked(FIELDS["contact"], contact, "contact")
    path, name = _user_file(environ)
    if not path.is_absolute():
        raise UsageError(
            "the contact cannot be saved: there is no home folder", hint="set HOME, or SURVEYOR_CONTACT instead"
        )
    _write(path, _with_contact(_read(path, name) or "", contact, name), name)
    return path


def _checked(one: Field[Any], given: Any, label: str, *, variable: bool = False) -> Any:
    """Return the validated value of a setting; messages contain no secrets."""
    kind, (limit, holds), hint = one.metadata["kind"], one.metadata["limit"], f"for example {one.metadata['example']}"
    but = "" if one.metadata["secret"] else ", got {!r}"
    if variable and kind.parse is None:
        raise UsageError(f"{label}: a variable cannot hold a table", hint=f"write [{one.name}] in surveyor.toml")
    try:
        value = kind.accept(kind.parse(given) if variable else given)
    except (TypeError, ValueError, LookupError, OverflowError):
        raise UsageError(f"{label} must be {kind.what}{but.format(given)}", hint=hint) from None
    for part, item in value.items() if kind is TABLE else ((None, given),):
        if not holds(value if part is None else item):
            where = label if part is None else f"{label} of {part}"
            raise UsageError(f"{where} must be {limit}{but.format(item)}", hint=hint)
    return value


def _known(name: str, known: Mapping[str, Field[Any]], file: str) -> Field[Any]:
    if name in known:
        return known[name]
    near = nearest(name, known)
    hint = f"did you mean {near}?" if near else f"known settings: {', '.join(known)}"
    raise UsageError(f"{file}{file and ': '}unknown setting {name!r}", hint=hint)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that replaces a removed name, else the most similar one; empty if there is none.

    >>> nearest("--to", ["--out", "--top"]), nearest("SURVEYOR_PAUSE", ["SURVEYOR_BACKOFF"])
    ('--out', 'SURVEYOR_BACKOFF')
    """
    alike, lower = {one.lower(): one for one in known}, name.lower()
    prefix = next(start for start in ("--", "surveyor_", "") if lower.startswith(start))
    renamed = [prefix + new for new in RENAMED.get(lower.removeprefix(prefix), ()) if prefix + new in alike]
    near = renamed or get_close_matches(lower, alike, 1)
    return alike[near[0]] if near else ""


def _user_file(environ: Mapping[str, str] | None) -> tuple[Path, str]:
    """Return the user's file, and its name with ~ for the home folder."""
    folder, home = user_folder(environ)
    path = folder / "config.toml"
    return path, f"~/{path.relative_to(home).as_posix()}" if path.is_relative_to(home) else str(path)


def names_code(strategy: object) -> bool:
    """Return whether a strategy is a class to be imported, `module:Class`, not a built-in one.

    >>> names_code("opic:random"), names_code("newest:NewestFirst")
    (False, True)
    """
    name, _, rest = strategy.strip().partition(":") if isinstance(strategy, str) else ("", "", "")
    return bool(rest) and name not in STRATEGIES


def _check_trust(path: Path, name: str, table: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Reject settings of a project file that need trust, as the file may have come with the folder."""
    code = ["strategy"] if names_code(table.get("strategy")) else []
    known = {key: _checked(FIELDS[key], value, key) for key, value in table.items()}
    secret = (key for key in known if key in SECRETS and known[key])
    wide = (key for key in known if key in NARROW and not NARROW[key](known[key]))
    needing = [*code, *secret, *wide]
    if needing and not is_trusted(path, environ):
        raise UsageError(
            f"{name}: {_wide(needing[0])} applies only in a trusted file, as the file may come from elsewhere",
            hint="read the file; if it is yours, run `surveyor config trust`",
        )


def _wide(name: str) -> str:
    """Return a setting with its values that need trust."""
    default = FIELDS[name].default
    if isinstance(default, bool) or not isinstance(default, int | float):
        return name
    if name == "max_fruitless":
        return f"{name} of 0 or above {default:,}"
    return f"{name} {'below' if name in LOWER else 'above'} {default:,g}"


def project_file(folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the name of the project file and its settings."""
    if (text := _read(folder / (name := "surveyor.toml"), name)) is not None:
        return name, _parsed(text, name)
    text = _read(folder / (name := "pyproject.toml"), name) or ""
    tools = _parsed(text, name).get("tool", {}) if "surveyor" in text else {}  # else it has no settings
    table = tools.get("surveyor", {}) if isinstance(tools, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"{name}: tool.surveyor must be a table, got {table!r}", hint="write [tool.surveyor]")
    return name, table


def mentions(path: Path, word: bytes) -> bool:
    """Return whether a regular file has a word within the size limit of settings files."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return word in file.read(LONGEST)


def _read(path: Path, name: str) -> str | None:
    """Return the text of a file, None if it does not exist.

    A project file may have come with its folder, so pipes and devices, which never end, are rejected.
    """
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise UsageError(f"{name} cannot be read: it is not a regular file", hint="replace it by a text file")
            data = file.read(LONGEST + 1)
        if len(data) > LONGEST:
            raise UsageError(
                f"{name} cannot be read: it is larger than {LONGEST:,} bytes", hint="check that it is a settings file"
            )
        return data.decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{name} cannot be read: {why}", hint="it must be readable UTF-8 text") from error


def _parsed(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name} is not TOML: {error}", hint='text needs quotes: strategy = "opic"') from None


def _with_contact(text: str, contact: str, name: str) -> str:
    """Set the contact in the text of a file; the parsed result is compared, to be sure that the right line changed."""
    before, quoted = _parsed(text, name), json.dumps(contact)
    if "contact" not in before:  # at the top, as later lines may belong to a table
        return f"contact = {quoted}" + ("\r\n" if "\r\n" in text else "\n") + text
    for found in CONTACT_LINE.finditer(text):
        changed = text[: found.start(1)] + quoted + text[found.end(1) :]
        with suppress(UsageError):
            if _parsed(changed, name) == {**before, "contact": contact}:
                return changed
    raise UsageError(f"{name}: contact is not on a separate line", hint=f"set contact = {quoted} in an editor")


def _write(path: Path, text: str, name: str) -> None:
    """Replace a file atomically; for a symbolic link, its target."""
    target = Path(os.path.realpath(path))
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".draft-", dir=target.parent) as aside:
            draft = Path(aside, "config.toml")
            draft.touch(mode=0o600)  # it may hold passwords
            with draft.open("wb", buffering=0) as file:
                file.write(text.encode())
                os.fsync(file.fileno())
            draft.replace(target)
    except OSError as error:
        raise UsageError(f"{name} cannot be written: {error.strerror}", hint="set SURVEYOR_CONTACT instead") from error


def user_folder(environ: Mapping[str, str] | None = None) -> tuple[Path, Path]:
    """Return the folder of the user's configuration, and the home folder."""
    environ = os.environ if environ is None else environ
    windows, mac = sys.platform == "win32", sys.platform == "darwin"
    home = Path(environ.get("USERPROFILE" if windows else "HOME") or os.path.expanduser("~"))  # noqa: PTH111
    default = ("AppData", "Roaming") if windows else ("Library", "Application Support") if mac else (".config",)
    named = [Path(environ.get(name, "")) for name in ("XDG_CONFIG_HOME", "APPDATA")[: 1 + windows]]
    absolute = [base for base in named if base.is_absolute()]  # the XDG standard ignores relative paths
    return (absolute[0] if absolute else home.joinpath(*default)) / "surveyor", home


def is_trusted(file: Path, environ: Mapping[str, str] | None = None) -> bool:
    """Return whether the user has trusted a project file: `trusted` next to config.toml lists their real paths."""
    return os.path.realpath(file) in _trusted(environ)


def trust_file(file: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Trust a project file; return the list in which it is recorded."""
    path, real = user_folder(environ)[0] / "trusted", os.path.realpath(file)
    if "\n" in real:
        raise UsageError(f"{file} has a newline in its path", hint="rename the folder")
    known = _trusted(environ)
    if real not in known:
        try:
            make_user_folder(path.parent)
            with path.open("a", encoding="utf-8", errors="surrogateescape") as list_:
                list_.write(f"{real}\n")
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}", hint="check the folder") from error
    return path


def _trusted(environ: Mapping[str, str] | None) -> list[str]:
    found = read_user_file(user_folder(environ)[0] / "trusted")
    return [] if found is None else found.decode("utf-8", "surrogateescape").splitlines()


def read_user_file(path: Path) -> bytes | None:
    """Return the content of a small user file; None if it is missing or not a regular file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would block
            return None
        with path.open("rb") as file:
            return file.read(LONGEST)
    except OSError:
        return None


def make_user_folder(folder: Path) -> None:
    """Create the folder of the user's configuration, readable by the user only."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)

"""Create a survey or resume one: reconcile seeds, settings and goals with those stored in the folder.

Repeating a command resumes the crawl. Settings that are given replace the stored ones from then on; new seeds are added
only on request. Changing the strategy or the damping replays the journal with it; changing the scope evaluates the
scope of all links again.

**Folder names.** The default name is unique for each site, port and path prefix, and readable where that is
unambiguous: `example.org`, `localhost_8000`, `example.org_docs`. Anything that a file system might conflate or reject
(capital letters, other characters, long paths) is replaced, and a digest of the exact location is appended, so that two
locations never share a folder.

**Stored settings** apply in full if this user signed the survey. A survey from elsewhere may set what is crawled:
seeds, scope, strategy, damping. It may not set the politeness policy or grant access in the user's name: hosts of a
private network, robots.txt exceptions, contact, request rate, volume, and files on this disk. Such settings apply only
if they are given now, are in the user's own configuration, or are no wider than the defaults.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import surveyor
from surveyor.config import NARROW, SECRETS, Settings, names_code
from surveyor.crawler import budgets
from surveyor.crawler.graphless import check_graphless
from surveyor.crawler.replay import SCOPE, scope_of
from surveyor.crawler.seed_pages import SeedPages, merged
from surveyor.crawler.shards.description import advice, read_shards, resume_words
from surveyor.crawler.strategies import by_name
from surveyor.crawler.strategies.strategy import replay_parameters
from surveyor.crawler.topics.focus import check_topic, focused
from surveyor.errors import UsageError
from surveyor.fetch.addresses import host_key, named_entry
from surveyor.fetch.http import HttpSettings
from surveyor.fetch.politeness.policy import PolitenessPolicy
from surveyor.stopping import parse_rule
from surveyor.store.directory import SurveyFolder
from surveyor.store.disk import disk_errors
from surveyor.store.layout import check_survey, is_survey
from surveyor.store.manifest import Manifest
from surveyor.web.scope import Scope
from surveyor.web.urls import Urls, host

if TYPE_CHECKING:
    from surveyor.store.journal import Journal

SEED = "seed"  # the origin of an `allow` that follows from a seed URL


def survey_named(seeds: Sequence[str | Path] | str | Path, out: Path | str | None) -> Path | None:
    """Return the existing survey whose folder is given in place of seeds, or as `out` alone; None if there is none."""
    given = [seeds] if isinstance(seeds, str | Path) else list(seeds)
    if len(given) == 1 and out is None and "://" not in str(given[0]) and is_survey(Path(given[0])):
        return Path(given[0])
    return Path(out) if not given and out is not None and is_survey(Path(out)) else None


def allow_named_hosts(
    settings: Settings, origins: Mapping[str, str], urls: Iterable[str]
) -> tuple[Settings, dict[str, str]]:
    """Allow the local hosts of URLs that the user has just given, each with its port only (`allow`, origin "seed").

    Call it with URLs from the command line or from Python, never with URLs from a file, a list or a survey.
    """
    entries = [entry for url in urls if (entry := named_entry(url)) and entry not in settings.allow]
    if not entries:
        return settings, dict(origins)
    before = origins.get("allow", "default")
    origin = SEED if before == "default" else f"{before}, {SEED}"
    return replace(settings, allow=(*settings.allow, *dict.fromkeys(entries))), {**origins, "allow": origin}


def recover_journal(path: Path) -> None:
    """Truncate a damaged survey to its last good commit; do nothing if it is not damaged or does not exist."""
    if is_survey(path):
        SurveyFolder.open(path, from_last_good=True).close()


def start(
    path: Path,
    seeds: Sequence[str] | SeedPages,
    settings: Settings,
    origins: Mapping[str, str],
    *,
    again: bool = False,
    add_seeds: bool = False,
    fill: Callable[[Journal], None] | None = None,
    sharded: bool = False,
) -> tuple[SurveyFolder, Settings]:
    """Open a survey to resume it, or create it; return it with the effective settings.

    A survey that has shards is opened only with `sharded`.

    With `again`, blocked pages are retried. Seeds that an existing survey does not have are an error unless
    `add_seeds`; listed pages and other weights of its seeds replace the stored ones. `fill` writes the first entries of
    the journal of a new survey.
    """
    pages = seeds if isinstance(seeds, SeedPages) else SeedPages(dict.fromkeys(seeds))
    if is_survey(path):
        if sharded:
            read_shards(path)  # raises if it is not known which it has
        else:
            reject_shards(path)
        folder, settings = _resume(path, pages, settings, origins, add_seeds=add_seeds)
        if again:
            folder.note("retry_blocked")
        return folder, settings
    manifest = Manifest(
        **_stored(pages),
        rng=secrets.randbelow(1 << 31) if settings.rng is None else settings.rng,
        settings=_kept(settings),
        origins={name: origins.get(name, "default") for name in KEPT},
    )
    manifest = replace(manifest, replay=_check(manifest, settings, None))
    return SurveyFolder.create(path, manifest, keep=settings.archive, fill=fill), settings


def reject_shards(path: Path) -> None:
    """Reject a survey that has shards for a command that would append to its journal in one process."""
    if read_shards(path) is not None:
        resume, join = shlex.join(resume_words(path)), advice(path, 0, "joins its shards first")
        raise UsageError(
            f"{path} has shards, so one process cannot crawl it",
            hint=f"`{resume}` resumes it, {join}",
        )


def _stored(pages: SeedPages) -> dict[str, Any]:
    """Return seeds, weights and listed pages as the manifest has them."""
    weights = {url: weight for url, weight in pages.weights.items() if weight not in (None, 1)}
    return {"seeds": tuple(pages.weights), "weights": weights, "listed": pages.listed}


def _resume(
    path: Path, seeds: SeedPages, settings: Settings, origins: Mapping[str, str], *, add_seeds: bool
) -> tuple[SurveyFolder, Settings]:
    folder = SurveyFolder.open(path)
    try:
        before = folder.manifest
        if not add_seeds:
            _check_seeds(path, seeds.urls, before.seeds, settings, origins)
        given = {name for name in KEPT if origins.get(name, "default") != "default"}
        check_code(path, before, given)
        by_seed = origins.get("allow") == SEED
        stored, ignored = honoured(before, given - {"allow"} if by_seed else given)
        if by_seed:  # it adds to the hosts allowed before, and removes none
            stored["allow"] = tuple(dict.fromkeys([*stored.get("allow", ()), *settings.allow]))
        settings = replace(settings, **stored)
        if ignored:
            folder.notices.append(notice(path, ignored))
        stored_pages = SeedPages(dict(zip(before.seeds, before.seed_weights, strict=True)), before.listed)
        pages, still = merged(stored_pages, seeds)
        if still:
            folder.notices.append(f"{still[0]} and all other listed pages that are seeds of {path} remain seeds")
        pages = _check_graph(folder, pages, settings)
        if settings.rng is not None and settings.rng != before.rng:
            raise UsageError(
                f"{path} was created with --rng {before.rng}",
                hint="leave --rng out, or begin another with --fresh",
            )
        now = replace(
            before,
            **_stored(pages),
            settings=_kept(settings),
            origins={**before.origins, **before.foreign_origins(stored), **{name: origins[name] for name in given}},
        )
        _change(folder, replace(now, replay=_check(now, settings, before.settings)))
    except BaseException:
        folder.close()
        raise
    return folder, settings


def _check_graph(folder: SurveyFolder, pages: SeedPages, settings: Settings) -> SeedPages:
    """Reject resuming a survey with links without them and vice versa, and other seeds in one without links.

    Return the pages to start from: without links, listed pages that are new are left out, with a notice.
    """
    path, before = folder.folder, folder.manifest
    had = bool(before.setting("graph"))
    if had != settings.graph:
        raise UsageError(
            f"{path} was crawled {'with' if had else 'without'} a link graph and cannot be resumed "
            f"{'without' if had else 'with'} one",
            hint=f"leave out --{'no-' * had}graph to resume it, or begin another survey with --fresh",
        )
    if not had and [weight or 1.0 for weight in pages.weights.values()] != before.seed_weights:
        raise UsageError(
            f"seeds cannot be added to {path} or weighted again: it stores no link graph, and its cash depends on them",
            hint="begin another survey with --fresh",
        )
    if not had and len(pages.listed) > len(before.listed):
        more = len(pages.listed) - len(before.listed)
        folder.notices.append(
            f"{more:,} new listed pages are left out: {path} stores no link graph, so pages are fixed"
        )
        return replace(pages, listed=before.listed)
    return pages


def check_default(path: Path, seeds: Sequence[str], settings: Settings, origins: Mapping[str, str]) -> None:
    """Reject resuming a survey of more seeds than are given, if its folder was derived from the seeds.

    Call it only if the user has not named a folder.
    """
    if not is_survey(path):
        return
    with disk_errors(path):
        check_survey(path)
        before = Manifest.read(path).seeds
    if set(seeds) < set(before):
        another = _command(seeds, unused(path), settings, origins)
        raise UsageError(
            f"{path} is a survey of {_few(before)}, not of {_few(seeds)} alone",
            hint=f"`{shlex.join(['surveyor', 'crawl', str(path)])}` resumes it, `{another}` starts another survey",
        )


def _check_seeds(
    path: Path, seeds: Sequence[str], before: Sequence[str], settings: Settings, origins: Mapping[str, str]
) -> None:
    """Reject seeds that the survey does not have."""
    new = [seed for seed in seeds if seed not in before]
    if not new:
        return
    named = new[0] + (f" and {len(new) - 1:,} more seeds" if len(new) > 1 else "")
    same = any(host(seed) == host(seeds[0]) for seed in before)
    place = unused(path) if same else folder_for(seeds, None, scope=settings.scope, fresh=True)
    adding, another = _command(new, path, settings, origins, "--add-seeds"), _command(seeds, place, settings, origins)
    raise UsageError(
        f"{path} is a survey of {_few(before)}, and {named} is not among its seeds",
        hint=f"`{adding}` adds to it, `{another}` starts another survey (in Python: add_seeds=True, or another out)",
    )


def _few(seeds: Sequence[str]) -> str:
    return ", ".join(seeds[:2]) + (f" and {len(seeds) - 2:,} more" if len(seeds) > 2 else "")


def _command(seeds: Sequence[str], out: Path, settings: Settings, origins: Mapping[str, str], *more: str) -> str:
    """Return a crawl command for a hint, with the contact if it was an option."""
    urls = seeds if len(seeds) <= 2 else ["URL..."]
    contact = ["--contact", settings.contact] if origins.get("contact") == "--contact" else []
    return shlex.join(["surveyor", "crawl", *urls, "--out", str(out), *contact, *more])


def _change(folder: SurveyFolder, now: Manifest) -> None:
    """Record the changes of the manifest."""
    before = folder.manifest
    trusts = (now.seeds, dict(now.weights)) != (before.seeds, dict(before.weights))  # walks jump to other pages
    rescoped = trusts or any(_plain(now, name) != _plain(before, name) for name in SCOPE)
    if rescoped:
        folder.note("scope_changed")  # first: if the change is lost, links are only evaluated again needlessly
    listed = now.listed if now.listed != before.listed else None
    changed = trusts or listed is not None or (now.settings, now.replay) != (before.settings, before.replay)
    if changed or not before.authentic:  # signs it: its settings are now from this user, or widen no access
        weights = now.weights if trusts else None
        folder.change(
            seeds=now.seeds,
            weights=weights,
            listed=listed,
            settings=now.settings,
            origins=now.origins,
            replay=now.replay,
        )


def _plain(manifest: Manifest, name: str) -> Any:
    value = manifest.settings.get(name)
    return list(value) if isinstance(value, tuple) else value


def _kept(settings: Settings) -> dict[str, Any]:
    """Return the settings stored in the folder, as read back from TOML."""
    values = {name: getattr(settings, name) for name in KEPT}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items() if v is not None}


def _check(manifest: Manifest, settings: Settings, before: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Reject settings that would fail later; return what a replay needs to know of a user-defined strategy."""
    parse_rule(settings.until)
    strategy = by_name(settings.strategy)
    check_topic(manifest.settings, before)
    if settings.topic:
        focused(strategy, settings.topic, Urls(1))
    if not settings.graph:
        check_graphless(manifest, before)
    scope_of(manifest)
    http_settings(settings)
    politeness_policy(settings)
    budgets.check(settings, before)
    return replay_parameters(strategy) if names_code(settings.strategy) else {}


def http_settings(settings: Settings) -> HttpSettings:
    """Return the settings of the HTTP client; a contact is required."""
    if not settings.contact:
        raise UsageError(
            "contact is not set; it is sent with every request, so that sites can reach you",
            hint="set an e-mail address or URL: --contact, contact= in Python, SURVEYOR_CONTACT, or surveyor.toml",
        )
    mail = "@" in settings.contact and "://" not in settings.contact
    return HttpSettings(
        user_agent=f"surveyor/{surveyor.__version__} ({'' if mail else '+'}{settings.contact})",
        sender=settings.contact if mail else "",
        connections=settings.concurrency,
        page=settings.timeout,
        max_bytes=settings.max_bytes,
        max_decoded=2 * settings.max_bytes,
        headers=settings.headers,
        auth={host: (login.partition(":")[0], login.partition(":")[2]) for host, login in settings.auth.items()},
        proxy=settings.proxy,
        ca_file=settings.ca_file or None,
        allow=settings.allow,
    )


def politeness_policy(settings: Settings) -> PolitenessPolicy:
    """Return the politeness policy."""
    return PolitenessPolicy(
        delay=settings.delay,
        domain_delay=settings.domain_delay,
        max_delay=settings.max_delay,
        max_wait=settings.max_wait,
        own=_names(settings.allow),
        permitted=_names(settings.permission),
        avoid=_names(settings.avoid),
    )


def _names(entries: Iterable[str]) -> frozenset[str]:
    """Return the normalised hosts of entries with or without a port."""
    return frozenset(host(f"http://{host_key(entry)}/") for entry in entries)


LONGEST = 100  # characters of a name without its suffix; file systems allow 255 bytes
DIGEST = 5  # bytes
LABEL = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
# A first segment of digits would look like a port.
PLAIN = re.compile(rf"{LABEL}(\.{LABEL})*(:[0-9]+|(?!/[0-9]+(/|$)))(/[a-z0-9][a-z0-9.-]*)*")
ADDRESS = re.compile(r"\[[0-9a-f:.]+\]")  # IPv6 without a port


def site_name(seed: str, *, prefix: bool = False) -> str:
    """Return a file name for the host and port of a seed URL, and with `prefix` for its folder too.

    >>> site_name("http://localhost:8000/"), site_name("https://example.org/docs/start", prefix=True)
    ('localhost_8000', 'example.org_docs')
    >>> site_name("https://example.org/Docs/", prefix=True)
    'example.org_Docs_9e5136ca69'
    """
    place = seed.partition("://")[2].partition("?")[0]
    place = place.rpartition("/")[0] if prefix else place.partition("/")[0]
    if ADDRESS.fullmatch(place):
        return "ipv6_" + place.strip("[]").replace(":", "-")
    name = re.sub(r"[^A-Za-z0-9.-]+", "_", place).strip("_.-")
    return shortened(name, place, LONGEST) if PLAIN.fullmatch(place) else _marked(name, place, LONGEST)


def shortened(name: str, whole: str, longest: int = 60) -> str:
    """Return a name of at most `longest` characters; a truncated name ends in a digest of `whole`."""
    return name if len(name) <= longest else _marked(name, whole, longest)


def _marked(name: str, whole: str, longest: int) -> str:
    digest = hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=DIGEST).hexdigest()
    return f"{name[: longest - len(digest) - 1].rstrip('_.-')}_{digest}"


def folder_for(seeds: Sequence[str], out: Path | str | None, *, scope: str = "", fresh: bool = False) -> Path:
    """Return the folder of a survey of these seeds; with `fresh`, an unused name.

    The path of a seed is part of the name only if the scope is a prefix.
    """
    if out is not None:
        path = Path(out)
    else:
        kind = scope or Scope.of_seeds(seeds).kind
        path = Path(f"{site_name(seeds[0], prefix=kind == 'prefix')}.survey")
    return unused(path) if fresh else path


def unused(path: Path) -> Path:
    """Return the path, or the first of path-2, path-3, … that does not exist."""
    stem = path.name.removesuffix(".survey")
    ending = path.name[len(stem) :]
    numbers = chain([""], (f"-{number}" for number in count(2)))
    names = (path.with_name(f"{stem}{number}{ending}") for number in numbers)
    return next(name for name in names if not name.exists())


KEPT = tuple(one.name for one in fields(Settings) if one.name not in SECRETS | {"rng", "seeds", "check"})


def honoured(manifest: Manifest, given: Collection[str] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the stored settings that apply besides those given now, and those that are ignored."""
    stored = {name: manifest.settings[name] for name in KEPT if name in manifest.settings and name not in given}
    if manifest.authentic:
        return stored, {}
    clean = Settings(**stored)
    ignored = {name for name in stored if name in NARROW and not NARROW[name](getattr(clean, name))}
    return (
        {name: value for name, value in stored.items() if name not in ignored},
        {name: stored[name] for name in KEPT if name in ignored},
    )


def notice(folder: Path, ignored: Mapping[str, Any]) -> str:
    """Return a message: which settings are ignored, why, and how to give them again."""
    options = [_option(name, value) for name, value in ignored.items() if name != "permission"]
    again = f"give them again ({' '.join(options)})" if options else "give them again"
    where = " in your own configuration" if "permission" in ignored else ""
    return (
        f"ignored in {folder}, which was made elsewhere or edited since: {', '.join(ignored)}; "
        f"{again}{where}, or if the survey is yours, run `surveyor config trust {shlex.quote(str(folder))}`"
    )


def check_code(folder: Path, manifest: Manifest, given: Collection[str]) -> None:
    """Refuse to import a class only because a survey names it."""
    strategy = str(manifest.settings.get("strategy", ""))
    if "strategy" not in given and names_code(strategy):
        raise UsageError(
            f"{folder} was crawled with the strategy {strategy}, and code that a survey names is never run",
            hint=f"if you know that code, name it again: --strategy {strategy}",
        )


def _option(name: str, value: Any) -> str:
    flag = "--" + name.replace("_", "-")
    each = value if isinstance(value, list | tuple) else [value]
    return " ".join(f"{flag} {shlex.quote(str(one)[:200])}" for one in each[:3]) + (" …" if len(each) > 3 else "")

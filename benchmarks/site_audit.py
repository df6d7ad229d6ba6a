"""Audit real sites with planted faults: those found, and the broken links beside those of linkchecker and lychee.

    python -m benchmarks.site_audit --site python=FOLDER --site nodejs=FOLDER [--tls valgrind=FOLDER]
        [--linkchecker PROGRAM] [--lychee PROGRAM] [--keep DIR]

Each FOLDER is a static site with an `index.html`, such as a documentation package of Debian. It is served on loopback
by a process of its own, with the faults of `planted_faults.py`; `--tls` serves one by https, with a certificate that
expires soon. For each site:

- `surveyor check URL --external --resources` must find every planted fault; hosts on other machines are not looked up;
- with `--linkchecker` and `--lychee`, the programs check the links of the site in the same run, in turn; the broken
  URLs that only one of two reports are printed, and the ratio of their times. lychee does not follow links: it gets the
  URLs of all pages that surveyor read, and requests URLs of the site only.

`--keep` keeps the surveys and the findings as JSON, to read a sample of them.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

import surveyor
from benchmarks.certificates import certificate
from benchmarks.planted_faults import Plan, plan
from benchmarks.table import markdown
from surveyor.check.rules import RULES

MOST = 3_600.0  # seconds of one program
OK = 200
LINKS = ("broken-link", "failing-link", "redirect-loop", "broken-resource")
CONFIG = "[checking]\nmaxrequestspersecond=100000\nsslverify=0\nrecursionlevel=-1\n"
REPEATABLE = {"SURVEYOR_CONTACT": "me@example.org", "SURVEYOR_DELAY": "0", "SURVEYOR_BACKOFF": "0.1"}


class Run(NamedTuple):
    """One run of a program."""

    out: str
    err: str
    code: int
    seconds: float
    cpu: float


def run(words: list[str], **variables: str) -> Run:
    """Run a program and measure its time."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, **variables}, timeout=MOST, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(done.stdout, done.stderr, done.returncode, time.perf_counter() - start, cpu)


@contextmanager
def served(folder: Path, certificate: Path | None, *, fails: bool) -> Iterator[tuple[str, str]]:
    """Serve a site with its planted faults; yield its URL, and that of another site."""
    words = [sys.executable, "-m", "benchmarks.planted_server", str(folder), str(certificate or ""), str(int(fails))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            ports = json.loads(server.stdout.readline())
            yield f"http{'s' if certificate else ''}://127.0.0.1:{ports[0]}/", f"http://localhost:{ports[1]}/"
        finally:
            server.terminate()


def missed(findings: list[dict[str, Any]], faults: Plan, base: str) -> list[str]:
    """Return the planted faults that are not among the findings."""
    seen: dict[str, set[str]] = {}
    for one in findings:
        urls = seen.setdefault(one["rule"], set())
        urls |= {one["url"], *(source["url"] for source in one["sources"] if one["rule"] in GROUPS)}
    return [
        f"{rule}: {url}"
        for rule, url in faults.expected
        if (url if "://" in url else base + url) not in seen.get(rule, ())
    ]


GROUPS = ("duplicate-title", "duplicate-description", "near-duplicate")  # reported for one page of several


def audited(name: str, url: str, keep: Path, certificate: Path | None) -> tuple[list[dict[str, Any]], Run]:
    """Check a site with everything that is requested."""
    survey = keep / f"{name}.survey"
    words = [sys.executable, "-m", "benchmarks.loopback_cli", "check", url, "--out", str(survey), "--json", "--quiet"]
    words += ["--external", "--resources", "--most", "100000", "--allow", "127.0.0.1", "--allow", "localhost"]
    own = {"SURVEYOR_CA_FILE": str(certificate)} if certificate else {}
    done = run(words, **REPEATABLE, **own)
    if done.code not in (0, 3):
        raise SystemExit(f"{name}: exit code {done.code}: {done.err[-500:]}")
    document = json.loads(done.out)
    (keep / f"{name}.json").write_text(done.out, "utf-8")
    for rule, why in document["skipped"].items():
        print(f"{name}: {rule} was not judged: {why}", flush=True)
    return document["findings"], done


def spelling(url: str) -> str:
    """Return one spelling of a URL for both programs."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{quote(unquote(parts.path))}" + (f"?{parts.query}" if parts.query else "")


def links_of(program: str, url: str, folder: Path) -> tuple[set[str], Run]:
    """Return the broken URLs of the site that linkchecker reports."""
    config = folder / "linkcheckerrc"
    config.write_text(CONFIG, "utf-8")
    done = run([program, "--config", str(config), "--no-status", "--no-warnings", "--output", "csv/utf-8", url])
    rows = csv.DictReader(
        io.StringIO("".join(f"{line}\n" for line in done.out.splitlines() if not line.startswith("#"))), delimiter=";"
    )
    found = {spelling(urljoin(row["parentname"], row["urlname"])) for row in rows if row.get("valid") == "False"}
    return {one for one in found if one.startswith(url)}, done


def lychee_links(program: str, url: str, folder: Path, survey: Path) -> tuple[set[str], Run]:
    """Return the broken URLs of the site that lychee reports, given all pages of a survey."""
    inputs = folder / "pages.txt"
    with surveyor.open(survey) as done:
        pages = [one for _, one, visit in done.pages() if one.startswith(url) and visit and visit.status == OK]
    inputs.write_text("".join(f"{one}\n" for one in pages), "utf-8")
    words = [program, "--config", os.devnull, "--format", "json", "--no-progress", "--insecure", "--max-retries", "0"]
    words += ["--host-request-interval", "0ms", "--scheme", urlsplit(url).scheme, "--exclude", "."]
    words += ["--include", f"^{re.escape(url)}", "--files-from", str(inputs)]  # no other host, not even this machine
    ran = run(words)
    if ran.code not in (0, 2):  # 2: links are broken
        raise SystemExit(f"lychee: exit code {ran.code}: {ran.err[-500:]}")
    report = json.loads(ran.out)
    failed = [one for found in ("error_map", "timeout_map") for page in report.get(found, {}).values() for one in page]
    return {spelling(one["url"]) for one in failed if one["url"].startswith(url)}, ran


def broken_url(finding: dict[str, Any]) -> str:
    """Return the URL that cannot be read, whatever names it: a link, a resource, a sitemap, a canonical URL."""
    rule, message = finding["rule"], finding["message"]
    if rule in LINKS or (rule == "sitemap-error" and message.startswith("listed, but http")):
        return str(finding["url"])
    named = re.match(r"its canonical URL (\S+) cannot be fetched", message) if rule == "canonical-conflict" else None
    return named[1] if named else ""


def compare(
    name: str, url: str, ours: tuple[list[dict[str, Any]], Run], peer: str, theirs: tuple[set[str], Run]
) -> list[str]:
    """Return a row that compares the broken links of both programs; print the differences."""
    findings, own = ours
    broken = {spelling(one) for one in map(broken_url, findings) if one.startswith(url)}
    found, other = theirs
    for who, only in (("surveyor", broken - found), (peer, found - broken)):
        for one in sorted(only)[:20]:
            print(f"{name}: only {who}: {one}", flush=True)
    return [
        name,
        peer,
        f"{len(broken & found):,}",
        f"{len(broken - found):,}",
        f"{len(found - broken):,}",
        f"{own.seconds:.1f}",
        f"{other.seconds:.1f}",
        f"{own.cpu:.1f}",
        f"{other.cpu:.1f}",
        f"{own.seconds / other.seconds:.2f}",
        f"{own.cpu / other.cpu:.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.site_audit", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--site", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument("--tls", metavar="NAME=FOLDER")
    parser.add_argument("--linkchecker", metavar="PROGRAM")
    parser.add_argument("--lychee", metavar="PROGRAM")
    parser.add_argument("--keep", type=Path, metavar="DIR")
    options = parser.parse_args()
    sites = [(word, False) for word in options.site] + ([(options.tls, True)] if options.tls else [])
    if not sites:
        parser.error("give at least one --site NAME=FOLDER")
    with tempfile.TemporaryDirectory(prefix="surveyor-audit-") as place:
        keep = options.keep or Path(place)
        keep.mkdir(parents=True, exist_ok=True)
        report(sites, Path(place), keep, options.linkchecker, options.lychee)


def report(sites: list[tuple[str, bool]], place: Path, keep: Path, linkchecker: str | None, lychee: str | None) -> None:
    """Check the sites, and print what is found and missed."""
    planted, compared, covered = [], [], set[str]()
    lost = 0
    for number, (word, secure) in enumerate(sites):
        name, _, folder = word.partition("=")
        root, file = Path(folder).resolve(), certificate(place / "tls", 10.5)[0] if secure else None
        fails = number == 1
        with served(root, file, fails=fails) as (url, other):
            faults = plan(root, url, other, secure=secure, fails=fails)
            ours = audited(name, url, keep, file)
            gone = missed(ours[0], faults, url)
            for one in gone:
                print(f"{name}: not found: {one}", flush=True)
            lost += len(gone)
            covered |= {rule for rule, _ in faults.expected}
            planted.append(
                [name, f"{len(faults.expected)}", f"{len(faults.expected) - len(gone)}", f"{len(ours[0]):,}"]
            )
            if linkchecker:
                compared.append(compare(name, url, ours, "linkchecker", links_of(linkchecker, url, place)))
            if lychee:
                found = lychee_links(lychee, url, place, keep / f"{name}.survey")
                compared.append(compare(name, url, ours, "lychee", found))
    print(markdown(["site", "planted", "found", "findings"], planted))
    print(f"rules without a planted fault: {', '.join(sorted(RULES.keys() - covered)) or 'none'}")
    if compared:
        titles = ["site", "other", "both", "only surveyor", "only other", "s", "s, other", "CPU s", "CPU s, other"]
        titles += ["time ratio", "CPU ratio"]
        print(markdown(titles, compared))
    if lost:
        raise SystemExit(f"{lost} planted faults were not found")


if __name__ == "__main__":
    main()

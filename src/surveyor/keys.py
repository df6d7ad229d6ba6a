"""What belongs to this user: a secret key, and the project files that they trust.

A survey or a settings file from elsewhere is data. Who owns a file proves nothing, as an unpacked archive belongs to
whoever unpacks it; a signature made with a key that never leaves this account does. Both files lie beside the user's
config.toml (`~/.config/surveyor`, or where the platform keeps such files):

    key        32 random bytes, readable by the user alone, made when first needed
    trusted    the real paths of project files that may use every setting, one a line

Without a home folder that can be written there is no key: nothing is signed then, and nothing counts as signed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from surveyor.errors import UsageError

SIZE = 32  # bytes of the key
LONGEST = 1 << 20  # bytes of a file of ours


def user_folder(environ: Mapping[str, str] | None = None) -> tuple[Path, Path]:
    """Return the folder of the user's own files, and the home folder."""
    environ = os.environ if environ is None else environ
    windows, mac = sys.platform == "win32", sys.platform == "darwin"
    home = Path(environ.get("USERPROFILE" if windows else "HOME") or os.path.expanduser("~"))  # noqa: PTH111
    customary = ("AppData", "Roaming") if windows else ("Library", "Application Support") if mac else (".config",)
    named = [Path(environ.get(name, "")) for name in ("XDG_CONFIG_HOME", "APPDATA")[: 1 + windows]]
    absolute = [base for base in named if base.is_absolute()]  # others are to be ignored, says the XDG standard
    return (absolute[0] if absolute else home.joinpath(*customary)) / "surveyor", home


def user_key(environ: Mapping[str, str] | None = None, *, create: bool = False) -> bytes | None:
    """Return the user's secret key; None if there is none, or with `create` if none can be made."""
    path = user_folder(environ)[0] / "key"
    found = _read(path)
    if found is None and create and path.is_absolute():
        _make(path)
        found = _read(path)
    return found if found is not None and len(found) == SIZE else None


def sign(purpose: str, message: bytes, *, create: bool = True) -> str:
    """Return a signature of a message for one purpose; empty if there is no key."""
    key = user_key(create=create)
    return "" if key is None else hmac.new(key, purpose.encode() + b"\0" + message, hashlib.sha256).hexdigest()


def is_signed(purpose: str, message: bytes, signature: str) -> bool:
    """Return whether this user signed a message for a purpose."""
    own = sign(purpose, message, create=False)
    return bool(own) and hmac.compare_digest(own.encode(), signature.encode("utf-8", "replace"))


def is_trusted(file: Path, environ: Mapping[str, str] | None = None) -> bool:
    """Return whether the user has trusted a project file."""
    return os.path.realpath(file) in _trusted(environ)


def trust_file(file: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Trust a project file from now on; return the list in which it is recorded."""
    path, real = user_folder(environ)[0] / "trusted", os.path.realpath(file)
    if "\n" in real:
        raise UsageError(f"{file} has a line end in its path", hint="rename the folder")
    known = _trusted(environ)
    if real not in known:
        try:
            _make_folder(path.parent)
            with path.open("a", encoding="utf-8", errors="surrogateescape") as list_:
                list_.write(f"{real}\n")
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}", hint="check the folder") from error
    return path


def _trusted(environ: Mapping[str, str] | None) -> list[str]:
    found = _read(user_folder(environ)[0] / "trusted")
    return [] if found is None else found.decode("utf-8", "surrogateescape").splitlines()


def _read(path: Path) -> bytes | None:
    """Return what a small file of the user holds; None if it is not there, or is no file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # to open a pipe would wait
            return None
        with path.open("rb") as file:
            return file.read(LONGEST)
    except OSError:
        return None


def _make(path: Path) -> None:
    """Write a new key, whole or not at all; if another process was faster, its key stays."""
    draft = path.with_name(f".key-{secrets.token_hex(8)}")
    with suppress(OSError):
        _make_folder(path.parent)
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(SIZE))
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(draft, path)  # unlike a rename, this never replaces a key
            except OSError:
                if not path.exists():
                    draft.rename(path)  # a file system without links
        finally:
            draft.unlink(missing_ok=True)


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)

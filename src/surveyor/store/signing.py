"""The secret key of this user, which signs surveys and checkpoints.

A survey from elsewhere is untrusted data. File ownership proves nothing, as an unpacked archive belongs to the user who
unpacks it; a signature with a key that never leaves this account does. The key is a file of 32 random bytes next to the
user's config.toml, readable by the user only and created on first use. Without a writable home folder there is no key:
nothing is signed, and no signature is valid.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from surveyor.config import make_user_folder, read_user_file, user_folder

SIZE = 32  # bytes of the key


def user_key(environ: Mapping[str, str] | None = None, *, create: bool = False) -> bytes | None:
    """Return the user's secret key; None if there is none, or with `create` if none can be created."""
    path = user_folder(environ)[0] / "key"
    found = read_user_file(path)
    if found is None and create and path.is_absolute():
        _make(path)
        found = read_user_file(path)
    return found if found is not None and len(found) == SIZE else None


def sign(purpose: str, message: bytes, *, create: bool = True) -> str:
    """Return a signature of a message for one purpose; an empty string if there is no key."""
    key = user_key(create=create)
    return "" if key is None else hmac.new(key, purpose.encode() + b"\0" + message, hashlib.sha256).hexdigest()


def is_signed(purpose: str, message: bytes, signature: str) -> bool:
    """Return whether this user signed a message for a purpose."""
    own = sign(purpose, message, create=False)
    return bool(own) and hmac.compare_digest(own.encode(), signature.encode("utf-8", "replace"))


def _make(path: Path) -> None:
    """Write a new key atomically; if another process was faster, its key is kept."""
    draft = path.with_name(f".key-{secrets.token_hex(8)}")
    with suppress(OSError):
        make_user_folder(path.parent)
        try:
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(SIZE))
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(draft, path)  # unlike a rename, this never replaces a key
            except OSError:
                if not path.exists():
                    draft.rename(path)  # a file system without hard links
        finally:
            draft.unlink(missing_ok=True)

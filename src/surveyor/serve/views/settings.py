"""The settings of a survey with their origins, and what sites see of it."""

from __future__ import annotations

from dataclasses import replace

from surveyor.config import FIELDS, HIDDEN, Settings
from surveyor.crawler.start import http_settings
from surveyor.report.survey_tables import command_of, format_setting
from surveyor.serve.page import Page, Rows
from surveyor.serve.site import Asked

COLUMNS = ("setting", "value", "origin", "meaning")


def show(ask: Asked) -> Page:
    """Show all settings."""
    manifest = ask.manifest
    values = {**manifest.settings, "rng": manifest.rng}
    rows = [
        {
            "setting": name,
            "value": HIDDEN if name in FIELDS and FIELDS[name].metadata["secret"] and value else format_setting(value),
            "origin": str(manifest.origins.get(name, "")),
            "meaning": str(FIELDS[name].metadata["help"]) if name in FIELDS else "",
        }
        for name, value in values.items()
    ]
    contact = str(manifest.settings.get("contact", ""))
    agent = http_settings(replace(Settings(contact=contact), ca_file="")).user_agent if contact else ""
    return Page(
        template="settings.html",
        title=f"Settings of {ask.name}",
        data={
            "seeds": list(manifest.written_seeds[:1000]),
            "settings": rows,
            "user_agent": agent,
            "created": manifest.created.timestamp(),
            "surveyor": manifest.surveyor,
            "authentic": manifest.authentic,
        },
        table=Rows(COLUMNS, rows),
        command=["surveyor", "config", "show", str(ask.folder)],
        python=f"import surveyor as sv\n\nsv.open({str(ask.folder)!r}).manifest.settings",
        shown={"name": ask.name, "folder": str(ask.folder), "again": command_of(manifest)},
    )

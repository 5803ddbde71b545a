"""Differences between two versions of a job, as unified diffs of their parts with every secret masked."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from airflow_flinkcompat.secrets import mask_option, mask_secrets


def part_lines(part: str, row: Mapping[str, Any]) -> list[str]:
    """One part of a version as lines, secrets masked."""
    if part == "engine":
        return [f"{row['engine']} {row['engine_version'] or ''}".strip()]
    if part in ("settings", "variables"):
        return [f"{key} = {mask_option(key, str(value))}" for key, value in sorted(row[part].items())]
    if part == "functions":
        return [
            mask_secrets(
                " ".join(str(each.get(key) or "") for key in ("name", "kind", "language", "definition")).strip()
            )
            for each in row["functions"]
        ]
    if part == "files":
        files = sorted(row["files"].items())
        return [line for path, text in files for line in (f"{path}:", *indented(mask_secrets(text)))]
    return mask_secrets(str(row[part])).splitlines()


def part_diff(part: str, old: Mapping[str, Any], new: Mapping[str, Any], names: tuple[str, str]) -> list[str]:
    """A unified diff of one part."""
    before, after = (f"{part} of {name}" for name in names)
    return list(difflib.unified_diff(part_lines(part, old), part_lines(part, new), before, after, lineterm=""))


def indented(text: str) -> list[str]:
    """The lines of a text, each by two blanks further in."""
    return [f"  {line}".rstrip() for line in text.splitlines()]

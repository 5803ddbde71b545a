"""A proposed version next to its report: the job as a reader may see it, with every secret masked.

A deployed version holds no literal secret. A waiting or rejected version is only proposed, so it may.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from airflow_flinkcompat.model import JobSpec

_SCHEMA = "flinkcompat-proposed/1"


def masked_job(job: JobSpec) -> JobSpec:
    """A job without its secrets."""
    from airflow_flinkcompat.secrets import mask_option, mask_program, mask_secrets

    def options(given: Mapping[str, str]) -> dict[str, str]:
        return {key: mask_option(key, value) for key, value in given.items()}

    def text(given: str, language: str) -> str:
        return mask_secrets(given) if language == "sql" else mask_program(given, language)

    return replace(
        job,
        script=text(job.script, job.language),
        settings=options(job.settings),
        functions=tuple(replace(each, definition=mask_secrets(str(each.definition))) for each in job.functions),
        catalog=mask_secrets(job.catalog),
        variables=options(job.variables),
        files={name: text(given, "python" if name.endswith(".py") else "sql") for name, given in job.files.items()},
    )


def encode_proposed(job: JobSpec) -> str:
    """The stored form of a proposed version: JSON, masked."""
    # By its own fields: what is proposed may be a subclass that holds more.
    plain = JobSpec.from_dict(job.to_dict())
    row = {"schema": _SCHEMA, **masked_job(plain).to_dict()}
    return json.dumps(row, indent=1, ensure_ascii=False, sort_keys=True)


def decode_proposed(content: bytes) -> JobSpec:
    """The stored job. Raises ValueError and KeyError if it has another schema or is incomplete."""
    row = json.loads(content)
    if row["schema"] != _SCHEMA:
        raise ValueError(f"its schema is {row['schema']!r}, this version reads {_SCHEMA!r}")
    return JobSpec.from_dict(row)

"""Property groups of an application: the script, its settings, and the target's record of requests.

The connection names the group and the key of the script (``flinkcompat.script`` by default). The script is split into
the properties ``script.1``, ``script.2`` …, because the service limits a value to 2,048 characters. Alternatively the
script is an object in S3, and the property ``script.uri`` contains its URI. The script's settings are in a separate
property group. A third group is the target's record of requests, because the service neither has run ids nor accepts
ids from its caller.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.statements import ScriptRefused
from airflow_flinkcompat.secrets import placeholders

Groups = Mapping[str, Mapping[str, str]]
"""Property groups of an application: keys and values by group id."""

# Limits of property groups in the service's API model.
_VALUE_CHARACTERS, _GROUP_PROPERTIES, _GROUPS = 2048, 50, 50
_ID = re.compile(r"[a-zA-Z0-9_.-]{1,50}")
_S3 = re.compile(r"s3://(?P<bucket>[^/]+)/?(?P<prefix>.*)")
_RECORD_GROUP = "flinkcompat.run"
# Maximum number of former runs among the record's 50 properties.
_FORMER_RUNS = 40
_NOTHING = "-"  # the service accepts no empty property value


@dataclass(frozen=True)
class FormerRun:
    """End of an earlier run: final state in Flink's terms, end time, and snapshot."""

    state: str
    at: str
    snapshot: str | None = None


@dataclass(frozen=True)
class RunRecord:
    """Record of the request that wrote an application's configuration.

    ``request`` is the id of the latest request. ``after`` is the operation id of the latest start before this
    request. If no later start exists, the request has not started the application yet. ``former`` describes how each
    earlier run ended, by run.
    """

    request: str | None = None
    after: str | None = None
    former: Mapping[str, FormerRun] = field(default_factory=dict)

    @classmethod
    def of(cls, groups: Groups) -> RunRecord:
        """Read the record from an application's property groups, or return an empty record."""
        row, former = groups.get(_RECORD_GROUP, {}), {}
        for key, value in row.items():
            if key.startswith("former."):
                try:
                    former[key.removeprefix("former.")] = FormerRun(**json.loads(value))
                except (TypeError, ValueError):
                    raise DeployError(
                        f"property {key!r} of group {_RECORD_GROUP!r} was not written by flinkcompat. Remove the "
                        "property from the application"
                    ) from None
        return cls(row.get("request"), _value_or_none(row.get("after")), former)

    def followed_by(self, request: str, after: str | None, run: str | None, ended: FormerRun | None) -> RunRecord:
        """The record of the next request; ``run`` is the former run, and ``ended`` describes its end."""
        former = dict(self.former)
        if run is not None and ended is not None:
            former[run] = ended
        latest = sorted(former, key=lambda each: former[each].at)[-_FORMER_RUNS:]
        return replace(self, request=request, after=after, former={each: former[each] for each in latest})

    @property
    def properties(self) -> dict[str, str]:
        former = {f"former.{run}": json.dumps(vars(ended), sort_keys=True) for run, ended in self.former.items()}
        return {"request": self.request or _NOTHING, "after": self.after or _NOTHING, **former}


@dataclass(frozen=True)
class PropertyLayout:
    """Property groups and keys for script and settings; ``s3``: bucket and prefix for scripts, or None."""

    group: str = "flinkcompat"
    key: str = "script"
    settings_group: str = "flinkcompat.settings"
    s3: tuple[str, str] | None = None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> PropertyLayout:
        script = str(settings.get("script_property") or "flinkcompat.script")
        group, dot, key = script.rpartition(".")
        if not dot or not _ID.fullmatch(group) or not key:
            raise DeployError(
                f"script_property {script!r} must have the form GROUP.KEY, for example flinkcompat.script"
            )
        own = str(settings.get("settings_property_group") or "flinkcompat.settings")
        if not _ID.fullmatch(own) or own in (group, _RECORD_GROUP):
            raise DeployError(
                f"settings_property_group {own!r} is not a valid group id. Write 1 to 50 letters, digits and _.-, but "
                f"not {group!r} or {_RECORD_GROUP!r}"
            )
        if not (place := settings.get("script_s3")):
            return cls(group, key, own)
        found = _S3.fullmatch(str(place))
        if found is None:
            raise DeployError(f"script_s3 {place!r} must have the form s3://BUCKET/PREFIX")
        return cls(group, key, own, (found["bucket"], found["prefix"].strip("/")))

    @property
    def uri_key(self) -> str:
        """The property that contains the URI of a script's object."""
        return f"{self.key}.uri"

    def object_key(self, application: str, script: str, request: str | None = None) -> str:
        """The S3 key of a script: its digest, and the request id if the script contains resolved placeholders."""
        assert self.s3 is not None
        digest = hashlib.sha256(script.encode()).hexdigest()
        name = f"{digest}.sql" if request is None else f"{digest}.{request}.sql"
        return "/".join(part for part in (self.s3[1], application, name) if part)

    def groups(
        self, existing: Groups, script: Mapping[str, str], settings: Mapping[str, str], record: RunRecord
    ) -> Groups:
        """All property groups of an application. Groups that this target does not write stay unchanged."""
        shared = {key: value for key, value in existing.get(self.group, {}).items() if not self._is_script(key)}
        found = {**existing, self.group: {**shared, **script}, _RECORD_GROUP: record.properties}
        found.pop(self.settings_group, None)
        if settings:
            found[self.settings_group] = dict(settings)
        if len(found[self.group]) > _GROUP_PROPERTIES:
            raise DeployError(
                f"property group {self.group!r} would have {len(found[self.group])} properties, but the service "
                f"accepts only {_GROUP_PROPERTIES}. Name a different group in script_property, or use script_s3"
            )
        if len(found) > _GROUPS:
            raise DeployError(
                f"the application would have {len(found)} property groups, but the service accepts only {_GROUPS}. "
                "Remove unused groups"
            )
        return found

    def own(self, groups: Groups) -> Groups:
        script = {key: value for key, value in groups.get(self.group, {}).items() if self._is_script(key)}
        settings, record = (dict(groups.get(each, {})) for each in (self.settings_group, _RECORD_GROUP))
        return {"script": script, "settings": settings, "record": record}

    def inline(self, script: str, source: str) -> dict[str, str]:
        if found := placeholders(script):
            raise ScriptRefused(
                f"{source}: the script contains {found[0]}, but every user who may describe the application could "
                "read its value. Set script_s3 in the connection to store the script in an S3 object"
            )
        parts = [script[at : at + _VALUE_CHARACTERS] for at in range(0, len(script), _VALUE_CHARACTERS)]
        if len(parts) > _GROUP_PROPERTIES:
            raise ScriptRefused(
                f"{source}: the script has {len(script)} characters, but a property group accepts only "
                f"{_GROUP_PROPERTIES * _VALUE_CHARACTERS}. Set script_s3 to store the script in an S3 object"
            )
        return {f"{self.key}.{number}": part for number, part in enumerate(parts, 1)}

    def script(self, groups: Groups) -> tuple[str | None, str | None]:
        """The script in the properties or None, and the URI of the script's S3 object or None."""
        row = groups.get(self.group, {})
        numbers = sorted(int(key.rpartition(".")[2]) for key in row if self._is_part(key))
        text = "".join(row[f"{self.key}.{number}"] for number in numbers) if numbers else None
        return text, row.get(self.uri_key)

    def settings(self, groups: Groups) -> Mapping[str, str] | None:
        """The settings in an application, or None if the application has no group for settings."""
        return groups.get(self.settings_group)

    def _is_part(self, key: str) -> bool:
        return re.fullmatch(rf"{re.escape(self.key)}\.[1-9]\d*", key) is not None

    def _is_script(self, key: str) -> bool:
        return key == self.uri_key or self._is_part(key)


def check_settings_fit(settings: Mapping[str, str]) -> None:
    """Raise ScriptRefused if the service cannot store a setting, or would reveal a secret."""
    if len(settings) > _GROUP_PROPERTIES:
        raise ScriptRefused(
            f"the job has {len(settings)} settings, but a property group accepts only {_GROUP_PROPERTIES}. Write the "
            "other settings into the script as SET statements"
        )
    for key, value in settings.items():
        if found := placeholders(value):
            raise ScriptRefused(
                f"the setting {key!r} contains {found[0]}, but every user who may describe the application could read "
                "its value. Write the setting into the script as a SET statement, and set script_s3 in the connection"
            )
        if not 0 < len(value) <= _VALUE_CHARACTERS or len(key) > _VALUE_CHARACTERS:
            raise ScriptRefused(
                f"the setting {key!r} has {len(value)} characters, but the service accepts only 1 to "
                f"{_VALUE_CHARACTERS}. Write the setting into the script as a SET statement"
            )


def with_placeholders(uri: str) -> str:
    """Convert the URI of a filled-in script to the URI of the script with placeholders."""
    return re.sub(r"\.[0-9a-f]{32}\.sql$", ".sql", uri)


def object_of(uri: str) -> tuple[str, str]:
    """Bucket and key in an S3 URI. Raises DeployError if the URI is malformed."""
    found = _S3.fullmatch(uri)
    if found is None or not found["prefix"]:
        raise DeployError(f"{uri!r} must have the form s3://BUCKET/KEY")
    return found["bucket"], found["prefix"]


def groups_of(descriptions: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Read property groups from the service's description."""
    return {str(row["PropertyGroupId"]): dict(row["PropertyMap"]) for row in descriptions}


def _value_or_none(value: str | None) -> str | None:
    return None if value in (None, _NOTHING) else value

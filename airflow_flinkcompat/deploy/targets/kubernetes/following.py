"""The spec for the next resource of a name, kept so that a run that dies in between loses nothing.

It is stored in a ConfigMap. Readers of ConfigMaps often may not read Flink's resources, so a document with a literal
secret (``s3.secret-key``) is stored in a Secret, and the ConfigMap refers to it. There is one such Secret for all
deployments, because the Role names it: no right to read any other is needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_flinkcompat.deploy.targets.kubernetes.api import KubernetesApi
from airflow_flinkcompat.deploy.targets.kubernetes.documents import DEPLOYMENT, next_of, secret_places
from airflow_flinkcompat.deploy.targets.kubernetes.resource import FlinkResource

SECRET = "flinkcompat-next"
"""The Secret for documents with secrets in them; its keys are the deployments."""
_FILE, _FOLLOWS, _SECRET_FILE = "resource.json", "follows", "secret"


class Following:
    """Specs for the next resources of a namespace. Every method raises ApiError."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api

    def keep(self, name: str, document: Mapping[str, Any], follows: str, *, dry_run: bool = False) -> None:
        """Keep the spec of a name's next resource."""
        text = json.dumps(document)
        if secret_places(document):
            self._api.put_entry(SECRET, name, text, dry_run=dry_run)
            files = {_SECRET_FILE: SECRET, _FOLLOWS: follows}
            if dry_run:
                self._api.entry(SECRET, name)
        else:
            files = {_FILE: text, _FOLLOWS: follows}
            if not dry_run:
                self._drop_entry(name)
        self._api.keep(next_of(name), files, {DEPLOYMENT: name}, dry_run=dry_run)

    def find(self, name: str) -> FlinkResource | None:
        """The spec for the next resource of a name; None if the former one was not deleted."""
        text = self._api.kept(next_of(name), _FILE)
        if text is None and (secret := self._api.kept(next_of(name), _SECRET_FILE)) is not None:
            text = self._api.entry(secret, name)
        return None if text is None else FlinkResource(json.loads(text))

    def follows(self, name: str) -> str | None:
        """The uid of the resource that was to be deleted; None if nothing is kept."""
        return self._api.kept(next_of(name), _FOLLOWS)

    def drop(self, name: str) -> None:
        """Drop unneeded documents; they may be gone already."""
        self._drop_entry(name)  # first, for the ConfigMap alone says that there is one
        self._api.drop(f"configmaps/{next_of(name)}")

    def _drop_entry(self, name: str) -> None:
        if (secret := self._api.kept(next_of(name), _SECRET_FILE)) is not None:
            self._api.put_entry(secret, name, None)

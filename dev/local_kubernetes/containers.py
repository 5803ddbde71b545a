"""The main container of a Flink pod on this machine: volumes as files, environment and command.

A path of the container, of a mount or of what an image is said to hold, is replaced by the path on this machine
wherever it stands in the command line or in Flink's configuration: there are no file systems of containers.
"""

from __future__ import annotations

import base64
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client

from airflow_flinkcompat.local_flink.cluster import JAVA_OPTIONS
from airflow_flinkcompat.local_flink.processes import LOOPBACK, find_java
from dev.local_kubernetes.cluster import CONSOLE_LOG, NAMESPACE

NODE = "local"
CONTAINER = "flink-main-container"
_CONF = "/opt/flink/conf"
# Main class and heap by the command of Flink's image. The real scripts compute the heap from the resources.
_PROGRAMS = {
    "kubernetes-application": (
        "org.apache.flink.kubernetes.entrypoint.KubernetesApplicationClusterEntrypoint",
        "-Xmx384m",
    ),
    "kubernetes-taskmanager.sh": ("org.apache.flink.kubernetes.taskmanager.KubernetesTaskExecutorRunner", "-Xmx400m"),
}


class Unsupported(Exception):
    """The pod needs a feature that this kubelet does not support."""


@dataclass(frozen=True)
class Prepared:
    """A container that can be started."""

    command: list[str]
    environment: dict[str, str]


@dataclass(frozen=True)
class Container:
    """The main container of a pod, whose files lie in a folder and which listens at an address of its own."""

    core: client.CoreV1Api
    pod: Any
    folder: Path
    address: str

    def prepare(self, home: Path, image_files: Mapping[str, Path], kubeconfig: Path) -> Prepared:
        """Write its volumes, and return the command that starts it."""
        if self.pod.spec.init_containers:
            raise Unsupported("it has init containers")
        container = next((each for each in self.pod.spec.containers if each.name == CONTAINER), None)
        if container is None:
            raise Unsupported(f"it has no container {CONTAINER}")
        paths = {path: str(file) for path, file in image_files.items()}
        volumes = {volume.name: volume for volume in self.pod.spec.volumes or ()}
        for mount in container.volume_mounts or ():
            place = self.folder / "root" / mount.mount_path.lstrip("/")
            self._mount(volumes[mount.name], mount.sub_path, place)
            paths[mount.mount_path] = str(place)
        conf = self.folder / "root" / _CONF.lstrip("/")
        # Flink passes the container's configuration path to the pods that it requests.
        paths.pop(_CONF, None)
        for file in conf.glob("*.yaml"):
            file.write_text(_replace(file.read_text(encoding="utf-8"), paths), encoding="utf-8")
        (self.folder / "log4j.properties").write_text(CONSOLE_LOG, encoding="utf-8")
        (self.folder / "tmp").mkdir(exist_ok=True)
        words = [_replace(word, paths) for word in (*(container.command or ()), *(container.args or ()))]
        environment = {**os.environ, **self._environment(container)}
        # With this variable, Flink would look for the credentials of a real pod.
        environment.pop("KUBERNETES_SERVICE_HOST", None)
        folders = {f"FLINK_{name.upper()}_DIR": str(home / name) for name in ("lib", "opt", "plugins")}
        environment |= {**folders, "FLINK_CONF_DIR": str(conf), "KUBECONFIG": str(kubeconfig)}
        return Prepared(self._command(words, conf, home, kubeconfig), environment)

    def _command(self, words: Sequence[str], conf: Path, home: Path, kubeconfig: Path) -> list[str]:
        line = " ".join(words)
        program = next((found for word, found in _PROGRAMS.items() if word in line), None)
        if program is None:
            raise Unsupported(f"its command is none of Flink's application mode: {line[:200]}")
        main_class, heap = program
        options = {
            "jobmanager.bind-host": self.address,
            "taskmanager.host": self.address,
            "taskmanager.bind-host": self.address,
            # The path at which an operator outside of the cluster looks for the file.
            "rest.bind-address": LOOPBACK,
            "kubernetes.config.file": str(kubeconfig),
            "io.tmp.dirs": str(self.folder / "tmp"),
            "web.tmpdir": str(self.folder / "tmp"),
        }
        return [
            str(find_java()),
            heap,
            *JAVA_OPTIONS,
            f"-Djdk.net.hosts.file={self.folder / 'hosts'}",
            f"-Dlog4j.configurationFile={(self.folder / 'log4j.properties').as_uri()}",
            "-cp",
            f"{home / 'lib'}{os.sep}*",
            main_class,
            "--configDir",
            str(conf),
            *_dynamic_options(words),
            *(word for key, value in options.items() for word in ("-D", f"{key}={value}")),
        ]

    def _mount(self, volume: Any, sub_path: str | None, place: Path) -> None:
        """Write a volume to its path. Raises ApiException, Unsupported."""
        if volume.host_path is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                place.symlink_to(volume.host_path.path)
            return
        files = self._volume_files(volume)
        if sub_path is not None:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(files[sub_path])
            return
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for name, content in files.items():
            file = place / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    def _volume_files(self, volume: Any) -> dict[str, bytes]:
        if volume.empty_dir is not None:
            return {}
        if volume.projected is not None:
            return {name: body for part in volume.projected.sources for name, body in self._volume_files(part).items()}
        if volume.config_map is not None:
            return _chosen(self._config_map(volume.config_map.name), volume.config_map.items)
        if volume.secret is not None:
            # In a projected volume it is called name.
            name = getattr(volume.secret, "secret_name", None) or volume.secret.name
            return _chosen(self._secret(name), volume.secret.items)
        raise Unsupported(f"a volume is neither a ConfigMap nor a Secret: {getattr(volume, 'name', 'projected')}")

    def _config_map(self, name: str) -> dict[str, bytes]:
        found = self.core.read_namespaced_config_map(name, NAMESPACE)
        binary = {key: base64.b64decode(value) for key, value in (found.binary_data or {}).items()}
        return {**{key: value.encode() for key, value in (found.data or {}).items()}, **binary}

    def _secret(self, name: str) -> dict[str, bytes]:
        found = self.core.read_namespaced_secret(name, NAMESPACE)
        return {key: base64.b64decode(value) for key, value in (found.data or {}).items()}

    def _environment(self, container: Any) -> dict[str, str]:
        """Environment of the container, also from Secrets and the pod. Raises ApiException, Unsupported."""
        found: dict[str, str] = {}
        for source in container.env_from or ():
            if source.secret_ref is not None:
                found |= {key: value.decode() for key, value in self._secret(source.secret_ref.name).items()}
            if source.config_map_ref is not None:
                found |= {key: value.decode() for key, value in self._config_map(source.config_map_ref.name).items()}
        for variable in container.env or ():
            found[variable.name] = self._value(variable)
        return found

    def _value(self, variable: Any) -> str:
        source = variable.value_from
        if source is None:
            return str(variable.value or "")
        fields: dict[str, str] = {
            "status.podIP": self.address,
            "metadata.name": self.pod.metadata.name,
            "spec.nodeName": NODE,
            "status.hostIP": LOOPBACK,
        }
        if source.field_ref is not None and source.field_ref.field_path in fields:
            return fields[source.field_ref.field_path]
        if source.secret_key_ref is not None:
            return self._secret(source.secret_key_ref.name)[source.secret_key_ref.key].decode()
        if source.config_map_key_ref is not None:
            return self._config_map(source.config_map_key_ref.name)[source.config_map_key_ref.key].decode()
        raise Unsupported(f"the environment variable {variable.name} has a source that is not known here")


def _chosen(files: Mapping[str, bytes], items: Sequence[Any] | None) -> dict[str, bytes]:
    """Keys that a volume mounts, by their paths; all keys if it lists none."""
    return {item.path: files[item.key] for item in items} if items else dict(files)


def _replace(text: str, paths: Mapping[str, str]) -> str:
    """The text with paths of this machine in the place of the container's, the longest first, each once."""
    known = "|".join(re.escape(path) for path in sorted(paths, key=len, reverse=True))
    return re.sub(rf"({known})(?![\w.-])", lambda found: paths[found[1]], text) if known else text


def _dynamic_options(words: Sequence[str]) -> list[str]:
    """Flink's options of a command, ``-Dkey=value`` or ``-D key=value``, as its entry points read them."""
    if "-c" in words:  # bash -c 'kubernetes-taskmanager.sh …'
        words = shlex.split(words[words.index("-c") + 1])
    options = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "-D":
            options += ["-D", following]
        elif word.startswith("-D"):
            options += ["-D", word[2:]]
    return options

"""What of a pod becomes a command line and a configuration on this machine."""

from __future__ import annotations

import pytest

from dev.local_kubernetes.containers import _dynamic_options, _replace

pytestmark = pytest.mark.slow


def test_paths_of_the_container_are_replaced_whole_and_once() -> None:
    paths = {"/opt/flink/sql": "/here/opt/flink/sql", "/opt/flink/sql/a": "/there", "/opt/flink": "/flink"}
    text = "--scriptUri file:///opt/flink/sql/script /opt/flink/sql/a:/opt/flink/sql-2 /opt/flink;"
    replaced = "--scriptUri file:///here/opt/flink/sql/script /there:/flink/sql-2 /flink;"
    assert _replace(text, paths) == replaced
    assert _replace(text, {}) == text


def test_options_are_read_out_of_either_form_of_a_command() -> None:
    direct = ["/docker-entrypoint.sh", "kubernetes-jobmanager.sh", "kubernetes-application", "-D", "a=1", "-Db=x y"]
    assert _dynamic_options(direct) == ["-D", "a=1", "-D", "b=x y"]
    assert _dynamic_options(["bash", "-c", "kubernetes-taskmanager.sh -D a=1 -Dc='x y'"]) == [
        "-D",
        "a=1",
        "-D",
        "c=x y",
    ]

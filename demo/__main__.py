"""``python -m demo``: the whole story; ``up`` and ``down``: everything running, to look at."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.sql import mask_secrets
from demo.airflow_client import AirflowApiError
from demo.airflow_instance import AirflowError
from demo.feed import Feed
from demo.narrator import Narrator
from demo.parts import Parts
from demo.story import Step, Story
from demo.waiting import DemoError
from demo.world import World

FAILURES = (DemoError, DeployError, AirflowError, AirflowApiError, OSError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 every step did what it says, 1 one did not, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="work in this folder and keep it")
    parser.add_subparsers(dest="command")
    options = parser.parse_args(arguments)
    narrator = Narrator()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return tell(options.keep, narrator)
    except KeyboardInterrupt:
        narrator.say("interrupted; everything was stopped")
        return 130


def tell(keep: Path | None, narrator: Narrator) -> int:
    """Tells the story in a folder of its own; the exit status."""
    with work_folder(keep) as root:
        world = World(root)
        world.make()
        try:
            with Parts(world, narrator.say) as parts, Feed(world.live, parts.watermark) as feed:
                steps = Story(world, parts, feed, narrator).tell()
                summary(narrator, steps, parts)
        except FAILURES as error:
            narrator.plain()
            narrator.say(mask_secrets(f"FAILED: {error}"))
            return 1
        narrator.say("everything is stopped again")
    return 0


@contextmanager
def work_folder(keep: Path | None) -> Iterator[Path]:
    """The folder given, or one that is gone at the end."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    root = Path(tempfile.mkdtemp(prefix="flinkcompat-demo-")).resolve()
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def summary(narrator: Narrator, steps: Sequence[Step], parts: Parts) -> None:
    """The table at the end, and where to look while everything is up."""
    narrator.title("What happened")
    rows = [(s.version, s.change, s.verdict, s.branch, "; ".join(s.proofs), f"{s.seconds:.0f} s") for s in steps]
    narrator.table(("version", "change", "verdict", "branch taken", "proof", "time"), rows)
    narrator.say(f"in all {narrator.seconds:.0f} s")
    narrator.say(f"Airflow UI: {parts.airflow.url}   Flink UI: {parts.flink.jobmanager_url}")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())

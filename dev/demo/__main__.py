"""``python -m dev.demo``: the whole story; ``up`` and ``down``: everything running, to look at."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.secrets import mask_secrets
from dev.demo import updown
from dev.demo.airflow_client import AirflowApiError
from dev.demo.airflow_instance import AirflowError
from dev.demo.feed import Feed
from dev.demo.narrator import Narrator
from dev.demo.parts import Parts
from dev.demo.pictures import Photographer
from dev.demo.steps import Step
from dev.demo.story import Story
from dev.demo.waiting import DemoError, require
from dev.demo.world import DAG_ID, World

FAILURES = (DemoError, DeployError, AirflowError, AirflowApiError, OSError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 every step did what it says, 1 one did not, 130 interrupted."""
    options = _parser().parse_args(arguments)
    narrator = Narrator()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        match options.command:
            case "up":
                return updown.up(narrator, story=options.story)
            case "down":
                return updown.down(narrator)
            case "serve":
                return updown.serve(narrator, story=options.story)
            case "pictures":
                return tell(options.keep, narrator, pictures=True)
            case _:
                return tell(options.keep, narrator)
    except KeyboardInterrupt:
        narrator.say("interrupted; everything was stopped")
        return 130
    except FAILURES as error:
        narrator.plain()
        narrator.say(mask_secrets(f"FAILED: {error}"))
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m dev.demo", description=__doc__)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="work in this (empty) folder and keep it")
    commands = parser.add_subparsers(dest="command", metavar="up|down|pictures")
    up = commands.add_parser("up", help="start everything in the background, with v1 deployed and orders arriving")
    up.add_argument("--story", action="store_true", help="tell the whole story first")
    commands.add_parser("down", help="stop what up has started")
    commands.add_parser("pictures", help="tell the story and take the pictures in docs/images on the way")
    serve = commands.add_parser("serve", description="what up runs in the background")
    serve.add_argument("--story", action="store_true")
    return parser


def tell(keep: Path | None, narrator: Narrator, *, pictures: bool = False) -> int:
    """Tells the story in a folder of its own; the exit status. Raises one of FAILURES when a step did not hold."""
    with work_folder(keep, narrator.say) as root, ExitStack() as stack:
        world = World(root)
        world.make()
        parts = stack.enter_context(Parts(world, narrator.say))
        feed = stack.enter_context(Feed(world.live, parts.watermark))
        story = Story(world, parts, feed, narrator)
        if pictures:
            story.moment = stack.enter_context(Photographer(parts.airflow, DAG_ID, narrator.say)).take
        steps = story.tell()
        summary(narrator, steps, parts)
        stack.close()
        narrator.say("everything is stopped again")
    return 0


@contextmanager
def work_folder(keep: Path | None, say: Callable[[str], None]) -> Iterator[Path]:
    """The folder given, or a temporary one, which is kept only if a step fails."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        require(not any(keep.iterdir()), f"{keep} is not empty: name a new folder, or empty it")
        yield keep.resolve()
        return
    root = Path(tempfile.mkdtemp(prefix="flinkcompat-demo-")).resolve()
    try:
        yield root
    except Exception:
        say(f"everything is stopped; all files are kept, with the logs in airflow/logs and flink/log: {root}")
        raise
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise
    shutil.rmtree(root)


def summary(narrator: Narrator, steps: Sequence[Step], parts: Parts) -> None:
    """The table at the end, and where to look while everything is up."""
    narrator.title("What happened")
    rows = [(s.version, s.change, s.verdict, s.branch, "; ".join(s.proofs), f"{s.seconds:.0f} s") for s in steps]
    narrator.table(("version", "change", "verdict", "branch taken", "proof", "time"), rows)
    narrator.say(f"in all {narrator.seconds:.0f} s")
    narrator.say(f"Airflow UI: {parts.airflow.url}   Flink UI: {parts.flink.jobmanager_url}")
    narrator.say("both end with this run; `make up` keeps them up to look at")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())

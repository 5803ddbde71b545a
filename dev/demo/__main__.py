"""``python -m dev.demo`` tells the whole story; ``up`` and ``down`` start and stop all services."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any, TextIO

from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.local_flink import LocalFlinkError
from airflow_flinkcompat.local_flink.processes import choose_ports
from airflow_flinkcompat.secrets import mask_secrets
from dev.demo.airflow_client import AirflowApiError
from dev.demo.airflow_instance import AirflowError
from dev.demo.narration import DemoError, Narrator, Step, require, wait_for
from dev.demo.orders import START, Feed
from dev.demo.parts import Parts, Ports
from dev.demo.pictures import Photographer
from dev.demo.story import Story
from dev.demo.world import DAG_ID, World

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / ".flinkcompat" / "up"
_READY_SECONDS = 7200.0
_STOP_SECONDS = 90.0
# Well-known ports; a different port if one of them is in use.
_WANTED = {"airflow": 8080, "jobmanager": 8081, "gateway": 8083}
# One file every five seconds, each 20 seconds of event time later.
_PAUSE_SECONDS = 5.0
FAILURES = (DemoError, DeployError, AirflowError, AirflowApiError, OSError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 if every step succeeded, 1 if a step failed, 130 if interrupted."""
    options = _parser().parse_args(arguments)
    narrator = Narrator()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        match options.command:
            case "up":
                return up(narrator, story=options.story)
            case "down":
                return down(narrator)
            case "serve":
                return serve(narrator, story=options.story)
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
    """Tell the story in a separate folder; returns the exit status. Raises one of FAILURES."""
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
    """The folder of the caller, or a temporary folder that is kept only if a step fails."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        require(not any(keep.iterdir()), f"{keep} is not empty: name a new folder, or empty it")
        yield keep.resolve()
        return
    root = Path(tempfile.mkdtemp(prefix="flinkcompat-demo-")).resolve()
    try:
        yield root
    except Exception:
        say(f"all services are stopped. All files are kept in {root}, with the logs in airflow/logs and flink/log")
        raise
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise
    shutil.rmtree(root)


def summary(narrator: Narrator, steps: Sequence[Step], parts: Parts) -> None:
    """Table at the end, and addresses of the running services."""
    narrator.title("What happened")
    rows = [(s.version, s.change, s.verdict, s.branch, "; ".join(s.proofs), f"{s.seconds:.0f} s") for s in steps]
    narrator.table(("version", "change", "verdict", "branch taken", "proof", "time"), rows)
    narrator.say(f"total time: {narrator.seconds:.0f} s")
    narrator.say(f"Airflow UI: {parts.airflow.url}   Flink UI: {parts.flink.jobmanager_url}")
    narrator.say("both services stop at the end of this run; `make up` keeps them running")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def up(narrator: Narrator, *, story: bool) -> int:
    """Start a background process that runs everything, and return once it is ready; the exit status."""
    if state := _running():
        narrator.say("it is up already")
        _addresses(narrator, state)
        return 0
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    log = FOLDER / "up.log"
    command = [sys.executable, "-m", "dev.demo", "serve", *(["--story"] if story else [])]
    with log.open("wb") as stream:
        child = subprocess.Popen(
            command, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
        )
    try:
        with log.open(encoding="utf-8") as shown:
            state = wait_for(
                "everything to be ready",
                _state,
                moved=lambda: log.stat().st_size,
                limit=_READY_SECONDS,
                alive=lambda: _still_starting(child, shown, narrator),
            )
            _news(shown, narrator)
    except BaseException:
        child.terminate()
        child.wait()
        raise
    _addresses(narrator, state)
    return 0


def down(narrator: Narrator) -> int:
    """Stop the services of ``up`` and remove their files; the exit status."""
    state = _running()
    if state is None:
        narrator.say("nothing is up")
    else:
        narrator.say(f"stopping Airflow and Flink (process {state['pid']})")
        os.kill(state["pid"], signal.SIGTERM)
        try:
            wait_for("everything to stop", lambda: not _locked(), limit=_STOP_SECONDS, say=narrator.say)
        except DemoError:
            os.kill(state["pid"], signal.SIGKILL)  # its children end with it
            wait_for("everything to end", lambda: not _locked(), limit=_STOP_SECONDS, say=narrator.say)
        narrator.say("everything is stopped")
    shutil.rmtree(FOLDER, ignore_errors=True)
    return 0


def serve(narrator: Narrator, *, story: bool) -> int:
    """Run v1 with arriving orders until SIGTERM; with ``story``, propose all six versions in turn."""
    world = World(FOLDER)
    with _lock():
        world.make()
        with Parts(world, narrator.say, ports=_ports()) as parts, Feed(world.live, parts.watermark) as feed:
            teller = Story(world, parts, feed, narrator)
            if story:
                teller.tell()
            else:
                teller.first()
            feed.pause, feed.patience = _PAUSE_SECONDS, threading.TIMEOUT_MAX
            feed.go_on(START + timedelta(days=3650))
            _publish(parts)
            while True:
                parts.check()
                feed.check()
                time.sleep(1)


def _publish(parts: Parts) -> None:
    """Write the file that ``up`` and ``down`` read. The password stays in Airflow's own file."""
    state = {
        "pid": os.getpid(),
        "airflow": parts.airflow.url,
        "flink": parts.flink.jobmanager_url,
        "gateway": parts.flink.gateway_url,
        "user": parts.airflow.user,
    }
    new = _state_file().with_suffix(".new")
    new.write_text(json.dumps(state), encoding="utf-8")
    new.replace(_state_file())


def _addresses(narrator: Narrator, state: Mapping[str, Any]) -> None:
    passwords = json.loads((FOLDER / "airflow" / "passwords.json").read_text(encoding="utf-8"))
    folder = FOLDER.relative_to(CHECKOUT)
    narrator.plain()
    narrator.plain(f"Airflow      {state['airflow']}   user {state['user']}, password {passwords[state['user']]}")
    narrator.plain(f"Flink        {state['flink']}")
    narrator.plain(f"SQL Gateway  {state['gateway']}")
    narrator.plain(f"Results      {folder}/totals, ledger {folder}/ledger")
    narrator.plain()
    narrator.plain("The DAG watches one file. Propose the next version of the job, and see what the gate makes of it:")
    narrator.plain(f"  cp {folder}/versions/orders_v2.sql {folder}/orders.sql")
    narrator.plain("`make down` stops everything.")


def _news(stream: TextIO, narrator: Narrator) -> None:
    """Print new output of the background process."""
    for line in stream.read().splitlines():
        narrator.plain(line)


def _still_starting(child: subprocess.Popen[bytes], stream: TextIO, narrator: Narrator) -> None:
    """Print its new output; raises DemoError if it has ended."""
    ended = child.poll() is not None  # before its last words are read
    _news(stream, narrator)
    if ended:
        raise DemoError(f"the background process ended with exit code {child.returncode}")


def _ports() -> Ports:
    return Ports(**{name: _if_free(port) for name, port in _WANTED.items()})


def _if_free(port: int) -> int | None:
    try:
        return choose_ports({"it": port})["it"]
    except LocalFlinkError:
        return None


# -- who holds the folder


def _state_file() -> Path:
    return FOLDER / "up.json"


def _state() -> dict[str, Any] | None:
    with contextlib.suppress(OSError, ValueError):
        return dict(json.loads(_state_file().read_text(encoding="utf-8")))
    return None


def _running() -> dict[str, Any] | None:
    """State of running services; None if none runs. A process id alone may belong to another process."""
    return _state() if _locked() else None


def _locked() -> bool:
    try:
        with (FOLDER / "lock").open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def _lock() -> Iterator[None]:
    """Lock that this process keeps while it lives; children do not inherit it."""
    with (FOLDER / "lock").open("wb") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError(f"another process uses {FOLDER}: run `make down` first") from None
        (FOLDER / "lock").write_text(f"{os.getpid()}\n", encoding="ascii")
        yield


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())

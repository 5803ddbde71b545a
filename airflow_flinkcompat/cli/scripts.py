"""Scripts on a command line, from files, standard input or a Git revision."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.model import ENGINES, PROGRAM_SUFFIXES, InputError, Waiver, language_of
from airflow_flinkcompat.project.job_options import JobOptions
from airflow_flinkcompat.project.revisions import run_git, words_of
from airflow_flinkcompat.project.waivers import WAIVERS_SUFFIX, read_waivers
from airflow_flinkcompat.sql.script import decode_script, read_text

STDIN = "-"
NOTHING = os.devnull
"""The null device, which stands for a missing script, as in Git and ``diff``."""
_INDEX = "GIT_INDEX_FILE"


@dataclass(frozen=True)
class NamedScript:
    """A script and its name on the command line; ``text`` is None for a side without a script."""

    name: str
    text: str | None

    @property
    def source(self) -> str:
        """The name of the script in messages."""
        return "<stdin>" if self.name == STDIN else self.name


def read_named(name: str, *, program: bool = False) -> NamedScript:
    """Read a script by its name on the command line."""
    if name == STDIN:
        return NamedScript(name, decode_script(sys.stdin.buffer.read(), "<stdin>"))
    if name == NOTHING:
        return NamedScript(name, None)
    if not _is_of_revision(name):
        return NamedScript(name, None if _is_missing(name) else read_text(name, program=program))
    if language_of(name) == "python":
        raise InputError(
            f"{name}: a Python program is read with the files next to it: check out the revision (git worktree add "
            "FOLDER REV) and pass the file in FOLDER"
        )
    content = _of_revision(name)
    return NamedScript(name, None if content is None else decode_script(content, name, program=program))


def read_pair(old: str, new: str) -> tuple[NamedScript, NamedScript]:
    """Read both sides of a change; one side may be missing.

    A missing side means an added or deleted script only in three cases: the name is the null device, both names are the
    same path, or the new file is empty. Any other missing file may be a misspelt name, which must not pass the gate.
    """
    require_one_stdin(old, new)
    before, after = read_named(old, program=True), read_named(new, program=True)
    if after.text is not None and after.name != STDIN and not after.text.strip():
        after = NamedScript(new, None)
    elif after.text is None:
        _require_known_reason(after, before)
    if before.text is None:
        _require_known_reason(before, after)
    elif not before.text.strip() and before.name != STDIN:
        raise InputError(f"{old}: is empty; if nothing is deployed yet, pass {NOTHING} as OLD")
    if before.text is None and after.text is None:
        raise InputError(f"{old}, {new}: there is no script on either side")
    return before, after


def waivers_beside(name: str) -> tuple[Waiver, ...]:
    """Read the waivers next to a script, in the working tree or in the same revision."""
    if name in (STDIN, NOTHING):
        return ()
    of_script = _is_of_revision(name)
    place = f"{name}{WAIVERS_SUFFIX}"
    content = _of_revision(place) if of_script else None if _is_missing(place) else Path(place).read_bytes()
    return () if content is None else read_waivers(decode_script(content, place), place)


def require_one_stdin(old: str, new: str) -> None:
    """Raise InputError if both scripts are standard input."""
    if old == new == STDIN:
        raise InputError("- means standard input, which contains one script: pass a file for the other side")


def path_of(name: str) -> Path | None:
    """The file in the working tree for a name; None for standard input and the null device."""
    return None if name in (STDIN, NOTHING) else _path(name)


def required_side(script: NamedScript, options: JobOptions) -> Side:
    """One side of a change, from an existing script. Raises InputError if the script is missing."""
    side = side_of(script, options)
    if side is None:
        raise InputError(f"{script.name}: cannot be read: there is no such file")
    return side


def side_of(script: NamedScript, options: JobOptions, elsewhere: Mapping[str, str] | None = None) -> Side | None:
    """One side of a change, from a script; None if the script is missing."""
    if script.text is None:
        return None
    engine, path, text = options.engine or ENGINES[0], script.source, script.text
    side = Side(
        text, options.settings, options.functions, options.catalog, engine, options.engine_version, path,
        catalog_sources=options.catalog_sources, filled_elsewhere=options.filled_elsewhere,
    )  # fmt: skip
    if not path.endswith(PROGRAM_SUFFIXES):
        return side
    from airflow_flinkcompat.frontends.pyflink.reader import local_texts

    given, others = options.variables, elsewhere if path.endswith(".py") else None
    files = local_texts(path, text, given, others)
    return replace(side, language=language_of(path), variables=given, files=files)


def _require_known_reason(absent: NamedScript, other: NamedScript) -> None:
    """Raise InputError unless a missing side certainly means an added or deleted script."""
    if absent.name != NOTHING and (STDIN in (absent.name, other.name) or _path(absent.name) != _path(other.name)):
        raise InputError(
            f"{absent.name}: cannot be read: there is no such file; if the script was added or deleted, pass "
            f"{NOTHING} instead"
        )


def _is_missing(name: str) -> bool:
    return not Path(name).exists() and not Path(name).is_symlink()


def _is_of_revision(name: str) -> bool:
    return ":" in name and "://" not in name and _is_missing(name)


def _path(name: str) -> Path:
    """The file in the working tree for a name."""
    if not _is_of_revision(name):
        return Path(name).resolve()
    path = name.partition(":")[2]
    if path.startswith(("./", "../")):
        return Path(path).resolve()
    return (Path(_git(name, "rev-parse", "--show-toplevel").decode().rstrip("\n")) / path).resolve()


def _of_revision(name: str) -> bytes | None:
    """Content of a file in a Git revision; None if the revision lacks the file. Raises InputError."""
    revision = name.partition(":")[0]
    _git(name, "rev-parse", "--git-dir")
    if revision:
        try:
            _git(name, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{tree}}")
        except InputError:
            raise InputError(
                f"{name}: there is no such file, and no revision {revision!r} in this Git repository; a shallow "
                "clone lacks most revisions (git fetch)"
            ) from None
    try:
        kind = _git(name, "cat-file", "-t", name).decode().strip()
    except InputError:
        return None
    if kind != "blob":
        raise InputError(f"{name}: is no file in that revision but a {'folder' if kind == 'tree' else kind}")
    return _git(name, "cat-file", "blob", name)


def _git(name: str, *arguments: str) -> bytes:
    """Output of a Git command. Raises InputError with Git's message, or if Git is missing."""
    if name.startswith("-"):
        raise InputError(f"{name}: the name of a revision cannot begin with '-'")
    try:
        # In a hook, ":path" means the index that is about to be committed, which may not be the folder's index.
        index = os.environ.get(_INDEX)
        done = run_git(*arguments, environment={_INDEX: index} if index else None)
    except FileNotFoundError:
        raise InputError(f"{name}: REV:path needs git, which is not installed, and there is no such file") from None
    if done.returncode:
        words = words_of(done)
        if words.startswith("not a git repository"):
            words = "there is no such file, and REV:path needs a Git repository, but this folder is not in one"
        raise InputError(f"{name}: {words}")
    return done.stdout

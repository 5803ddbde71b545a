"""Paths, files and inputs, which a program takes from its environment.

The folder of the program is written as ``${program}``, and the working directory as ``${cwd}``. An input is an
:class:`~airflow_flinkcompat.frontends.table_api.values.UnknownValue` with a name. The name is the expression that
yields the input. In a text, the name is between two marks; in a statement, it becomes ``${name}``. Equal names must
mean equal values. Therefore, calls with effects outside of the program become part of the names of all later inputs.
After a call whose effect is unknown, later inputs have no name.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_flinkcompat.frontends.table_api.values import (
    INPUT_BEGINS,
    MARKED,
    Asked,
    Const,
    Container,
    Path,
    Ref,
    TooMuch,
    UnknownValue,
    Value,
    digest,
    names,
)

PROGRAM = "${program}"
STARTED = "${cwd}"
Loader = Callable[[str], str | None]
"""Function that returns the text of a file, by path from the program's folder; None if it is missing."""
FILE_LIMIT = 1_000_000
"""Maximum number of characters of one file."""
FILES_LIMIT = 100
"""Maximum number of files of a program."""
LOOKUPS_LIMIT = 2_000
"""Maximum number of files that are looked up for a program, including missing files."""


def symbolic(text: object) -> bool:
    """True if a text contains an input, or a folder that only the environment knows."""
    return isinstance(text, str) and (PROGRAM in text or STARTED in text or INPUT_BEGINS in text)


def normal(path: str) -> str:
    """The path without ``.``, and without each ``..`` that follows a folder."""
    head, rest = _head(path)
    parts: list[str] = []
    for part in rest.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    if head == "/":
        return "/" + "/".join(part for part in parts if part != "..")
    return "/".join([*([head] if head else []), *parts]) or "."


def absolute(path: str) -> str:
    """``os.path.abspath``."""
    return normal(path if _head(path)[0] else f"{STARTED}/{path}")


def join(*paths: str) -> str:
    """``os.path.join``: an absolute path replaces the paths before it."""
    found = ""
    for path in paths:
        found = path if not found or _head(path)[0] else f"{found.rstrip('/')}/{path}"
    return found


def parent(path: str) -> str:
    """``os.path.dirname``."""
    head, rest = _head(path)
    if head in (PROGRAM, STARTED) and not rest.strip("/"):
        return f"{head}/.."
    return f"{path}/.." if posixpath.basename(path) == ".." else posixpath.dirname(path)


def inside(path: str) -> str | None:
    """The path from the program's folder; None if the path leads out of the folder or starts elsewhere.

    A relative path is also resolved from the program's folder, because programs are usually started there.
    """
    head, rest = _head(path)
    if head == "/" or "\\" in path or "\0" in path or re.match(r"[A-Za-z]:", path):
        return None
    found = normal(rest.lstrip("/"))
    return None if found.startswith("..") or found == "." or symbolic(found) else found


def _head(path: str) -> tuple[str, str]:
    for head in (PROGRAM, STARTED):
        if path == head or path.startswith(f"{head}/"):
            return head, path.removeprefix(head)
    return ("/", path) if path.startswith("/") else ("", path)


@dataclass
class Files:
    """Reader of files next to a program. ``used`` contains the texts that were found, by path."""

    load: Loader
    used: dict[str, str] = field(default_factory=dict)
    _looked_up: dict[str, str | None] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """The text of a file; None if the file is missing. Raises :class:`TooMuch` beyond the limits."""
        if path not in self._looked_up:
            if len(self._looked_up) >= LOOKUPS_LIMIT or len(self.used) >= FILES_LIMIT:
                raise TooMuch(f"it reads more than {FILES_LIMIT} files")
            found = self.load(path)
            if found is not None and len(found) > FILE_LIMIT:
                raise TooMuch(f"{path} is longer than {FILE_LIMIT} characters")
            self._looked_up[path] = found
            if found is not None:
                self.used[path] = found
        return self._looked_up[path]

    def beside(self, path: str) -> str | None:
        """The text of a file by its path in the program; None for a file outside of the program's folder.

        A file outside of the folder is never looked up, but its text can be passed under its absolute path.
        """
        found = path if path.startswith("/") and normal(path) == path and not symbolic(path) else inside(path)
        return None if found is None else self.text(found)


def loader(files: Mapping[str, str] | Loader | None) -> Loader:
    """Make a loader from a mapping of paths to texts, or from a function."""
    if files is None:
        return lambda path: None
    return files.get if isinstance(files, Mapping) else files


_BARE_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_LENGTH = 600
"""Maximum length of a name; a longer name is cut, and a digest is added."""
_PURE = re.compile(
    r"builtins\.(str|int|float|bool|len|repr|min|max|sum|sorted|list|tuple|dict|set|abs|round|any|all)"
    r"|json\.loads?|ast\.literal_eval|os\.path\.\w+|re\.(sub|split|escape)|base64\.\w+|urllib\.parse\.\w+"
    r"|yaml\.(safe_)?load|toml(lib)?\.loads?|pathlib\.\w+|shlex\.\w+|textwrap\.\w+|boto3\.(client|resource)"
)
"""Functions whose result depends only on their arguments, or on a location in the arguments."""
_LOADS = ("json.load", "json.loads", "yaml.safe_load", "tomllib.load", "tomllib.loads", "toml.load", "toml.loads")
_METHODS = re.compile(
    r"(get|items|keys|values|copy|split|rsplit|splitlines|strip|[lr]strip|upper|lower|title|replace|startswith"
    r"|endswith|removeprefix|removesuffix|join|format|encode|decode|count|index|isdigit|partition|rpartition|zfill"
    r"|exists|is_file|is_dir|read_text|get_parameter|get_secret_value)"
)
"""Methods that change nothing, and whose result depends only on the object and the arguments."""


def named(name: str, of: Sequence[Value] = (), reason: str = "") -> UnknownValue:
    """An input, or a value derived from the inputs ``of``, with the reason of the first input."""
    why = reason or next((each.reason for each in of if isinstance(each, UnknownValue) and each.name), "")
    if not why:
        found = next((value for each in of if (value := _inside(each)) is not None), "")
        why = f"{found} is unknown" if found else Asked("the command line decides", "sys.argv[1]")
    return UnknownValue(why, name=name if len(name) <= _LENGTH else f"{name[:40]}~{digest(name)}")


def canonical(value: Value) -> str:
    """The spelling of a value inside the name of an input; "" if the value is unknown."""
    match value:
        case UnknownValue(name=name):
            return name
        case Const(str(text)):
            parts = MARKED.split(text)
            return " + ".join(_literal(part) if i % 2 == 0 else part for i, part in enumerate(parts) if part) or '""'
        case Const(given):
            return repr(given)
        case Path(text):
            return f"Path({canonical(Const(text))})"
        case Ref(path) if path == "sys.argv" or path.startswith("yaml."):
            return path
        case Container(dict(pairs), "") if all(isinstance(key, str) for key in pairs):
            values = {str(key): canonical(each) for key, each in pairs.items()}
            written = ", ".join(f"{_literal(key)}: {each}" for key, each in values.items())
            return f"{{{written}}}" if all(values.values()) else ""
        case Container(list(inner), "", kind) if kind in ("list", "tuple"):
            listed = [canonical(each) for each in inner]
            return f"{kind}({', '.join(listed)})" if all(listed) else ""
    return ""


def has_input(value: Value) -> bool:
    """True if a value contains an input."""
    match value:
        case UnknownValue(name=name):
            return bool(name)
        case Const(str(text)) | Path(text):
            return INPUT_BEGINS in text
        case Ref(path):
            return path == "sys.argv"
        case Container(list(inner), "", kind) if kind in ("list", "tuple"):
            return any(map(has_input, inner))
    return False


def element(owner: Value, key: Value) -> UnknownValue | None:
    """The input ``owner[key]``; None if the owner is not an input."""
    where, at = canonical(owner), canonical(key)
    if not (has_input(owner) and where and at):
        return None
    if owner == Ref("sys.argv"):
        return named(f"sys.argv[{at}]", reason=Asked("the command line decides", f"sys.argv[{at}]"))
    if isinstance(key, Const) and isinstance(key.value, str) and _BARE_KEY.fullmatch(key.value):
        at = key.value
    return named(f"{where}[{at}]", (owner, key))


def found_by(condition: str, name: str) -> str:
    """Suffix of the name for an input's element that meets a condition."""
    plain = re.fullmatch(r"\(\[\*\]\[([\w.-]+)\] == \"([\w.:-]+)\"\)", condition.replace(name, ""))
    return f"[{plain[1]}={plain[2]}]" if plain else condition.replace(f"{name}[*]", "")


def operation(left: Value, word: str, right: Value) -> UnknownValue | None:
    """The input ``left OP right``; None if neither operand contains an input."""
    written = canonical(left), canonical(right)
    if not all(written) or not (has_input(left) or has_input(right)):
        return None
    return named(f"({written[0]} {word} {written[1]})", (left, right))


def called(path: str, args: Sequence[Value], words: Mapping[str, Value]) -> UnknownValue | None:
    """The input that a pure function of inputs returns; None for any other function."""
    every = [*args, *words.values()]
    if path in _LOADS and len(args) == 1 and not words:
        match args[0]:
            case UnknownValue(name=name) if name.startswith("text of "):
                return named(name.removeprefix("text of "), args)
    if not _PURE.fullmatch(path) or not (any(map(has_input, every)) or path.startswith("boto3.")):
        return None
    if path == "builtins.str" and len(args) == 1 and isinstance(args[0], UnknownValue) and not words:
        return args[0]
    return _call(path.removeprefix("builtins."), args, words)


def method(owner: Value, name: str, args: Sequence[Value], words: Mapping[str, Value]) -> UnknownValue | None:
    """The input ``owner.name(…)``; None if owner and arguments contain no input."""
    where = canonical(owner)
    if not where or not any(map(has_input, (owner, *args, *words.values()))):
        return None
    if not _METHODS.fullmatch(name):
        return None
    if name == "get" and len(args) == 1 and not words:
        return element(owner, args[0])
    if isinstance(owner, UnknownValue) and owner.name.startswith("text of ") and name == "strip" and not args:
        return named(f"{owner.name}.strip()", (owner,))
    return _call(f"({where}).{name}", args, words, (owner,))


def _call(
    function: str, args: Sequence[Value], words: Mapping[str, Value], of: Sequence[Value] = ()
) -> UnknownValue | None:
    listed = [canonical(arg) for arg in args]
    given = {key: canonical(value) for key, value in words.items()}
    if not all(listed) or not all(given.values()):
        return None
    written = ", ".join([*listed, *(f"{key}={value}" for key, value in sorted(given.items()))])
    return named(f"{function}({written})", (*of, *args, *words.values()))


def _literal(text: str) -> str:
    """Quote a text, and escape all characters that end a text in SQL."""
    escaped = text.encode("unicode_escape").decode()
    return '"' + escaped.replace('"', "\\x22").replace("'", "\\x27").replace("`", "\\x60") + '"'


def _inside(value: Value) -> str | None:
    match value:
        case Const(str(text)) | Path(text):
            return next(iter(names(text)), None)
        case Container(list(inner), ""):
            return next((found for each in inner if (found := _inside(each)) is not None), None)
    return None


_QUIET = frozenset(
    """
    logging loguru structlog colorlog time datetime math random uuid re warnings itertools functools collections decimal
    fractions enum typing typing_extensions sys textwrap hashlib base64 traceback copy operator numpy scipy pytz
    dateutil dataclasses json argparse contextlib threading string jmespath
    """.split()  # noqa: SIM905 -- a list of names
)
"""Modules whose functions change neither files nor environment variables."""
_LOUD_BUILTINS = frozenset({"open", "exec", "eval", "compile", "__import__", "setattr", "delattr", "input"})
_CHANGED = "the program may have changed an input before it uses it"


@dataclass
class Surroundings:
    """Effects of the program so far that may change later inputs."""

    done: list[str] = field(default_factory=list)
    """Calls so far whose effects are known."""
    lost: str = ""
    """The reason why later inputs have no name."""
    spoiled: str = ""
    """The reason why inputs that may be lists or dictionaries have no name."""
    texts: set[str] = field(default_factory=set)
    """Names of inputs that are texts or numbers, which no call can change in place."""

    def input(self, name: str, reason: str, text: bool = False) -> UnknownValue:
        """The input at this point of the program; it has no name after a call with unknown effects."""
        if self.lost or not name:
            return UnknownValue(reason)
        found = named(f"{name} after {digest(chr(10).join(self.done))}" if self.done else name, reason=reason)
        if text:
            self.texts.add(found.name)
        return found

    def current(self, value: UnknownValue | None) -> UnknownValue | None:
        """A value that is derived from inputs, as of this point of the program."""
        return value if value is None or not (self.done or self.lost) else self.input(value.name, value.reason)

    def known(self, value: Value) -> Value:
        """The value, without its name if a call may have changed the value in place."""
        if isinstance(value, UnknownValue) and value.name and self.spoiled and value.name not in self.texts:
            return UnknownValue(self.spoiled, value.tables)
        return value

    def called(
        self, path: str, owner: Value | None, name: str, args: Sequence[Value], words: Mapping[str, Value]
    ) -> bool:
        """Record a call that is not read. Returns True if the call has no effect outside of its arguments."""
        module = path.partition(".")[0]
        if module not in ("logging", "builtins"):
            for each in (owner, *args, *words.values()):
                if isinstance(each, UnknownValue) and each.name and each.name not in self.texts:
                    self.spoiled = _CHANGED
        if module == "builtins":
            quiet = path.removeprefix("builtins.") not in _LOUD_BUILTINS
        else:
            quiet = module in _QUIET or isinstance(owner, Const | Container)
            quiet |= isinstance(owner, UnknownValue) and owner.quiet
        if not quiet:
            what = path or (f"({written}).{name}" if owner is not None and (written := canonical(owner)) else "")
            parts = [canonical(each) for each in (*args, *words.values())]
            if what and all(parts):
                self.done.append(f"{what}({', '.join(parts)}; {', '.join(words)})")
            else:
                self.lost = self.lost or f"a call of {path or name or 'a value'} may have changed the environment"
                self.spoiled = self.spoiled or _CHANGED
        return quiet

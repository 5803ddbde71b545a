"""Figures of the code and the pages: size, small modules, first lines of docstrings, sentences.

``python -m dev.house`` prints the figures. ``python -m dev.house --check``, which ``make lint`` runs, checks the
package, ``dev``, ``scripts`` and ``dags``. It fails if the first line of a docstring begins with a clause or is too
long.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "airflow_flinkcompat"
_CLAUSE = re.compile(r"(What|Whether|Which|Who|Whose|Of|How|Where|Why|That)\b")
_SMALL = 60
"""Lines below which a module is small."""
_LONG_SENTENCE = 40
_LONG_LINE = 100


CHECKED = (PACKAGE.name, "dev", "scripts", "dags")
"""Folders whose docstrings are checked."""


def modules(*folders: str) -> list[Path]:
    """Tracked Python modules of these folders; by default, of the package."""
    command = ["git", "ls-files", *(f"{folder}/*.py" for folder in folders or (PACKAGE.name,))]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split() if (ROOT / name).exists()]


def first_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line number and first line of every docstring of a module, including those of attributes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        body = node.body if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) else []
        for before, part in zip([node, *body], body, strict=False):
            documented = before is node or isinstance(before, ast.Assign | ast.AnnAssign)
            value = part.value if documented and isinstance(part, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield part.lineno, value.value.strip().partition("\n")[0]


def sentences(text: str) -> Iterator[int]:
    """Number of words of each sentence of a page, without code, tables and headings."""
    text = re.sub(r"```.*?```|^\s*[|#].*?$|<[^>]+>", "", text, flags=re.S | re.M)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[*\d-])", text):
        for sentence in re.split(r"(?<=[.:!?])\s", re.sub(r"\]\([^)]*\)|[`*\[\]]", "", paragraph)):
            if words := re.findall(r"[^\s]*\w[^\s]*", sentence):
                yield len(words)


def faults() -> list[str]:
    """Messages about first lines that begin with a clause or are too long."""
    return [
        f"{path.relative_to(ROOT)}:{number}: {len(line)} of {_LONG_LINE} characters, or begins with a clause: {line}"
        for path in modules(*CHECKED)
        for number, line in first_lines(path)
        if _CLAUSE.match(line) or len(line) > _LONG_LINE
    ]


def figures() -> Iterator[tuple[str, object]]:
    """Name and value of each figure."""
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in modules()}
    yield "modules", len(lines)
    yield f"modules under {_SMALL} lines", sum(count < _SMALL for count in lines.values())
    yield "lines", sum(lines.values())
    for folder in sorted(each for each in PACKAGE.iterdir() if each.is_dir()):
        if inside := [count for path, count in lines.items() if folder in path.parents]:
            yield f"  {folder.name}", f"{len(inside)} modules, {sum(inside)} lines"
    first = [line for path in lines for _, line in first_lines(path)]
    yield "docstrings", len(first)
    yield "first lines that are clauses", sum(bool(_CLAUSE.match(line)) for line in first)
    yield f"first lines over {_LONG_LINE} characters", sum(len(line) > _LONG_LINE for line in first)
    written = {each for folder in ("docs", "docs/design", "docs/targets") for each in (ROOT / folder).glob("*.md")}
    pages = [ROOT / "README.md", *sorted(written)]
    counted = [count for page in pages for count in sentences(page.read_text(encoding="utf-8"))]
    yield "words of README.md", len((ROOT / "README.md").read_text(encoding="utf-8").split())
    yield "words of all pages", sum(counted)
    yield "words a sentence", round(sum(counted) / len(counted), 1)
    yield f"sentences over {_LONG_SENTENCE} words", sum(count > _LONG_SENTENCE for count in counted)


if __name__ == "__main__":
    if "--check" in sys.argv:
        found = faults()
        print("\n".join(found))
        raise SystemExit(f"{len(found)} first lines are clauses or too long: see docs/style.md" if found else 0)
    for name, value in figures():
        print(f"{name:36} {value}")

"""Rules about WHERE and HAVING conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from decimal import Decimal

from airflow_flinkcompat.compat.changes.format import format_conditions, format_expressions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.changes.query_form import expressions, never_null
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, windowed
from airflow_flinkcompat.compat.rule_builders.part_rules import IGNORE, IGNORED
from airflow_flinkcompat.compat.rule_builders.projections import projection_on_flink, projection_on_vvr
from airflow_flinkcompat.compat.verdict import documented, measured, right, unknown
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, Literal, walk
from airflow_flinkcompat.plan.operators import (
    BOUNDS,
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    Output,
    RankOperator,
    StatelessSegment,
    segments,
)
from airflow_flinkcompat.plan.origins import (
    KeyOutput,
    OperatorColumn,
    PassedOutput,
    RankNumber,
    SourceColumn,
    WindowColumn,
    leaves,
)
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.plan.types import UNKNOWN

_TESTS = frozenset({"IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE", "IS NULL", "IS NOT NULL"})
_ORDERS = frozenset({"<", "<=", ">", ">="})
_DISTINCT = frozenset({"IS DISTINCT FROM", "IS NOT DISTINCT FROM"})
_COMPARISONS = frozenset({"=", "<>", "IN", "LIKE"}) | _ORDERS | _TESTS | _DISTINCT
_LOGIC = frozenset({"AND", "OR", "NOT"})
_CASES = frozenset({"CASE", "IF"})
_FIRST = frozenset({"COALESCE", "IFNULL"})
_CONDITIONS = _COMPARISONS | _LOGIC | _CASES | _FIRST
_FILLED = frozenset({"CAST", "+", "-", "*"})
"""Functions that never return NULL for constants other than NULL."""
_NEVER = frozenset({"ARRAY", "MAP", "ROW", "JSON_OBJECT", "JSON_ARRAY", "JSON_EXISTS"}) | _TESTS | _DISTINCT
"""Functions that never return NULL."""
Column = tuple[int, object]
"""Identity of the segment that produces a column, and the column."""


@dataclass(frozen=True)
class _RowCondition:
    """A comparison that filters rows, and the columns it reads; ``always``: all rows must meet it."""

    atom: Expression
    columns: tuple[Column, ...]
    always: bool


def foldable_conditions(output: Output, program: Program) -> dict[Expression, frozenset[Expression]]:
    """Conditions that the planner may evaluate and then remove together with their inputs.

    The planner evaluates a condition over constants, and several conditions on one column, even across nested queries,
    views and joins. For several conditions on one column, this function does not evaluate the conditions.
    """
    filled = never_null(output, program)
    alone = [part for whole in expressions(output) for part in walk(whole) if _is_decidable(part, filled)]
    alone += [part for segment in segments(output) for part in segment.filters if isinstance(part, Literal)]
    asked, equated = _merge_equal_columns(_row_conditions(output))
    alone += [each.atom for each in asked if _may_be_null_constant(each.atom) or _is_decidable(each.atom, filled)]
    found = {part: frozenset((part,)) for part in alone}
    for column in dict.fromkeys(column for each in asked for column in each.columns):
        about = [each for each in asked if column in each.columns]
        atoms = frozenset(each.atom for each in about)
        always = all(each.always for each in about)
        several = len(about) > 1 and not (always and (len(atoms) == 1 or _accept_some_values(atoms)))
        fixed = column in equated and any(getattr(atom, "function", "") in ("IS NULL", "=") for atom in atoms)
        if several or fixed or any(each.columns.count(column) > 1 for each in about):
            found |= {atom: found.get(atom, atoms) | atoms for atom in atoms}
    return found


def _merge_equal_columns(asked: Iterable[_RowCondition]) -> tuple[list[_RowCondition], set[Column]]:
    """Comparisons other than column equalities, and the columns that these equalities merged."""
    others, same = list[_RowCondition](), dict[Column, Column]()
    for each in asked:
        columns = {_representative(same, column) for column in each.columns}
        match each.atom:
            case FunctionCall("=", args) if each.always and len(columns) == len(args):
                bare = not any(isinstance(arg, FunctionCall | Literal) for arg in args)
            case _:
                bare = False
        if bare:
            one, other = columns
            same[one] = other
        else:
            others.append(each)
    named = [replace(each, columns=tuple(_representative(same, column) for column in each.columns)) for each in others]
    return named, {_representative(same, column) for column in same}


def _representative(same: Mapping[Column, Column], column: Column) -> Column:
    while column in same:
        column = same[column]
    return column


def _is_decidable(part: Expression, never_null: Set[str]) -> bool:
    """True if the planner may evaluate a condition because of constants, NULLs or equal operands."""
    if not isinstance(part, FunctionCall) or part.function not in _CONDITIONS:
        return False
    function, args = part.function, part.args
    if function in _COMPARISONS:
        tested = function in _TESTS and any(_is_never_null(arg, never_null) for arg in args)
        same = function != "IN" and len(set(args)) < len(args)
        every = function == "LIKE" and isinstance(args[1], Literal) and not str(args[1].value).strip("%")
        return any(map(_null, args)) or tested or same or every or _constant(part)
    if function in _LOGIC:
        return any(map(_constant, args))
    return any(isinstance(arg, Literal) and isinstance(arg.value, bool) for arg in args)


def _constant(part: Expression) -> bool:
    return all(isinstance(each, FunctionCall | Literal) for each in walk(part))


def _null(part: Expression) -> bool:
    return _constant(part) and _may_be_null_constant(part)


def _is_never_null(part: Expression, never_null: Set[str]) -> bool:
    """True if a value is never NULL, such as a NOT NULL column or a computation over NOT NULL columns."""
    match part:
        case SourceColumn():
            return part.column in never_null
        case Literal():
            return part.value is not None
        case FunctionCall():
            some = any if part.function in _FIRST | _CASES else all
            return part.function in _NEVER or some(_is_never_null(arg, never_null) for arg in part.args)
        case WindowColumn() | OperatorColumn(output=WindowColumn() | RankNumber() | AggregateCall(function="COUNT")):
            return True
        case OperatorColumn(output=AggregateCall(args=args)):
            return all(_is_never_null(arg, never_null) for arg in args)
        case OperatorColumn(output=PassedOutput(column=column) | KeyOutput(key=column)):
            return _is_never_null(column, never_null)
        case OperatorColumn(
            output=SourceColumn() | FunctionCall() | OperatorColumn() as column
        ):  # a column of a join input
            return _is_never_null(column, never_null)
    return False


def _may_be_null_constant(atom: Expression) -> bool:
    """True if a comparison contains NULL, CASE, NULLIF, or a call over constants that may return NULL."""
    for part in walk(atom):
        if isinstance(part, Literal) and part.value is None:
            return True
        if not isinstance(part, FunctionCall) or not part.args or part.function in _FILLED:
            continue
        if _constant(part) or part.function in {*_CASES, "NULLIF"}:
            return True
    return False


def _row_conditions(output: Output) -> Iterator[_RowCondition]:
    """All comparisons that filter the rows of a query."""
    for segment in segments(output):
        for condition in segment.filters | segment.window_filters:
            yield from _row_conditions_of(condition, (segment,))
        if isinstance(join := segment.origin, JoinOperator):
            for condition in (*join.conditions, *(FunctionCall("=", sides, UNKNOWN) for sides in join.keys)):
                yield from _row_conditions_of(condition, join.segments)
            for bound in BOUNDS if join.form is JoinForm.WINDOW else ():
                sides = tuple(OperatorColumn(i, WindowColumn(bound, type=UNKNOWN), type=UNKNOWN) for i in (0, 1))
                yield from _row_conditions_of(FunctionCall("=", sides, UNKNOWN), join.segments)


def _row_conditions_of(condition: Expression, inputs: Sequence[StatelessSegment]) -> Iterator[_RowCondition]:
    for atom, always in _atoms(condition):
        columns = tuple(_columns(atom, inputs))
        in_list = isinstance(atom, FunctionCall) and atom.function == "OR"
        yield _RowCondition(atom, tuple(dict.fromkeys(columns)) if in_list else columns, always)


def _atoms(condition: Expression, always: bool = True) -> Iterator[tuple[Expression, bool]]:
    """The comparisons in a condition, each with True if every row must satisfy the comparison."""
    if not isinstance(condition, FunctionCall) or condition.function not in _LOGIC or _is_in_list(condition):
        if not isinstance(condition, Literal):
            yield condition, always
        return
    for part in condition.args:
        yield from _atoms(part, always and condition.function == "AND")


def _is_in_list(condition: FunctionCall) -> bool:
    """True if a condition compares one column with several constants, as IN does."""
    columns = {
        part.args[0]
        for part in condition.args
        if isinstance(part, FunctionCall) and part.function == "=" and isinstance(part.args[1], Literal)
    }
    equals = all(isinstance(part, FunctionCall) and part.function == "=" for part in condition.args)
    return condition.function == "OR" and equals and len(columns) == 1


def _columns(part: Expression, inputs: Sequence[StatelessSegment]) -> Iterator[Column]:
    """The columns that an expression reads, resolved to the most upstream operator that passes them on."""
    for leaf in leaves(part):
        if isinstance(leaf, Literal):
            continue
        segment, origin = inputs[0], inputs[0].origin
        if len(inputs) > 1 and isinstance(leaf, OperatorColumn):
            yield from _columns(leaf.output, (inputs[leaf.operator],))
        elif not isinstance(leaf, OperatorColumn) or not isinstance(origin, Operator):
            yield id(segment), leaf
        elif isinstance(leaf.output, PassedOutput):
            yield from _columns(leaf.output.column, (origin.segments[leaf.output.input],))
        elif isinstance(leaf.output, KeyOutput):
            yield from _columns(leaf.output.key, (origin.segments[0],))
        else:
            yield id(segment), leaf.output


def _accept_some_values(atoms: Iterable[Expression]) -> bool:
    """True if comparisons of a value with constants certainly accept some values and exclude others."""
    bounds: dict[str, list[float]] = {"<": [], ">": []}
    values, excluded = set(), False
    for atom in atoms:
        match atom:
            case FunctionCall("<>", (value, Literal())):
                excluded = True
            case FunctionCall("<" | "<=" | ">" | ">=" as sign, (value, Literal(int() | float() | Decimal() as number))):
                bounds[sign[0]].append(float(number))
            case _:
                return False
        values.add(value)
    if len(values) > 1 or (excluded and (bounds["<"] or bounds[">"])):
        return False
    return not (bounds["<"] and bounds[">"]) or max(bounds[">"]) < min(bounds["<"])


@dataclass
class _Reading:
    """Operator outputs that downstream columns surely read, and outputs that only a foldable call reads."""

    segment: StatelessSegment
    never_null: Set[str]
    sure: set[Expression] = field(default_factory=set)
    folded: dict[Expression, Expression] = field(default_factory=dict)

    def read(self, part: Expression, folded_by: Expression | None = None) -> None:
        """Add the columns that an expression reads; ``folded_by`` is an outer call that may be folded."""
        if not isinstance(part, FunctionCall):
            for leaf in leaves(part):
                if folded_by is None:
                    self.sure.add(leaf)
                elif not isinstance(leaf, Literal):
                    self.folded.setdefault(leaf, folded_by)
            return
        function, args = part.function, part.args
        if folded_by is None and function in _CASES:
            self._case(part)
            return
        if folded_by is None and function in _FIRST:
            for arg in args:
                self.read(arg, folded_by)
                folded_by = part if folded_by or _is_never_null(arg, self.never_null) else None
            return
        if (
            any(map(_null, args))
            or (function in _COMPARISONS | _LOGIC and self._may_be_decided(part, set()))
            or (function == "NULLIF" and args[0] == args[1])
        ):
            folded_by = part
        for arg in args:
            self.read(arg, folded_by)

    def _case(self, case: FunctionCall) -> None:
        """Add the columns that a CASE reads.

        If a condition is foldable, the planner may remove the branch of this condition and all later branches.
        """
        *branches, last = case.args
        results = {*branches[1::2], last}
        asked: set[Column] = set()
        folded_by: Expression | None = case if len(results) == 1 else None
        for condition, result in zip(branches[::2], branches[1::2], strict=True):
            if self._may_be_decided(condition, asked):
                folded_by = case
            self.read(condition, folded_by)
            self.read(result, folded_by if len(results) > 1 else None)
            asked.update(_columns(condition, (self.segment,)))
        self.read(last, folded_by)

    def _may_be_decided(self, condition: Expression, asked: Set[Column]) -> bool:
        filters = (column for part in self.segment.filters for column in _columns(part, (self.segment,)))
        columns = list(_columns(condition, (self.segment,)))
        parts = (_null(part) or _is_decidable(part, self.never_null) for part in walk(condition))
        return len({*columns}) < len(columns) or bool({*columns} & {*asked, *filters}) or any(parts)


def _outputs_only_folded(output: Output, program: Program) -> dict[Expression, Expression]:
    """Outputs of the operator nearest the sink that only a foldable call reads, each with the call."""
    if not isinstance(output.segment.origin, Operator):
        return {}
    reading = _Reading(output.segment, never_null(output, program))
    for column in output.columns:
        reading.read(column)
    for condition in output.segment.filters:
        reading.sure.update(leaves(condition))
    return {leaf: call for leaf, call in reading.folded.items() if leaf not in reading.sure}


def _has_conditions(output: Output) -> bool:
    """True if a query has a call, a filter or a join that the planner may evaluate."""
    for segment in segments(output):
        if segment.filters or segment.window_filters or isinstance(segment.origin, JoinOperator):
            return True
    return FunctionCall in set(map(type, expressions(output)))


@Rule(
    code="constant-condition",
    title="A condition that the planner may evaluate",
    vvr=unknown(),
    flink=unknown(),
    rationale=(
        "The planner folds constants. A condition that is always false removes its source and state from the job. "
        "A condition that is always true removes the filter."
    ),
    example=Example(
        windowed("customer, SUM(amount)"), windowed("customer, SUM(amount)").replace(";", "\nHAVING 1 = 0;")
    ),
)
def constant_condition(pair: PipelinePair) -> Iterable[RuleMatch]:
    if not pair.changed or not (_has_conditions(pair.old) or _has_conditions(pair.new)):
        return
    sides = (pair.old, pair.old_program), (pair.new, pair.new_program)
    old, new = (foldable_conditions(*side) for side in sides)
    before, after = (
        [part for part, met in one.items() if other.get(part) != met] for one, other in ((old, new), (new, old))
    )
    folded, now = (_outputs_only_folded(*side) for side in sides)
    if folded != now:
        before += folded.values()
        after += now.values()
    if before or after:
        yield RuleMatch(
            "the planner may evaluate a condition or a call and then remove operators that are no longer necessary",
            (),
            *map(format_expressions, (frozenset(before), frozenset(after))),
        )


@Rule(
    code="filter-above-state",
    title="A condition above the state changed",
    vvr=documented(Outcome.COMPATIBLE, "WHERE page: no stateful operator follows"),
    flink=right("w-having-add"),
    rationale="HAVING and other conditions on metrics filter the emitted results and store nothing.",
    example=Example(
        windowed("customer, SUM(amount)"), windowed("customer, SUM(amount)").replace(";", "\nHAVING SUM(amount) > 10;")
    ),
    parts=("filters",),
    case_dependent=("vvr", "flink"),
    beside_operators=True,
)
def filter_above_state(pair: PipelinePair) -> Iterable[RuleMatch]:
    if "filters" in pair.parts and not pair.others:
        old, new = (side.segment.filters for side in (pair.old, pair.new))
        yield RuleMatch(
            f"a condition{' above the state' if pair.operators else ''} changed",
            pair.claim("filters"),
            *map(format_conditions, (old, new)),
            verdicts={"vvr": projection_on_vvr(pair), "flink": projection_on_flink(pair)},
        )


# EXPLAIN on 2.3 shows that the planner moves the condition to the window's input; no page covers other planners.
MOVED = dict.fromkeys(("vvr", "flink"), unknown("a condition above a session window does not affect when sessions end"))
# The state of the remaining keys is right (restored on 2.3). Rows of excluded keys stay in the sink.
OF_KEYS = {"flink": unknown("the condition excludes whole keys, and their rows stay in the sink")}
PARTS = ("filters", "filters above the session window")


def _format_filters(segment: StatelessSegment) -> str:
    """Format the conditions of a segment, and mark conditions on the output of a session window."""
    above = segment.filters_above_session
    return format_conditions(segment.filters) + (
        f" ({format_conditions(above)} above the session window)" if above else ""
    )


def _excludes_only_keys(old: AggregateOperator | RankOperator, new: AggregateOperator | RankOperator) -> bool:
    """True if conditions were only added and each reads only the key or partition columns."""
    before, after = (side.keys if isinstance(side, AggregateOperator) else side.partition for side in (old, new))
    added = new.segment.filters - old.segment.filters
    of_keys = all(_reads_only(condition, {*after}) for condition in added)
    return before == after and old.segment.filters < new.segment.filters and of_keys


def _reads_only(condition: Expression, columns: Set[Expression]) -> bool:
    """True if a condition reads some of the columns, no other columns and no NULL."""
    read = {*leaves(condition)}
    literals = {leaf for leaf in read if isinstance(leaf, Literal)}
    return bool(read - literals) and read - literals <= columns and all(each.value is not None for each in literals)


@Rule(
    code="filter-below-state",
    title="A condition below the state changed",
    vvr=documented(Outcome.INCOMPATIBLE, "WHERE page"),
    flink=measured(Outcome.INCOMPATIBLE, "w-filter-nonwindow-add"),
    rationale="The stored values were accumulated from rows that met the old condition.",
    example=Example(
        windowed("customer, SUM(amount)"),
        windowed("customer, SUM(amount)").replace("\nGROUP", "\nWHERE amount > 4\nGROUP"),
    ),
    operators=(AggregateOperator, RankOperator),
    parts=PARTS,
)
def filter_below_state(pair: OperatorPair) -> Iterable[RuleMatch]:
    sides = pair.aggregations or pair.ranks
    if sides is None or not pair.parts & set(PARTS):
        return
    old, new = (side.segment for side in sides)
    ignored = dict(pair.pipeline.new_pipeline.settings).get(IGNORE, "false").lower() == "true"
    note = "; rows counted before the change were filtered by the old condition" if ignored else ""
    moved = old.filters == new.filters
    word = "moved past the session window" if moved else "changed"
    yield RuleMatch(
        f"a condition on the rows that reach the state {word}{note}",
        pair.claim(*PARTS),
        *map(_format_filters, (old, new)),
        verdicts=IGNORED if ignored else MOVED if moved else OF_KEYS if _excludes_only_keys(*sides) else {},
    )

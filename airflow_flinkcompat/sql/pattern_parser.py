"""``MATCH_RECOGNIZE`` with its row pattern."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.type_parser import TypeParser

_ROWS = ("ONE ROW PER MATCH", "ALL ROWS PER MATCH")
# The longest is first, because ``TO`` alone precedes a pattern variable.
_AFTER_FIXED = ("PAST LAST ROW", "TO NEXT ROW")
_AFTER_VARIABLE = ("TO FIRST", "TO LAST", "TO")


class PatternParser(TypeParser):
    """The part of the parser that reads MATCH_RECOGNIZE."""

    def parse_match_recognize(self, relation: exp.Expr, start: Token) -> nodes.MatchRecognize:
        """Read the clause after the word ``MATCH_RECOGNIZE``; ``relation`` is its input."""
        self._match_l_paren()
        partition = self._parse_partition_by()
        order = self._parse_order()
        measures = self._parse_csv(self._parse_measure) if self.match_words("MEASURES") else None
        rows = next((rows for rows in _ROWS if self.match_words(*rows.split())), None)
        after = self._parse_after_match() if self.match_words("AFTER", "MATCH", "SKIP") else None
        self.expect_words("PATTERN")
        pattern = self._parse_wrapped(self._parse_pattern)
        within = self._require_interval() if self.match_words("WITHIN") else None
        subsets = self._parse_csv(self._parse_subset) if self.match_words("SUBSET") else None
        define = self._parse_csv(self._parse_definition) if self.match_words("DEFINE") else None
        self._match_r_paren()
        node = nodes.MatchRecognize(
            this=relation,
            partition_by=partition,
            order=order,
            measures=measures,
            rows=rows,
            after=after,
            pattern=pattern,
            within=within,
            subsets=subsets,
            define=define,
        )
        self.place(node, start)
        node.set("alias", self._parse_table_alias())
        return node

    def _require_interval(self) -> exp.Interval:
        return self._parse_interval() or self.fail("Expected an interval")

    def _parse_measure(self) -> exp.Alias:
        start = self._curr
        semantics = self.match_word("FINAL", "RUNNING")
        expression = self.require_expression()
        if semantics:
            expression = nodes.MeasureSemantics(this=expression, kind=semantics)
        self.expect(TokenType.ALIAS, "AS after the measure")
        return self.place(exp.Alias(this=expression, alias=self.require_identifier()), start)

    def _parse_after_match(self) -> nodes.AfterMatch:
        for words in _AFTER_FIXED:
            if self.match_words(*words.split()):
                return nodes.AfterMatch(this=words)
        for words in _AFTER_VARIABLE:
            if self.match_words(*words.split()):
                return nodes.AfterMatch(this=words, expression=self.require_identifier())
        self.fail("Expected PAST LAST ROW, TO NEXT ROW, TO FIRST, TO LAST or TO after AFTER MATCH SKIP")

    def _parse_subset(self) -> nodes.PatternSubset:
        name = self.require_identifier()
        self.expect(TokenType.EQ, "=")
        return nodes.PatternSubset(this=name, expressions=self.wrapped_list(self.require_identifier))

    def _parse_definition(self) -> nodes.PatternDefinition:
        start = self._curr
        name = self.require_identifier()
        self.expect(TokenType.ALIAS, "AS after the pattern variable")
        return self.place(nodes.PatternDefinition(this=name, expression=self.require_expression()), start)

    # ------------------------------------------------------------------------------------------- pattern
    def _parse_pattern(self) -> exp.Expr:
        branches = [self._parse_pattern_sequence()]
        while self._match(TokenType.PIPE):
            branches.append(self._parse_pattern_sequence())
        return branches[0] if len(branches) == 1 else nodes.PatternAlternation(expressions=branches)

    def _parse_pattern_sequence(self) -> exp.Expr:
        factors = [self._parse_pattern_factor()]
        while self._curr and self._curr.token_type not in (TokenType.R_PAREN, TokenType.PIPE, TokenType.COMMA):
            if self._match_pair(TokenType.DASH, TokenType.R_BRACE, advance=False):
                break
            factors.append(self._parse_pattern_factor())
        return factors[0] if len(factors) == 1 else nodes.PatternSequence(expressions=factors)

    def _parse_pattern_factor(self) -> exp.Expr:
        start = self._curr
        factor = self._parse_pattern_primary()
        bounds = self._parse_quantifier()
        if bounds is None:
            return factor
        minimum, maximum = bounds
        reluctant = self._match(TokenType.PLACEHOLDER)
        repeat = nodes.PatternRepeat(this=factor, minimum=minimum, maximum=maximum, reluctant=bool(reluctant))
        return self.place(repeat, start)

    def _parse_pattern_primary(self) -> exp.Expr:
        start = self._curr
        if self._match(TokenType.L_PAREN):
            inner = self._parse_pattern()
            self._match_r_paren()
            return inner
        if self._match_pair(TokenType.L_BRACE, TokenType.DASH):
            exclusion = nodes.PatternExclusion(this=self._parse_pattern())
            self.expect(TokenType.DASH, "-} after the excluded pattern")
            self.expect(TokenType.R_BRACE, "-} after the excluded pattern")
            return self.place(exclusion, start)
        if self._curr.text.upper() == "PERMUTE" and self._next.token_type == TokenType.L_PAREN:
            self._advance()
            return self.place(nodes.PatternPermutation(expressions=self.wrapped_list(self._parse_pattern)), start)
        return self.place(nodes.PatternVariable(this=self.require_identifier()), start)

    def _parse_quantifier(self) -> tuple[exp.Expr | None, exp.Expr | None] | None:
        if self._match(TokenType.STAR):
            return exp.Literal.number(0), None
        if self._match(TokenType.PLUS):
            return exp.Literal.number(1), None
        if self._match(TokenType.PLACEHOLDER):
            return exp.Literal.number(0), exp.Literal.number(1)
        if self._match_pair(TokenType.L_BRACE, TokenType.DASH, advance=False) or not self._match(TokenType.L_BRACE):
            return None
        minimum = self._parse_number()
        maximum = minimum
        if self._match(TokenType.COMMA):
            maximum = self._parse_number()
            minimum = minimum or exp.Literal.number(0)
        self.expect(TokenType.R_BRACE, "} after the quantifier")
        if minimum is None:
            self.fail("Expected a number in the quantifier")
        return minimum, maximum.copy() if maximum is not None else None

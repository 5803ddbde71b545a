// What the pages use of a report (flinkcompat-report/1, report.schema.json). Later versions only add.

export interface Span {
  source: string;
  line: number;
  column: number;
  end_line: number;
  end_column: number;
}

export interface Fate {
  metric: string;
  fate: string;
}

export interface Finding {
  rule: string;
  title?: string;
  outcome: string;
  message: string;
  before: string;
  after: string;
  basis: string;
  source?: string;
  consequence: string | null;
  sink?: string | null;
  before_span?: Span | null;
  after_span?: Span | null;
  overruled_by: string;
  operator?: string;
}

interface OperatorSide {
  kind: string;
  window?: string;
}

export interface Operator {
  path: string;
  sink: string;
  outcome: string;
  before: OperatorSide | null;
  after: OperatorSide | null;
  keys: { key: string; fate: string }[];
  metrics: Fate[];
  rows?: { rows: string; fate: string }[];
  parts?: { part: string; before: string; after: string }[];
  consequence?: string | null;
  resumed?: string[];
}

export interface Kept {
  operator: string;
  state: string;
  reason?: string;
  stored?: string;
  keeps: string[];
  begins: string[];
  gone: string[];
  computed?: string[];
}

export interface Migration {
  kept: string;
  operators: Kept[];
}

export interface Report {
  outcome: string;
  engine: string;
  engine_version: string;
  operators?: Operator[];
  sources?: { table: string; begins: string }[];
  findings: Finding[];
  old: { source: string };
  new: { source: string };
  warnings: string[];
  migration?: Migration;
  ground?: string;
  disagrees?: string;
  other_engine?: { engine: string; outcome: string } | null;
}

/** The report of the API, where it has what this page needs; a report of another form is shown as none. */
export const reportOf = (told: Record<string, unknown> | null): Report | null =>
  told && Array.isArray(told["findings"]) && told["old"] && told["new"] ? (told as unknown as Report) : null;

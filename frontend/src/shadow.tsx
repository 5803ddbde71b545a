// The last shadow run of a change: its finding, and the first rows of each sink that differ, between scripts and states.
import type { ShadowedVersion } from "./api";
import { React } from "./host";
import { Ago, Badge, Facts, Prose, Section, Table, Visible, type Tone } from "./ui";
import { Clause } from "./verdict";
import { count, duration } from "./words";

type Value = string | number | null;
type DifferingRow = Record<string, Value>;

interface SinkResult {
  sink: string;
  finding: string;
  /** Numbers of changes, by the names in `Sides`. */
  old_changes?: number;
  new_changes?: number;
  stored_changes?: number;
  reference_changes?: number;
  by_key: boolean;
  differing: number;
  columns: Record<string, number>;
  not_compared: string[];
  expected: string[];
  changed: string[] | null;
  other_rows: boolean;
  note?: string;
  /** The names in `rows`, in their order: the ledger sorts the names of a row. */
  row_columns?: string[];
  rows: DifferingRow[];
}

/** What the page uses of a result (flinkcompat-shadow/1). Later versions only add. */
interface ShadowResult {
  finding: string;
  reason: string;
  at: string;
  seconds: { live: number; old: number; new: number };
  sinks: SinkResult[];
  dropped: { id: string; name: string | null }[];
  left: string[];
  unnamed: string;
  state?: { finding: string; headline: string; sinks?: SinkResult[] } | null;
}

type Changes = "old_changes" | "new_changes" | "stored_changes" | "reference_changes";

/** Both sides of a comparison: their names, and in rows their short names. The suffix follows names of sinks. */
interface Sides {
  suffix: string;
  changes: [[string, Changes], [string, Changes]];
  labels: [string, string];
}

const SCRIPTS: Sides = {
  suffix: "",
  changes: [
    ["Old script", "old_changes"],
    ["New script", "new_changes"],
  ],
  labels: ["old", "new"],
};
const STATES: Sides = {
  suffix: " (state)",
  changes: [
    ["From the stored state", "stored_changes"],
    ["From the state after all rows", "reference_changes"],
  ],
  labels: ["stored state", "all rows"],
};

const TONES: Record<string, Tone> = {
  equal: "good",
  "differs as expected": "fair",
  "differs in changed columns": "doubt",
  differs: "bad",
  refused: "bad",
  "could not tell": "doubt",
};

const FindingBadge = ({ finding }: { finding: string }) => <Badge tone={TONES[finding] ?? "plain"}>{finding}</Badge>;

export function Shadow({ run }: { run: ShadowedVersion | null }) {
  if (!run) return null;
  if (!Array.isArray(run.result["sinks"]))
    return (
      <Section title="Shadow run">
        <p className="fc-note">This release cannot read the result in entry #{run.number}.</p>
      </Section>
    );
  const result = run.result as unknown as ShadowResult;
  const start = `${run.finding}: `;
  const state = result.state;
  const stateDecides = run.finding !== result.finding;
  const rows = <Sinks key="rows" of={result.sinks} sides={SCRIPTS} />;
  const states = state && state.finding !== "equal" && <Sinks key="state" of={state.sinks ?? []} sides={STATES} />;
  return (
    <Section
      title="Shadow run"
      aside={
        <span className="fc-muted">
          #{run.number}, <Ago at={run.at} />
        </span>
      }
    >
      <p>
        <FindingBadge finding={run.finding} />{" "}
        <Visible text={run.headline.startsWith(start) ? run.headline.slice(start.length) : run.headline} />
      </p>
      <p className="fc-muted">
        <Prose text={run.meaning} />
      </p>
      <Facts
        facts={[
          ["Reason", result.reason && <Clause text={result.reason} />],
          ["Rows of both scripts", stateDecides && <FindingBadge finding={result.finding} />],
          ["Stored state", state && !stateDecides && <b>{state.headline}</b>],
          [
            "State that only the old script restored",
            result.dropped.length > 0 && <Names of={result.dropped.map(({ id, name }) => name || id)} />,
          ],
          ["Columns that the change names are unknown", result.finding === "differs" && result.unnamed],
          ["Time whose rows were read", result.sinks.length > 0 && duration(result.seconds.live)],
          ["Read by the old script in", result.sinks.length > 0 && duration(result.seconds.old)],
          ["Read by the new script in", result.sinks.length > 0 && duration(result.seconds.new)],
          ["Not removed after the run", result.left.join("\n")],
        ]}
      />
      {stateDecides ? [states, rows] : [rows, states]}
    </Section>
  );
}

const Sinks = ({ of, sides }: { of: SinkResult[]; sides: Sides }) => (
  <>
    {of.map((sink) => (
      <Sink key={sink.sink} sink={sink} sides={sides} />
    ))}
  </>
);

const Names = ({ of }: { of: string[] }) => <Clause text={of.join(", ")} />;

function Sink({ sink, sides }: { sink: SinkResult; sides: Sides }) {
  const named = sink.other_rows ? "all: other rows reach the sink" : sink.changed?.join(", ") || "none";
  const columns = Object.entries(sink.columns).map(([name, keys]) => `${name} ${keys}`);
  return (
    <div className="fc-beside">
      <h3>
        <Visible text={sink.sink + sides.suffix} /> <FindingBadge finding={sink.finding} />
      </h3>
      <Facts
        facts={[
          ...sides.changes.map(([side, name]): [string, string] => [side, count(sink[name] ?? 0, "change")]),
          ["Differing", sink.differing > 0 && count(sink.differing, sink.by_key ? "key" : "row")],
          ["Differing keys by column", columns.join(", ")],
          ["Columns that the change names", sink.differing > 0 && sink.changed && named],
          ["Columns expected to differ", sink.differing > 0 && sink.expected.join(", ")],
          ["Columns of only one script", sink.not_compared.join(", ")],
          ["Comparison", sink.note],
        ]}
      />
      {sink.rows.length > 0 && <Rows sink={sink} sides={sides} />}
      {sink.rows.length > 0 && sink.rows.length < sink.differing && (
        <p className="fc-muted">The first {sink.rows.length} are shown.</p>
      )}
    </div>
  );
}

const CHANGE = "change";

/** The rows: of a sink with a key, the old and the new value of a column in one cell. */
function Rows({ sink, sides }: { sink: SinkResult; sides: Sides }) {
  const [before, after] = sides.labels;
  const names = sink.row_columns ?? Object.keys(sink.rows[0]!);
  const place = sink.by_key ? names.indexOf(CHANGE) + 1 : names.length;
  const single = names.slice(0, place);
  const pairs = names.slice(place).filter((_, number) => number % 2 === 0);
  const column = (name: string) => name.slice(0, name.lastIndexOf(` (${before})`));
  const heads = [...single, ...pairs.map((name) => `${column(name)} (${before} → ${after})`)];
  return (
    <Table caption={`First differing ${sink.by_key ? "keys" : "rows"} of ${sink.sink}${sides.suffix}`} heads={heads}>
      {sink.rows.map((row, number) => (
        <tr key={number}>
          {single.map((name, number) =>
            number === 0 ? (
              <th key={name} scope="row">
                <Cell value={row[name]} />
              </th>
            ) : (
              <td key={name}>
                <Cell value={row[name]} />
              </td>
            ),
          )}
          {pairs.map((name) => (
            <td key={name}>
              <Pair labels={sides.labels} before={row[name]} after={row[names[names.indexOf(name) + 1]!]} />
            </td>
          ))}
        </tr>
      ))}
    </Table>
  );
}

interface PairOfValues {
  labels: Sides["labels"];
  before: Value | undefined;
  after: Value | undefined;
}

function Pair({ labels, before, after }: PairOfValues) {
  if (before === after) return <Cell value={before} />;
  return (
    <>
      <del>
        <span className="fc-hidden">{labels[0]}: </span>
        <Cell value={before} />
      </del>{" "}
      →{" "}
      <ins>
        <span className="fc-hidden">{labels[1]}: </span>
        <Cell value={after} />
      </ins>
    </>
  );
}

const Cell = ({ value }: { value: Value | undefined }) =>
  value === null || value === undefined ? <i>NULL</i> : <Clause text={String(value)} />;

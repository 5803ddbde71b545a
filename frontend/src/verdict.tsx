// What the check found: findings, the fate of every key, window and metric, what a migration keeps, what to do.
import type { ChangePage } from "./api";
import { React } from "./host";
import type { Finding, Kept, Migration, Operator, Report, Span } from "./report";
import { Badge, Code, Facts, Outcome, Prose, Section, Table, useNarrow, Visible, type Tone } from "./ui";
import { count, outcome as outcomeWords } from "./words";

const place = (span: Span | null | undefined): string => (span ? `${span.source}:${span.line}:${span.column}` : "");

const ENGINES: Record<string, string> = { flink: "Apache Flink", vvr: "Alibaba's VVR" };

export function Verdict({ report }: { report: Report }) {
  return (
    <div className="fc-verdict">
      <p>
        <Outcome outcome={report.outcome} /> {outcomeWords(report.outcome)}{" "}
        <span className="fc-muted">
          Judged for {ENGINES[report.engine] ?? report.engine} {report.engine_version}
          {report.other_engine && (
            <>
              ; {ENGINES[report.other_engine.engine] ?? report.other_engine.engine}: {report.other_engine.outcome}
            </>
          )}
          .<Ground report={report} />
        </span>
      </p>
      <Why report={report} />
      {report.warnings.length > 0 && (
        <ul className="fc-bullets">
          {report.warnings.map((line, number) => (
            <li key={number}>{line}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** Who read the scripts, and the outcome by the rules alone where that is another one. */
function Ground({ report }: { report: Report }) {
  if (!report.ground) return null;
  const words = report.ground.charAt(0).toUpperCase() + report.ground.slice(1);
  return (
    <>
      {" "}
      {words}
      {report.disagrees && `; read from the script alone, the change would be ${report.disagrees}`}.
    </>
  );
}

const MOST_REASONS = 3;

/** What decided the verdict, where there is more to say than that nothing changed. */
function Why({ report }: { report: Report }) {
  if (report.outcome === "compatible") return null;
  const deciding = report.findings
    .map((finding, place) => ({ finding, mark: place + 1 }))
    .filter(({ finding }) => !finding.overruled_by && finding.outcome === report.outcome);
  const more = deciding.length - MOST_REASONS;
  return (
    <ul className="fc-bullets">
      {deciding.slice(0, MOST_REASONS).map(({ finding, mark }) => (
        <li key={mark}>
          <FindingText finding={finding} /> (<FindingLink mark={mark}>finding {mark}</FindingLink>)
        </li>
      ))}
      {more > 0 && <li>{count(more, "more finding")} of this kind</li>}
    </ul>
  );
}

/** What a finding says, in one line. */
export const FindingText = ({ finding }: { finding: Finding }) => (
  <span>
    <b>{finding.title ?? finding.rule}.</b> <Visible text={finding.message} />
  </span>
);

interface FindingLinkProps {
  mark: number;
  label?: string;
  children: React.ReactNode;
}

/** To the finding in the list; the address stays, as it names the page. */
export function FindingLink({ mark, label, children }: FindingLinkProps) {
  const jump = (event: React.MouseEvent) => {
    event.preventDefault();
    const found = document.getElementById(`finding-${mark}`);
    found?.scrollIntoView({ block: "center" });
    found?.focus({ preventScroll: true });
  };
  return (
    <a href={`#finding-${mark}`} onClick={jump} aria-label={label}>
      {children}
    </a>
  );
}

export function Findings({ report }: { report: Report }) {
  return (
    <Section title="Findings">
      <ol className="fc-findings">
        {report.findings.map((finding, number) => (
          <li
            key={number}
            id={`finding-${number + 1}`}
            tabIndex={-1}
            className={finding.overruled_by ? "fc-muted" : ""}
          >
            <FindingCard finding={finding} number={number + 1} />
          </li>
        ))}
      </ol>
    </Section>
  );
}

/** A part of a script, or of what goes with it. */
export function Clause({ text }: { text: string }) {
  return (
    <code>
      <Visible text={text} />
    </code>
  );
}

function FindingCard({ finding, number }: { finding: Finding; number: number }) {
  return (
    <>
      <h3>
        {number}. {finding.title ?? finding.rule} <Outcome outcome={finding.outcome} />
      </h3>
      <p>
        <Visible text={finding.message} />
      </p>
      <Facts
        facts={[
          ["Before", finding.before && <Clause text={finding.before} />],
          ["After", finding.after && <Clause text={finding.after} />],
          ["Place", [place(finding.before_span), place(finding.after_span)].filter(Boolean).join(" → ")],
          ["If the job were resumed", finding.consequence],
          ["Basis", [finding.basis, finding.source].filter(Boolean).join(": ")],
          ["Rule", <code key="rule">{finding.rule}</code>],
          ["Overruled by", finding.overruled_by && <code>{finding.overruled_by}</code>],
        ]}
      />
    </>
  );
}

const FATES: Record<string, Tone> = {
  same: "good",
  kept: "good",
  moved: "fair",
  "starts from zero": "fair",
  added: "doubt",
  "cannot be told": "doubt",
  dropped: "bad",
  removed: "bad",
};

interface FateRow {
  what: string;
  name: string;
  fate: string;
}

/** One row for each part of an operator's state. */
function fatesOf(one: Operator): FateRow[] {
  const [before, after] = [one.before?.window ?? "", one.after?.window ?? ""];
  const window = before || after;
  return [
    ...(window
      ? [
          {
            what: "window",
            name: before === after ? window : `${before || "none"} → ${after || "none"}`,
            fate: before === after ? "same" : "changed",
          },
        ]
      : []),
    ...one.keys.map(({ key, fate }) => ({ what: "key", name: key, fate })),
    ...one.metrics.map(({ metric, fate }) => ({ what: "metric", name: metric, fate })),
    ...(one.rows ?? []).map(({ rows, fate }) => ({ what: "rows", name: rows, fate })),
    ...(one.parts ?? []).map(({ part, before: old, after: proposed }) => ({
      what: part,
      name: `${old || "none"} → ${proposed || "none"}`,
      fate: "changed",
    })),
  ];
}

export function Fates({ operators }: { operators: Operator[] }) {
  if (!operators.length) return null;
  return (
    <Section title="Effect on the state">
      <Table caption="State by operator" heads={["Part", "Effect"]} bodies>
        {operators.map((one) => (
          <tbody key={one.path}>
            <tr>
              <th scope="rowgroup" colSpan={2}>
                <OperatorHead one={one} place={placeOf(one, operators)} />
              </th>
            </tr>
            {fatesOf(one).map((row, number) => (
              <tr key={number}>
                <td>
                  {row.what} <Clause text={row.name} />
                </td>
                <td>
                  <Badge tone={FATES[row.fate] ?? "fair"}>{row.fate}</Badge>
                </td>
              </tr>
            ))}
          </tbody>
        ))}
      </Table>
    </Section>
  );
}

/** The sink of an operator, and which of its operators it is. */
function placeOf(one: Operator, operators: Operator[]): string {
  const ofSink = operators.filter((each) => each.sink === one.sink);
  const which = ofSink.length > 1 ? `, ${ofSink.indexOf(one) + 1} of ${ofSink.length} from the sink` : "";
  return `${one.sink || "query"}${which}`;
}

/** Whether the operator itself is the same, and only something around it is in doubt. */
const isUnchanged = (one: Operator): boolean => {
  const fates = [...one.metrics, ...(one.rows ?? [])].map(({ fate }) => fate);
  return one.outcome !== "incompatible" && fates.length > 0 && fates.every((fate) => fate === "same");
};

function OperatorHead({ one, place }: { one: Operator; place: string }) {
  const [before, after] = [one.before?.kind, one.after?.kind];
  return (
    <div className="fc-stack">
      <span>
        {before === after ? before : !before ? `new: ${after}` : !after ? `gone: ${before}` : `${before} → ${after}`}{" "}
        {isUnchanged(one) ? (
          <>
            <Badge tone="good">unchanged</Badge>
            {one.outcome !== "compatible" && " The doubt is about something else."}
          </>
        ) : (
          <Outcome outcome={one.outcome} />
        )}{" "}
        <span className="fc-muted">{place}</span>
      </span>
      {one.consequence && (
        <span className="fc-plain-text">
          If the job were resumed: {one.consequence}
          {one.resumed?.length ? `; ${one.resumed.join("; ")}` : ""}
        </span>
      )}
      {one.outcome === "incompatible" && (one.metrics.length > 0 || (one.rows ?? []).length > 0) && (
        <span className="fc-plain-text">After a start without state:</span>
      )}
    </div>
  );
}

const KEPT: Record<string, string> = {
  whole: "A rewritten savepoint would keep all of the state.",
  partial: "A rewritten savepoint would keep a part of the state.",
  none: "A rewritten savepoint would keep nothing.",
};

export function MigrationTable({ migration, title }: { migration: Migration; title: string }) {
  return (
    <Section title={title}>
      {KEPT[migration.kept] && <p>{KEPT[migration.kept]}</p>}
      <KeptTable operators={migration.operators ?? []} />
    </Section>
  );
}

export function KeptTable({ operators }: { operators: Kept[] }) {
  const [element, narrow] = useNarrow();
  const state = (one: Kept) => (
    <>
      {one.state}
      {one.reason && <span className="fc-muted">: {one.reason}</span>}
      {one.stored && <span className="fc-muted">; stored: {one.stored}</span>}
    </>
  );
  const metrics = ["keeps", "computed", "begins", "gone"] as const;
  const shown = metrics.filter((part) => operators.some((one) => one[part]?.length));
  return (
    <div ref={element}>
      {narrow ? (
        <ul className="fc-list">
          {operators.map((one, number) => (
            <li key={number} className="fc-narrow">
              <b>{one.operator}</b>
              <span>{state(one)}</span>
              <Facts
                facts={shown.map((part) => [KEPT_HEADS[part], one[part]?.length ? <Names of={one[part]} /> : null])}
              />
            </li>
          ))}
        </ul>
      ) : (
        <Table caption="What a migration keeps" heads={["Operator", "State", ...shown.map((part) => KEPT_HEADS[part])]}>
          {operators.map((one, number) => (
            <tr key={number}>
              <th scope="row">{one.operator}</th>
              <td>{state(one)}</td>
              {shown.map((part) => (
                <td key={part}>{one[part]?.length ? <Names of={one[part]} /> : "–"}</td>
              ))}
            </tr>
          ))}
        </Table>
      )}
    </div>
  );
}

const KEPT_HEADS = {
  keeps: "Continues",
  computed: "Computed from history",
  begins: "Starts now",
  gone: "Lost",
} as const;

const Names = ({ of }: { of: string[] }) => <code>{of.join(", ")}</code>;

export function Sources({ report }: { report: Report }) {
  const sources = report.sources ?? [];
  if (!sources.length) return null;
  return (
    <Section title="Start of the sources without state">
      <Facts facts={sources.map(({ table, begins }) => [table, begins])} />
    </Section>
  );
}

export function Advice({ change }: { change: ChangePage }) {
  return (
    <>
      {change.next_steps.length > 0 && (
        <Section title={change.decision.state === "waiting" ? "What to do next" : "What the check advised"}>
          <ol className="fc-steps">
            {change.next_steps.map((step, number) => (
              <li key={number}>
                <p>
                  <Prose text={step.text} />
                </p>
                {step.commands.length > 0 && (
                  <Code text={step.commands.join("\n")} label={`Commands of step ${number + 1}`} />
                )}
              </li>
            ))}
          </ol>
        </Section>
      )}
      {change.if_resumed.length > 0 && (
        <Section title="If the job were resumed anyway">
          <ul className="fc-bullets">
            {change.if_resumed.map((line, number) => (
              <li key={number}>{line}</li>
            ))}
          </ul>
        </Section>
      )}
    </>
  );
}

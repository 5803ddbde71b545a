// One change: what runs beside what is proposed, the verdict, and the decision.
import { useAnswer, type ChangePage, type HistoryEntry, type VersionTexts, type RunChanges } from "./api";
import { DecisionNote, type Reading } from "./decide";
import { React } from "./host";
import { changeApi, changePage, deploymentPage, listPage, runApi } from "./places";
import { reportOf } from "./report";
import { Scripts } from "./scripts";
import { Shadow } from "./shadow";
import { Ago, Awaited, Code, Facts, Id, Link, Message, Moment, Page, RunLink, Section, Visible } from "./ui";
import { Advice, Fates, Findings, MigrationTable, Sources, Verdict } from "./verdict";
import { branch, kind } from "./words";

const REFRESH_SECONDS = 30;

export function OneChange({ ledger, deployment, number }: { ledger: string; deployment: string; number: number }) {
  const answer = useAnswer<ChangePage>(changeApi(ledger, deployment, number), REFRESH_SECONDS);
  return (
    <Page
      title={`Change of ${deployment}`}
      above={
        <>
          <Link to={listPage()}>Flink deployments</Link>
          <span aria-hidden="true">/</span>
          <Link to={deploymentPage(ledger, deployment)}>{deployment}</Link>
        </>
      }
    >
      <Awaited answer={answer}>{(change) => <ChangeBody change={change} reading={answer} />}</Awaited>
    </Page>
  );
}

function ChangeBody({ change, reading }: { change: ChangePage; reading: Reading }) {
  const report = reportOf(change.report);
  const { checked } = change;
  const last = change.entries.at(-1);
  return (
    <>
      {report && <Verdict report={report} />}
      {change.report_error && <p className="fc-note fc-note-bad">The report cannot be read: {change.report_error}</p>}
      <Facts
        facts={[
          ["Checked", checked && <Ago at={checked.at} />],
          ["Version", <Id key="version" id={change.sha256} />],
          ["Commit", checked?.commit && <Id id={checked.commit} />],
          ["Author", checked?.author],
          ["Leads to", checked && branch(checked.branch)],
          [
            "Last step",
            last && last.number !== checked?.number && (
              <>
                {kind(last.kind)}, <Ago at={last.at} />
              </>
            ),
          ],
          ["Run", checked?.run && <RunLink run={checked.run} />],
        ]}
      />
      <DecisionNote change={change} reading={reading} />
      <Texts change={change} />
      <Shadow run={change.shadow} />
      {report && <Findings report={report} />}
      {report && <Fates operators={report.operators ?? []} />}
      {report?.migration && <MigrationTable migration={report.migration} title="What a migration would keep" />}
      <Advice change={change} />
      {report && <Sources report={report} />}
      <Entries entries={change.entries} />
    </>
  );
}

function Texts({ change }: { change: ChangePage }) {
  const { old, new: proposed } = change;
  const title = change.decision.state === "waiting" ? "Running version" : "Previous version";
  if (!old && !proposed) return null;
  if (!proposed)
    return (
      <Section title="Script">
        <p className="fc-note">The text of the proposed version was not kept. {title}:</p>
        <Code text={old?.script ?? ""} label="Former script" />
      </Section>
    );
  if (!old)
    return (
      <Section title="Script">
        <p className="fc-muted">
          {change.old_number === null
            ? "There is no previous version: this is the first one."
            : `The previous version is in entry ${change.old_number} of a DAG that you may not read.`}
        </p>
        <Code text={proposed.script} label="Proposed script" />
      </Section>
    );
  return (
    <Section title="Script">
      {old.script === proposed.script && <p className="fc-muted">The script itself is the same.</p>}
      <Scripts old={old} new={proposed} report={reportOf(change.report)} title={title} />
      <Surroundings old={old} proposed={proposed} />
    </Section>
  );
}

const asText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 1));

/** What differs beside the script: settings, variables, functions, the catalog, files, the engine. */
function Surroundings({ old, proposed }: { old: VersionTexts; proposed: VersionTexts }) {
  const facts: [string, React.ReactNode][] = [];
  const compare = (name: string, before: unknown, after: unknown) => {
    const [one, other] = [before === undefined ? "–" : asText(before), after === undefined ? "–" : asText(after)];
    if (one !== other)
      facts.push([
        name,
        <>
          <del>{one}</del> → <ins>{other}</ins>
        </>,
      ]);
  };
  for (const field of ["settings", "variables", "files"] as const)
    for (const key of new Set([...Object.keys(old[field]), ...Object.keys(proposed[field])]))
      compare(`${field}: ${key}`, old[field][key], proposed[field][key]);
  for (const field of ["engine", "engine_version", "language", "catalog"] as const)
    compare(field, old[field], proposed[field]);
  compare("functions", old.functions, proposed.functions);
  if (!facts.length) return null;
  return (
    <div className="fc-beside">
      <h3>Changes outside the script</h3>
      <Facts facts={facts} />
    </div>
  );
}

function Entries({ entries }: { entries: HistoryEntry[] }) {
  return (
    <Section title="Entries in the ledger">
      <ol className="fc-list">
        {entries.map((entry) => (
          <li key={entry.number}>
            <span className="fc-muted">
              #{entry.number} <Moment at={entry.at} />
            </span>
            <b>{kind(entry.kind)}</b>
            {entry.approved_by && (
              <span>
                by <Visible text={entry.approved_by} />
              </span>
            )}
            {entry.reason && (
              <span>
                “<Visible text={entry.reason} />”
              </span>
            )}
            <Message text={entry.message} />
          </li>
        ))}
      </ol>
    </Section>
  );
}

/** The tab of a DAG run and of a task. */
export function RunTab({ dagId, runId, taskId }: { dagId?: string; runId?: string; taskId?: string }) {
  const answer = useAnswer<RunChanges>(dagId && runId ? runApi(dagId, runId, taskId) : undefined, REFRESH_SECONDS);
  return (
    <div className="fc-root fc-page">
      <Awaited answer={answer}>
        {({ changes }) =>
          changes.length === 0 ? (
            <div className="fc-note">
              <p>No change of a Flink deployment belongs to this run.</p>
              <p>
                One appears here once a task of the run has checked or deployed a Flink job.{" "}
                <Link to={listPage()}>All Flink deployments</Link>
              </p>
            </div>
          ) : (
            changes.map((change) => (
              <article key={`${change.ledger}/${change.deployment}/${change.number}`}>
                <h1>
                  Change of <Link to={deploymentPage(change.ledger, change.deployment)}>{change.deployment}</Link>
                </h1>
                <ChangeBody change={change} reading={answer} />
                <p>
                  <Link to={changePage(change.ledger, change.deployment, change.number)}>
                    Open this change on its own page
                  </Link>
                </p>
              </article>
            ))
          )
        }
      </Awaited>
    </div>
  );
}

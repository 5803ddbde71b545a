// One deployment: what runs, what became of every version, and where its state came from.
import { useAnswer, type DeploymentPage, type HistoryEntry, type VersionTexts, type Savepoint } from "./api";
import { React } from "./host";
import { changePage, dagPage, deploymentApi, listPage } from "./places";
import type { Kept } from "./report";
import { LastCheck, Trouble } from "./standing";
import { Timeline } from "./timeline";
import {
  Ago,
  Awaited,
  Badge,
  Code,
  Facts,
  Id,
  Lasting,
  Link,
  Moment,
  OutsideLink,
  Page,
  RunLink,
  Section,
  Table,
} from "./ui";
import { bytes, counts, engine, range, start } from "./words";
import { Clause, KeptTable } from "./verdict";

const REFRESH_SECONDS = 30;

export function OneDeployment({ ledger, deployment }: { ledger: string; deployment: string }) {
  const answer = useAnswer<DeploymentPage>(deploymentApi(ledger, deployment), REFRESH_SECONDS);
  return (
    <Page title={deployment} above={<Link to={listPage()}>Flink deployments</Link>}>
      <Awaited answer={answer}>
        {(page) => (
          <>
            <Summary page={page} />
            <Section title="History">
              <Timeline page={page} />
            </Section>
            <Lineage page={page} />
            <Rehearsals page={page} />
            <Migrations page={page} />
            <Backfills page={page} />
            <Running page={page} />
          </>
        )}
      </Awaited>
    </Page>
  );
}

function Summary({ page: { summary: one } }: { page: DeploymentPage }) {
  const { entry } = one;
  return (
    <>
      {one.pending && (
        <div className="fc-note fc-note-ask">
          <p>
            <b>A change waits for a decision</b>, asked <Ago at={one.pending.at} />.{" "}
            <Link to={changePage(one.ledger, one.deployment, one.pending.number)}>See it and decide</Link>
          </p>
        </div>
      )}
      <Facts
        facts={[
          ["Engine", entry && engine(entry)],
          [
            "Job",
            entry?.job_id && (
              <OutsideLink href={one.job_url}>
                <Id id={entry.job_id} />
              </OutsideLink>
            ),
          ],
          ["Runs like this", entry && <Lasting since={entry.at} />],
          ["Started", entry?.start_mode && start(entry.start_mode)],
          ["Approved by", entry?.approved_by],
          ["Team", one.team],
          ["Owner", one.owned_by],
          ["Last check", one.checked && !one.pending && <LastCheck one={one} />],
          ["Redeploy", (one.unfinished || one.failed) && <Trouble one={one} />],
          [
            "Last savepoint",
            one.savepoint && (
              <>
                <Ago at={one.savepoint.taken_at} />
                {one.savepoint.bytes !== null && `, ${bytes(one.savepoint.bytes)}`}
              </>
            ),
          ],
          [
            "DAGs",
            one.dags.length > 0 &&
              one.dags.map((dag, number) => (
                <React.Fragment key={dag}>
                  {number > 0 && ", "}
                  <Link to={dagPage(dag)}>{dag}</Link>
                </React.Fragment>
              )),
          ],
          ["Deployed by", entry?.run && <RunLink run={entry.run} task />],
        ]}
      />
    </>
  );
}

function Lineage({ page }: { page: DeploymentPage }) {
  if (!page.savepoints.length) return null;
  return (
    <Section title="Savepoints">
      <ol className="fc-timeline">
        {[...page.savepoints].reverse().map((one) => (
          <li key={one.stopped}>
            <OneSavepoint one={one} page={page} />
          </li>
        ))}
      </ol>
    </Section>
  );
}

function OneSavepoint({ one, page }: { one: Savepoint; page: DeploymentPage }) {
  const jobOf = (number: number | null) => page.history.find((each) => each.number === number)?.job_id;
  const left = jobOf(one.left_by);
  return (
    <>
      <div className="fc-event">
        <code className="fc-path">{one.path}</code>
        {one.way_back && <Badge tone="good">for rollback</Badge>}
        {one.disposed !== null ? <Badge tone="plain">deleted</Badge> : <Badge tone="plain">kept</Badge>}
      </div>
      <p className="fc-muted">
        Taken <Ago at={one.taken_at} />
        {one.bytes !== null && `, ${bytes(one.bytes)}`}, when{" "}
        {left ? (
          <>
            job <Id id={left} />
          </>
        ) : (
          "the job"
        )}{" "}
        stopped (#
        {one.stopped}){one.disposed !== null && `; deleted by #${one.disposed}`}
      </p>
      {one.migrated_to && (
        <p>
          Rewritten to <code className="fc-path">{one.migrated_to}</code>
        </p>
      )}
      {one.starts.length > 0 ? (
        <ul className="fc-branches">
          {one.starts.map((each) => (
            <li key={each.number}>
              <Badge tone={each.kind === "rolled-back" ? "bad" : "good"}>
                {each.kind === "rolled-back" ? "rolled back to" : "started"}
              </Badge>{" "}
              {each.job_id && (
                <>
                  job <Id id={each.job_id} />
                </>
              )}{" "}
              {each.migrated && "from the rewritten savepoint "}
              <span className="fc-muted">
                #{each.number}, <Moment at={each.at} />
              </span>
            </li>
          ))}
        </ul>
      ) : (
        <p className="fc-muted">No job started from it.</p>
      )}
    </>
  );
}

const ofKind = (page: DeploymentPage, kind: string): HistoryEntry[] =>
  page.history.filter((each) => each.kind === kind).reverse();

const text = (value: unknown): string =>
  value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);

function Rehearsals({ page }: { page: DeploymentPage }) {
  const entries = ofKind(page, "rehearsed");
  if (!entries.length) return null;
  return (
    <Section title="Rehearsals">
      <ol className="fc-list">
        {entries.map((each) => (
          <li key={each.number}>
            <b>{text(each.rehearsal["finding"])}</b>
            {typeof each.rehearsal["message"] === "string" && <span>{each.rehearsal["message"]}</span>}
            <Link to={changePage(page.summary.ledger, page.summary.deployment, each.number)}>
              version <Id id={each.sha256} />
            </Link>
            <span className="fc-muted">
              #{each.number}, <Ago at={each.at} />
            </span>
          </li>
        ))}
      </ol>
    </Section>
  );
}

function Migrations({ page }: { page: DeploymentPage }) {
  const entries = ofKind(page, "migrated");
  if (!entries.length) return null;
  return (
    <Section title="Migrations of state">
      {entries.map((each) => (
        <div key={each.number} className="fc-stack">
          <p>
            <code className="fc-path">{each.savepoint ?? each.migrated_from}</code> →{" "}
            <code className="fc-path">{each.migrated_to}</code>{" "}
            <span className="fc-muted">
              #{each.number}, <Ago at={each.at} />
            </span>
          </p>
          {Array.isArray(each.migration["operators"]) && (
            <KeptTable operators={each.migration["operators"] as Kept[]} />
          )}
        </div>
      ))}
    </Section>
  );
}

function Backfills({ page }: { page: DeploymentPage }) {
  const entries = ofKind(page, "backfilled");
  if (!entries.length) return null;
  return (
    <Section title="Backfills">
      <Table caption="Backfills" heads={["When", "Range", "Counts", "Sinks", "Run"]}>
        {entries.map((each) => (
          <tr key={each.number}>
            <th scope="row">
              <Ago at={each.at} />
            </th>
            <td>{range(each)}</td>
            <td>{counts(each)}</td>
            <td>
              {Object.entries(each.sinks).map(([sink, path]) => (
                <div key={sink}>
                  {sink}: <code className="fc-path">{path}</code>
                </div>
              ))}
            </td>
            <td>{each.run ? <RunLink run={each.run} /> : "–"}</td>
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function Running({ page: { running } }: { page: DeploymentPage }) {
  if (!running) return null;
  return (
    <Section title="Running script" aside={<span className="fc-muted">version {<Id id={running.sha256} />}</span>}>
      <Code text={running.script} label="Running script" />
      <Settings version={running} />
    </Section>
  );
}

function Settings({ version }: { version: VersionTexts }) {
  const facts = [
    ...Object.entries(version.settings),
    ...Object.entries(version.variables).map(([name, value]) => [`\${${name}}`, value] as [string, string]),
  ];
  return (
    <>
      {facts.length > 0 && (
        <div className="fc-beside">
          <h3>Settings</h3>
          <Facts facts={facts.map(([name, value]) => [name, <Clause key={name} text={value} />])} />
        </div>
      )}
      {version.catalog && (
        <details>
          <summary>Catalog</summary>
          <Code text={version.catalog} label="Catalog" />
        </details>
      )}
      {Object.entries(version.files).map(([name, content]) => (
        <details key={name}>
          <summary>{name}</summary>
          <Code text={content} label={name} />
        </details>
      ))}
    </>
  );
}

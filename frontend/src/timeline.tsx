// The history of a deployment as a line of time, newest first: each redeploy is one event, with its steps.
import type { DeploymentPage, HistoryEntry, Redeploy } from "./api";
import { React, useState } from "./host";
import { changePage } from "./places";
import { Ago, Badge, Facts, Id, Link, Message, Moment, Outcome, RunLink, type Tone } from "./ui";
import { branch, count, counts, duration, kind, range, start } from "./words";

const FIRST_SHOWN = 25;

type Event = { number: number } & ({ redeploy: Redeploy } | { entry: HistoryEntry });

function eventsOf(page: DeploymentPage): Event[] {
  const steps = new Set(page.redeploys.flatMap((each) => each.steps.map(({ number }) => number)));
  return [
    ...page.redeploys.map((redeploy) => ({ number: redeploy.last, redeploy })),
    ...page.history.filter(({ number }) => !steps.has(number)).map((entry) => ({ number: entry.number, entry })),
  ].sort((one, other) => other.number - one.number);
}

export function Timeline({ page }: { page: DeploymentPage }) {
  const [all, setAll] = useState(false);
  const events = eventsOf(page);
  const shown = all ? events : events.slice(0, FIRST_SHOWN);
  const to = (number: number) => changePage(page.summary.ledger, page.summary.deployment, number);
  return (
    <>
      <ol className="fc-timeline">
        {shown.map((event) =>
          "redeploy" in event ? (
            <RedeployEvent key={event.number} one={event.redeploy} page={page} to={to} />
          ) : (
            <EntryEvent key={event.number} entry={event.entry} to={to} />
          ),
        )}
      </ol>
      {shown.length < events.length && (
        <button type="button" className="fc-button" onClick={() => setAll(true)}>
          Show {count(events.length - shown.length, "earlier event")}
        </button>
      )}
    </>
  );
}

const ENDS: Record<Redeploy["end"], [Tone, string]> = {
  deployed: ["good", "Deployed"],
  adopted: ["good", "Adopted"],
  "rolled-back": ["bad", "Rolled back"],
  failed: ["bad", "Failed"],
  planned: ["plain", "Plan only"],
  unfinished: ["busy", "Not ended"],
};

interface RedeployProps {
  one: Redeploy;
  page: DeploymentPage;
  to: (number: number) => string;
}

function RedeployEvent({ one, page, to }: RedeployProps) {
  const failed = one.steps.findLast(({ kind }) => kind === "failed")?.number;
  const message = one.message || page.history.find(({ number }) => number === failed)?.message;
  const [tone, words] = ENDS[one.end];
  const seconds = (Date.parse(one.ended_at) - Date.parse(one.began_at)) / 1000;
  return (
    <li>
      <div className="fc-event">
        <Badge tone={tone}>{words}</Badge>
        <Link to={to(one.last)}>
          version <Id id={one.sha256} />
        </Link>
        {one.outcome && <Outcome outcome={one.outcome} />}
        {one.start_mode && <span>{start(one.start_mode)}</span>}
        <span className="fc-muted">
          #{one.first === one.last ? one.last : `${one.first}–${one.last}`}, <Ago at={one.ended_at} />
        </span>
      </div>
      <Message text={message} />
      <Facts
        facts={[
          ["Downtime", one.downtime_seconds !== null && duration(one.downtime_seconds)],
          ["Approved by", one.approved_by],
          ["Reason", one.reason],
          ["Job", one.job_id && <Id id={one.job_id} />],
          ["Run", one.run && <RunLink run={one.run} task />],
        ]}
      />
      {one.steps.length > 1 && (
        <details>
          <summary>
            {count(one.steps.length, "step")} in {duration(seconds)}
          </summary>
          <ol className="fc-trail">
            {one.steps.map((step) => (
              <li key={step.number}>
                {kind(step.kind)}{" "}
                <span className="fc-muted">
                  <Moment at={step.at} />
                </span>
              </li>
            ))}
          </ol>
        </details>
      )}
    </li>
  );
}

const TONES: Record<string, Tone> = { approved: "good", rejected: "bad", failed: "bad", interrupted: "bad" };
const OF_A_VERSION = new Set([
  "checked",
  "approved",
  "rejected",
  "failed",
  "rehearsed",
  "shadowed",
  "backfilled",
  "unchanged",
]);

function EntryEvent({ entry, to }: { entry: HistoryEntry; to: (number: number) => string }) {
  const finding = entry.rehearsal["finding"];
  return (
    <li>
      <div className="fc-event">
        <Badge tone={TONES[entry.kind] ?? "plain"}>{kind(entry.kind)}</Badge>
        {entry.sha256 && OF_A_VERSION.has(entry.kind) && (
          <Link to={to(entry.number)}>
            version <Id id={entry.sha256} />
          </Link>
        )}
        {entry.outcome && <Outcome outcome={entry.outcome} />}
        {typeof finding === "string" && <b>{finding}</b>}
        <span className="fc-muted">
          #{entry.number}, <Ago at={entry.at} />
        </span>
      </div>
      <Message text={entry.message} />
      <Facts
        facts={[
          ["Leads to", branch(entry.branch)],
          ["By", entry.approved_by],
          ["Reason", entry.reason],
          ["Author", entry.kind === "checked" && entry.author],
          ["Commit", entry.kind === "checked" && entry.commit && <Id id={entry.commit} />],
          ["Savepoint", entry.savepoint && <code>{entry.savepoint}</code>],
          ["Range", entry.kind === "backfilled" && range(entry)],
          ["Counts", counts(entry)],
          ["Run", entry.run && <RunLink run={entry.run} task />],
        ]}
      />
    </li>
  );
}

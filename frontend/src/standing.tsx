// How a deployment stands, in one line each: the list and the dashboard say it alike.
import type { DeploymentItem } from "./api";
import { React } from "./host";
import { changePage } from "./places";
import { Ago, Badge, Link, Outcome, Visible } from "./ui";
import { kind } from "./words";

/** What the last check found, and whether somebody is waited for. */
export function LastCheck({ one }: { one: DeploymentItem }) {
  const shown = one.pending ?? one.checked;
  if (!shown) return <span className="fc-muted">–</span>;
  const to = changePage(one.ledger, one.deployment, shown.number);
  const verdict = shown.outcome ? <Outcome outcome={shown.outcome} /> : "first version";
  return (
    <div className="fc-stack">
      {one.pending ? (
        <span>
          {verdict}{" "}
          <Link to={to}>
            waits for a decision<span className="fc-hidden"> on {one.deployment}</span>
          </Link>
        </span>
      ) : (
        <Link to={to}>
          {verdict}
          <span className="fc-hidden"> change of {one.deployment}</span>
        </Link>
      )}
      {one.pending && (
        <span className="fc-muted">
          asked <Ago at={one.pending.at} />
        </span>
      )}
      {!one.pending && shown.sha256 === one.entry?.sha256 && <span className="fc-muted">of what runs now</span>}
    </div>
  );
}

/** A redeploy that has not ended, and what failed last. */
export function Trouble({ one }: { one: DeploymentItem }) {
  return (
    <div className="fc-stack">
      {one.unfinished && (
        <span>
          <Badge tone={one.unfinished_state === "interrupted" ? "bad" : "busy"}>{one.unfinished_state}</Badge>{" "}
          {kind(one.unfinished.kind).toLowerCase()}, <Ago at={one.unfinished.at} />
        </span>
      )}
      {one.failed && (
        <span>
          <Badge tone="bad">{one.entry?.kind === "rolled-back" ? "rolled back" : "failed"}</Badge>{" "}
          <Ago at={one.failed.at} />
          {one.failed.message && (
            <span className="fc-clip">
              <Visible text={one.failed.message} />
            </span>
          )}
        </span>
      )}
    </div>
  );
}

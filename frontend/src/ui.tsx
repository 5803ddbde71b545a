// What every page is made of. All texts of the API are children of React elements: they can be nothing but text.
import type { ReactNode } from "react";

import type { Answer, Failure } from "./api";
import { addressOf, React, useEffect, useNavigate, useRef, useState } from "./host";
import { runPage, taskPage, type Run } from "./places";
import { lasting, moment, outcome as outcomeWords, short } from "./words";

/** A link inside Airflow, without loading the page anew. */
export function Link({ to, children, className }: { to: string; children: ReactNode; className?: string }) {
  const navigate = useNavigate();
  return (
    <a
      className={className}
      href={addressOf(to)}
      onClick={(event) => {
        if (event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        navigate(to);
      }}
    >
      {children}
    </a>
  );
}

/** A link out of Airflow, where the address is one of the web: it comes from a connection. */
export function OutsideLink({ href, children }: { href: string | null; children: ReactNode }) {
  if (!href || !/^https?:\/\//i.test(href)) return <>{children}</>;
  return (
    <a href={href} rel="noreferrer" target="_blank">
      {children}
      <span aria-hidden="true"> ↗</span>
      <span className="fc-hidden"> (opens in a new tab)</span>
    </a>
  );
}

export function RunLink({ run, task = false }: { run: Run; task?: boolean }) {
  return (
    <Link to={task && run.task_id ? taskPage(run, run.task_id) : runPage(run)}>
      {run.dag_id} / {run.run_id}
      {task && run.task_id ? ` / ${run.task_id}` : ""}
    </Link>
  );
}

const NARROW = 720; // pixels; below them neither two scripts nor five columns have room beside each other

/** Whether an element is narrow: a tab may be so on a wide screen. */
export function useNarrow(): [React.RefObject<HTMLDivElement | null>, boolean] {
  const element = useRef<HTMLDivElement>(null);
  const [narrow, setNarrow] = useState(() => window.innerWidth < NARROW);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => entry && setNarrow(entry.contentRect.width < NARROW));
    if (element.current) observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, narrow];
}

/** The reader's clock, once a minute. */
function useNow(): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 60_000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

/** How long ago something was: "5 min ago". */
export function Ago({ at }: { at: string }) {
  return (
    <time dateTime={at} title={moment(at)}>
      {lasting(at, useNow())} ago
    </time>
  );
}

/** How long something lasts by now: "for 5 min". */
export function Lasting({ since }: { since: string }) {
  return (
    <time dateTime={since} title={`since ${moment(since)}`}>
      for {lasting(since, useNow(), "less than a minute")}
    </time>
  );
}

/** A sentence of the report, in which names of tasks and settings stand between backticks. */
export function Prose({ text }: { text: string }) {
  return <>{text.split(/`([^`\n]+)`/).map((part, place) => (place % 2 ? <code key={place}>{part}</code> : part))}</>;
}

export function Moment({ at }: { at: string }) {
  return <time dateTime={at}>{moment(at)}</time>;
}

export type Tone = "good" | "fair" | "doubt" | "bad" | "busy" | "plain";

export function Badge({ tone, children, title }: { tone: Tone; children: ReactNode; title?: string }) {
  return (
    <span className={`fc-badge fc-${tone}`} title={title}>
      {children}
    </span>
  );
}

const TONES: Record<string, Tone> = { compatible: "good", partial: "fair", unknown: "doubt", incompatible: "bad" };

export function Outcome({ outcome }: { outcome: string }) {
  return (
    <Badge tone={TONES[outcome] ?? "plain"} title={outcomeWords(outcome)}>
      {outcome}
    </Badge>
  );
}

/** An identifier; of a long digest its first characters, the whole where one points. */
export function Id({ id }: { id: string }) {
  return (
    <code title={short(id) === id ? undefined : id} className="fc-id">
      {short(id)}
    </code>
  );
}

export function Trouble({ failure, again }: { failure: Failure; again: () => void }) {
  return (
    <div className="fc-note fc-note-bad" role="alert">
      <p>{failure.title}</p>
      {failure.detail && <p className="fc-muted">{failure.detail}</p>}
      <button type="button" className="fc-button" onClick={again}>
        Try again
      </button>
    </div>
  );
}

/** The answer, or that it is awaited, or why there is none. */
export function Awaited<T>({ answer, children }: { answer: Answer<T>; children: (data: T) => ReactNode }) {
  if (answer.failure) return <Trouble failure={answer.failure} again={answer.again} />;
  if (answer.data === undefined)
    return (
      <p className="fc-muted" role="status">
        Reading the ledger …
      </p>
    );
  return <>{children(answer.data)}</>;
}

export function Section({ title, children, aside }: { title: string; children: ReactNode; aside?: ReactNode }) {
  return (
    <section className="fc-section">
      <div className="fc-section-head">
        <h2>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

/** Terms and what is said of each; those of which nothing is said are left out. */
export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  return (
    <dl className="fc-facts">
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
        .map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{typeof value === "string" ? <Visible text={value} /> : value}</dd>
          </div>
        ))}
    </dl>
  );
}

interface TableProps {
  caption: string;
  heads: string[];
  children: ReactNode;
  /** Whether the children are bodies of the table, not rows. */
  bodies?: boolean;
}

/** A table that scrolls by itself where the page is too narrow, also by keyboard. */
export function Table({ caption, heads, bodies, children }: TableProps) {
  return (
    <div className="fc-scroll" role="region" aria-label={caption} tabIndex={0}>
      <table className="fc-table">
        <caption className="fc-hidden">
          <Visible text={caption} />
        </caption>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                <Visible text={head} />
              </th>
            ))}
          </tr>
        </thead>
        {bodies ? children : <tbody>{children}</tbody>}
      </table>
    </div>
  );
}

// Characters that nobody sees, or that turn the order of the others: a reviewer must see that they are there.
const UNSEEN = /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff])/;

/** A script's text, in which what is unseen is named. */
export function Visible({ text }: { text: string }) {
  return (
    <>
      {text.split(UNSEEN).map((part, place) =>
        place % 2 ? (
          <span key={place} className="fc-unseen">
            U+{part.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}
          </span>
        ) : (
          part
        ),
      )}
    </>
  );
}

/** What an entry says of itself, where it says something. */
export function Message({ text }: { text: string | undefined }) {
  if (!text) return null;
  return (
    <p className="fc-muted">
      <Visible text={text} />
    </p>
  );
}

export function Code({ text, label }: { text: string; label: string }) {
  return (
    <pre className="fc-code" tabIndex={0} role="region" aria-label={label}>
      <Visible text={text} />
    </pre>
  );
}

/** The frame of a page: its headings, and the region that the styles are for. */
export function Page({ title, above, children }: { title: ReactNode; above?: ReactNode; children: ReactNode }) {
  return (
    <div className="fc-root fc-page">
      {above && (
        <nav className="fc-above" aria-label="Pages above this one">
          {above}
        </nav>
      )}
      <h1>{title}</h1>
      {children}
    </div>
  );
}

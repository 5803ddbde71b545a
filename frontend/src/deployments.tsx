// Every deployment that the reader may see: what runs, what is proposed, what needs somebody.
import { useAnswer, type DeploymentItem, type DeploymentList } from "./api";
import { React, useEffect, useLocation, useNavigate, useRef, useState } from "./host";
import { deploymentPage, deploymentsApi, listPage } from "./places";
import { LastCheck, Trouble } from "./standing";
import { Ago, Awaited, Badge, Facts, Id, Lasting, Link, OutsideLink, Page, Table, useNarrow, Visible } from "./ui";
import { bytes, count, engine, start } from "./words";

const PAGE_SIZE = 50;
const REFRESH_SECONDS = 30;
const TYPING_MS = 300;

const CHIPS = [
  ["pending", "wait for a decision"],
  ["in_flight", "in flight"],
  ["interrupted", "interrupted"],
  ["failed", "failed"],
  ["unreadable", "unreadable"],
] as const;

interface Filters {
  show: string;
  team: string;
  q: string;
  page: number;
}

const filtersIn = (search: string): Filters => {
  const given = new URLSearchParams(search);
  return {
    show: given.get("show") ?? "",
    team: given.get("team") ?? "",
    q: given.get("q") ?? "",
    page: Math.max(1, Math.floor(Number(given.get("page"))) || 1),
  };
};

export function Deployments() {
  const navigate = useNavigate();
  const { search } = useLocation();
  const filters = filtersIn(search);
  // The address follows a while after it was asked for: a filter that is set meanwhile is put together with the others.
  const wanted = useRef(filters);
  useEffect(() => {
    wanted.current = filters;
  }, [search]);
  const go = (changes: Partial<Filters>) => {
    wanted.current = { ...wanted.current, page: 1, ...changes };
    const { page, ...rest } = wanted.current;
    navigate(listPage({ ...rest, page: page > 1 ? page : undefined }), { replace: true });
  };
  const kinds = filters.show.split(",").filter(Boolean);
  const answer = useAnswer<DeploymentList>(
    deploymentsApi(
      { team: filters.team, q: filters.q, limit: PAGE_SIZE, offset: (filters.page - 1) * PAGE_SIZE },
      kinds,
    ),
    REFRESH_SECONDS,
  );
  return (
    <Page title="Flink deployments">
      <Awaited answer={answer}>
        {(data) => (
          <>
            <Headline list={data} />
            <Lines list={data} />
            <Problems list={data} />
            {data.counts.all === 0 ? (
              <Nothing list={data} />
            ) : (
              <>
                <FilterBar list={data} filters={filters} kinds={kinds} go={go} />
                <p className="fc-muted" role="status">
                  {data.total === data.counts.all
                    ? count(data.total, "deployment")
                    : `${data.total} of ${count(data.counts.all, "deployment")}`}
                </p>
                {data.total > 0 && <Rows list={data} />}
                <Paging total={data.total} page={filters.page} go={go} />
              </>
            )}
          </>
        )}
      </Awaited>
    </Page>
  );
}

function Headline({ list }: { list: DeploymentList }) {
  const { pending, interrupted } = list.counts;
  if (!pending && !interrupted) return null;
  return (
    <p className="fc-headline">
      {pending > 0 && <Link to={listPage({ show: "pending" })}>{count(pending, "waits", "wait")} for a decision</Link>}
      {interrupted > 0 && (
        <Link to={listPage({ show: "interrupted" })}>
          {count(interrupted, "redeploy is", "redeploys are")} interrupted
        </Link>
      )}
    </p>
  );
}

// During an upgrade, a fleet runs on more than one line.
function Lines({ list }: { list: DeploymentList }) {
  if (list.lines.length < 2) return null;
  return (
    <p className="fc-muted">
      {list.lines
        .map((each) => {
          const attention = [
            each.pending && `${count(each.pending, "waits", "wait")} for a decision`,
            each.failed && `${each.failed} failed`,
          ].filter(Boolean);
          const on = `${each.deployments} on ${engine({ engine: each.engine, engine_version: each.line || null })}`;
          return attention.length ? `${on} (${attention.join(", ")})` : on;
        })
        .join(" · ")}
    </p>
  );
}

function Problems({ list }: { list: DeploymentList }) {
  const lines = [
    ...list.problems,
    ...list.ledgers.filter((each) => each.error).map((each) => `Ledger ${each.uri ?? each.id}: ${each.error}`),
  ];
  if (!lines.length) return null;
  return (
    <ul className="fc-note fc-note-bad">
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

function Nothing({ list }: { list: DeploymentList }) {
  return (
    <div className="fc-note">
      {list.ledgers.length ? (
        <p>
          There are no deployments that you may see. One appears with the first run of its DAG, for everybody who may
          read that DAG.
        </p>
      ) : (
        <p>
          No ledger is configured in Airflow. Name one in a Flink connection (extra <code>ledger</code>), or in the
          setting <code>[flinkcompat] ledgers</code>.
        </p>
      )}
    </div>
  );
}

interface BarProps {
  list: DeploymentList;
  filters: Filters;
  kinds: string[];
  go: (changes: Partial<Filters>) => void;
}

function FilterBar({ list, filters, kinds, go }: BarProps) {
  return (
    <form className="fc-bar" role="search" onSubmit={(event) => event.preventDefault()}>
      <Search value={filters.q} change={(q) => go({ q })} />
      {list.teams.length > 0 && (
        <select aria-label="Team" value={filters.team} onChange={(event) => go({ team: event.currentTarget.value })}>
          <option value="">all teams</option>
          {[...new Set([...list.teams, ...(filters.team ? [filters.team] : [])])].map((team) => (
            <option key={team}>{team}</option>
          ))}
        </select>
      )}
      <div className="fc-chips" role="group" aria-label="Show only">
        {CHIPS.filter(([name]) => list.counts[name] > 0 || kinds.includes(name)).map(([name, words]) => {
          const pressed = kinds.includes(name);
          const left = pressed ? kinds.filter((each) => each !== name) : [...kinds, name];
          return (
            <button
              key={name}
              type="button"
              className="fc-chip"
              aria-pressed={pressed}
              onClick={() => go({ show: left.join(",") })}
            >
              {words} <b>{list.counts[name]}</b>
            </button>
          );
        })}
      </div>
    </form>
  );
}

/** A field that asks once the reader has stopped typing. */
function Search({ value, change }: { value: string; change: (value: string) => void }) {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return undefined;
    const timer = setTimeout(() => change(typed), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <input
      type="search"
      aria-label="Search by name, DAG, team, owner, author, commit or job"
      placeholder="Search: name, DAG, team, author, commit, job"
      maxLength={200}
      value={typed}
      onChange={(event) => setTyped(event.currentTarget.value)}
    />
  );
}

const HEADS = ["Deployment", "What runs", "Last check", "Redeploy", "Last savepoint"];

function Rows({ list }: { list: DeploymentList }) {
  const [element, narrow] = useNarrow();
  const several = list.ledgers.length > 1;
  const rows = list.deployments.map((one) => ({
    one,
    key: `${one.ledger}/${one.deployment}`,
    ledger: several ? ledgerOf(list, one) : "",
  }));
  return (
    <div ref={element}>
      {narrow ? (
        <ul className="fc-list">
          {rows.map(({ key, ...row }) => (
            <Card key={key} {...row} />
          ))}
        </ul>
      ) : (
        <Table caption="Deployments" heads={HEADS}>
          {rows.map(({ key, ...row }) => (
            <Row key={key} {...row} />
          ))}
        </Table>
      )}
    </div>
  );
}

const ledgerOf = (list: DeploymentList, one: DeploymentItem): string => {
  const found = list.ledgers.find((each) => each.id === one.ledger);
  return found?.connections.join(", ") || found?.uri || "";
};

interface RowProps {
  one: DeploymentItem;
  ledger: string;
}

function Name({ one, ledger }: RowProps) {
  const owner = one.owned_by !== one.team && one.owned_by;
  return (
    <div className="fc-stack">
      <Link to={deploymentPage(one.ledger, one.deployment)}>{one.deployment}</Link>
      <span className="fc-muted">
        <Visible text={[one.team, owner, ledger].filter(Boolean).join(" · ")} />
      </span>
    </div>
  );
}

function Unreadable({ error }: { error: string }) {
  return (
    <>
      <Badge tone="bad">unreadable</Badge> {error}
    </>
  );
}

function Row({ one, ledger }: RowProps) {
  return (
    <tr>
      <th scope="row">
        <Name one={one} ledger={ledger} />
      </th>
      {one.error ? (
        <td colSpan={HEADS.length - 1}>
          <Unreadable error={one.error} />
        </td>
      ) : (
        <>
          <td>
            <Running one={one} />
          </td>
          <td>
            <LastCheck one={one} />
          </td>
          <td>
            <Trouble one={one} />
          </td>
          <td>{one.savepoint ? <LastSavepoint of={one.savepoint} /> : <span className="fc-muted">–</span>}</td>
        </>
      )}
    </tr>
  );
}

/** The same where columns have no room. */
function Card({ one, ledger }: RowProps) {
  return (
    <li className="fc-narrow">
      <Name one={one} ledger={ledger} />
      {one.error ? (
        <p>
          <Unreadable error={one.error} />
        </p>
      ) : (
        <Facts
          facts={[
            [HEADS[1]!, <Running key="runs" one={one} />],
            [HEADS[2]!, (one.pending || one.checked) && <LastCheck one={one} />],
            [HEADS[3]!, (one.unfinished || one.failed) && <Trouble one={one} />],
            [HEADS[4]!, one.savepoint && <LastSavepoint of={one.savepoint} />],
          ]}
        />
      )}
    </li>
  );
}

function Running({ one }: { one: DeploymentItem }) {
  if (!one.entry) return <span className="fc-muted">nothing yet</span>;
  const { at, approved_by, job_id, start_mode } = one.entry;
  return (
    <div className="fc-stack">
      <span>
        {engine(one.entry)}
        {job_id && (
          <>
            , job{" "}
            <OutsideLink href={one.job_url}>
              <Id id={job_id} />
            </OutsideLink>
          </>
        )}
      </span>
      <span className="fc-muted">
        <Lasting since={at} />
        {start_mode && `, ${start(start_mode)}`}
        {approved_by && <Visible text={`, approved by ${approved_by}`} />}
      </span>
    </div>
  );
}

function LastSavepoint({ of }: { of: NonNullable<DeploymentItem["savepoint"]> }) {
  return (
    <div className="fc-stack">
      <span title={of.path}>
        <Ago at={of.taken_at} />
      </span>
      {of.bytes !== null && <span className="fc-muted">{bytes(of.bytes)}</span>}
    </div>
  );
}

function Paging({ total, page, go }: { total: number; page: number; go: (changes: Partial<Filters>) => void }) {
  const pages = Math.max(1, Math.ceil(total / PAGE_SIZE));
  if (pages === 1 && page === 1) return null;
  return (
    <nav className="fc-paging" aria-label="Pages of the list">
      <button type="button" className="fc-button" disabled={page <= 1} onClick={() => go({ page: page - 1 })}>
        Previous
      </button>
      <span>
        Page {page} of {pages}
      </span>
      <button type="button" className="fc-button" disabled={page >= pages} onClick={() => go({ page: page + 1 })}>
        Next
      </button>
    </nav>
  );
}

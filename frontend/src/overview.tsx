// The card on Airflow's home page: what waits for a person, and what is interrupted.
import { useAnswer, type DeploymentList } from "./api";
import { React } from "./host";
import { deploymentPage, deploymentsApi, listPage } from "./places";
import { LastCheck, Trouble } from "./standing";
import { Awaited, Link } from "./ui";
import { count } from "./words";

const SHOWN = 5;
const REFRESH_SECONDS = 60;

export function Overview() {
  const answer = useAnswer<DeploymentList>(
    deploymentsApi({ limit: SHOWN }, ["pending", "interrupted", "failed"]),
    REFRESH_SECONDS,
  );
  return (
    <section className="fc-root fc-card" aria-label="Flink deployments">
      <div className="fc-section-head">
        <h2>
          <Link to={listPage()}>Flink deployments</Link>
        </h2>
        {answer.data && <span className="fc-muted">{count(answer.data.counts.all, "deployment")}</span>}
      </div>
      <Awaited answer={answer}>
        {(data) =>
          data.deployments.length === 0 ? (
            <p className="fc-muted">No change waits for a decision, and no redeploy is interrupted.</p>
          ) : (
            <>
              <ul className="fc-list">
                {data.deployments.map((one) => (
                  <li key={`${one.ledger}/${one.deployment}`}>
                    <Link to={deploymentPage(one.ledger, one.deployment)}>{one.deployment}</Link>
                    {one.pending && <LastCheck one={one} />}
                    <Trouble one={one} />
                  </li>
                ))}
              </ul>
              {data.total > data.deployments.length && (
                <Link to={listPage({ show: "pending,interrupted,failed" })}>All {data.total} that need somebody</Link>
              )}
            </>
          )
        }
      </Awaited>
    </section>
  );
}

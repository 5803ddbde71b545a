// What was decided, or where to decide: on Airflow's own page, with its roles, its assigned users and its audit log.
import { useAnswer, type Decision } from "./api";
import { React } from "./host";
import { questionPage, questionsApi, type Run } from "./places";
import { Link, Message, Moment, RunLink, Visible } from "./ui";

interface Questions {
  hitl_details: { task_instance: { task_id: string; map_index: number }; options: string[] }[];
}

const STATES: Record<Decision["state"], string> = {
  waiting: "This change waits for a decision.",
  approved: "Approved",
  rejected: "Rejected",
  "not asked": "Nobody was asked: the policy decided.",
  "not decided": "Nobody decided: another version came, or this one failed by itself.",
};

export function DecisionNote({ decision }: { decision: Decision }) {
  if (decision.state === "waiting")
    return (
      <div className="fc-note fc-note-ask">
        <p>
          <b>{STATES.waiting}</b>
        </p>
        {decision.run ? (
          <Question run={decision.run} />
        ) : (
          <p>It is asked by a run that you may not see, or by another Airflow.</p>
        )}
      </div>
    );
  return (
    <div className="fc-note">
      <p>
        <b>{STATES[decision.state]}</b>
        {decision.by && <Visible text={` by ${decision.by}`} />}
        {decision.at && (
          <>
            , <Moment at={decision.at} />
          </>
        )}
      </p>
      {decision.reason && (
        <p>
          Reason: <Visible text={decision.reason} />
        </p>
      )}
      <Message text={decision.message} />
      {decision.run && (
        <p>
          Run: <RunLink run={decision.run} />
        </p>
      )}
    </div>
  );
}

/** The question as Airflow holds it; where it says nothing, the run in which it will be asked. */
function Question({ run }: { run: Run }) {
  const answer = useAnswer<Questions>(questionsApi(run), 30);
  const asked = answer.data?.hitl_details ?? [];
  if (!answer.data && !answer.failure) return <p role="status">Reading the question …</p>;
  if (!asked.length)
    return (
      <p>
        The question is asked in <RunLink run={run} />.
      </p>
    );
  return (
    <>
      {asked.map(({ task_instance: { task_id: task, map_index: index }, options }) => (
        <p key={`${task}/${index}`} className="fc-ask">
          <Link className="fc-button fc-primary" to={questionPage(run, task)}>
            Decide in Airflow
          </Link>
          <span className="fc-muted">{options.join(" · ")}</span>
        </p>
      ))}
    </>
  );
}

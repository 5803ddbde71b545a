// What was decided, or the question. It is Airflow's, and Airflow takes the answer: with its roles, its assigned users
// and its audit log.
import type { FormEvent } from "react";

import { give, read, useAnswer, type Answer, type ChangePage, type Decision, type Failure } from "./api";
import { React, useEffect, useId, useState } from "./host";
import { changeApi, questionApi, questionPage, questionsApi, xcomApi, xcomsApi, type Run } from "./places";
import { Ago, Link, Message, Moment, RunLink, Visible } from "./ui";

/** A task that waits for a person, as Airflow tells of it. */
interface AskingTask {
  task_instance: { task_id: string; map_index: number; rendered_fields?: { deployment?: unknown } };
  options: string[];
  params: Record<string, unknown>;
  assigned_users: { name: string }[];
}

interface AskingTasks {
  hitl_details: AskingTask[];
}

/** How a question stands that may be asked again. */
interface Standing {
  approvers_needed: number;
  answers: { by: string; choice: string; reason: string | null }[];
  refused: string;
}

// As operators/approval.py, asking.py and summary.py name them.
const REJECT = "Reject";
const BRANCHES: Record<string, string> = {
  "Resume from savepoint": "resume",
  "Migrate the state": "migrate",
  "Restart without state": "restart",
  "Restart with backfill": "restart",
  [REJECT]: "reject",
};
const REASON = "reason";
const QUESTION = "question";

const REFRESH_SECONDS = 30;
const ANSWERED_REFRESH_SECONDS = 3;

const STATES: Record<Decision["state"], string> = {
  waiting: "This change waits for a decision",
  approved: "Approved",
  rejected: "Rejected",
  "not asked": "Nobody was asked: the policy decided.",
  "not decided": "Nobody decided: another version was proposed, or this one failed.",
};

/** Reads the change anew. */
export type Reading = Pick<Answer<unknown>, "again" | "refresh">;

interface Deciding {
  change: ChangePage;
  reading: Reading;
}

export function DecisionNote({ change, reading }: Deciding) {
  const { decision, checked } = change;
  const otherRun = decision.run?.run_id === checked?.run?.run_id ? null : decision.run;
  if (decision.state === "waiting")
    return (
      <div className="fc-note fc-note-ask">
        <p>
          <b>{STATES.waiting}</b>
          {checked && (
            <>
              , asked <Ago at={checked.at} />
            </>
          )}
          .
        </p>
        {decision.run ? (
          <Question run={decision.run} change={change} reading={reading} />
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
      {otherRun && (
        <p>
          Run: <RunLink run={otherRun} />
        </p>
      )}
    </div>
  );
}

/** Who answered by keyboard is then where the form was. */
const takeFocus = (element: HTMLElement | null): void => element?.focus();

/** The question as Airflow holds it; where it says nothing, the run in which it will be asked. */
function Question({ run, change, reading }: Deciding & { run: Run }) {
  const [given, setGiven] = useState<{ option: string; count: number; before: AskingTasks | undefined }>();
  const seconds = given ? ANSWERED_REFRESH_SECONDS : REFRESH_SECONDS;
  const answer = useAnswer<AskingTasks>(questionsApi(run), seconds);
  useEffect(() => {
    if (!given) return undefined;
    const timer = setInterval(reading.refresh, ANSWERED_REFRESH_SECONDS * 1000);
    return () => clearInterval(timer);
  }, [given]);
  const asking = answer.data?.hitl_details ?? [];
  // A run may ask about several deployments. Of two that have this name nobody knows which is which.
  const named = asking.filter(({ task_instance: task }) => task.rendered_fields?.deployment === change.deployment);
  const [own] = named.length === 1 ? named : [];
  const isAskedAgain = given && own && answer.data !== given.before;
  const standing = useStanding(run, own, seconds);
  if (!answer.data && !answer.failure) return <p role="status">Reading the question …</p>;
  return (
    <>
      {given && (
        <p key={given.count} role="status" tabIndex={-1} ref={takeFocus}>
          You chose “{given.option}”.{" "}
          {!isAskedAgain
            ? "Airflow has your answer; this page shows it soon."
            : !standing
              ? "The question is asked again: somebody else must choose the same, or your answer does not count."
              : standing.refused
                ? "The question is asked again."
                : "It counts, and somebody else must choose the same. A new answer replaces it."}
        </p>
      )}
      {own && standing && <StandingNote standing={standing} />}
      {own && (!given || isAskedAgain) && (
        <AnswerForm
          key={taskKey(own)}
          run={run}
          change={change}
          reading={reading}
          asking={own}
          onGiven={(option) => {
            setGiven({ option, count: (given?.count ?? 0) + 1, before: answer.data });
            answer.again();
          }}
        />
      )}
      {!given && !own && asking.map((each) => <AirflowForm key={taskKey(each)} run={run} asking={each} />)}
      {!given && !asking.length && (
        <p>
          The question is asked in <RunLink run={run} />.
        </p>
      )}
    </>
  );
}

const taskKey = ({ task_instance: { task_id: task, map_index: index } }: AskingTask): string => `${task}/${index}`;

/** How the question stands; nothing of one that is asked once. */
function useStanding(run: Run, asking: AskingTask | undefined, seconds: number): Standing | undefined {
  const { task_id: task, map_index: index } = asking?.task_instance ?? { task_id: "", map_index: -1 };
  const noted = useAnswer<{ total_entries: number }>(asking && xcomsApi(run, task, index, QUESTION), seconds);
  const path = asking && noted.data?.total_entries ? xcomApi(run, task, index, QUESTION) : undefined;
  return useAnswer<{ value: Standing }>(path, seconds).data?.value;
}

function StandingNote({ standing: { approvers_needed: needed, answers, refused } }: { standing: Standing }) {
  return (
    <>
      {needed > 1 && (
        <p>
          {needed} people have to choose the same; one “{REJECT}” is enough.
        </p>
      )}
      {answers.length > 0 && (
        <ul className="fc-bullets">
          {answers.map(({ by, choice, reason }) => (
            <li key={by}>
              <Visible text={`${by} chose “${choice}”${reason ? `: ${reason}` : ""}`} />
            </li>
          ))}
        </ul>
      )}
      {refused && (
        <p>
          <Visible text={refused} />
        </p>
      )}
    </>
  );
}

const OWN_FORM = "Airflow's own form";

/** The way to Airflow's own form. */
function AirflowForm({ run, asking }: { run: Run; asking: AskingTask }) {
  return (
    <p className="fc-ask">
      <Link className="fc-button fc-primary" to={questionPage(run, asking.task_instance.task_id)}>
        {OWN_FORM}
      </Link>
      <span className="fc-muted">{asking.options.join(" · ")}</span>
    </p>
  );
}

interface AnswerFormProps extends Deciding {
  run: Run;
  asking: AskingTask;
  onGiven: (option: string) => void;
}

/** The form, where a reason is all that is asked for beside the choice: further fields are of any kind. */
function AnswerForm({ run, change, reading, asking, onGiven }: AnswerFormProps) {
  const [option, choose] = useState("");
  const [reason, say] = useState("");
  const [isSending, setSending] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const id = useId();
  const { task_id: task, map_index: mapIndex } = asking.task_instance;
  const fields = Object.keys(asking.params);
  if (fields.some((name) => name !== REASON)) return <AirflowForm run={run} asking={asking} />;

  const send = async (event: FormEvent) => {
    event.preventDefault();
    setSending(true);
    setFailure(undefined);
    try {
      // A page may have stood open for hours: what is decided on is what is shown, or nothing.
      const now = await read<ChangePage>(changeApi(change.ledger, change.deployment, change.number));
      if (now.decision.state !== "waiting")
        throw { title: "This change no longer waits. Reload the page.", detail: "" } satisfies Failure;
      await give(questionApi(run, task, mapIndex), {
        chosen_options: [option],
        params_input: fields.length ? { [REASON]: reason.trim() || null } : {},
      });
      onGiven(option);
      reading.again();
    } catch (error) {
      setFailure(error as Failure);
      setSending(false);
      reading.again();
    }
  };
  return (
    <form className="fc-answer" onSubmit={send}>
      {asking.assigned_users.length > 0 && (
        <p>
          Assigned to <Visible text={asking.assigned_users.map(({ name }) => name).join(", ")} />.
        </p>
      )}
      <fieldset>
        <legend>Your decision</legend>
        {asking.options.map((each, place) => {
          const comes = change.answers.find(({ branch }) => branch === BRANCHES[each])?.text;
          return (
            <label key={each} className="fc-option">
              <input
                type="radio"
                name={id}
                required
                checked={option === each}
                onChange={() => choose(each)}
                aria-labelledby={`${id}-${place}`}
                aria-describedby={comes && `${id}-${place}-comes`}
              />
              <span className="fc-stack">
                <b id={`${id}-${place}`}>{each}</b>
                {comes && (
                  <span id={`${id}-${place}-comes`}>
                    <Visible text={comes} />
                  </span>
                )}
              </span>
            </label>
          );
        })}
      </fieldset>
      {fields.length > 0 && (
        <>
          <label htmlFor={`${id}-reason`}>
            Reason for the ledger{option === REJECT ? " (required to reject)" : ""}
          </label>
          <textarea
            id={`${id}-reason`}
            rows={2}
            maxLength={2000}
            required={option === REJECT}
            value={reason}
            onChange={(event) => say(event.target.value)}
          />
        </>
      )}
      {failure && (
        <div role="alert">
          <b>{failure.title}</b> {failure.detail}
        </div>
      )}
      <p className="fc-ask">
        <button type="submit" className="fc-button fc-primary" disabled={isSending}>
          {isSending ? "Sending the answer …" : "Send this answer"}
        </button>
        <Link to={questionPage(run, task)}>{OWN_FORM}</Link>
      </p>
    </form>
  );
}

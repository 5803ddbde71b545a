// What was decided, or the question. It is Airflow's, and Airflow takes the answer: with its roles, its assigned users
// and its audit log.
import type { FormEvent } from "react";

import { give, read, useAnswer, type ChangePage, type Decision, type Failure } from "./api";
import { React, useEffect, useId, useState } from "./host";
import { changeApi, questionApi, questionPage, questionsApi, type Run } from "./places";
import { Link, Message, Moment, RunLink, Visible } from "./ui";

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

// As operators/asking.py names them.
const REJECT = "Reject";
const REASON = "reason";

const REFRESH_SECONDS = 30;
const ANSWERED_REFRESH_SECONDS = 3;

const STATES: Record<Decision["state"], string> = {
  waiting: "This change waits for a decision.",
  approved: "Approved",
  rejected: "Rejected",
  "not asked": "Nobody was asked: the policy decided.",
  "not decided": "Nobody decided: another version came, or this one failed by itself.",
};

interface Deciding {
  change: ChangePage;
  /** Reads the change anew. */
  again: () => void;
}

export function DecisionNote({ change, again }: Deciding) {
  const { decision } = change;
  if (decision.state === "waiting")
    return (
      <div className="fc-note fc-note-ask">
        <p>
          <b>{STATES.waiting}</b>
        </p>
        {decision.run ? (
          <Question run={decision.run} change={change} again={again} />
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

/** Who answered by keyboard is then where the form was. */
const takeFocus = (element: HTMLElement | null): void => element?.focus();

/** The question as Airflow holds it; where it says nothing, the run in which it will be asked. */
function Question({ run, change, again }: Deciding & { run: Run }) {
  const [given, setGiven] = useState<{ option: string; count: number; before: AskingTasks | undefined }>();
  const answer = useAnswer<AskingTasks>(questionsApi(run), given ? ANSWERED_REFRESH_SECONDS : REFRESH_SECONDS);
  useEffect(() => {
    if (!given) return undefined;
    const timer = setInterval(again, ANSWERED_REFRESH_SECONDS * 1000);
    return () => clearInterval(timer);
  }, [given]);
  const asking = answer.data?.hitl_details ?? [];
  if (!answer.data && !answer.failure) return <p role="status">Reading the question …</p>;
  // A run may ask about several deployments. Of two that have this name nobody knows which is which.
  const named = asking.filter(({ task_instance: task }) => task.rendered_fields?.deployment === change.deployment);
  const [own] = named.length === 1 ? named : [];
  const isAskedAgain = given && own && answer.data !== given.before;
  return (
    <>
      {given && (
        <p key={given.count} role="status" tabIndex={-1} ref={takeFocus}>
          You chose “{given.option}”.{" "}
          {isAskedAgain
            ? "The question is asked again: somebody else has to choose the same, or your answer does not count. The log of the task says which."
            : "Airflow has your answer; this page follows."}
        </p>
      )}
      {own && (!given || isAskedAgain) && (
        <AnswerForm
          key={taskKey(own)}
          run={run}
          change={change}
          again={again}
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

/** The way to Airflow's own form. */
function AirflowForm({ run, asking }: { run: Run; asking: AskingTask }) {
  return (
    <p className="fc-ask">
      <Link className="fc-button fc-primary" to={questionPage(run, asking.task_instance.task_id)}>
        Decide in Airflow
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
function AnswerForm({ run, change, again, asking, onGiven }: AnswerFormProps) {
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
        throw { title: "This change does not wait any more. Load the page again.", detail: "" } satisfies Failure;
      await give(questionApi(run, task, mapIndex), {
        chosen_options: [option],
        params_input: fields.length ? { [REASON]: reason.trim() || null } : {},
      });
      onGiven(option);
    } catch (error) {
      setFailure(error as Failure);
      setSending(false);
      again();
    }
  };
  return (
    <form className="fc-answer" onSubmit={send}>
      {asking.assigned_users.length > 0 && (
        <p>
          Asked of <Visible text={asking.assigned_users.map(({ name }) => name).join(", ")} />.
        </p>
      )}
      <fieldset>
        <legend>Your decision</legend>
        {asking.options.map((each) => (
          <label key={each}>
            <input type="radio" name={id} required checked={option === each} onChange={() => choose(each)} /> {each}
          </label>
        ))}
      </fieldset>
      {fields.length > 0 && (
        <>
          <label htmlFor={`${id}-reason`}>Reason, for the ledger{option === REJECT ? " (needed to reject)" : ""}</label>
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
          {isSending ? "Giving the answer …" : "Give this answer"}
        </button>
        <Link to={questionPage(run, task)}>Decide in Airflow</Link>
      </p>
    </form>
  );
}

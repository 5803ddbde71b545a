// Reading: of the plugin's API, and of Airflow's own. Nothing here writes.
import type { components } from "./api.gen";
import { addressOf, useEffect, useState } from "./host";

type Schemas = components["schemas"];
export type DeploymentItem = Schemas["DeploymentItem"];
export type DeploymentList = Schemas["DeploymentList"];
export type DeploymentPage = Schemas["DeploymentPage"];
export type EntrySummary = Schemas["EntrySummary"];
export type HistoryEntry = Schemas["HistoryEntry"];
export type VersionTexts = Schemas["VersionTexts"];
export type Redeploy = Schemas["Redeploy"];
export type Savepoint = Schemas["Savepoint"];
export type ChangePage = Schemas["ChangePage"];
export type Decision = Schemas["Decision"];
export type RunChanges = Schemas["RunChanges"];

/** Why there is no answer, as a sentence for the reader. */
export interface Failure {
  title: string;
  detail: string;
}

const TITLES: Record<number, string> = {
  401: "You are not signed in any more. Reload the page to sign in again.",
  403: "You may not see this. Access is given with the right to read the DAG that deploys the job.",
  404: "There is no such thing here. It may have been renamed, or its ledger is not one that Airflow knows.",
  503: "The ledger cannot be read at the moment.",
};

const failureOf = (status: number, detail: string): Failure => ({
  title: TITLES[status] ?? `Airflow could not answer (status ${status}). Its API server's log says why.`,
  detail,
});

const detailOf = (body: string): string => {
  try {
    const detail: unknown = (JSON.parse(body) as { detail?: unknown }).detail;
    return typeof detail === "string" ? detail : "";
  } catch {
    return ""; // a proxy's own page, of which nothing is shown
  }
};

async function read(path: string, signal: AbortSignal): Promise<unknown> {
  let answer: Response;
  try {
    answer = await fetch(addressOf(path), { signal, headers: { Accept: "application/json" } });
  } catch (error) {
    if (signal.aborted) throw error;
    throw { title: "Airflow cannot be reached. Are you offline?", detail: "" } satisfies Failure;
  }
  const body = await answer.text();
  if (!answer.ok) throw failureOf(answer.status, detailOf(body));
  try {
    return JSON.parse(body);
  } catch {
    throw failureOf(answer.status, "The answer is no JSON.");
  }
}

export interface Answer<T> {
  data: T | undefined;
  failure: Failure | undefined;
  /** Whether a newer answer is on its way; the former stays in sight. */
  loading: boolean;
  again: () => void;
}

/** Reads a path, anew when it changes and every `seconds`; undefined: nothing is read. */
export function useAnswer<T>(path: string | undefined, seconds?: number): Answer<T> {
  const [state, setState] = useState<{ path?: string; data?: T; failure?: Failure; loading: boolean }>({
    loading: true,
  });
  const [round, setRound] = useState(0);
  const again = () => setRound((count) => count + 1);
  useEffect(() => {
    if (path === undefined) return undefined;
    const stop = new AbortController();
    setState((former) => ({ ...former, loading: true }));
    read(path, stop.signal).then(
      (data) => setState({ path, data: data as T, loading: false }),
      (failure: Failure) => stop.signal.aborted || setState({ path, failure, loading: false }),
    );
    return () => stop.abort();
  }, [path, round]);
  useEffect(() => {
    if (!seconds || path === undefined) return undefined;
    const timer = setInterval(() => document.hidden || again(), seconds * 1000);
    return () => clearInterval(timer);
  }, [path, seconds]);
  return { data: state.data, failure: state.failure, loading: state.loading, again };
}

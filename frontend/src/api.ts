// Reading: of the plugin's API, and of Airflow's own. All that is written is a person's answer, to Airflow itself.
import type { components } from "./api.gen";
import { addressOf, useEffect, useRef, useState } from "./host";

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
export type ShadowedVersion = Schemas["ShadowedVersion"];
export type Decision = Schemas["Decision"];
export type RunChanges = Schemas["RunChanges"];

/** Why there is no answer, as a sentence for the reader. */
export interface Failure {
  title: string;
  detail: string;
}

const TITLES: Record<number, string> = {
  401: "You are no longer signed in. Reload the page to sign in again.",
  403: "You may not see this. Users who may read the DAG that deploys the job have access.",
  404: "Not found. It may have been renamed, or Airflow does not know its ledger.",
  503: "The ledger cannot be read at the moment.",
};

/** What a status means where an answer is given. */
const REFUSALS: Record<number, string> = {
  400: "Airflow does not accept this answer.",
  401: TITLES[401]!,
  403: "You may not decide this.",
  404: "This question is no longer open.",
  409: "Somebody answered before you.",
};

const failureOf = (status: number, detail: string, titles = TITLES): Failure => ({
  title: titles[status] ?? `Airflow could not answer (status ${status}). See the log of its API server.`,
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

/** The text of Airflow's answer. Throws a Failure. */
async function request(path: string, init: RequestInit, titles?: Record<number, string>): Promise<string> {
  let answer: Response;
  try {
    answer = await fetch(addressOf(path), { ...init, headers: { Accept: "application/json", ...init.headers } });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw { title: "Airflow cannot be reached. Check your network connection.", detail: "" } satisfies Failure;
  }
  const body = await answer.text();
  if (!answer.ok) throw failureOf(answer.status, detailOf(body), titles);
  return body;
}

/** Throws a Failure. */
export async function read<T>(path: string, signal?: AbortSignal): Promise<T> {
  const body = await request(path, { signal: signal ?? null });
  try {
    return JSON.parse(body) as T;
  } catch {
    throw failureOf(200, "The answer is not JSON.");
  }
}

/** Gives Airflow a person's answer, with the session of the page. Throws a Failure: Airflow refused it. */
export const give = (path: string, answer: unknown): Promise<unknown> => {
  const headers = { "Content-Type": "application/json" };
  return request(path, { method: "PATCH", headers, body: JSON.stringify(answer) }, REFUSALS);
};

export interface Answer<T> {
  data: T | undefined;
  failure: Failure | undefined;
  /** Whether a newer answer is on its way; the former stays in sight. */
  loading: boolean;
  /** Reads at once: an answer that is on its way is not waited for. */
  again: () => void;
  /** Reads anew, unless an answer is on its way: one that takes long comes all the same. */
  refresh: () => void;
}

/** Reads a path, anew when it changes and every `seconds`; undefined: nothing is read. */
export function useAnswer<T>(path: string | undefined, seconds?: number): Answer<T> {
  const [state, setState] = useState<{ path?: string; data?: T; failure?: Failure; loading: boolean }>({
    loading: true,
  });
  const [round, setRound] = useState(0);
  const reading = useRef<AbortController | undefined>(undefined);
  const again = () => setRound((count) => count + 1);
  const refresh = () => reading.current || document.hidden || again();
  useEffect(() => {
    if (path === undefined) return undefined;
    const stop = new AbortController();
    reading.current = stop;
    setState((former) => ({ ...former, loading: true }));
    read<T>(path, stop.signal)
      .then(
        (data) => setState({ path, data, loading: false }),
        (failure: Failure) => stop.signal.aborted || setState({ path, failure, loading: false }),
      )
      .finally(() => {
        if (reading.current === stop) reading.current = undefined;
      });
    return () => stop.abort();
  }, [path, round]);
  useEffect(() => {
    if (!seconds || path === undefined) return undefined;
    const timer = setInterval(refresh, seconds * 1000);
    return () => clearInterval(timer);
  }, [path, seconds]);
  return { data: state.data, failure: state.failure, loading: state.loading, again, refresh };
}

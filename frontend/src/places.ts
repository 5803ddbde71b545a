// Addresses of the pages. What is shown is named in the query, so that a reload, a bookmark and a back key find it, in
// every release of Airflow that has plugins of React, whatever it makes of the path.

/** As registration.py gives it to the page in the navigation. */
const PAGE = "/plugin/flink";

export interface Place {
  ledger?: string;
  deployment?: string;
  change?: number;
}

export const placeIn = (search: string): Place => {
  const given = new URLSearchParams(search);
  const [ledger, deployment, change] = [given.get("ledger"), given.get("deployment"), Number(given.get("change"))];
  if (!ledger || !deployment) return {};
  return change > 0 ? { ledger, deployment, change } : { ledger, deployment };
};

const withQuery = (path: string, given: Record<string, string | number | undefined>): string => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given))
    if (value !== undefined && value !== "") query.set(name, `${value}`);
  return query.size ? `${path}?${query}` : path;
};

const segment = encodeURIComponent;

export const listPage = (filters: Record<string, string | number | undefined> = {}): string => withQuery(PAGE, filters);
export const deploymentPage = (ledger: string, deployment: string): string => withQuery(PAGE, { ledger, deployment });
export const changePage = (ledger: string, deployment: string, change: number): string =>
  withQuery(PAGE, { ledger, deployment, change });

export interface Run {
  dag_id: string;
  run_id: string;
  task_id?: string;
}

export const dagPage = (dag: string): string => `/dags/${segment(dag)}`;
export const runPage = (run: Run): string => `${dagPage(run.dag_id)}/runs/${segment(run.run_id)}`;
export const taskPage = (run: Run, task: string): string => `${runPage(run)}/tasks/${segment(task)}`;
export const questionPage = (run: Run, task?: string): string =>
  `${task ? taskPage(run, task) : runPage(run)}/required_actions`;

const API = "/flinkcompat/api/v1";

export const deploymentsApi = (filters: Record<string, string | number | undefined>, kinds: string[]): string => {
  const path = withQuery(`${API}/deployments`, filters);
  const more = kinds.map((kind) => `attention=${segment(kind)}`).join("&");
  return more ? `${path}${path.includes("?") ? "&" : "?"}${more}` : path;
};
export const deploymentApi = (ledger: string, deployment: string): string =>
  `${API}/deployments/${segment(ledger)}/${segment(deployment)}`;
export const changeApi = (ledger: string, deployment: string, change: number): string =>
  `${deploymentApi(ledger, deployment)}/changes/${change}`;
export const runApi = (dag: string, run: string, task?: string): string =>
  withQuery(`${API}/runs/${segment(dag)}/${segment(run)}`, { task_id: task });
const airflowRun = (run: Run): string => `/api/v2/dags/${segment(run.dag_id)}/dagRuns/${segment(run.run_id)}`;
/** Airflow's own: which tasks of a run wait for a person. */
export const questionsApi = (run: Run): string =>
  withQuery(`${airflowRun(run)}/hitlDetails`, { response_received: "false" });
/** Airflow's own: the question of one task, where it takes the answer. */
export const questionApi = (run: Run, task: string, mapIndex: number): string =>
  `${airflowRun(run)}/taskInstances/${segment(task)}/${mapIndex}/hitlDetails`;
/** Airflow's own: whether a task has put down an XCom, which is read without an error where it has not. */
export const xcomsApi = (run: Run, task: string, mapIndex: number, key: string): string =>
  withQuery(`${airflowRun(run)}/taskInstances/${segment(task)}/xcomEntries`, { xcom_key: key, map_index: mapIndex });
/** Airflow's own: that XCom. */
export const xcomApi = (run: Run, task: string, mapIndex: number, key: string): string =>
  withQuery(`${airflowRun(run)}/taskInstances/${segment(task)}/xcomEntries/${segment(key)}`, { map_index: mapIndex });

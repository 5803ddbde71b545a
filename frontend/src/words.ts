// Numbers, moments and the ledger's terms, in words.
import type { EntrySummary, HistoryEntry } from "./api";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const duration = (seconds: number): string => {
  if (seconds < 1) return `${Math.max(0, Math.round(seconds * 1000))} ms`;
  if (seconds < MINUTE) return `${Number(seconds.toFixed(seconds < 10 ? 1 : 0))} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min ${Math.round(seconds % MINUTE)} s`;
  if (seconds < DAY) return `${Math.floor(seconds / HOUR)} h ${Math.floor((seconds % HOUR) / MINUTE)} min`;
  return `${Math.floor(seconds / DAY)} d ${Math.floor((seconds % DAY) / HOUR)} h`;
};

/** How long it lasts since a moment, in one unit: what a table has room for. */
export const lasting = (at: string, now: number, least = "a moment"): string => {
  const seconds = (now - Date.parse(at)) / 1000;
  if (Number.isNaN(seconds)) return at;
  if (seconds < MINUTE) return least;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)} h`;
  return `${Math.floor(seconds / DAY)} d`;
};

const FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** A moment in the reader's own time zone. */
export const moment = (at: string): string => {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? at : FORMAT.format(date);
};

const UNITS = ["bytes", "kB", "MB", "GB", "TB", "PB"];

export const bytes = (count: number): string => {
  const power = count < 1000 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log10(count) / 3));
  return `${Number((count / 1000 ** power).toPrecision(3))} ${UNITS[power]}`;
};

export const count = (number: number, one: string, many = `${one}s`): string =>
  `${number} ${number === 1 ? one : many}`;

/** The first characters of a digest or of a job's id, as they stand in Flink's UI and in Git. */
export const short = (id: string): string => (/^[0-9a-f]{20,}$/.test(id) ? id.slice(0, 8) : id);

const ENGINES: Record<string, string> = { flink: "Flink", vvr: "VVR" };

export const engine = (entry: Pick<EntrySummary, "engine" | "engine_version">): string =>
  [ENGINES[entry.engine] ?? entry.engine, entry.engine_version].filter(Boolean).join(" ");

const STARTS: Record<string, string> = {
  savepoint: "from the savepoint",
  checkpoint: "from a checkpoint",
  migrated: "from the migrated savepoint",
  stateless: "without state",
};

export const start = (mode: string): string => STARTS[mode] ?? mode;

const KINDS: Record<string, string> = {
  adopted: "Adopted",
  approved: "Approved",
  backfilled: "Backfilled",
  checked: "Checked",
  deployed: "Deployed",
  deploying: "Redeploy started",
  disposed: "Savepoint deleted",
  failed: "Failed",
  interrupted: "Interrupted",
  migrated: "Savepoint migrated",
  migrating: "Migrating the savepoint",
  planned: "Plan only",
  rehearsed: "Rehearsed",
  rejected: "Rejected",
  "rolled-back": "Rolled back",
  "rolling-back": "Rolling back",
  shadowed: "Shadow run",
  started: "Job started",
  starting: "Starting the job",
  stopped: "Job stopped",
  stopping: "Stopping the job",
  unchanged: "Unchanged",
};

export const kind = (name: string): string => KINDS[name] ?? name;

const BRANCHES: Record<string, string> = {
  approve: "a decision by a person",
  first: "a first start",
  migrate: "a start from the migrated savepoint",
  reject: "a rejection by the policy",
  restart: "a start without state",
  resume: "a start from the savepoint",
  unchanged: "nothing to deploy",
};

/** What follows a check, by its branch. */
export const branch = (name: string | null): string | null => name && (BRANCHES[name] ?? name);

const OUTCOMES: Record<string, string> = {
  compatible: "The state fits.",
  partial: "Part of the state fits; the rest starts empty.",
  unknown: "Whether the state fits is unknown.",
  incompatible: "The state does not fit.",
};

export const outcome = (name: string): string => OUTCOMES[name] ?? "";

/** What a backfill was about. */
export const range = (entry: HistoryEntry): string =>
  `${entry.range_from ?? "the beginning"} to ${entry.range_to ?? "the end"}`;

const COUNTED: Record<string, [one: string, many: string]> = {
  rows_read: ["row read", "rows read"],
  rows_late: ["late row", "late rows"],
  rows_dropped_null_time: ["row dropped without an event time", "rows dropped without an event time"],
  rows_written: ["row written", "rows written"],
  windows_written: ["window written", "windows written"],
  chunks: ["chunk", "chunks"],
};

/** The counts of a backfill. */
export const counts = (entry: HistoryEntry): string =>
  Object.entries(entry.counts)
    .map(([name, number]) => `${number.toLocaleString()} ${COUNTED[name]?.[number === 1 ? 0 : 1] ?? name}`)
    .join(", ");

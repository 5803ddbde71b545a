// Two texts side by side, row by row, with what changed within a row, and marks on clauses.
import { diffLines, diffWordsWithSpace } from "diff";

/** A part of a line; columns from 0, the end not included. */
export interface Range {
  from: number;
  to: number;
}

export interface Line {
  number: number;
  text: string;
  changed: Range[];
}

/** What stands beside each other: both where nothing changed, or where one line took the place of another. */
export interface Row {
  before: Line | null;
  after: Line | null;
  same: boolean;
}

const linesOf = (text: string): string[] => {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
};

/** Most of one line is in the other: then words are compared, else the lines as a whole. */
const MOST_OF_IT = 0.4;
const LONGEST_LINE = 2000;

/** What is only in either line; nothing where they have little in common. */
function changedWithin(before: string, after: string): [Range[], Range[]] {
  if (before.length > LONGEST_LINE || after.length > LONGEST_LINE) return [[], []];
  const gone: Range[] = [];
  const come: Range[] = [];
  let [left, right, shared] = [0, 0, 0];
  for (const { value, added, removed } of diffWordsWithSpace(before, after)) {
    if (removed) gone.push({ from: left, to: (left += value.length) });
    else if (added) come.push({ from: right, to: (right += value.length) });
    else {
      left += value.length;
      right += value.length;
      shared += value.trim().length;
    }
  }
  const longer = Math.max(before.trim().length, after.trim().length);
  return shared >= longer * MOST_OF_IT ? [gone, come] : [[], []];
}

export function sideBySide(before: string, after: string): Row[] {
  const rows: Row[] = [];
  let [left, right] = [0, 0];
  let removed: string[] = [];
  const flush = (added: string[]) => {
    for (let place = 0; place < Math.max(removed.length, added.length); place++) {
      const [old, proposed] = [removed[place], added[place]];
      const [gone, come] = old !== undefined && proposed !== undefined ? changedWithin(old, proposed) : [[], []];
      rows.push({
        before: old === undefined ? null : { number: ++left, text: old, changed: gone },
        after: proposed === undefined ? null : { number: ++right, text: proposed, changed: come },
        same: false,
      });
    }
    removed = [];
  };
  for (const part of diffLines(before, after)) {
    const lines = linesOf(part.value);
    if (part.removed) {
      flush([]);
      removed = lines;
    } else if (part.added) {
      flush(lines);
    } else {
      flush([]);
      for (const text of lines) {
        rows.push({
          before: { number: ++left, text, changed: [] },
          after: { number: ++right, text, changed: [] },
          same: true,
        });
      }
    }
  }
  flush([]);
  return rows;
}

interface Piece {
  text: string;
  changed: boolean;
  marks: number[];
}

/** A line cut where a change or a mark begins or ends. */
export function pieces(text: string, changed: Range[], marks: (Range & { mark: number })[]): Piece[] {
  const inside = (place: number) => Math.max(0, Math.min(text.length, place));
  const cuts = new Set([0, text.length]);
  for (const { from, to } of [...changed, ...marks]) {
    cuts.add(inside(from));
    cuts.add(inside(to));
  }
  const places = [...cuts].sort((one, other) => one - other);
  return places.slice(0, -1).map((from, place) => {
    const to = places[place + 1]!;
    const covers = (range: Range) => range.from <= from && to <= range.to;
    return {
      text: text.slice(from, to),
      changed: changed.some(covers),
      marks: marks.filter(covers).map(({ mark }) => mark),
    };
  });
}

/** Runs of rows that did not change, but for some around each change and each kept row, are folded. */
type Block = { rows: Row[]; folded: boolean };

export function folded(rows: Row[], keep: (row: Row) => boolean, context = 3, least = 4): Block[] {
  const shown = rows.map(() => false);
  rows.forEach((row, place) => {
    if (row.same && !keep(row)) return;
    for (let near = place - context; near <= place + context; near++) if (near in shown) shown[near] = true;
  });
  const blocks: Block[] = [];
  rows.forEach((row, place) => {
    const last = blocks.at(-1);
    if (last && last.folded === !shown[place]) last.rows.push(row);
    else blocks.push({ rows: [row], folded: !shown[place] });
  });
  return blocks.map((block) => (block.rows.length < least ? { ...block, folded: false } : block));
}

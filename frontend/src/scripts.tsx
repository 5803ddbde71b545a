// Old and new script beside each other, with the findings under the clauses that they are about.
import type { VersionTexts } from "./api";
import { folded, pieces, sideBySide, type Line, type Range, type Row } from "./diff";
import { React, useMemo, useState } from "./host";
import type { Finding, Report, Span } from "./report";
import { Outcome, useNarrow, Visible } from "./ui";
import { FindingLink, FindingText } from "./verdict";
import { count } from "./words";

interface Mark extends Range {
  mark: number;
}

/** The part of a line that a span covers; nothing where it is of another file or another line. */
function rangeIn(span: Span | null | undefined, source: string, line: Line): Range | null {
  if (!span || span.source !== source || line.number < span.line || line.number > span.end_line) return null;
  return {
    from: line.number === span.line ? span.column - 1 : 0,
    to: line.number === span.end_line ? span.end_column : line.text.length,
  };
}

/** Where a finding is shown: below the last line of its clause on the new side, else on the old one. */
function placeOf(finding: Finding, report: Report): ["before" | "after", number] | null {
  if (finding.after_span?.source === report.new.source) return ["after", finding.after_span.end_line];
  if (finding.before_span?.source === report.old.source) return ["before", finding.before_span.end_line];
  return null;
}

interface Props {
  old: VersionTexts;
  new: VersionTexts;
  report: Report | null;
  /** What the former version is: "Running version". */
  title: string;
}

export function Scripts({ old, new: proposed, report, title }: Props) {
  const [frame, unified] = useNarrow();
  const [whole, setWhole] = useState(false);
  const [opened, setOpened] = useState<number[]>([]);
  const rows = useMemo(() => sideBySide(old.script, proposed.script), [old.script, proposed.script]);
  const findings = (report?.findings ?? []).map((finding, place) => ({ finding, mark: place + 1 }));
  const placed = findings.map((each) => ({ ...each, place: report && placeOf(each.finding, report) }));
  const below = (row: Row) =>
    placed
      .filter(({ place }) => place && row[place[0]]?.number === place[1])
      .map(({ finding, mark }) => ({ finding, mark }));
  const blocks = folded(rows, (row) => below(row).length > 0);
  const marksOf = (line: Line, side: "before" | "after"): Mark[] =>
    findings.flatMap(({ finding, mark }) => {
      const range =
        report &&
        !finding.overruled_by &&
        rangeIn(finding[`${side}_span`], side === "before" ? report.old.source : report.new.source, line);
      return range ? [{ ...range, mark }] : [];
    });
  const hidden = blocks.some((block, place) => block.folded && !opened.includes(place));
  const columns = unified ? 3 : 4;
  return (
    <div ref={frame} className="fc-scroll fc-frame" role="region" aria-label="Scripts compared" tabIndex={0}>
      <table className={`fc-diff ${unified ? "fc-unified" : "fc-split"}`}>
        <caption className="fc-hidden">The former script and the proposed one</caption>
        <colgroup>
          {(unified ? ["fc-numbers", "fc-numbers", ""] : ["fc-numbers", "", "fc-numbers", ""]).map((name, place) => (
            <col key={place} className={name} />
          ))}
        </colgroup>
        <thead>
          <tr>
            {unified ? (
              <>
                <th scope="col" colSpan={2}>
                  Lines
                </th>
                <th scope="col">{title} (−) and proposed (+)</th>
              </>
            ) : (
              <>
                <th scope="colgroup" colSpan={2}>
                  {title}
                </th>
                <th scope="colgroup" colSpan={2}>
                  Proposed
                </th>
              </>
            )}
          </tr>
        </thead>
        {blocks.map((block, place) => (
          <tbody key={place}>
            {block.folded && !whole && !opened.includes(place) ? (
              <tr className="fc-fold">
                <td colSpan={columns}>
                  <button type="button" onClick={() => setOpened([...opened, place])}>
                    Show {count(block.rows.length, "unchanged line")}
                  </button>
                </td>
              </tr>
            ) : (
              block.rows.map((row, line) => (
                <React.Fragment key={line}>
                  {unified ? <Unified row={row} marksOf={marksOf} /> : <Split row={row} marksOf={marksOf} />}
                  {below(row).map(({ finding, mark }) => (
                    <tr key={mark} className="fc-remark">
                      <td colSpan={columns}>
                        <Remark finding={finding} mark={mark} />
                      </td>
                    </tr>
                  ))}
                </React.Fragment>
              ))
            )}
          </tbody>
        ))}
      </table>
      {hidden && !whole && (
        <button type="button" className="fc-button fc-all" onClick={() => setWhole(true)}>
          Show all lines
        </button>
      )}
    </div>
  );
}

function Remark({ finding, mark }: { finding: Finding; mark: number }) {
  return (
    <div className={finding.overruled_by ? "fc-remark-text fc-muted" : "fc-remark-text"}>
      <FindingLink mark={mark} label={`Finding ${mark}`}>
        {mark}
      </FindingLink>
      {!finding.overruled_by && <Outcome outcome={finding.outcome} />}
      <FindingText finding={finding} />
    </div>
  );
}

interface RowProps {
  row: Row;
  marksOf: (line: Line, side: "before" | "after") => Mark[];
}

function Split({ row, marksOf }: RowProps) {
  return (
    <tr>
      {(["before", "after"] as const).map((side) => {
        const line = row[side];
        const className = row.same ? "" : line ? `fc-${side}` : "fc-void";
        return (
          <React.Fragment key={side}>
            <td className={`fc-number ${className}`}>{line?.number}</td>
            <td className={`fc-line ${className}`}>
              {line && <Text line={line} marks={marksOf(line, side)} side={row.same ? null : side} />}
            </td>
          </React.Fragment>
        );
      })}
    </tr>
  );
}

function Unified({ row, marksOf }: RowProps) {
  if (row.same && row.before && row.after)
    return (
      <tr>
        <td className="fc-number">{row.before.number}</td>
        <td className="fc-number">{row.after.number}</td>
        <td className="fc-line">
          <Text line={row.after} marks={marksOf(row.after, "after")} side={null} />
        </td>
      </tr>
    );
  return (
    <>
      {(["before", "after"] as const).map((side) => {
        const line = row[side];
        if (!line) return null;
        return (
          <tr key={side}>
            <td className={`fc-number fc-${side}`}>{side === "before" ? line.number : ""}</td>
            <td className={`fc-number fc-${side}`}>{side === "after" ? line.number : ""}</td>
            <td className={`fc-line fc-${side}`}>
              <Text line={line} marks={marksOf(line, side)} side={side} />
            </td>
          </tr>
        );
      })}
    </>
  );
}

const TAGS = { before: "del", after: "ins" } as const;

function Text({ line, marks, side }: { line: Line; marks: Mark[]; side: "before" | "after" | null }) {
  return (
    <>
      {side && (
        <>
          <span className="fc-sign" aria-hidden="true">
            {side === "before" ? "−" : "+"}
          </span>
          <span className="fc-hidden">{side === "before" ? "removed: " : "added: "}</span>
        </>
      )}
      {pieces(line.text, line.changed, marks).map((piece, place) => {
        const Tag = piece.changed && side ? TAGS[side] : "span";
        return (
          <Tag key={place} className={piece.marks.length ? "fc-clause" : undefined}>
            <Visible text={piece.text} />
          </Tag>
        );
      })}
    </>
  );
}

import { useId, useMemo, useState } from "react";

import { heated, rateNumber } from "./amount";
import { heatGrid, timeTicks, type HeatGrid, type HeatRow } from "./heat-map";
import { HeatLegend } from "./HeatLegend";
import { PinMark } from "./PinMark";
import { heatColour, heatPlace } from "./heat-scale";
import "./pictures.css";

export interface HeatMapProps {
  readonly rows: readonly HeatRow[];
  readonly from: Date;
  readonly until: Date;
  /** That times are shown in; that of the browser unless given. */
  readonly timeZone?: string;
  /** How many rows are drawn before the others are asked for. */
  readonly mostRows?: number;
}

const labelWidth = 140;
const rowHeight = 24;
const axisHeight = 22;
const drawnWidth = 760;

/** Classes over hours, coloured by their heat, with the same as a table. */
export function HeatMap({ rows, from, until, timeZone, mostRows = 40 }: HeatMapProps) {
  const [shownRows, setShownRows] = useState(mostRows);
  const [table, setTable] = useState(false);
  const shown = useMemo(() => rows.slice(0, shownRows), [rows, shownRows]);
  const grid = useMemo(() => heatGrid(shown, from, until), [shown, from, until]);
  const title = useId();
  const more = rows.length - shown.length;
  return (
    <figure className="picture-figure" aria-labelledby={title}>
      <figcaption id={title}>Heat of classes: accesses a day of a group, mean by bytes</figcaption>
      {/* What scrolls must be reached by the keyboard. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className="picture-scroll" role="group" aria-label="Heat over time" tabIndex={0}>
        {table ? <HeatTable rows={shown} grid={grid} timeZone={timeZone} /> : <HeatDrawing rows={shown} grid={grid} timeZone={timeZone} />}
      </div>
      <div className="picture-below">
        {!table && <HeatLegend />}
        <button type="button" className="picture-button" aria-pressed={table} onClick={() => setTable(!table)}>
          Show as a table
        </button>
        {more > 0 && (
          <button type="button" className="picture-button" onClick={() => setShownRows(shownRows + mostRows)}>
            Show {Math.min(more, mostRows)} more of {rows.length} classes
          </button>
        )}
      </div>
    </figure>
  );
}

interface GridProps {
  readonly rows: readonly HeatRow[];
  readonly grid: HeatGrid;
  readonly timeZone: string | undefined;
}

function HeatDrawing({ rows, grid, timeZone }: GridProps) {
  const columnWidth = Math.max(8, Math.floor(drawnWidth / Math.max(grid.starts.length, 1)));
  const width = labelWidth + grid.starts.length * columnWidth + 24;
  const bottom = rows.length * rowHeight;
  const clock = moment(timeZone);
  const ticks = timeTicks(grid.starts, columnWidth, timeZone);
  const pattern = useId();
  return (
    <svg
      role="img"
      aria-label={summary(rows, grid)}
      width={width}
      height={bottom + axisHeight}
      viewBox={`0 0 ${width} ${bottom + axisHeight}`}
    >
      <pattern id={pattern} width={6} height={6} patternUnits="userSpaceOnUse">
        <path className="picture-no-sample" d="M0 6L6 0" />
      </pattern>
      {rows.map((row, i) => (
        <g key={row.name} transform={`translate(0 ${i * rowHeight})`}>
          <text x={labelWidth - 8} y={rowHeight / 2 + 4} textAnchor="end">
            <title>{row.pinned === undefined ? row.name : `${row.name}. ${row.pinned}`}</title>
            {shortened(row.name, row.pinned === undefined ? 20 : 17)}
          </text>
          {row.pinned !== undefined && <PinMark x={2} y={(rowHeight - 12) / 2} />}
          {grid.heats[i]?.map((heat, column) => (
            <rect
              key={column}
              className="picture-heat"
              x={labelWidth + column * columnWidth}
              y={1}
              width={columnWidth - (columnWidth > 10 ? 1 : 0)}
              height={rowHeight - 2}
              fill={heat === undefined ? `url(#${pattern})` : heatColour(heatPlace(heat))}
            >
              <title>{`${row.name}, ${clock.format(grid.starts[column])}: ${heat === undefined ? "no sample" : heated(heat)}`}</title>
            </rect>
          ))}
        </g>
      ))}
      {ticks.map((tick) => (
        <g key={tick.column} transform={`translate(${labelWidth + tick.column * columnWidth} ${bottom})`}>
          <path className="picture-axis" d="M0.5 0V5" />
          <text x={0} y={17} className={tick.day ? "picture-number" : undefined}>
            {tick.text}
          </text>
        </g>
      ))}
    </svg>
  );
}

function HeatTable({ rows, grid, timeZone }: GridProps) {
  const clock = moment(timeZone);
  return (
    <table className="picture-table">
      <caption>Accesses a day of a group, mean of the samples since each time; - where there is none</caption>
      <thead>
        <tr>
          <th scope="col">class</th>
          {grid.starts.map((start) => (
            <th scope="col" key={start.getTime()}>
              {clock.format(start)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, i) => (
          <tr key={row.name}>
            <th scope="row">
              {row.name}
              {row.pinned !== undefined && `. ${row.pinned}`}
            </th>
            {grid.heats[i]?.map((heat, column) => <td key={column}>{heat === undefined ? "-" : rateNumber(heat)}</td>)}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function shortened(name: string, most: number): string {
  const half = (most - 1) / 2;
  return name.length > most ? `${name.slice(0, Math.floor(half))}…${name.slice(-Math.ceil(half))}` : name;
}

function moment(timeZone: string | undefined): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZone });
}

// Of each class the newest heat that is known, as many as can be listened to.
function summary(rows: readonly HeatRow[], grid: HeatGrid): string {
  const newest = rows.slice(0, 12).map((row, i) => {
    const heat = grid.heats[i]?.findLast((one) => one !== undefined);
    return `${row.name} ${heat === undefined ? "without samples" : `last ${heated(heat)}`}${row.pinned === undefined ? "" : " (pinned)"}`;
  });
  const rest = rows.length > newest.length ? `, and ${rows.length - newest.length} more` : "";
  return `Heat map: ${newest.join(", ")}${rest}. The numbers are in the table.`;
}

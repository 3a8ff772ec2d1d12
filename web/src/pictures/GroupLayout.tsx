import { useId } from "react";

import { counted, sized } from "./amount";
import { wholeness, type GroupOnNodes, type SlotOnNode } from "./group-layout";
import { parseScheme } from "./scheme";
import { SchemeShape } from "./SchemeShape";
import { stateLook } from "./state";
import { StateMark } from "./StateMark";
import "./pictures.css";

export interface GroupLayoutProps {
  readonly group: GroupOnNodes;
}

const cell = 14;
const mostRows = 12;

/** Where the parts of a group lie: a column for every node, with its name and whether the part is there. */
export function GroupLayout({ group }: GroupLayoutProps) {
  const title = useId();
  const parity = group.slots.filter((slot) => slot.role === "parity").length;
  return (
    <figure className="picture-figure" aria-labelledby={title}>
      <figcaption id={title} className="picture-group-head">
        Group {group.id} <SchemeShape scheme={group.scheme} />
      </figcaption>
      <p className="picture-sentence">
        {counted(group.rows, "row")} of {counted(group.columns, "cell")}, {sized(group.cellBytes)} each; {counted(parity, "parity node")}.{" "}
        {group.packed ? `${sized(group.bytes)} of it are this object's, the rest is other objects'.` : `${sized(group.bytes)} of the object lie in it.`}
      </p>
      <p className="picture-total">{wholeness(group, parseScheme(group.scheme)?.parity)}</p>
      <ul className="picture-slots">
        {group.slots.map((slot) => (
          <li key={slot.slot} data-role={slot.role}>
            <span className="picture-quiet">{slot.role === "data" ? `column ${slot.slot + 1}` : `parity ${slot.slot - group.columns + 1}`}</span>
            <span className="picture-node" title={slot.node}>
              {slot.node === "" ? "no node" : slot.node}
            </span>
            <Part slot={slot} rows={slot.role === "data" ? group.rows : 1} />
            <StateMark state={slot.state} />
          </li>
        ))}
      </ul>
    </figure>
  );
}

/** What a node holds of the group: its cells, or its parity as one part; hollow where it is not there. */
function Part({ slot, rows }: { readonly slot: SlotOnNode; readonly rows: number }) {
  const drawn = Math.min(rows, mostRows);
  const there = stateLook(slot.state).tone === "good";
  return (
    <svg aria-hidden="true" width={cell * 2 + 2} height={drawn * cell + (rows > drawn ? 14 : 0)} className={there ? undefined : "picture-part-gone"}>
      {Array.from({ length: drawn }, (_, row) => (
        <g key={row} transform={`translate(1 ${row * cell})`}>
          <rect className={there ? `picture-part-${slot.role}` : "picture-gone"} x={0.5} y={0.5} width={cell * 2 - 1} height={cell - 2} rx={2} />
          {there && slot.role === "parity" && <path className="picture-hatch" d={`M2 ${cell - 2}L${cell - 2} 1M${cell} ${cell - 2}L${cell * 2 - 4} 1`} />}
        </g>
      ))}
      {rows > drawn && (
        <text x={cell} y={drawn * cell + 11} textAnchor="middle">
          +{rows - drawn}
        </text>
      )}
    </svg>
  );
}

import { useId } from "react";

import type { Load } from "./load";
import "./pictures.css";

export interface NodeLoadProps {
  readonly label: string;
  readonly loads: readonly Load[];
  /** An amount in words with its unit: rated for bytes per second, or blocks. */
  readonly amount: (value: number) => string;
}

/** What nodes send and receive, as bars that grow to both sides of a common middle; all bars have one scale. */
export function NodeLoad({ label, loads, amount }: NodeLoadProps) {
  const most = Math.max(0, ...loads.map((load) => Math.max(load.sent, load.received)));
  const title = useId();
  return (
    <figure className="picture-figure" aria-labelledby={title}>
      <figcaption id={title}>{label}</figcaption>
      {most === 0 ? (
        <p className="picture-sentence">No node sends or receives anything: {amount(0)}.</p>
      ) : (
        <table className="picture-load">
          <thead>
            <tr>
              <th scope="col">node</th>
              <th scope="col">sent</th>
              <th scope="col">received</th>
            </tr>
          </thead>
          <tbody>
            {loads.map((load) => (
              <tr key={load.node}>
                <th scope="row" title={load.node}>
                  {load.node}
                </th>
                <td className="picture-load-sent">
                  <div>
                    <span>{amount(load.sent)}</span>
                    <LoadBar part={load.sent / most} kind="sent" />
                  </div>
                </td>
                <td className="picture-load-received">
                  <div>
                    <LoadBar part={load.received / most} kind="received" />
                    <span>{amount(load.received)}</span>
                  </div>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </figure>
  );
}

/** What is sent is filled, what is received is outlined: told apart without colour. */
function LoadBar({ part, kind }: { readonly part: number; readonly kind: "sent" | "received" }) {
  const width = Math.max(part * 100, part > 0 ? 1 : 0);
  return (
    <svg aria-hidden="true" viewBox="0 0 100 10" preserveAspectRatio="none" className={`picture-load-bar picture-load-bar-${kind}`}>
      <rect x={kind === "sent" ? 100 - width : 0} y={0.5} width={width} height={9} />
    </svg>
  );
}

import type { CSSProperties, ReactNode } from "react";

import { stripeTint } from "./palette";
import type { StripePlan } from "./stripe-picture";

/** What the signs of a stripe picture mean; only those that this plan has. */
export function StripeLegend({ plan }: { readonly plan: StripePlan }) {
  const adds = plan.steps.some((step) => step.kind === "add");
  return (
    <ul className="picture-legend">
      <Entry words={`a stripe of ${plan.from}`}>
        <Swatch partition="old" letter="a" />
      </Entry>
      <Entry words={`a stripe of ${plan.to}`}>
        <Swatch partition="new" letter="A" />
      </Entry>
      {adds && (
        <>
          <Entry words="new parity is staged, the old still counts">
            <svg aria-hidden="true" width={24} height={18}>
              <rect className="picture-tint" style={tint("old")} x={1} y={1} width={22} height={16} rx={2} />
              <path className="picture-tint" style={tint("new")} d="M23 1V17H1z" />
            </svg>
          </Entry>
          <Entry words="read in this step">
            <svg aria-hidden="true" width={24} height={18} className="picture-cell" data-read>
              <rect className="picture-tint" style={tint("old")} x={2} y={2} width={20} height={14} rx={2} />
            </svg>
          </Entry>
        </>
      )}
      {plan.blocksSent > 0 && (
        <Entry words="blocks that cross the network">
          <svg aria-hidden="true" width={24} height={18} className="picture-arrow" data-now>
            <path d="M1 9H16" />
            <path className="picture-arrow-head" d="M15 5L23 9L15 13z" />
          </svg>
        </Entry>
      )}
    </ul>
  );
}

function Entry({ words, children }: { readonly words: string; readonly children: ReactNode }) {
  return (
    <li>
      {children}
      <span>{words}</span>
    </li>
  );
}

function Swatch({ partition, letter }: { readonly partition: "old" | "new"; readonly letter: string }) {
  return (
    <svg aria-hidden="true" width={24} height={18} className="picture-cell">
      <rect className="picture-tint" style={tint(partition)} x={1} y={1} width={22} height={16} rx={2} />
      <text x={12} y={13} textAnchor="middle">
        {letter}
      </text>
    </svg>
  );
}

function tint(partition: "old" | "new"): CSSProperties {
  const { light, dark } = stripeTint(0, partition);
  return { "--picture-light": light, "--picture-dark": dark } as CSSProperties;
}

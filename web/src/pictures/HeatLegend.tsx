import { useId } from "react";

import { rateNumber } from "./amount";
import { heatColour, heatPlace, heatTicks } from "./heat-scale";

const width = 260;
const slices = 52;

/** The scale of heat with its numbers and unit. */
export function HeatLegend() {
  const pattern = useId();
  const place = (heat: number) => 12 + heatPlace(heat) * width;
  return (
    <svg
      role="img"
      aria-label="Scale from dark blue, hardly ever used, to light orange, 1,000 accesses a day and more"
      className="picture-heat-legend"
      width={width + 118}
      height={44}
      viewBox={`0 0 ${width + 118} 44`}
    >
      <pattern id={pattern} width={6} height={6} patternUnits="userSpaceOnUse">
        <path className="picture-no-sample" d="M0 6L6 0" />
      </pattern>
      {Array.from({ length: slices }, (_, i) => (
        <rect key={i} x={12 + (i * width) / slices} y={0} width={width / slices + 0.5} height={12} fill={heatColour((i + 0.5) / slices)} />
      ))}
      {heatTicks.map((heat) => (
        <g key={heat} transform={`translate(${place(heat)} 12)`}>
          <path className="picture-axis" d="M0 0V4" />
          <text y={15} textAnchor="middle">
            {rateNumber(heat)}
          </text>
        </g>
      ))}
      <text x={12} y={42}>
        accesses a day of a group
      </text>
      <rect x={width + 28} y={0} width={14} height={12} fill={`url(#${pattern})`} className="picture-heat" />
      <text x={width + 48} y={10}>
        no sample
      </text>
    </svg>
  );
}

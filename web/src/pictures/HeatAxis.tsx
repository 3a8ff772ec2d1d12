import { useRef, type KeyboardEvent, type PointerEvent } from "react";

import { heated, rateNumber, sized } from "./amount";
import { axisScale, axisTicks, bytesByHeat, heatAtX, xOf, type HeatAxisScale } from "./heat-axis";
import { heatColour, heatPlace } from "./heat-scale";
import { limits, moved, stepped, type HeatBucket, type LadderRung, type Thresholds } from "./ladder";
import { shortScheme } from "./scheme";

export interface HeatAxisProps {
  readonly rungs: readonly LadderRung[];
  readonly thresholds: Thresholds | undefined;
  readonly saved: Thresholds | undefined;
  /** Undefined where nothing can be changed. */
  readonly onChange: ((thresholds: Thresholds) => void) | undefined;
}

const width = 720;
const height = 190;
const top = 40;
const bottom = 140;
const left = 74;
const right = width - 16;

/** The bytes of a class by heat, and the thresholds between the rungs of its ladder. */
export function HeatAxis({ rungs, thresholds, saved, onChange }: HeatAxisProps) {
  const scale = axisScale(rungs, [thresholds, saved], left, right);
  const buckets = bytesByHeat(rungs);
  return (
    <svg className="picture-heat-axis" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label={histogramWords(buckets)}>
      <Histogram buckets={buckets} scale={scale} />
      <Scale scale={scale} />
      {thresholds && <Bands thresholds={thresholds} scale={scale} />}
      {saved?.values.map((value, i) =>
        value === thresholds?.values[i] ? null : (
          <path key={i} className="picture-saved" d={`M${xOf(scale, value)} ${top}V${bottom}`}>
            <title>{`saved: ${heated(value)}`}</title>
          </path>
        ),
      )}
      {thresholds?.values.map((value, index) => (
        <Handle key={index} thresholds={thresholds} index={index} value={value} scale={scale} onChange={onChange} />
      ))}
    </svg>
  );
}

/** Bars as high as their bytes; the left one is what is used less than once in 64 days. */
function Histogram({ buckets, scale }: { readonly buckets: readonly HeatBucket[]; readonly scale: HeatAxisScale }) {
  const most = Math.max(0, ...buckets.map((bucket) => bucket.bytes));
  return (
    <>
      <text x={left - 8} y={top + 8} textAnchor="end">
        {most > 0 ? sized(most) : ""}
      </text>
      <text x={left - 8} y={bottom} textAnchor="end">
        0 B
      </text>
      {most === 0 && (
        <text x={(left + right) / 2} y={(top + bottom) / 2} textAnchor="middle">
          No heat is known yet
        </text>
      )}
      {buckets.map((bucket) => {
        const from = xOf(scale, bucket.atLeast);
        const to = xOf(scale, bucket.below ?? scale.highest);
        const high = most > 0 ? ((bottom - top) * bucket.bytes) / most : 0;
        return (
          <rect
            key={bucket.atLeast}
            className="picture-heat"
            x={from + 0.5}
            y={bottom - high}
            width={Math.max(to - from - 1, 1)}
            height={high}
            fill={heatColour(heatPlace(bucket.atLeast))}
          >
            <title>{bucketWords(bucket)}</title>
          </rect>
        );
      })}
    </>
  );
}

function Scale({ scale }: { readonly scale: HeatAxisScale }) {
  return (
    <>
      <path className="picture-axis" d={`M${left} ${top}V${bottom}H${right}`} />
      {axisTicks(scale).map((heat) => (
        <g key={heat} transform={`translate(${xOf(scale, heat)} ${bottom})`}>
          <path className="picture-axis" d="M0 0V5" />
          <text y={17} textAnchor="middle">
            {rateNumber(heat)}
          </text>
        </g>
      ))}
      <text x={(left + right) / 2} y={height - 10} textAnchor="middle">
        accesses a day of a group
      </text>
      <text x={4} y={(top + bottom) / 2 + 8}>
        bytes
      </text>
    </>
  );
}

/** The scheme of each range of heat, over the middle of the range; a range too narrow for it is named by its handles. */
function Bands({ thresholds, scale }: { readonly thresholds: Thresholds; readonly scale: HeatAxisScale }) {
  const edges = [right, ...thresholds.values.map((value) => xOf(scale, value)), left];
  return thresholds.schemes.map((code, i) => {
    const high = edges[i] ?? right;
    const low = edges[i + 1] ?? left;
    const name = shortScheme(code);
    return (
      <g key={code}>
        <title>{name}</title>
        {high - low > name.length * 7 + 8 && (
          <text x={(high + low) / 2} y={14} textAnchor="middle" className="picture-number">
            {name}
          </text>
        )}
        <path className="picture-band" d={`M${low + 3} 20H${high - 3}`} />
      </g>
    );
  });
}

interface HandleProps {
  readonly thresholds: Thresholds;
  readonly index: number;
  readonly value: number;
  readonly scale: HeatAxisScale;
  readonly onChange: ((thresholds: Thresholds) => void) | undefined;
}

function Handle({ thresholds, index, value, scale, onChange }: HandleProps) {
  const dragging = useRef(false);
  const { low, high } = limits(thresholds, index);
  const set = (to: number) => onChange?.(moved(thresholds, index, to));
  const onKeyDown = (event: KeyboardEvent) => {
    const to = keyed(event.key, value, low, high);
    if (to !== undefined && onChange) {
      event.preventDefault();
      set(to);
    }
  };
  const onPointerMove = (event: PointerEvent<SVGGElement>) => {
    const box = event.currentTarget.ownerSVGElement?.getBoundingClientRect();
    if (dragging.current && box && box.width > 0) {
      set(heatAtX(scale, ((event.clientX - box.left) * width) / box.width));
    }
  };
  const x = xOf(scale, value);
  return (
    <g
      className="picture-handle"
      role="slider"
      tabIndex={0}
      aria-label={`Threshold between ${shortScheme(thresholds.schemes[index] ?? "")} and ${shortScheme(thresholds.schemes[index + 1] ?? "")}`}
      aria-orientation="horizontal"
      aria-valuemin={low}
      aria-valuemax={high}
      aria-valuenow={value}
      aria-valuetext={heated(value)}
      aria-readonly={onChange === undefined || undefined}
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        dragging.current = onChange !== undefined;
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={onPointerMove}
      onPointerUp={() => {
        dragging.current = false;
      }}
      onPointerCancel={() => {
        dragging.current = false;
      }}
    >
      {/* Wide enough to be caught. */}
      <rect className="picture-handle-reach" x={x - 12} y={20} width={24} height={bottom - 20} />
      <path d={`M${x} 20V${bottom}`} />
      <rect x={x - 5} y={24} width={10} height={14} rx={3} />
    </g>
  );
}

function keyed(key: string, value: number, low: number, high: number): number | undefined {
  switch (key) {
    case "ArrowRight":
    case "ArrowUp":
      return stepped(value, 1);
    case "ArrowLeft":
    case "ArrowDown":
      return stepped(value, -1);
    case "PageUp":
      return value * 10;
    case "PageDown":
      return value / 10;
    case "Home":
      return low;
    case "End":
      return high;
    default:
      return undefined;
  }
}

function bucketWords({ atLeast, below, bytes }: HeatBucket): string {
  const range = below === undefined ? `${rateNumber(atLeast)} and more` : atLeast === 0 ? `less than ${rateNumber(below)}` : `${rateNumber(atLeast)} to ${rateNumber(below)}`;
  return `${sized(bytes)} used ${range} times a day`;
}

function histogramWords(buckets: readonly HeatBucket[]): string {
  return buckets.length === 0 ? "No heat is known yet" : `Bytes by heat: ${buckets.map(bucketWords).join("; ")}`;
}

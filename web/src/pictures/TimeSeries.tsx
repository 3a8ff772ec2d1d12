import { lazy, Suspense, useId } from "react";

import { seriesWords, valueWords, type Series, type SeriesLimit, type SeriesMoment, type Unit } from "./time-series";
import "./pictures.css";

export interface TimeSeriesProps {
  readonly label: string;
  readonly unit: Unit;
  readonly series: readonly Series[];
  /** A line drawn across, such as a budget. */
  readonly limit?: SeriesLimit;
  /** Moments to tell before from after. */
  readonly moments?: readonly SeriesMoment[];
  /** What to say where there are no samples. */
  readonly empty?: string;
  readonly height?: number;
}

// What draws is loaded when there is something to draw.
const Plot = lazy(async () => ({ default: (await import("./TimeSeriesPlot")).TimeSeriesPlot }));

/** Values over time, with zero, units and the limit drawn in. */
export function TimeSeries({ label, unit, series, limit, moments = [], empty = "No samples yet.", height = 200 }: TimeSeriesProps) {
  const title = useId();
  const known = series.some((one) => one.points.length > 0);
  return (
    <figure className="picture-figure" aria-labelledby={title}>
      <figcaption id={title}>{label}</figcaption>
      {known ? (
        <>
          <div className="picture-plot" style={{ height }} aria-hidden="true">
            <Suspense>
              <Plot unit={unit} series={series} limit={limit} moments={moments} height={height} />
            </Suspense>
          </div>
          <ul className="picture-legend">
            {series.map((one, i) => (
              <li key={one.label}>
                <SeriesLine index={i} />
                <span>{seriesWords(one, unit)}</span>
              </li>
            ))}
            {limit && (
              <li>
                <svg aria-hidden="true" width={28} height={10} className="picture-series-limit">
                  <path d="M0 5H28" />
                </svg>
                <span>
                  {limit.label}: {valueWords(limit.value, unit)}
                </span>
              </li>
            )}
            {moments.map((moment) => (
              <li key={moment.label}>
                <svg aria-hidden="true" width={10} height={14} className="picture-series-moment">
                  <path d="M5 0V14" />
                </svg>
                <span>{moment.label}</span>
              </li>
            ))}
          </ul>
        </>
      ) : (
        <p className="picture-sentence" style={{ minHeight: height }}>
          {empty}
        </p>
      )}
    </figure>
  );
}

function SeriesLine({ index }: { readonly index: number }) {
  return (
    <svg aria-hidden="true" width={28} height={10} className="picture-series" data-series={index % 4}>
      <path d="M0 5H28" />
    </svg>
  );
}

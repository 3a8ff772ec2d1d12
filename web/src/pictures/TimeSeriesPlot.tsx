import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import Plot, { type AlignedData, type Options } from "uplot";
import "uplot/dist/uPlot.min.css";

import {
  columnsOf,
  timeSteps,
  timeWords,
  valueRange,
  valueTicks,
  valueWords,
  type Series,
  type SeriesLimit,
  type SeriesMoment,
  type Unit,
} from "./time-series";

export interface TimeSeriesPlotProps {
  readonly unit: Unit;
  readonly series: readonly Series[];
  readonly limit: SeriesLimit | undefined;
  readonly moments: readonly SeriesMoment[];
  readonly height: number;
}

/** Draws series on a canvas; where there is none, the words beside it have to do. */
export function TimeSeriesPlot({ unit, series, limit, moments, height }: TimeSeriesPlotProps) {
  const frame = useRef<HTMLDivElement>(null);
  const colours = useComputedColorScheme("light");
  useEffect(() => {
    const element = frame.current;
    if (!element || typeof CanvasRenderingContext2D === "undefined") {
      return undefined;
    }
    const columns = columnsOf(series);
    const data = [...columns, ...(limit ? [columns[0].map(() => limit.value)] : [])] as AlignedData;
    const plot = new Plot(optionsOf({ unit, series, limit, moments, height }, element.clientWidth, colours), data, element);
    const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [unit, series, limit, moments, height, colours]);
  return <div ref={frame} />;
}

// Series differ by their dashes, not by colour alone; pictures.css has the same for the legend.
const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3]] as const;
const shades = ["blue", "orange", "teal", "grape"] as const;

function optionsOf({ unit, series, limit, moments, height }: TimeSeriesPlotProps, width: number, colours: "light" | "dark"): Options {
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string) => style.getPropertyValue(`--mantine-color-${name}`).trim();
  const shade = (i: number) => colour(`${shades[i % shades.length] ?? "blue"}-${colours === "dark" ? 4 : 8}`);
  const [low, high] = valueRange(series, limit?.value);
  const axis = {
    stroke: colour("text"),
    font: `11px ${style.getPropertyValue("--mantine-font-family")}`,
    grid: { stroke: colour("default-border"), width: 1 },
    ticks: { stroke: colour("dimmed"), width: 1 },
  };
  return {
    width,
    height,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: true }, y: { range: [low, high] } },
    axes: [
      { ...axis, space: 64, incrs: timeSteps, values: (_, seconds) => seconds.map((second) => timeWords(second)) },
      { ...axis, size: 76, splits: () => [...valueTicks(low, high, unit)], values: (_, values) => values.map((value) => valueWords(value, unit)) },
    ],
    series: [
      {},
      ...series.map((one, i) => ({ label: one.label, stroke: shade(i), width: 2, dash: [...(dashes[i % dashes.length] ?? [])], points: { show: one.points.length === 1 } })),
      ...(limit ? [{ label: limit.label, stroke: colour("text"), width: 1, dash: [4, 4], points: { show: false } }] : []),
    ],
    hooks: { draw: [(plot) => drawMoments(plot, moments, colour("dimmed"))] },
  };
}

function drawMoments(plot: Plot, moments: readonly SeriesMoment[], colour: string) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([]);
  for (const { at } of moments) {
    const x = Math.round(plot.valToPos(at.getTime() / 1000, "x", true)) + 0.5;
    if (x >= bbox.left && x <= bbox.left + bbox.width) {
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
  }
  ctx.restore();
}

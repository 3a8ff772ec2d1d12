/** latency is a short time: "0.4 ms", "12 ms", "1.5 s". */
export function latency(seconds: number): string {
  if (seconds >= 1) return `${seconds.toFixed(1)} s`;
  const milliseconds = seconds * 1_000;
  return milliseconds >= 10 ? `${milliseconds.toFixed(0)} ms` : `${milliseconds.toFixed(1)} ms`;
}

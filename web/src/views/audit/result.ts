/** resultMark is the state whose mark a result has. */
export function resultMark(result: string): string {
  return { done: "Done", refused: "Cancelled", failed: "Failed" }[result] ?? "Unknown";
}

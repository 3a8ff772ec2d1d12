// Which columns somebody chose of each table; the browser remembers them.

const keyOf = (table: string): string => `restripe.columns.${table}`;

/** readColumns is what was chosen, and for columns never chosen or left out, what the table says. */
export function readColumns(table: string, columns: { id: string; hidden?: boolean }[]): Record<string, boolean> {
  const visible = Object.fromEntries(columns.map(({ id, hidden }) => [id, hidden !== true]));
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(keyOf(table)) ?? "{}");
    for (const [id, is] of Object.entries(kept ?? {})) {
      if (id in visible && typeof is === "boolean") visible[id] = is;
    }
  } catch {
    // What cannot be read was not written by these pages; the next choice replaces it.
  }
  return visible;
}

export function writeColumns(table: string, visible: Record<string, boolean>): void {
  localStorage.setItem(keyOf(table), JSON.stringify(visible));
}

// Which columns of a table are shown: those somebody chose, which the browser remembers, as far as there is room.

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

/** leading is the columns that fit into a width, one at least. */
export function leading<Column extends { width: number }>(columns: Column[], room: number): Column[] {
  let left = room;
  const beyond = columns.findIndex(({ width }) => (left -= width) < 0);
  return beyond < 0 ? columns : columns.slice(0, Math.max(1, beyond));
}

import { Button, Checkbox, Group, Popover, Stack, Text, TextInput } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactNode, type RefObject } from "react";

import styles from "./DataTable.module.css";
import { leading, readColumns, writeColumns } from "./columns";

type Value = string | number | bigint;

/** Column is one column of a DataTable. */
export interface Column<Row> {
  id: string;
  header: string;
  /** What rows are sorted and filtered by. */
  value: (row: Row) => Value;
  /** What is shown; the value unless given. */
  cell?: (row: Row) => ReactNode;
  /** In pixels. */
  width: number;
  /** Not shown until somebody chooses it. */
  hidden?: boolean;
  numeric?: boolean;
}

interface DataTableProps<Row> {
  /** The name under which the columns that were chosen are remembered, and which screen readers say. */
  name: string;
  label: string;
  rows: Row[];
  columns: Column<Row>[];
  keyOf: (row: Row) => string;
  selected?: string | undefined;
  onSelect?: (key: string | undefined) => void;
  /** What is said in place of rows. */
  empty: ReactNode;
  rowHeight?: number;
  /** More controls beside the filter. */
  controls?: ReactNode;
}

/** Sorting is by which column rows are sorted, and whether the other way round. */
interface Sorting {
  id: string;
  desc: boolean;
}

// One collator for all comparisons: to make one takes longer than to compare.
const collator = new Intl.Collator("en", { numeric: true });

function compared(x: Value, y: Value): number {
  if (typeof x === "string" && typeof y === "string") return collator.compare(x, y);
  return x < y ? -1 : x > y ? 1 : 0;
}

/** sortedBy is the rows by the values of a column; rows of equal values stay in their order. */
function sortedBy<Row>(rows: Row[], column: Column<Row> | undefined, desc: boolean): Row[] {
  if (column === undefined) return rows;
  const valued = rows.map((row) => ({ row, value: column.value(row) }));
  valued.sort(desc ? (a, b) => compared(b.value, a.value) : (a, b) => compared(a.value, b.value));
  return valued.map(({ row }) => row);
}

/** DataTable is a dense table of any length: sorted, filtered, with the columns one chooses, and all of it by keyboard. */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { name, rows, columns, controls } = props;
  const [filter, setFilter] = useState("");
  const [visibility, setVisibility] = useState<Record<string, boolean>>(() => readColumns(name, columns));
  const matching = useMemo(() => filtered(rows, columns, filter), [rows, columns, filter]);
  const changeVisibility = (change: Record<string, boolean>): void => {
    setVisibility(change);
    writeColumns(name, change);
  };
  const [sorting, setSorting] = useState<Sorting>();
  const sorted = useMemo(() => sortedBy(matching, columns.find(({ id }) => id === sorting?.id), sorting?.desc === true), [matching, columns, sorting]);
  const shown = columns.filter(({ id }) => visibility[id] !== false);
  const sort = (id: string): void => setSorting(sorting?.id !== id ? { id, desc: false } : sorting.desc ? undefined : { id, desc: true });
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <TextInput
          size="xs"
          aria-label={`Filter ${props.label}`}
          placeholder="Filter"
          value={filter}
          onChange={(event) => setFilter(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && setFilter("")}
        />
        <ColumnChoice columns={columns} visibility={visibility} onChange={changeVisibility} />
        {controls}
        <Text size="sm" c="dimmed" role="status">
          {sorted.length === rows.length ? rows.length.toLocaleString("en") : `${sorted.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`}
        </Text>
      </Group>
      {sorted.length === 0 ? (
        rows.length === 0 ? props.empty : <Text size="sm">Nothing matches “{filter}”.</Text>
      ) : (
        <Rows {...props} sorted={sorted} shown={shown} sorting={sorting} sort={sort} />
      )}
    </Stack>
  );
}

function filtered<Row>(rows: Row[], columns: Column<Row>[], filter: string): Row[] {
  const words = filter.toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return rows;
  return rows.filter((row) => {
    const text = columns.map(({ value }) => String(value(row)).toLowerCase()).join("\n");
    return words.every((word) => text.includes(word));
  });
}

interface RowsProps<Row> extends DataTableProps<Row> {
  sorted: Row[];
  shown: Column<Row>[];
  sorting: Sorting | undefined;
  sort: (id: string) => void;
}

/** useWidth is the width of an element in pixels; 0 while it is not known. */
function useWidth(element: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const { current } = element;
    if (current === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(current.clientWidth));
    observer.observe(current);
    return () => observer.disconnect();
  }, [element]);
  return width;
}

function Rows<Row>({ label, sorted, shown: chosen, keyOf, selected, onSelect, rowHeight = 32, sorting, sort }: RowsProps<Row>) {
  const scroll = useRef<HTMLDivElement>(null);
  const room = useWidth(scroll);
  // Beside what is open there is no place for all columns, and those cut off by its edge are read wrongly.
  const shown = selected === undefined || room === 0 ? chosen : leading(chosen, room);
  const [active, setActive] = useState<string>();
  const wanted = useRef<string>(undefined);
  const virtual = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => scroll.current,
    estimateSize: useCallback(() => rowHeight, [rowHeight]),
    overscan: 8,
    scrollMargin: 0,
  });
  const items = virtual.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  const activeKey = active !== undefined && sorted.some((row) => keyOf(row) === active) ? active : (selected ?? sorted.slice(0, 1).map(keyOf)[0]);
  // A row that was gone to by key may not be drawn until the list has scrolled to it.
  useEffect(() => {
    if (wanted.current === undefined) return;
    const row = [...(scroll.current?.querySelectorAll<HTMLElement>("[data-key]") ?? [])].find((one) => one.dataset.key === wanted.current);
    if (row !== undefined) {
      row.focus({ preventScroll: true });
      wanted.current = undefined;
    }
  });
  const go = (index: number): void => {
    const row = sorted[Math.max(0, Math.min(sorted.length - 1, index))];
    if (row === undefined) return;
    wanted.current = keyOf(row);
    virtual.scrollToIndex(sorted.indexOf(row));
    setActive(keyOf(row));
  };
  const onKeyDown = (event: KeyboardEvent, index: number): void => {
    const page = Math.max(1, Math.floor((scroll.current?.clientHeight ?? 0) / rowHeight) - 2);
    const to = { ArrowDown: index + 1, j: index + 1, ArrowUp: index - 1, k: index - 1, Home: 0, End: sorted.length - 1, PageDown: index + page, PageUp: index - page }[event.key];
    const row = sorted[index];
    if (event.target !== event.currentTarget) return; // a link or button within the row
    if (to !== undefined) {
      go(to);
    } else if (event.key === "Enter" && row !== undefined) {
      onSelect?.(keyOf(row));
    } else if (event.key === "Escape") {
      onSelect?.(undefined);
    } else {
      return;
    }
    event.preventDefault();
  };
  const width = shown.reduce((sum, column) => sum + column.width, 0);
  return (
    <div ref={scroll} className={styles.scroll}>
      {/* Rows are gone through by keys, which is what makes a table a grid. */}
      {/* eslint-disable-next-line jsx-a11y/no-noninteractive-element-to-interactive-role */}
      <table role="grid" aria-label={label} aria-rowcount={sorted.length + 1} className={styles.table} style={{ minWidth: width }}>
        <colgroup>
          {shown.map((column) => (
            <col key={column.id} style={{ width: column.width }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {shown.map((column) => (
              <th key={column.id} scope="col" data-numeric={column.numeric} aria-sort={sorting?.id === column.id ? (sorting.desc ? "descending" : "ascending") : "none"}>
                <button type="button" className={styles.sort} onClick={() => sort(column.id)}>
                  {column.header}
                  <span aria-hidden>{sorting?.id === column.id ? (sorting.desc ? " ↓" : " ↑") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {above > 0 && <tr aria-hidden style={{ height: above }} />}
          {items.map(({ index }) => {
            const row = sorted[index];
            if (row === undefined) return null;
            const key = keyOf(row);
            return (
              <tr
                key={key}
                data-key={key}
                aria-rowindex={index + 2}
                aria-selected={key === selected}
                tabIndex={key === activeKey ? 0 : -1}
                style={{ height: rowHeight }}
                onFocus={() => setActive(key)}
                onClick={() => onSelect?.(key)}
                onKeyDown={(event) => onKeyDown(event, index)}
                data-open={onSelect !== undefined}
              >
                {shown.map((column) => (
                  <td key={column.id} data-numeric={column.numeric}>
                    {column.cell?.(row) ?? String(column.value(row))}
                  </td>
                ))}
              </tr>
            );
          })}
          {below > 0 && <tr aria-hidden style={{ height: below }} />}
        </tbody>
      </table>
    </div>
  );
}

interface ColumnChoiceProps<Row> {
  columns: Column<Row>[];
  visibility: Record<string, boolean>;
  onChange: (visibility: Record<string, boolean>) => void;
}

function ColumnChoice<Row>({ columns, visibility, onChange }: ColumnChoiceProps<Row>) {
  return (
    <Popover position="bottom-start" withArrow trapFocus>
      <Popover.Target>
        <Button size="xs" variant="default">
          Columns
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Columns">
        <Stack gap="xs">
          {columns.map((column, i) => (
            <Checkbox
              key={column.id}
              size="xs"
              label={column.header}
              disabled={i === 0}
              checked={visibility[column.id] !== false}
              onChange={(event) => onChange({ ...visibility, [column.id]: event.currentTarget.checked })}
            />
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}

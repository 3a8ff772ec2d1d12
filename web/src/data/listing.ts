import type { Source } from "../gen/console/v1/about_pb";

/** Listing is the picture of a list that a watch keeps. */
export interface Listing<Item> {
  items: Map<string, Item>;
  sources: Source[];
  /** More of the first picture is still to come. */
  partial: boolean;
}

/** ListMessage is what the watches of lists send. */
export interface ListMessage {
  whole: boolean;
  partial: boolean;
  sources: Source[];
}

/** withMessage brings a list up to date: a whole picture begins it anew, others change it. */
export function withMessage<Item>(
  before: Listing<Item> | undefined,
  message: ListMessage,
  changed: Item[],
  removed: string[],
  keyOf: (item: Item) => string,
): Listing<Item> {
  const items = new Map(message.whole ? undefined : before?.items);
  for (const item of changed) items.set(keyOf(item), item);
  for (const key of removed) items.delete(key);
  // Only the first picture comes in parts that are worth waiting for; later changes are shown as they come.
  const partial = message.partial && (message.whole || before?.partial === true);
  return { items, sources: message.sources, partial };
}

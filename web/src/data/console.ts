import type { Client } from "@connectrpc/connect";
import { createContext, useContext, useSyncExternalStore } from "react";

import type { Console } from "../gen/console/v1/console_pb";
import { Watch, type Watched } from "./watch";

export type ConsoleClient = Client<typeof Console>;

/** WatchBook keeps one watch per key, so that all who look at the same thing share a connection. */
export class WatchBook {
  private readonly watches = new Map<string, Watch<never, never>>();

  get<State, Message>(
    key: string,
    open: (signal: AbortSignal) => AsyncIterable<Message>,
    reduce: (before: State | undefined, message: Message) => State,
  ): Watch<State, Message> {
    let watch = this.watches.get(key) as Watch<State, Message> | undefined;
    if (watch === undefined) {
      watch = new Watch(open, reduce);
      this.watches.set(key, watch as unknown as Watch<never, never>);
    }
    return watch;
  }

  /** forget drops every picture and begins those anew that somebody looks at, as after signing in. */
  forget(): void {
    for (const watch of this.watches.values()) watch.forget();
  }
}

export interface Reach {
  client: ConsoleClient;
  watches: WatchBook;
}

export const ConsoleContext = createContext<Reach | undefined>(undefined);

export function useReach(): Reach {
  const reach = useContext(ConsoleContext);
  if (reach === undefined) throw new Error("a hook of src/data was used outside ConsoleProvider");
  return reach;
}

/** Following is what a watch knows, and a way to begin it anew. */
export type Following<State> = Watched<State> & { again: () => void };

/** useWatch shows what the watch of a key knows. The same key must mean the same open and reduce. */
export function useWatch<State, Message>(
  key: string,
  open: (client: ConsoleClient, signal: AbortSignal) => AsyncIterable<Message>,
  reduce: (before: State | undefined, message: Message) => State,
): Following<State> {
  const { client, watches } = useReach();
  const watch = watches.get(key, (signal) => open(client, signal), reduce);
  const watched = useSyncExternalStore(watch.subscribe, watch.current);
  return { ...watched, again: watch.again };
}

import { problemOf, type Problem } from "./problem";

/** Watched is what a watch knows at a moment. */
export interface Watched<State> {
  /** The last picture; it is kept while nothing is heard. Absent: there never was one. */
  state: State | undefined;
  /** live: the console is heard. */
  phase: "connecting" | "live" | "broken";
  /** Why nothing is heard, while the phase is broken. */
  problem: Problem | undefined;
  /** When the console was last heard. */
  heard: Date | undefined;
}

/** Clock is the time a watch goes by, so that tests need not wait. */
export interface Clock {
  now(): Date;
  after(milliseconds: number, then: () => void): () => void;
}

export const browserClock: Clock = {
  now: () => new Date(),
  after: (milliseconds, then) => {
    const timer = setTimeout(then, milliseconds);
    return () => clearTimeout(timer);
  },
};

/** A console says every 10 s that it is alive; what is silent for longer than this is gone. */
export const silenceMilliseconds = 25_000;

const firstRetryMilliseconds = 500;
const lastRetryMilliseconds = 10_000;

/** How long a picture is kept warm after the last view that showed it, so that going from view to view asks nothing anew. */
const lingerMilliseconds = 2_000;

/** Watch follows one stream of the console, begins it anew when it breaks, and keeps the last picture. */
export class Watch<State, Message> {
  private watched: Watched<State> = { state: undefined, phase: "connecting", problem: undefined, heard: undefined };
  private readonly listeners = new Set<() => void>();
  private stop: (() => void) | undefined;
  private cancelLinger: (() => void) | undefined;
  private retryMilliseconds = firstRetryMilliseconds;

  constructor(
    private readonly open: (signal: AbortSignal) => AsyncIterable<Message>,
    private readonly reduce: (before: State | undefined, message: Message) => State,
    private readonly clock: Clock = browserClock,
  ) {}

  readonly current = (): Watched<State> => this.watched;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    this.cancelLinger?.();
    this.cancelLinger = undefined;
    if (this.stop === undefined && !document.hidden) this.begin();
    if (this.listeners.size === 1) document.addEventListener("visibilitychange", this.follow);
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size > 0) return;
      document.removeEventListener("visibilitychange", this.follow);
      this.cancelLinger = this.clock.after(lingerMilliseconds, () => this.end());
    };
  };

  /** again begins the stream anew at once. */
  readonly again = (): void => {
    this.end();
    this.retryMilliseconds = firstRetryMilliseconds;
    if (this.listeners.size > 0) this.begin();
  };

  /** forget drops the picture, and begins the stream anew where somebody looks. */
  readonly forget = (): void => {
    this.set({ state: undefined, phase: "connecting", problem: undefined, heard: undefined });
    this.again();
  };

  // A browser has few connections to one server, so pages that nobody sees keep none.
  private readonly follow = (): void => {
    if (document.hidden) {
      this.end();
    } else if (this.stop === undefined) {
      this.begin();
    }
  };

  private set(change: Partial<Watched<State>>): void {
    this.watched = { ...this.watched, ...change };
    for (const listener of this.listeners) listener();
  }

  private end(): void {
    this.stop?.();
    this.stop = undefined;
  }

  private begin(): void {
    const ending = new AbortController();
    let cancelTimer = (): void => undefined;
    this.stop = () => {
      cancelTimer();
      ending.abort();
    };
    const listen = async (): Promise<void> => {
      const expectMore = (): void => {
        cancelTimer();
        cancelTimer = this.clock.after(silenceMilliseconds, () => fail(new TypeError("silence"), true));
      };
      const fail = (error: unknown, silent = false): void => {
        if (ending.signal.aborted) return;
        cancelTimer();
        ending.abort();
        const problem: Problem = silent ? { kind: "disconnected", text: "The console has not been heard for 25 s." } : problemOf(error);
        cancelTimer = this.clock.after(this.retryMilliseconds, () => this.begin());
        this.retryMilliseconds = Math.min(2 * this.retryMilliseconds, lastRetryMilliseconds);
        this.set({ phase: "broken", problem });
      };
      expectMore();
      try {
        for await (const message of this.open(ending.signal)) {
          if (ending.signal.aborted) return;
          expectMore();
          this.retryMilliseconds = firstRetryMilliseconds;
          this.set({ state: this.reduce(this.watched.state, message), phase: "live", problem: undefined, heard: this.clock.now() });
        }
        fail(new TypeError("the stream ended"));
      } catch (error) {
        fail(error);
      }
    };
    void listen();
  }
}

import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, describe, expect, it } from "vitest";

import { silenceMilliseconds, Watch, type Clock } from "./watch";

/** A clock that goes when it is told to. */
class HandClock implements Clock {
  private milliseconds = 0;
  private waiting: { at: number; then: () => void }[] = [];
  now = (): Date => new Date(this.milliseconds);
  after = (milliseconds: number, then: () => void): (() => void) => {
    const one = { at: this.milliseconds + milliseconds, then };
    this.waiting.push(one);
    return () => {
      this.waiting = this.waiting.filter((other) => other !== one);
    };
  };
  go(milliseconds: number): void {
    this.milliseconds += milliseconds;
    const due = this.waiting.filter(({ at }) => at <= this.milliseconds);
    this.waiting = this.waiting.filter(({ at }) => at > this.milliseconds);
    for (const { then } of due) then();
  }
}

/** A stream whose messages the test sends. */
class Line {
  private resolve: (() => void) | undefined;
  private readonly sent: (number | Error)[] = [];
  closed = false;
  send(message: number | Error): void {
    this.sent.push(message);
    this.resolve?.();
  }
  async *open(signal: AbortSignal): AsyncGenerator<number> {
    signal.addEventListener("abort", () => {
      this.closed = true;
      this.resolve?.();
    });
    while (!signal.aborted) {
      const next = this.sent.shift();
      if (next instanceof Error) throw next;
      if (next !== undefined) yield next;
      else await new Promise<void>((resolve) => (this.resolve = resolve));
    }
  }
}

function stage() {
  const clock = new HandClock();
  const lines: Line[] = [];
  const watch = new Watch<number[], number>(
    (signal) => {
      const line = new Line();
      lines.push(line);
      return line.open(signal);
    },
    (before, message) => [...(before ?? []), message],
    clock,
  );
  const changed = (until: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      if (until()) { resolve(); return; }
      const stop = watch.subscribe(() => {
        if (!until()) return;
        stop();
        resolve();
      });
    });
  return { clock, lines, watch, changed };
}

const setHidden = (hidden: boolean): void => {
  Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
  document.dispatchEvent(new Event("visibilitychange"));
};

afterEach(() => setHidden(false));

describe("a watch", () => {
  it("adds messages up and is shared", async () => {
    const { lines, watch, changed } = stage();
    watch.subscribe(() => undefined);
    watch.subscribe(() => undefined);
    lines[0]?.send(1);
    lines[0]?.send(2);
    await changed(() => watch.current().state?.length === 2);
    expect(watch.current()).toMatchObject({ state: [1, 2], phase: "live" });
    expect(lines).toHaveLength(1);
  });

  it("keeps its picture when it breaks and begins anew, later each time", async () => {
    const { clock, lines, watch, changed } = stage();
    watch.subscribe(() => undefined);
    lines[0]?.send(1);
    lines[0]?.send(new ConnectError("gone", Code.Unavailable));
    await changed(() => watch.current().phase === "broken");
    expect(watch.current()).toMatchObject({ state: [1], problem: { kind: "disconnected", text: "gone" } });
    clock.go(500);
    expect(lines).toHaveLength(2);
    lines[1]?.send(new ConnectError("still gone", Code.Unavailable));
    await changed(() => watch.current().problem?.text === "still gone");
    clock.go(999);
    expect(lines).toHaveLength(2);
    clock.go(1);
    expect(lines).toHaveLength(3);
  });

  it("gives up a stream that is silent for too long", async () => {
    const { clock, lines, watch, changed } = stage();
    watch.subscribe(() => undefined);
    lines[0]?.send(1);
    await changed(() => watch.current().phase === "live");
    clock.go(silenceMilliseconds);
    expect(watch.current()).toMatchObject({ state: [1], phase: "broken", problem: { kind: "disconnected" } });
    expect(lines[0]?.closed).toBe(true);
  });

  it("keeps no connection for a page that nobody sees", () => {
    const { lines, watch } = stage();
    watch.subscribe(() => undefined);
    setHidden(true);
    expect(lines[0]?.closed).toBe(true);
    setHidden(false);
    expect(lines).toHaveLength(2);
  });

  it("ends soon after the last view that shows it", () => {
    const { clock, lines, watch } = stage();
    const leave = watch.subscribe(() => undefined);
    leave();
    expect(lines[0]?.closed).toBe(false);
    clock.go(2_000);
    expect(lines[0]?.closed).toBe(true);
  });
});

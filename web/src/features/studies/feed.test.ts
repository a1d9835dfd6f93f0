// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { StudyEvent } from "@/lib/api/client";
import { makeStudy, makeTrial } from "@/testing/factories";
import { StudyFeed } from "./feed";

/** A stream that the test controls. */
class Stream extends EventTarget {
  closed = false;
  constructor(readonly address: string) {
    super();
  }
  close(): void {
    this.closed = true;
  }
  send(event: Partial<StudyEvent>): void {
    const data = { study: makeStudy(), trials: [], revision: 1, more: false, sampled: false, ...event };
    this.dispatchEvent(new MessageEvent("change", { data: JSON.stringify(data) }));
  }
  fail(): void {
    this.dispatchEvent(new Event("error"));
  }
}

let streams: Stream[];
const last = (): Stream => {
  const stream = streams.at(-1);
  if (stream === undefined) throw new Error("no stream was opened");
  return stream;
};

function follow(): { feed: StudyFeed; leave: () => void } {
  const feed = new StudyFeed("a study", 20_000, (address) => {
    const stream = new Stream(address);
    streams.push(stream);
    return stream as unknown as EventSource;
  });
  return { feed, leave: feed.subscribe(() => undefined) };
}

beforeEach(() => {
  streams = [];
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

describe("StudyFeed", () => {
  it("collects the latest version of each trial, sorted by number", () => {
    const { feed } = follow();
    expect(feed.getSnapshot().connection).toBe("connecting");
    last().send({ trials: [makeTrial({ number: 2 }), makeTrial({ number: 1, state: "ACTIVE" })], revision: 2, more: true });
    expect(feed.getSnapshot().complete).toBe(false);
    last().send({ trials: [makeTrial({ number: 1, state: "COMPLETED" })], revision: 3 });
    const { trials, complete, connection } = feed.getSnapshot();
    expect(trials.map(({ number, state }) => [number, state])).toEqual([
      [1, "COMPLETED"],
      [2, "COMPLETED"],
    ]);
    expect([complete, connection]).toEqual([true, "live"]);
  });

  it("keeps the same list if no trial has changed, so that nothing is redrawn", () => {
    const { feed } = follow();
    last().send({ trials: [makeTrial()] });
    const before = feed.getSnapshot().trials;
    last().send({ revision: 2, study: makeStudy({ state: "PAUSED" }) });
    expect(feed.getSnapshot().trials).toBe(before);
    expect(feed.getSnapshot().study?.state).toBe("PAUSED");
  });

  it("continues from the last revision after a break, and waits longer each time", () => {
    const { feed } = follow();
    expect(last().address).toBe("/api/v1/studies/a%20study/events?after_revision=0&most=20000");
    last().send({ revision: 7 });
    last().fail();
    expect(feed.getSnapshot().connection).toBe("waiting");
    vi.advanceTimersByTime(1000);
    expect(last().address).toContain("after_revision=7");
    last().fail();
    vi.advanceTimersByTime(1999);
    expect(streams).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(streams).toHaveLength(3);
    expect(streams.slice(0, 2).every((stream) => stream.closed)).toBe(true);
  });

  it("drops the trials of a study that was deleted and created again", () => {
    const { feed } = follow();
    last().send({ trials: [makeTrial({ number: 1 }), makeTrial({ number: 2 })], revision: 9 });
    last().send({ study: makeStudy({ created_at: "2026-02-01T00:00:00Z" }), trials: [makeTrial({ number: 1 })] });
    expect(feed.getSnapshot().trials).toHaveLength(1);
  });

  it("recognises a sample", () => {
    const { feed } = follow();
    const study = makeStudy({ trial_count: 90_000, revision: 7 });
    last().send({ study, trials: [makeTrial({ number: 1 }), makeTrial({ number: 90_000, revision: 7 })], revision: 7, sampled: true });
    expect([feed.getSnapshot().complete, feed.getSnapshot().sampled]).toEqual([true, true]);
  });

  it("does not report a sample while trials are still arriving", () => {
    const { feed } = follow();
    last().send({ study: makeStudy({ trial_count: 5 }), trials: [makeTrial({ number: 1 })], revision: 2 });
    expect(feed.getSnapshot().sampled).toBe(false);
  });

  it("requests a new sample when it holds too many trials", () => {
    const { feed } = follow();
    const many = Array.from({ length: 40_001 }, (_, index) => makeTrial({ number: index + 1 }));
    last().send({ study: makeStudy({ trial_count: 40_001 }), trials: many, revision: 5 });
    expect(last().address).toContain("after_revision=0&");
    expect(streams[0]?.closed).toBe(true);
    last().send({ study: makeStudy({ trial_count: 40_001 }), trials: many.slice(0, 100), revision: 5, sampled: true });
    expect([feed.getSnapshot().trials.length, feed.getSnapshot().sampled]).toEqual([100, true]);
  });

  it("ends with the study", () => {
    const { feed } = follow();
    last().send({});
    last().dispatchEvent(new Event("deleted"));
    expect(feed.getSnapshot().connection).toBe("gone");
    vi.advanceTimersByTime(60_000);
    expect(streams).toHaveLength(1);
  });

  it("disconnects in a hidden tab and reconnects when it is visible", () => {
    const hidden = vi.spyOn(document, "hidden", "get").mockReturnValue(true);
    const { leave } = follow();
    last().send({ revision: 3 });
    document.dispatchEvent(new Event("visibilitychange"));
    vi.advanceTimersByTime(29_000);
    expect(last().closed).toBe(false);
    vi.advanceTimersByTime(2000);
    expect(last().closed).toBe(true);
    hidden.mockReturnValue(false);
    document.dispatchEvent(new Event("visibilitychange"));
    expect(last().address).toContain("after_revision=3");
    leave();
    expect(last().closed).toBe(true);
  });

  it("disconnects in a hidden tab also after a break", () => {
    const hidden = vi.spyOn(document, "hidden", "get").mockReturnValue(true);
    const { leave } = follow();
    vi.advanceTimersByTime(10_000);
    last().fail();
    vi.advanceTimersByTime(1000);
    expect([streams.length, last().closed]).toEqual([2, false]);
    vi.advanceTimersByTime(20_000);
    expect([streams.length, last().closed]).toEqual([2, true]);
    // The same while it waits for a retry.
    hidden.mockReturnValue(false);
    document.dispatchEvent(new Event("visibilitychange"));
    hidden.mockReturnValue(true);
    document.dispatchEvent(new Event("visibilitychange"));
    vi.advanceTimersByTime(29_900);
    last().fail();
    vi.advanceTimersByTime(60_000);
    expect(streams).toHaveLength(3);
    leave();
  });
});

// @vitest-environment jsdom
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { changes, KINDS, Paced, type Kind } from "./changes";
import type { LiveStream } from "./stream";

class Stream extends EventTarget {
  closed = false;
  close() {
    this.closed = true;
  }
  send(type: string, data: unknown = {}) {
    this.dispatchEvent(new MessageEvent(type, { data: JSON.stringify(data) }));
  }
}

let streams: Stream[];
let reported: Kind[][];
let stream: LiveStream;

function last(): Stream {
  const stream = streams.at(-1);
  if (stream === undefined) throw new Error("no stream");
  return stream;
}

function hide(hidden: boolean) {
  vi.spyOn(document, "hidden", "get").mockReturnValue(hidden);
  document.dispatchEvent(new Event("visibilitychange"));
}

beforeEach(() => {
  vi.useFakeTimers();
  streams = [];
  reported = [];
  stream = changes(
    (kinds) => reported.push([...kinds]),
    () => {
      streams.push(new Stream());
      return last() as unknown as EventSource;
    },
  );
  stream.start();
});

afterEach(() => {
  stream.stop();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

test("reports all kinds when the stream is ready, and then the kinds of each change", () => {
  expect(reported).toEqual([]);
  last().send("ready");
  expect(reported).toEqual([[...KINDS]]);
  last().send("change", { kinds: ["studies"] });
  expect(reported).toEqual([[...KINDS], ["studies"]]);
});

test("reports all kinds once after a break", () => {
  last().send("ready");
  reported = [];
  last().send("error");
  expect(streams).toHaveLength(1);
  vi.advanceTimersByTime(1000);
  expect(streams).toHaveLength(2);
  last().send("error");
  vi.advanceTimersByTime(1999);
  expect(streams).toHaveLength(2);
  vi.advanceTimersByTime(1);
  last().send("ready");
  expect(reported).toEqual([[...KINDS]]);
  last().send("ready");
  expect(reported).toHaveLength(1);
});

test("closes the connection of a hidden page, and reports all kinds when the page is visible again", () => {
  last().send("ready");
  reported = [];
  hide(true);
  vi.advanceTimersByTime(30_000);
  expect(last().closed).toBe(true);
  hide(false);
  last().send("ready");
  expect(streams).toHaveLength(2);
  expect(reported).toEqual([[...KINDS]]);
});

describe("a paced task", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  test("runs the first request at once, and all requests during a run as one more run", async () => {
    let runs = 0;
    const paced = new Paced(() => Promise.resolve((runs += 1)), 2000);
    for (let asked = 0; asked < 50; asked += 1) paced.ask();
    expect(runs).toBe(1);
    await vi.advanceTimersByTimeAsync(1999);
    expect(runs).toBe(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(runs).toBe(2);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(runs).toBe(2);
    paced.ask();
    expect(runs).toBe(3);
  });

  test("goes on after a failure, and ends when it is stopped", async () => {
    let runs = 0;
    const paced = new Paced(() => {
      runs += 1;
      return Promise.reject(new Error("away"));
    }, 10);
    paced.ask();
    await vi.advanceTimersByTimeAsync(20);
    paced.ask();
    expect(runs).toBe(2);
    paced.stop();
    paced.ask();
    await vi.advanceTimersByTimeAsync(20);
    paced.ask();
    expect(runs).toBe(2);
  });
});

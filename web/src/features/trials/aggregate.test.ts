import { expect, it } from "vitest";
import { makeTrial } from "@/testing/factories";
import { aggregate } from "./aggregate";

it("summarises the trials of a configuration by their median, lowest and highest value", () => {
  const trials = [
    makeTrial({ number: 1, params: { x: 1, n: 2 }, metrics: { t: 5 } }),
    makeTrial({ number: 2, params: { x: 2, n: 2 }, metrics: { t: 9 } }),
    makeTrial({ number: 3, params: { n: 2, x: 1 }, metrics: { t: 1 } }),
    makeTrial({ number: 4, params: { x: 1, n: 2 }, metrics: { t: 100 } }),
    makeTrial({ number: 5, params: { x: 1, n: 2 }, metrics: { t: 0 }, state: "PRUNED" }),
    makeTrial({ number: 6, params: { x: 3, n: 2 }, metrics: { other: 1 } }),
  ];
  expect(aggregate(trials, [{ metric: "t" }])).toEqual([
    { number: 1, params: { x: 1, n: 2 }, count: 3, median: { t: 5 }, low: { t: 1 }, high: { t: 100 }, breaks: null },
    { number: 2, params: { x: 2, n: 2 }, count: 1, median: { t: 9 }, low: { t: 9 }, high: { t: 9 }, breaks: null },
  ]);
});

it("takes the mean of the two middle values", () => {
  const trials = [3, 1, 2, 10].map((t, index) => makeTrial({ number: index + 1, metrics: { t } }));
  expect(aggregate(trials, [{ metric: "t" }])[0]?.median).toEqual({ t: 2.5 });
});

it("breaks a constraint if at least half of its trials do", () => {
  const breaks = ["memory <= 4"];
  const of = (...all: (string[] | null)[]) => aggregate(all.map((one, index) => makeTrial({ number: index + 1, params: { x: 1 }, metrics: { t: 1 }, breaks: one })), [{ metric: "t" }])[0]?.breaks;
  expect(of(null, breaks)).toEqual(breaks);
  expect(of(null, breaks, null)).toBeNull();
});

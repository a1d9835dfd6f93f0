import type { MatchingRecord, Study, Trial } from "@/lib/api/client";

/** Return a trial of a study with the parameters x and n. */
export function makeTrial(changes: Partial<Trial> = {}): Trial {
  return {
    number: 1,
    state: "COMPLETED",
    params: { x: 0.5, n: 4 },
    metrics: { seconds: 1 },
    reason: "",
    reason_data: null,
    origin: "suggested",
    repeat: "",
    repeat_data: null,
    client_id: "",
    agent: "",
    node: "",
    doubt: "",
    interference: null,
    breaks: null,
    round: null,
    machine: "",
    attempt: 1,
    seconds: null,
    revision: 1,
    created_at: "2026-01-02T12:00:00Z",
    started_at: "2026-01-02T12:00:00Z",
    finished_at: "2026-01-02T12:00:02Z",
    ...changes,
  };
}

/** Return a study that minimises seconds. */
export function makeStudy(changes: Partial<Study> = {}): Study {
  return {
    name: "demo",
    spec: {
      space: {
        parameters: [
          { name: "x", type: "float", min: 0, max: 1, default: 0.5 },
          { name: "n", type: "int", min: 1, max: 16, default: 4 },
        ],
        constraints: [],
      },
      objectives: [{ metric: "seconds", goal: "minimize", unit: "s" }],
      algorithm: { name: "random", options: {} },
      seed: 0,
      noisy: true,
      budget: { max_trials: 20, max_seconds: null },
      execution: null,
    },
    state: "ACTIVE",
    state_reason: "",
    state_reason_data: null,
    algorithm_choice: null,
    search_end_reason: "",
    started_from: [],
    owner: "ada",
    tags: [],
    revision: 1,
    trial_count: 1,
    requested_count: 0,
    active_count: 0,
    finished_count: 1,
    check_count: 0,
    check_limit: null,
    search_count: 1,
    exhausted: false,
    uid: "3f0a6c52-0d0c-4c1e-9f36-6f1f5a1b2c3d",
    space_version: 1,
    fixed: {},
    removed: {},
    imputed: {},
    space_edits: [],
    created_at: "2026-01-02T12:00:00Z",
    updated_at: "2026-01-02T12:00:00Z",
    ...changes,
  };
}

/** Return an active record without jobs. */
export function makeRecord(changes: Partial<MatchingRecord> = {}): MatchingRecord {
  return {
    id: "1",
    job: { user: "ada", name: "ants", program: "ant", command_line: "./ant --grid 64", submitted_at: "2026-01-02T12:00:00Z", nodes: 4 },
    component: "compiler",
    digest: "",
    application: "ant",
    study: "ant-1",
    params: { x: 0.25, n: 4 },
    gain: 0.2,
    gain_low: 0.15,
    gain_high: 0.25,
    state: "ACTIVE",
    cause: "",
    conditions: [],
    state_reason: "",
    created_at: "2026-01-02T12:00:00Z",
    active_since: "2026-01-02T12:00:00Z",
    withdrawn_at: null,
    audience: "everybody",
    withheld: "",
    state_reason_data: null,
    feedback: { applied: 0, control: 0, change: null, low: null, high: null, users: 0, unconfirmed: 0 },
    ...changes,
  };
}

import { expect, it } from "vitest";
import { readJob, submitted, words } from "./job";

it("splits words as a shell does", () => {
  expect(words(`a 'b c' "d \\"e\\"" f\\ g h'i'`)).toEqual(["a", "b c", 'd "e"', "f g", "hi"]);
  // A quote that is not closed stays as it is.
  expect(words("it's fine")).toEqual(["it's", "fine"]);
});

it("reads a command as the command line does", () => {
  expect(readJob("/home/ada/bin/ant --grid 64")).toEqual({
    kind: "command",
    job: { name: "ant", program: "ant", command_line: "/home/ada/bin/ant --grid 64" },
  });
  expect(readJob("  ").kind).toBe("nothing");
});

it("reads a submission as an agent reports it, without the options of Slurm", () => {
  expect(readJob("sbatch -N 2-4 -J ants --partition=long --exclusive -H jobs/run.sh --grid 64").job).toEqual({
    name: "ants",
    program: "run.sh",
    command_line: "sbatch jobs/run.sh --grid 64",
    nodes: "2",
    partition: "long",
  });
  expect(readJob("srun \\\n  -N4 ./ant 'a b'").job).toEqual({ name: "ant", program: "ant", command_line: "srun ./ant 'a b'", nodes: "4" });
});

it("reads the options of a batch script up to its first command", () => {
  const text = "#!/bin/sh\n#SBATCH --job-name=ant -N 4  # a comment\n# more\n#SBATCH -p main --clusters hpc1\nsrun ./ant\n#SBATCH -N 8\n";
  expect(readJob(text)).toEqual({ kind: "script", job: { name: "ant", nodes: "4", partition: "main", cluster: "hpc1" } });
});

it("reads a job in YAML and JSON, and names what it cannot read", () => {
  expect(readJob("job: {user: ada, name: ants, command: ant --steps 9, nodes: 2}").job).toEqual({ user: "ada", name: "ants", command_line: "ant --steps 9", nodes: "2" });
  expect(readJob('{"user": "ada", "cluster_nodes": 8}').job).toEqual({ user: "ada", cluster_nodes: "8" });
  expect(readJob("user: ada\nqueue: long").fault).toContain("queue is no field of a job");
  expect(readJob("user: [ada]").fault).toContain("user: a text or a number");
  expect(readJob("{user: ada").fault).toBeDefined();
});

it("submits a script by the name of its file, and refuses numbers that are none", () => {
  expect(submitted({ user: "ada", program: "run.sh", nodes: "4" }).job).toMatchObject({ name: "run.sh", command_line: "sbatch run.sh", nodes: 4, cluster_nodes: 0, submitted_at: null });
  expect(submitted({ command_line: "./ant", nodes: "" }).job).toMatchObject({ command_line: "./ant", nodes: 1 });
  expect(submitted({ nodes: "4x", cluster_nodes: "-1" }).faults.map(({ field }) => field)).toEqual(["nodes", "cluster_nodes"]);
  expect(submitted({ submitted_at: "2026-01-02T03:04Z" }).job.submitted_at).toBe("2026-01-02T03:04:00.000Z");
  expect(submitted({ submitted_at: "soon" }).faults.map(({ field }) => field)).toEqual(["submitted_at"]);
});

import { expect, test } from "vitest";
import { opened, placesOf } from "./found";

const SCRIPT = `#!/bin/bash
#SBATCH --job-name=solver --cpus-per-task=4   # as many as cores
#SBATCH -N 2 --time=5
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
TILE=64
MODE="fast"
: \${BLOCK:=16}
DEPTH=\${DEPTH:-3}
for file in a b; do
  # COMMENT=1 and $COMMENTED
  srun ./solver "$file" --tile $TILE --unroll $UNROLL $1 \${2:-8} '$QUOTED'
done
COUNT=1
COUNT=2
cd $HOME
`;

test("finds options, variables and arguments with the values that the script has", () => {
  expect(placesOf(SCRIPT).map(({ name, kind, target, value, line, fixed }) => [name, kind, target, value, line, fixed])).toEqual([
    ["cpus_per_task", "option", "cpus-per-task", "4", 2, false],
    ["nodes", "option", "nodes", "2", 3, false],
    ["tile", "env", "TILE", "64", 5, true],
    ["mode", "env", "MODE", "fast", 6, true],
    ["block", "env", "BLOCK", "16", 7, false],
    ["depth", "env", "DEPTH", "3", 8, false],
    ["argument2", "argument", "2", "8", 11, false],
    ["unroll", "env", "UNROLL", "", 11, false],
    ["argument1", "argument", "1", "", 11, false],
  ]);
});

test("finds nothing in an empty script or in one without values", () => {
  expect(placesOf("")).toEqual([]);
  expect(placesOf("#!/bin/sh\nsrun ./solver --tile 64\n")).toEqual([]);
});

test("gives each parameter a name of its own", () => {
  expect(placesOf("#SBATCH --nodes=2\nNODES=2\n").map(({ name }) => name)).toEqual(["nodes", "nodes_env"]);
});

test("lets a chosen variable come from the environment, and changes nothing else", () => {
  const tile = placesOf(SCRIPT).filter(({ target }) => target === "TILE");
  expect(opened(SCRIPT, tile)).toBe(SCRIPT.replace("TILE=64", "TILE=${TILE:-64}"));
  expect(opened("export MODE='fast'  # a comment\n", placesOf("export MODE='fast'\n"))).toBe("export MODE=${MODE:-fast}\n");
  expect(opened(SCRIPT, [])).toBe(SCRIPT);
});

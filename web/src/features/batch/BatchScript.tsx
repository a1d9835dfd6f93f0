import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Button, CopyButton } from "@/components/Button";
import { Card } from "@/components/Card";
import { CheckField, SelectField, TextField } from "@/components/Field";
import { Code, Empty, Problem } from "@/components/Message";
import { saveText } from "@/lib/browser";
import { useSettled } from "@/lib/clock";
import { useServer } from "@/lib/session";
import { quoted } from "@/lib/words";
import { faultOf, missingArgument, proposed, tuneCommand, type Choice, type Metric } from "./command";
import { scriptQuery, type Place } from "./api";
import styles from "./BatchScript.module.css";

const EXAMPLE = `#!/bin/bash
#SBATCH --cpus-per-task=4
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
TILE=64
srun ./solver --tile $TILE`;

// eslint-disable-next-line lingui/no-unlocalized-strings -- code
const WITH_DEFAULT = "${TILE:-64}";
const NUMBER = String.raw`: ([\d.]+)`;

/** The values of a place by its kind and target. */
type Values = Readonly<Record<string, Pick<Choice, "values" | "start">>>;

/** A form that makes the command with which a user tunes a batch script with jobs of their own. The service reads the script and stores nothing. */
export function BatchScript() {
  const [file, setFile] = useState("job.sh");
  const [script, setScript] = useState("");
  const [values, setValues] = useState<Values>({});
  const [metric, setMetric] = useState<Metric>({ name: "rate", pattern: null, goal: "maximize" });
  const [trials, setTrials] = useState("30");
  const [parallel, setParallel] = useState("1");
  const read = useQuery({ ...scriptQuery(useSettled(script, 300)), enabled: script.trim() !== "" });
  const places = script.trim() === "" ? [] : (read.data?.places ?? []);
  const choices = places.flatMap((place) => {
    const own = values[keyOf(place)];
    return own === undefined ? [] : [{ place, ...own }];
  });
  const fixed = choices.map(({ place }) => place).filter((place) => place.fixed);
  const missing = missingArgument(choices);
  const changed = useQuery({ ...scriptQuery(script, fixed.map(({ target }) => target)), enabled: fixed.length > 0 });
  const isReady =
    file.trim() !== "" &&
    choices.length > 0 &&
    choices.every((choice) => faultOf(choice) === undefined) &&
    missing === undefined &&
    countFault(trials) === undefined &&
    countFault(parallel) === undefined &&
    metricFault(metric) === undefined &&
    (fixed.length === 0 || (changed.data !== undefined && !changed.isPlaceholderData));
  const replace = (text: string, name?: string) => {
    setScript(text);
    setValues({});
    if (name !== undefined) setFile(name);
  };
  return (
    <div className={styles.layout}>
      <Card title={t`Batch script`}>
        <Script file={file} script={script} onFile={setFile} onScript={replace} />
      </Card>
      <div className={styles.stack}>
        <Card title={t`Values to tune`}>
          {read.error !== null && script.trim() !== "" ? (
            <Problem error={read.error} />
          ) : places.length === 0 ? (
            <Empty title={script.trim() === "" ? t`No script yet` : t`Nothing found that could be tuned`}>
              <p>
                <Trans>
                  The script can take a value from a variable (<code>{WITH_DEFAULT}</code>), from an argument (<code>$1</code>) or from a line such as <code>#SBATCH --cpus-per-task=4</code>.
                </Trans>
              </p>
            </Empty>
          ) : (
            <div className={styles.places}>
              {places.map((place) => (
                <PlaceFields
                  key={keyOf(place)}
                  place={place}
                  own={values[keyOf(place)]}
                  onChange={(own) => setValues(own === undefined ? without(values, keyOf(place)) : { ...values, [keyOf(place)]: own })}
                />
              ))}
              {missing === undefined ? null : <p className={styles.fault} role="alert">{t`Choose the argument $${missing}, too. The script gets its arguments in their order.`}</p>}
            </div>
          )}
        </Card>
        <Card title={t`Measurement and budget`}>
          <div className={styles.stack}>
            <MetricFields metric={metric} onChange={setMetric} />
            <div className={styles.grid}>
              <TextField label={t`Trials`} inputMode="numeric" value={trials} error={countFault(trials)} onChange={(event) => setTrials(event.target.value)} />
              <TextField label={t`Jobs at the same time`} inputMode="numeric" value={parallel} error={countFault(parallel)} onChange={(event) => setParallel(event.target.value)} />
            </div>
          </div>
        </Card>
        {isReady ? (
          <Commands
            command={tuneCommand({ file: file.trim(), choices, metric, trials: Number(trials), parallel: Number(parallel) })}
            file={file.trim()}
            script={fixed.length === 0 ? null : (changed.data?.text ?? null)}
            fixed={fixed}
          />
        ) : null}
      </div>
    </div>
  );
}

interface ScriptProps {
  file: string;
  script: string;
  onFile: (name: string) => void;
  onScript: (text: string, name?: string) => void;
}

function Script({ file, script, onFile, onScript }: ScriptProps) {
  const id = useId();
  return (
    <div className={styles.stack}>
      <p className={styles.note}>{t`The service reads the script, stores nothing of it and sends it nowhere.`}</p>
      <label className={styles.stack}>
        <span className={styles.label}>{t`Open a file`}</span>
        <input
          type="file"
          onChange={(event) => {
            const chosen = event.target.files?.[0];
            if (chosen !== undefined) void chosen.text().then((text) => onScript(text, chosen.name));
          }}
        />
      </label>
      <label htmlFor={id} className={styles.label}>
        {t`Text of the script`}
      </label>
      <textarea id={id} className={styles.text} value={script} spellCheck={false} placeholder={EXAMPLE} onChange={(event) => onScript(event.target.value)} />
      <TextField label={t`File on the login node`} value={file} error={file.trim() === "" ? t`Enter the name of the file.` : undefined} onChange={(event) => onFile(event.target.value)} />
    </div>
  );
}

interface PlaceProps {
  place: Place;
  own: Values[string] | undefined;
  onChange: (own: Values[string] | undefined) => void;
}

function PlaceFields({ place, own, onChange }: PlaceProps) {
  const fault = own === undefined ? undefined : faultOf({ place, ...own });
  return (
    <div className={styles.place}>
      <CheckField
        label={titleOf(place)}
        hint={place.value === "" ? t`line ${place.line}` : t`line ${place.line}, now ${place.value}`}
        checked={own !== undefined}
        onChange={(event) => onChange(event.target.checked ? { values: proposed(place.value), start: place.value } : undefined)}
      />
      {own === undefined ? null : (
        <div className={`${styles.grid} ${styles.inner}`}>
          <TextField
            label={t`Values of ${place.name}`}
            hint={t`A range such as ${"1..16"}, or values such as ${"16,32,64"}.`}
            value={own.values}
            error={fault}
            onChange={(event) => onChange({ ...own, values: event.target.value })}
          />
          <TextField label={t`Present value of ${place.name}`} hint={t`The gain is measured against it.`} value={own.start} onChange={(event) => onChange({ ...own, start: event.target.value.trim() })} />
        </div>
      )}
    </div>
  );
}

function MetricFields({ metric, onChange }: { metric: Metric; onChange: (metric: Metric) => void }) {
  const fault = metricFault(metric);
  return (
    <div className={styles.stack}>
      <CheckField
        label={t`Read the metric from the output of the job`}
        hint={t`Otherwise the running time of the job is minimized. The time in the queue does not count.`}
        checked={metric.pattern !== null}
        onChange={(event) => onChange({ ...metric, pattern: event.target.checked ? metric.name + NUMBER : null })}
      />
      {metric.pattern === null ? null : (
        <div className={styles.grid}>
          <TextField label={t`Metric`} value={metric.name} error={fault?.name} onChange={(event) => onChange({ ...metric, name: event.target.value.trim() })} />
          <TextField
            label={t`Regular expression`}
            hint={t`The group in parentheses is the number.`}
            value={metric.pattern}
            error={fault?.pattern}
            onChange={(event) => onChange({ ...metric, pattern: event.target.value })}
          />
          <SelectField label={t`Goal`} value={metric.goal} onChange={(event) => onChange({ ...metric, goal: event.target.value === "maximize" ? "maximize" : "minimize" })}>
            <option value="minimize">{t`Minimize`}</option>
            <option value="maximize">{t`Maximize`}</option>
          </SelectField>
        </div>
      )}
    </div>
  );
}

interface CommandsProps {
  command: string;
  file: string;
  /** The script with the chosen variables from the environment; null if it may stay as it is. */
  script: string | null;
  fixed: readonly Place[];
}

function Commands({ command, file, script, fixed }: CommandsProps) {
  const login = `trimtab login ${quoted(useServer())}`;
  const names = fixed.map(({ target, line }) => t`${target} (line ${line})`).join(", ");
  return (
    <Card title={t`Command`} actions={<CopyButton text={command} label={t`Copy the command`} />}>
      <div className={styles.stack}>
        {script === null ? null : (
          <>
            <p role="note">
              <Trans>The script sets {names} itself, so a value from outside has no effect. Use this version of the script, which behaves as before when you submit it without the variables.</Trans>
            </p>
            <div>
              <Button onClick={() => saveText(file, "text/x-shellscript", script)}>{t`Download the changed script`}</Button>
            </div>
          </>
        )}
        <p>{t`Run the command on a login node of the cluster. It submits the jobs with your own account, and the study appears here.`}</p>
        <Code>{command}</Code>
        <p className={styles.note}>
          <Trans>
            The login node needs <code>pip install trimtab trimtab-agent</code> and <code>{login}</code>. Add <code>--dry-run</code> to see a job first. Add <code>--write-component components/job</code> to
            offer the script to everybody through an agent.
          </Trans>
        </p>
      </div>
    </Card>
  );
}

function keyOf({ kind, target }: Place): string {
  return `${kind} ${target}`;
}

function without(values: Values, key: string): Values {
  return Object.fromEntries(Object.entries(values).filter(([one]) => one !== key));
}

function titleOf({ kind, target }: Place): string {
  if (kind === "option") return t`Option ${`--${target}`}`;
  return kind === "argument" ? t`Argument ${`$${target}`}` : t`Variable ${target}`;
}

function countFault(text: string): string | undefined {
  return /^[1-9]\d{0,5}$/.test(text.trim()) ? undefined : t`Enter a whole number from 1.`;
}

function metricFault({ name, pattern }: Metric): { name?: string; pattern?: string } | undefined {
  if (pattern === null) return undefined;
  if (!/^[A-Za-z_]\w*$/.test(name)) return { name: t`Use letters, digits and underscores, with a letter first.` };
  return /\((?!\?)/.test(pattern) ? undefined : { pattern: t`Put the number in parentheses, such as ${"rate: ([\\d.]+)"}.` };
}

import { t } from "@lingui/core/macro";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { CheckField, SelectField, TextField } from "@/components/Field";
import type { Parameter, Plan, Scalar } from "@/lib/api/client";
import { formatSpace, formatList, formatNumber, formatValue } from "@/lib/format";
import { FaultAt, Meant } from "./FaultAt";
import { Lines, ValueField } from "./Fields";
import styles from "./planning.module.css";
import { isObject } from "./studyFile";
import type { Draft } from "./useDraft";

interface Props {
  draft: Draft;
  /** The parameters of the component; undefined for a study that is measured by a script. */
  space: readonly Parameter[];
  plan: Plan | undefined;
}

/** Choose the tuned parameters and their ranges. */
export function Space({ draft, space, plan }: Props) {
  const { file } = draft;
  const [filter, setFilter] = useState("");
  const own = space.length > 0;
  const all = described(draft, space);
  const only = Array.isArray(file.only) ? new Set(file.only as string[]) : null;
  const tuned = all.filter(({ name }) => only === null || only.has(name));
  const shown = all.filter(({ name }) => name.toLowerCase().includes(filter.toLowerCase()));

  function choose(names: readonly string[], on: boolean) {
    const next = all.map(({ name }) => name).filter((name) => (names.includes(name) ? on : only === null || only.has(name)));
    draft.set(["only"], next.length === all.length ? undefined : next);
  }
  return (
    <Card
      title={own ? t`Parameters: ${formatNumber(tuned.length)} of ${formatNumber(all.length)}` : t`Parameters`}
      actions={
        <span className={styles.soft}>
          {plan === undefined ? "" : plan.size === null ? t`continuous search space` : formatSpace({ size: plan.size, feasible: plan.feasible })}
          {plan?.spec.execution ? t`, up to ${formatNumber(plan.spec.execution.parallelism ?? 1)} at once` : ""}
        </span>
      }
    >
      <div className={styles.stack}>
        <FaultAt at="only" just={["parameters"]}>{(error) => (error === undefined ? null : <p className={styles.error}>{error}</p>)}</FaultAt>
        {all.length > 6 ? (
          <div className={styles.row}>
            <TextField label={t`Find a parameter`} type="search" bare placeholder={t`Find a parameter …`} value={filter} onChange={(event) => setFilter(event.target.value)} />
            {own ? (
              <>
                <Button small onClick={() => choose(shown.map(({ name }) => name), true)}>
                  {filter === "" ? t`Tune all` : t`Tune shown parameters`}
                </Button>
                <Button small onClick={() => choose(shown.map(({ name }) => name), false)}>
                  {filter === "" ? t`Tune none` : t`Exclude shown parameters`}
                </Button>
              </>
            ) : null}
            {shown.length === 0 ? (
              <span className={styles.soft}>
                {t`No parameter has this in its name.`} <Meant name={filter} names={all.map(({ name }) => name)} onChoose={setFilter} />
              </span>
            ) : null}
          </div>
        ) : null}
        <div className={styles.parameters}>
          {shown.map((parameter) => (
            <Row
              key={parameter.name}
              draft={draft}
              parameter={parameter}
              component={space.find(({ name }) => name === parameter.name)}
              tuned={only === null || only.has(parameter.name)}
              onTune={own ? (on) => choose([parameter.name], on) : undefined}
            />
          ))}
        </div>
        {own ? null : <NewParameter draft={draft} />}
        <Lines
          title={t`Constraints`}
          what={t`constraint`}
          hint={t`A condition on parameters, such as n * 4 <= block.`}
          placeholder={t`n * 4 <= block`}
          field="constraints"
          draft={draft}
        />
      </div>
    </Card>
  );
}

/** All parameters as the form shows them: the component's with what the file says of each, be it right or wrong. */
function described({ file }: Draft, space: readonly Parameter[]): Parameter[] {
  const shown = new Map<string, object>(space.map((parameter) => [parameter.name, parameter]));
  for (const [name, given] of Object.entries(isObject(file.parameters) ? file.parameters : {})) {
    const own = space.find((parameter) => parameter.name === name);
    // The service refuses a parameter that the component does not have.
    if (space.length > 0 && own === undefined) continue;
    const changes = isObject(given) ? given : {};
    const type = changes.type === "boolean" ? "bool" : (changes.type ?? own?.type);
    shown.set(name, { ...(type === own?.type ? own : {}), ...changes, name, type });
  }
  return [...shown.values()] as Parameter[];
}

interface RowProps {
  draft: Draft;
  parameter: Parameter;
  component: Parameter | undefined;
  tuned: boolean;
  onTune: ((tuned: boolean) => void) | undefined;
}

function Row({ draft, parameter, component, tuned, onTune }: RowProps) {
  const { name, type } = parameter;
  const numeric = type === "int" || type === "float";

  function change(key: keyof Parameter, value: unknown) {
    // The file holds only differences from the component.
    const same = component !== undefined && JSON.stringify(value) === JSON.stringify(component[key]);
    draft.set(["parameters", name, key], same ? undefined : value);
  }
  const field = (key: "min" | "max" | "step" | "factor" | "default" | "unit", label: string) => (
    <ValueField label={label} value={parameter[key]} onChange={(value) => change(key, value)} />
  );
  return (
    <div className={styles.parameter} role="group" aria-label={name}>
      <div className={styles.own}>
        {onTune === undefined ? (
          <span>
            <b>{name}</b>{" "}
            <Button small kind="quiet" aria-label={t`Remove ${name}`} onClick={() => draft.set(["parameters", name], undefined)}>
              {t`Remove`}
            </Button>
          </span>
        ) : (
          <CheckField label={name} checked={tuned} onChange={(event) => onTune(event.target.checked)} />
        )}
        <p className={styles.soft}>
          {[type === "bool" ? t`on or off` : type, parameter.unit ?? ""].filter((part) => part !== "").join(", ")}
          {parameter.condition === undefined ? "" : t`, only if ${parameter.condition.parent} is ${formatList(parameter.condition.values.map(String))}`}
        </p>
      </div>
      {tuned ? (
        <div className={styles.fields}>
          {numeric ? (
            <>
              {field("min", t`Min`)}
              {field("max", t`Max`)}
              {field("step", t`Step`)}
              {field("factor", t`Factor`)}
              {field("default", t`Default`)}
              {field("unit", t`Unit`)}
              <CheckField label={t`Log scale`} checked={parameter.log === true} onChange={(event) => change("log", event.target.checked || undefined)} />
            </>
          ) : type === "bool" ? (
            <ChoiceField label={t`Default`} value={parameter.default} options={[true, false]} onChange={(value) => change("default", value)} />
          ) : (
            <>
              <div className={styles.wide}>
                <ValueField label={t`Values`} list value={parameter.values} onChange={(value) => change("values", value)} />
              </div>
              <ChoiceField label={t`Default`} value={parameter.default} options={parameter.values ?? []} onChange={(value) => change("default", value)} />
            </>
          )}
          <FaultAt at={`parameters.${name}`}>{(error) => (error === undefined ? null : <p className={`${styles.error} ${styles.wide}`}>{error}</p>)}</FaultAt>
        </div>
      ) : (
        <p className={styles.soft}>{parameter.default === undefined ? t`fixed at its default` : t`fixed at ${String(parameter.default)}`}</p>
      )}
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: Scalar | undefined;
  options: readonly Scalar[];
  onChange: (value: Scalar | undefined) => void;
}

/** A choice of one of the allowed values. A value of the file that is not allowed stays visible. */
function ChoiceField({ label, value, options, onChange }: ChoiceProps) {
  const place = options.findIndex((option) => option === value);
  return (
    <SelectField label={label} value={value === undefined ? "" : String(place)} onChange={(event) => onChange(event.target.value === "" ? undefined : options[Number(event.target.value)])}>
      <option value="">—</option>
      {place < 0 && value !== undefined ? <option value="-1">{formatValue(value)}</option> : null}
      {options.map((option, index) => (
        <option key={index} value={index}>
          {formatValue(option)}
        </option>
      ))}
    </SelectField>
  );
}

const FIRST: Record<string, Record<string, unknown>> = {
  float: { type: "float", min: 0, max: 1 },
  int: { type: "int", min: 1, max: 16 },
  ordinal: { type: "ordinal", values: [1, 2, 4] },
  categorical: { type: "categorical", values: ["a", "b"] },
  boolean: { type: "boolean" },
};

function NewParameter({ draft }: { draft: Draft }) {
  const [name, setName] = useState("");
  const [type, setType] = useState("float");
  const known = new Set(Object.keys((draft.file.parameters ?? {})));
  const taken = known.has(name.trim());

  function add() {
    draft.set(["parameters", name.trim()], FIRST[type]);
    setName("");
  }
  return (
    <div className={styles.row}>
      <TextField
        label={t`Name of the new parameter`}
        value={name}
        error={taken ? t`There is already a parameter with this name.` : undefined}
        onChange={(event) => setName(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && name.trim() !== "" && !taken) add();
        }}
      />
      <SelectField label={t`Type`} value={type} onChange={(event) => setType(event.target.value)}>
        {Object.keys(FIRST).map((kind) => (
          <option key={kind}>{kind}</option>
        ))}
      </SelectField>
      <Button disabled={name.trim() === "" || taken} onClick={add}>
        {t`Add`}
      </Button>
    </div>
  );
}

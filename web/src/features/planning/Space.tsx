import { useState } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { CheckField, SelectField, TextField } from "@/components/Field";
import type { Parameter, Plan } from "@/lib/api/client";
import { formatDigits } from "@/lib/format";
import { messageFor, type Fault } from "./faults";
import { Lines } from "./Lines";
import styles from "./planning.module.css";
import { parametersOf } from "./studyFile";
import type { Draft } from "./useDraft";
import { ValueField } from "./ValueField";

interface Props {
  draft: Draft;
  /** The component's own; none for a study that is asked and told. */
  space: readonly Parameter[];
  plan: Plan | undefined;
  fault: Fault | null;
}

/** Which parameters are tuned, and in what ranges. */
export function Space({ draft, space, plan, fault }: Props) {
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
      title={own ? `Parameters: ${tuned.length} of ${all.length}` : "Parameters"}
      actions={
        <span className={styles.soft}>
          {plan === undefined ? "" : plan.size === null ? "a continuum of configurations" : `${formatDigits(plan.size)} configurations`}
        </span>
      }
    >
      <div className={styles.stack}>
        {messageFor(fault, "parameters") !== undefined && fault?.field.split(".").length === 1 ? <p className={styles.error}>{fault.message}</p> : null}
        {messageFor(fault, "only") === undefined ? null : <p className={styles.error}>{fault?.message}</p>}
        {own && all.length > 6 ? (
          <div className={styles.row}>
            <TextField label="Find a parameter" type="search" bare placeholder="Find a parameter …" value={filter} onChange={(event) => setFilter(event.target.value)} />
            <Button small onClick={() => choose(shown.map(({ name }) => name), true)}>
              Tune {filter === "" ? "all" : "those shown"}
            </Button>
            <Button small onClick={() => choose(shown.map(({ name }) => name), false)}>
              {filter === "" ? "None" : "Not those shown"}
            </Button>
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
              error={messageFor(fault, `parameters.${parameter.name}`)}
            />
          ))}
        </div>
        {own ? null : <NewParameter draft={draft} />}
        <Lines
          title="Constraints"
          what="constraint"
          hint="Over parameters, such as n * 4 <= block."
          placeholder="n * 4 <= block"
          field="constraints"
          draft={draft}
          fault={fault}
        />
      </div>
    </Card>
  );
}

/** All parameters with the file's changes, whether they are tuned or not. */
function described({ file }: Draft, space: readonly Parameter[]): Parameter[] {
  try {
    return parametersOf({ ...file, only: undefined }, space);
  } catch {
    // The fault is told beside the field.
    return [...space];
  }
}

interface RowProps {
  draft: Draft;
  parameter: Parameter;
  component: Parameter | undefined;
  tuned: boolean;
  onTune: ((tuned: boolean) => void) | undefined;
  error: string | undefined;
}

function Row({ draft, parameter, component, tuned, onTune, error }: RowProps) {
  const { name, type } = parameter;
  const numeric = type === "int" || type === "float";

  function change(key: keyof Parameter, value: unknown) {
    // What the component says itself needs not stand in the file.
    const same = component !== undefined && JSON.stringify(value) === JSON.stringify(component[key]);
    draft.set(["parameters", name, key], same ? undefined : value);
  }
  const field = (key: "min" | "max" | "step" | "factor" | "default", label: string) => (
    <ValueField label={label} value={parameter[key]} onChange={(value) => change(key, value)} />
  );
  return (
    <div className={styles.parameter} role="group" aria-label={name}>
      <div className={styles.own}>
        {onTune === undefined ? (
          <span>
            <b>{name}</b>{" "}
            <Button small kind="quiet" aria-label={`Remove ${name}`} onClick={() => draft.set(["parameters", name], undefined)}>
              Remove
            </Button>
          </span>
        ) : (
          <CheckField label={name} checked={tuned} onChange={(event) => onTune(event.target.checked)} />
        )}
        <p className={styles.soft}>
          {type === "bool" ? "on or off" : type}
          {parameter.condition === undefined ? "" : `, only while ${parameter.condition.parent} is ${parameter.condition.values.map(String).join(" or ")}`}
        </p>
      </div>
      {tuned ? (
        <div className={styles.fields}>
          {numeric ? (
            <>
              {field("min", "Min")}
              {field("max", "Max")}
              {field("step", "Step")}
              {field("factor", "Factor")}
              {field("default", "Default")}
              <CheckField label="Log" checked={parameter.log === true} onChange={(event) => change("log", event.target.checked || undefined)} />
            </>
          ) : type === "bool" ? (
            field("default", "Default")
          ) : (
            <>
              <div className={styles.wide}>
                <ValueField label="Values" list value={parameter.values} onChange={(value) => change("values", value)} />
              </div>
              {field("default", "Default")}
            </>
          )}
          {error === undefined ? null : <p className={`${styles.error} ${styles.wide}`}>{error}</p>}
        </div>
      ) : (
        <p className={styles.soft}>stays at {String(parameter.default ?? "its default")}</p>
      )}
    </div>
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
        label="Name of a new parameter"
        value={name}
        error={taken ? "There is one of this name." : undefined}
        onChange={(event) => setName(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && name.trim() !== "" && !taken) add();
        }}
      />
      <SelectField label="Kind" value={type} onChange={(event) => setType(event.target.value)}>
        {Object.keys(FIRST).map((kind) => (
          <option key={kind}>{kind}</option>
        ))}
      </SelectField>
      <Button disabled={name.trim() === "" || taken} onClick={add}>
        Add
      </Button>
    </div>
  );
}

import { Card } from "@/components/Card";
import { CheckField, SelectField } from "@/components/Field";
import type { Methods, Plan } from "@/lib/api/client";
import { messageFor, type Fault } from "./faults";
import styles from "./planning.module.css";
import { Policy } from "./Policy";
import type { Draft } from "./useDraft";
import { textOf } from "./values";
import { ValueField } from "./ValueField";

interface Props {
  draft: Draft;
  methods: Methods;
  plan: Plan | undefined;
  fault: Fault | null;
}

/** How the search goes: who suggests, what is measured again, what is stopped early, when it ends. */
export function MethodStep({ draft, methods, plan, fault }: Props) {
  const { file } = draft;
  const several = Array.isArray(file.objectives) && file.objectives.length > 1;
  const pruning: unknown[] = Array.isArray(file.pruning) ? file.pruning : [];
  const choice = plan?.algorithm_choice ?? null;
  const resampling = plan?.spec.resampling?.name;
  return (
    <Card title="Method">
      <div className={styles.stack}>
        <Policy
          label="Designer: who suggests configurations"
          field="algorithm"
          value={file.algorithm}
          methods={methods.algorithms}
          none="auto"
          several={several}
          fault={fault}
          onChange={(value) => draft.set(["algorithm"], value)}
        />
        {choice === null ? null : (
          <p className={styles.choice}>
            <b>auto</b> chooses <b>{choice.name}</b>: {choice.reason}.
          </p>
        )}
        <Policy
          label="Resampling: what is measured again"
          field="resampling"
          value={file.resampling}
          methods={methods.resampling}
          none={file.resampling === undefined && resampling !== undefined ? `what suits: ${resampling}` : "what suits"}
          several={several}
          fault={fault}
          onChange={(value) => draft.set(["resampling"], value)}
        />
        <Policy
          label="Estimator: how several measurements become one"
          field="estimator"
          value={file.estimator}
          methods={methods.estimators}
          none="median"
          several={false}
          fault={fault}
          onChange={(value) => draft.set(["estimator"], value)}
        />
        <Policy
          label="Pruning: which trials are stopped early"
          field="pruning[0]"
          value={pruning[0]}
          methods={methods.pruning}
          none="none"
          several={several}
          fault={fault}
          onChange={(value) => {
            const next = value === undefined ? pruning.slice(1) : [value, ...pruning.slice(1)];
            draft.set(["pruning"], next.length === 0 ? undefined : next);
          }}
        />
        {pruning.length > 1 ? <p className={styles.soft}>And {pruning.length - 1} more, in the file beside.</p> : null}
        <Stopping draft={draft} methods={methods} fault={fault} />
        {several ? null : (
          <CheckField
            label="Check the result at the end"
            hint="Best and default are measured in turns, beyond the budget, until the gain is known with its interval."
            checked={file.final_check !== undefined && file.final_check !== false && file.final_check !== null}
            onChange={(event) => draft.set(["final_check"], event.target.checked ? true : undefined)}
          />
        )}
        {messageFor(fault, "final_check") === undefined ? null : <p className={styles.error}>{fault?.message}</p>}
        <div className={styles.grid}>
          <ValueField
            label="Seed"
            value={file.seed}
            placeholder="0"
            hint="The same seed suggests the same."
            error={messageFor(fault, "seed")}
            onChange={(value) => draft.set(["seed"], value)}
          />
        </div>
      </div>
    </Card>
  );
}

/** One rule; combinations of several are written in the file. */
function Stopping({ draft, methods, fault }: Omit<Props, "plan">) {
  const value = draft.file.stopping as Record<string, unknown> | null | undefined;
  const combined = value !== undefined && value !== null && ("any" in value || "all" in value);
  if (combined) return <p className={styles.soft}>The search ends by a combination of rules, in the file beside.</p>;
  const name = textOf(value?.rule);
  const rule = methods.stopping.find((one) => one.name === name);
  return (
    <div className={styles.stack}>
      <SelectField
        label="Stopping: when the search ends before its budget"
        value={name}
        hint={rule?.doc}
        error={messageFor(fault, "stopping.rule") ?? (fault?.field === "stopping" ? fault.message : undefined)}
        onChange={(event) => draft.set(["stopping"], event.target.value === "" ? undefined : { rule: event.target.value })}
      >
        <option value="">never</option>
        {methods.stopping.map((one) => (
          <option key={one.name}>{one.name}</option>
        ))}
      </SelectField>
      {rule === undefined ? null : (
        <div className={styles.grid}>
          {rule.options.map((option) => (
            <ValueField
              key={option.name}
              label={option.name}
              value={value?.[option.name]}
              placeholder={option.default === null ? "" : textOf(option.default)}
              hint={option.doc}
              error={messageFor(fault, `stopping.${option.name}`)}
              onChange={(given) => draft.set(["stopping", option.name], given)}
            />
          ))}
        </div>
      )}
    </div>
  );
}

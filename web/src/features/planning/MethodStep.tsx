import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { CheckField } from "@/components/Field";
import type { Methods, Plan } from "@/lib/api/client";
import { reasonText } from "@/lib/reasons";
import { FaultAt } from "./FaultAt";
import styles from "./planning.module.css";
import { Policy } from "./Policy";
import { Stopping } from "./Stopping";
import type { Draft } from "./useDraft";
import { ValueField } from "./Fields";

interface Props {
  draft: Draft;
  methods: Methods;
  plan: Plan | undefined;
}

/** Choose the algorithm, the policies and the stopping rule of a study. */
export function MethodStep({ draft, methods, plan }: Props) {
  const { file } = draft;
  const several = Array.isArray(file.objectives) && file.objectives.length > 1;
  // The service checks the gain of a noisy study on agents with one objective unless the file says otherwise.
  const byDefault = file.component !== undefined && file.noisy !== false && !several;
  const isChecked = file.final_check === undefined || file.final_check === null ? byDefault : file.final_check !== false;
  const pruning: unknown[] = Array.isArray(file.pruning) ? file.pruning : [];
  const choice = plan?.algorithm_choice ?? null;
  const resampling = plan?.spec.resampling?.name;
  return (
    <Card title={t`Method`}>
      <div className={styles.stack}>
        <Policy
          label={t`Algorithm`}
          field="algorithm"
          value={file.algorithm}
          methods={methods.algorithms}
          none={t`auto`}
          several={several}
          onChange={(value) => draft.set(["algorithm"], value)}
        />
        {choice === null ? null : (
          <p className={styles.choice}>
            <Trans>
              <b>auto</b> chooses <b>{choice.name}</b>: {reasonText(choice.reason, choice.reason_data)}.
            </Trans>
          </p>
        )}
        <Policy
          label={t`Resampling policy`}
          field="resampling"
          value={file.resampling}
          methods={methods.resampling}
          none={file.resampling === undefined && resampling !== undefined ? t`auto: ${resampling}` : t`auto`}
          several={several}
          onChange={(value) => draft.set(["resampling"], value)}
        />
        <Policy
          label={t`Estimator (combines repeated measurements)`}
          field="estimator"
          value={file.estimator}
          methods={methods.estimators}
          none={t`median`}
          several={false}
          onChange={(value) => draft.set(["estimator"], value)}
        />
        <Pruning
          value={pruning}
          methods={methods}
          several={several}
          onChange={(next) => draft.set(["pruning"], next.length === 0 ? undefined : next)}
        />
        <Stopping value={file.stopping} methods={methods.stopping} onChange={(value) => draft.set(["stopping"], value)} />
        <CheckField
          label={t`Final check`}
          hint={
            several
              ? t`Measures members of the Pareto front and the default alternately, in addition to the budget, until their gains and the intervals are known.`
              : t`Measures the best configuration and the default alternately, in addition to the budget, until the gain and its interval are known.`
          }
          checked={isChecked}
          onChange={({ target: { checked } }) => draft.set(["final_check"], checked === byDefault ? undefined : checked)}
        />
        <FaultAt at="final_check">{(error) => (error === undefined ? null : <p className={styles.error}>{error}</p>)}</FaultAt>
        <div className={styles.grid}>
          <FaultAt at="seed">
            {(error) => (
              <ValueField
                label={t`Seed`}
                value={file.seed}
                placeholder="0"
                hint={t`The same seed gives the same suggestions.`}
                error={error}
                onChange={(value) => draft.set(["seed"], value)}
              />
            )}
          </FaultAt>
        </div>
      </div>
    </Card>
  );
}

interface PruningProps {
  value: readonly unknown[];
  methods: Methods;
  several: boolean;
  onChange: (value: unknown[]) => void;
}

/** The pruning policies. A trial is pruned if any of them decides so. */
function Pruning({ value, methods, several, onChange }: PruningProps) {
  const shown = value.length === 0 ? [undefined] : value;
  return (
    <div className={styles.stack}>
      {shown.map((policy, place) => (
        <div key={place} className={styles.stack}>
          <Policy
            label={place === 0 ? t`Pruning policy` : t`Pruning policy ${place + 1}`}
            field={`pruning[${place}]`}
            value={policy}
            methods={methods.pruning}
            none={place === 0 && shown.length === 1 ? t`none` : t`choose a policy`}
            several={several}
              onChange={(next) => onChange(shown.length === 1 && next === undefined ? [] : shown.map((one, index) => (index === place ? (next ?? "") : one)))}
          />
          {shown.length === 1 ? null : (
            <div>
              <Button
                small
                kind="quiet"
                aria-label={t`Remove pruning policy ${place + 1}`}
                onClick={() => onChange(shown.filter((_, index) => index !== place))}
              >
                {t`Remove`}
              </Button>
            </div>
          )}
        </div>
      ))}
      {value.length === 0 ? null : (
        <div>
          <Button small onClick={() => onChange([...value, ""])}>
            {t`Add a pruning policy`}
          </Button>
        </div>
      )}
      {value.length > 1 ? <p className={styles.soft}>{t`A trial is pruned as soon as any of these policies decides so.`}</p> : null}
    </div>
  );
}

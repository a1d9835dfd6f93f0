import { plural, t } from "@lingui/core/macro";
import { Card } from "@/components/Card";
import compact from "@/components/CompactTable.module.css";
import { CopyButton } from "@/components/Button";
import type { Analysis, Configuration, StudySpec } from "@/lib/api/client";
import { formatGain, formatGainInterval, formatMetric, formatNumber, formatValue, unitOf } from "@/lib/format";
import styles from "./Effects.module.css";

type ParetoVerdict = NonNullable<Analysis["pareto_verdict"]>;
type Member = ParetoVerdict["members"][number];
type ObjectiveGain = Member["objectives"][number];

/** Show the gains of the members of the Pareto front that the final check has measured. Only a proven gain is green. */
export function ParetoMembers({ verdict, spec, standard }: { verdict: ParetoVerdict; spec: StudySpec; standard: Configuration }) {
  if (verdict.members.length === 0) return null;
  const names = spec.space.parameters.map(({ name }) => name);
  const level = formatNumber(100 * verdict.confidence);
  return (
    <Card title={t`Gains of the Pareto front`} flush>
      <div className={compact.scroll}>
        <table className={`${compact.table} ${styles.table}`}>
          <thead>
            <tr>
              <th scope="col">{t`Changes from the default`}</th>
              {spec.objectives.map(({ metric }) => (
                <th scope="col" key={metric}>{t`Gain in ${metric}`}</th>
              ))}
              <th scope="col">{t`Runs`}</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {verdict.members.map((one) => (
              <tr key={JSON.stringify(one.params)}>
                <th scope="row">{changesText(one, names, standard)}</th>
                {one.objectives.map((gain, place) => (
                  <Gain key={gain.metric} gain={gain} unit={unitOf(spec.objectives[place] ?? gain)} isBroken={one.broken > 0 && 2 * one.broken >= one.runs} />
                ))}
                <td>
                  {one.runs}
                  {one.broken > 0 && <span className={styles.soft}> ({t`${one.broken} broke a constraint`})</span>}
                </td>
                <td>
                  <CopyButton label={t`Copy as JSON`} text={JSON.stringify(one.params, null, 2)} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className={styles.note}>
        {t`Measured by ${plural(verdict.trials, { one: "# trial", other: "# trials" })} of the final check. All intervals hold at once with ${level} %. The hypervolume is the volume that the gains span, as a share of the default's values.`}
      </p>
    </Card>
  );
}

/** Show a gain. `isBroken`: at least half of the member's runs broke an outcome constraint. */
function Gain({ gain, unit, isBroken }: { gain: ObjectiveGain; unit: string; isBroken: boolean }) {
  if (gain.gain === null || gain.low === null || gain.high === null)
    return <td className={styles.soft}>{isBroken ? t`no gain to use` : t`too few measurements`}</td>;
  return (
    <td className={gain.low > 0 ? styles.good : gain.high < 0 ? styles.bad : ""}>
      {formatGain(gain.gain)} <span className={styles.soft}>({formatGainInterval(gain)})</span>
      <br />
      <span className={styles.soft}>{gain.value === null ? "" : formatMetric(gain.value, unit)}</span>
    </td>
  );
}

function changesText({ params }: Member, names: string[], standard: Configuration): string {
  return names.flatMap((name) => (params[name] === undefined || params[name] === standard[name] ? [] : [`${name} ${formatValue(params[name])}`])).join(", ");
}

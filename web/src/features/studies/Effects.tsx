import { plural, t } from "@lingui/core/macro";
import { Card } from "@/components/Card";
import compact from "@/components/CompactTable.module.css";
import { CopyButton } from "@/components/Button";
import type { Analysis } from "@/lib/api/client";
import { formatGain, formatGainInterval, formatValue } from "@/lib/format";
import { titled, type Units } from "@/lib/space";
import { effectsText } from "@/lib/verdicts";
import styles from "./Effects.module.css";

type Effects = NonNullable<NonNullable<Analysis["verdict"]>["effects"]>;
type Effect = Effects["parameters"][number];

/** Show which changes carry a proven gain, and offer the smallest configuration that keeps it. */
export function Effects({ effects, units }: { effects: Effects; units: Units }) {
  const { smallest, parameters } = effects;
  return (
    <Card
      title={t`Changes that matter`}
      flush
      actions={smallest === null ? undefined : <CopyButton label={t`Copy smallest configuration`} text={JSON.stringify(smallest.params, null, 2)} />}
    >
      <p className={styles.text}>
        <b>{effectsText(effects)}</b>
      </p>
      {parameters.length === 0 ? null : (
        <div className={compact.scroll}>
          <table className={`${compact.table} ${styles.table}`}>
            <thead>
              <tr>
                <th scope="col">{t`Parameter`}</th>
                <th scope="col">{t`Default`}</th>
                <th scope="col">{t`Found`}</th>
                <th scope="col">{t`Effect`}</th>
                <th scope="col">{t`Interval`}</th>
                <th scope="col">{t`Result`}</th>
                {smallest === null ? null : <th scope="col">{t`Smallest configuration`}</th>}
              </tr>
            </thead>
            <tbody>
              {[...parameters]
                .sort((one, other) => other.effect - one.effect)
                .map((one) => (
                  <tr key={one.name}>
                    <th scope="row">{titled(one.name, units[one.name])}</th>
                    <td>{formatValue(one.default ?? undefined)}</td>
                    <td>{formatValue(one.found)}</td>
                    <td>{formatGain(one.effect)}</td>
                    <td>{formatGainInterval(one)}</td>
                    <td className={one.matters ? (one.low > 0 ? styles.good : styles.bad) : styles.soft}>
                      {resultText(one)}
                      {one.together.length === 0 ? null : ` ${t`(together with ${one.together.join(", ")})`}`}
                    </td>
                    {smallest === null ? null : <td>{formatValue(smallest.params[one.name])}</td>}
                  </tr>
                ))}
            </tbody>
          </table>
        </div>
      )}
      <p className={styles.note}>
        {smallest === null
          ? null
          : t`The smallest configuration gains ${formatGain(smallest.gain)} (${formatGainInterval(smallest) ?? ""}). It keeps all other parameters at their defaults, and may lose at most ${formatGain(effects.tolerance)} of the gain.`}{" "}
        {t`Measured by ${plural(effects.trials, { one: "# further trial", other: "# further trials" })}. An effect is the gain from one change, on average over the other changes.`}
      </p>
    </Card>
  );
}

function resultText({ matters, low }: Effect): string {
  return matters ? (low > 0 ? t`matters` : t`harms`) : t`no measurable effect`;
}

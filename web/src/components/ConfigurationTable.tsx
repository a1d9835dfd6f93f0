import { t } from "@lingui/core/macro";
import type { Configuration } from "@/lib/api/client";
import { formatValue } from "@/lib/format";
import styles from "./ConfigurationTable.module.css";

interface Props {
  /** The parameters that have a row. */
  names: readonly string[];
  columns: readonly { title: string; values: Configuration }[];
  standard: Configuration | undefined;
}

/** Configurations side by side, the default as the last; what differs from that is marked. */
export function ConfigurationTable({ names, columns, standard }: Props) {
  return (
    <div className={styles.scroll}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">{t`Parameter`}</th>
            {columns.map(({ title }) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
            <th scope="col">{t`Default`}</th>
          </tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {columns.map(({ title, values }) => {
                const differs = standard !== undefined && values[name] !== standard[name];
                return (
                  <td key={title} className={differs ? styles.differs : undefined}>
                    {formatValue(values[name])}
                    {differs ? <span className="visually-hidden"> {t`(differs from the default)`}</span> : null}
                  </td>
                );
              })}
              <td className={styles.standard}>{formatValue(standard?.[name])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

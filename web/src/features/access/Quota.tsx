import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { Card } from "@/components/Card";
import { Loading, Problem } from "@/components/Message";
import { quotaQuery } from "./api";
import { LIMIT_NAMES, LIMITS } from "./limits";
import styles from "./access.module.css";

/** Show the tenant's limits and its usage. */
export function Quota() {
  const { data, error, refetch } = useQuery(quotaQuery);
  return (
    <Card title={t`Quota`}>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`quota`} /> : null
      ) : (
        <dl className={styles.quota}>
          {LIMIT_NAMES.map((key) => {
            const { used: label, format } = LIMITS[key];
            const name = i18n._(label);
            const used = data.used[key];
            const limit = data.limits[key];
            return (
              <div key={key}>
                <dt>{name}</dt>
                <dd>
                  <b>{format(used)}</b> <span className={styles.soft}>{limit === null ? t`no limit set` : t`of ${format(limit)}`}</span>
                  {limit === null ? null : <meter aria-label={name} min={0} max={Math.max(limit, 1)} high={0.9 * limit} value={Math.min(used, limit)} />}
                </dd>
              </div>
            );
          })}
        </dl>
      )}
    </Card>
  );
}

import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { Card } from "@/components/Card";
import { CheckField } from "@/components/Field";
import { Loading, Problem } from "@/components/Message";
import { approvalQuery, useUpdateApproval } from "./api";
import styles from "./matching.module.css";

/** Show whether records need the approval of an administrator, and let administrators change it. */
export function Approval({ mayChange }: { mayChange: boolean }) {
  const { data, error, refetch } = useQuery(approvalQuery);
  const update = useUpdateApproval();
  return (
    <Card title={t`Approval of records`}>
      {data === undefined ? (
        error === null ? <Loading what={t`settings`} /> : <Problem error={error} again={() => void refetch()} />
      ) : (
        <div className={styles.form}>
          <CheckField
            label={t`An administrator approves records for the jobs of other users`}
            hint={t`Until then a record is for jobs of its own user alone, who is the study's creator. A study that an administrator has created needs no approval. A change holds for records that are written or proven again.`}
            checked={data.required}
            disabled={!mayChange || update.isPending}
            onChange={({ target }) => update.mutate(target.checked)}
          />
          {update.error === null ? null : <Problem error={update.error} />}
        </div>
      )}
    </Card>
  );
}

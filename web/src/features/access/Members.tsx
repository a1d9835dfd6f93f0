import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Dialog, DialogActions } from "@/components/Dialog";
import { Empty, Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import { membersQuery, usePutOut } from "./api";

/** The tenant's members, as the identity provider told of them: it alone makes members and gives roles. */
export function Members({ mayPutOut }: { mayPutOut: boolean }) {
  const { data, error, refetch } = useQuery(membersQuery);
  return (
    <Card title={t`Members`} flush>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`members`} /> : null
      ) : data.members.length === 0 ? (
        <Empty title={t`Nobody has been seen yet`}>
          <p>{t`Members and their roles come from the identity provider’s groups. Each appears here after signing in once.`}</p>
        </Empty>
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">{t`Member`}</th>
              <th scope="col">{t`Role`}</th>
              <th scope="col">{t`As of`}</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {data.members.map(({ subject, name, role, as_of }) => (
              <tr key={subject}>
                <th scope="row">{name}</th>
                <td data-label={t`Role`}>{role}</td>
                <td data-label={t`As of`}>
                  <Ago at={as_of} />
                </td>
                <td className={table.number}>{mayPutOut ? <PutOut subject={subject} name={name} /> : null}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}

function PutOut({ subject, name }: { subject: string; name: string }) {
  const [open, setOpen] = useState(false);
  const out = usePutOut();
  return (
    <Dialog
      open={open}
      onOpenChange={setOpen}
      title={t`Put ${name} out?`}
      trigger={
        <Button small kind="danger" aria-label={t`Put ${name} out`}>
          {t`Put out …`}
        </Button>
      }
    >
      <p>
        {t`Sessions and API tokens from before now count no longer, within two seconds. Whoever may sign in at the identity provider may come again: take the person out of the tenant’s groups there first.`}
      </p>
      {out.error === null ? null : <Problem error={out.error} />}
      <DialogActions>
        <Button onClick={() => setOpen(false)}>{t`Cancel`}</Button>
        <Button kind="danger" disabled={out.isPending} onClick={() => out.mutate(subject, { onSuccess: () => setOpen(false) })}>
          {t`Put out`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

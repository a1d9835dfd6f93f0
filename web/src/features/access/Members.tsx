import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Conditions, type Filtered } from "@/components/Conditions";
import { Dialog, DialogActions } from "@/components/Dialog";
import { Empty, Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import type { Member } from "@/lib/api/client";
import { select, type Columns } from "@/lib/conditions";
import { membersQuery, useRevokeAccess } from "./api";

interface Props extends Filtered {
  mayRevoke: boolean;
}

const COLUMNS: Columns<Member> = {
  name: { text: ({ name }) => name },
  role: { text: ({ role }) => role },
};

/** Show the tenant's members. Only the identity provider adds members and assigns roles. */
export function Members({ mayRevoke, where, onWhere }: Props) {
  const { data, error, refetch } = useQuery(membersQuery);
  const { rows, wrong } = select(data?.members ?? [], where, COLUMNS);
  return (
    <Card title={t`Members`} flush>
      {data === undefined || data.members.length === 0 ? null : <Conditions where={where} columns={Object.keys(COLUMNS)} example="role = admin" wrong={wrong} matches={rows.length} onChange={onWhere} />}
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`members`} /> : null
      ) : data.members.length === 0 ? (
        <Empty title={t`No members yet`}>
          <p>{t`Members and their roles come from the groups of the identity provider. A member appears here after the first sign-in.`}</p>
        </Empty>
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">{t`Member`}</th>
              <th scope="col">{t`Role`}</th>
              <th scope="col">{t`Last confirmed`}</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {rows.map(({ subject, name, role, as_of }) => (
              <tr key={subject}>
                <th scope="row">{name}</th>
                <td data-label={t`Role`}>{role}</td>
                <td data-label={t`Last confirmed`}>
                  <Ago at={as_of} />
                </td>
                <td className={table.number}>{mayRevoke ? <RevokeAccess subject={subject} name={name} /> : null}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}

function RevokeAccess({ subject, name }: { subject: string; name: string }) {
  const [open, setOpen] = useState(false);
  const revoke = useRevokeAccess();
  return (
    <Dialog
      open={open}
      onOpenChange={setOpen}
      title={t`Revoke the access of ${name}?`}
      trigger={
        <Button small kind="danger" aria-label={t`Revoke the access of ${name}`}>
          {t`Revoke access …`}
        </Button>
      }
    >
      <p>
        {t`All present sessions and API tokens of this person become invalid within two seconds. A person whom the identity provider still allows can sign in again, so first remove the person from the tenant’s groups there.`}
      </p>
      {revoke.error === null ? null : <Problem error={revoke.error} />}
      <DialogActions>
        <Button onClick={() => setOpen(false)}>{t`Cancel`}</Button>
        <Button kind="danger" disabled={revoke.isPending} onClick={() => revoke.mutate(subject, { onSuccess: () => setOpen(false) })}>
          {t`Revoke access`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

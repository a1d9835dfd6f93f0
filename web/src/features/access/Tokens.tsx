import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Conditions, type Filtered } from "@/components/Conditions";
import { Dialog, DialogActions } from "@/components/Dialog";
import { CheckField } from "@/components/Field";
import { Empty, Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import type { ApiToken } from "@/lib/api/client";
import { select, type Columns } from "@/lib/conditions";
import { formatTime } from "@/lib/format";
import { CreateToken } from "./CreateToken";
import { tokensQuery, useRevokeToken } from "./api";

interface Props extends Filtered {
  /** Whether the user may see the tokens of all members. */
  mayAll: boolean;
  /** The scopes that a new token can have. */
  scopes: readonly string[];
}

const COLUMNS: Columns<ApiToken> = {
  name: { text: ({ name }) => name },
  permissions: { text: ({ scopes }) => scopes.join(" ") },
  study: { text: ({ study }) => study },
  owner: { text: ({ owner }) => owner },
  role: { text: ({ role }) => role },
};

/** Show the API tokens, with which scripts sign in. */
export function Tokens({ mayAll, scopes, where, onWhere }: Props) {
  const [everyone, setEveryone] = useState(false);
  const { data, error, refetch } = useQuery(tokensQuery(everyone));
  const { rows, wrong } = select(data?.tokens ?? [], where, COLUMNS);
  return (
    <Card title={t`API tokens`} flush actions={<CreateToken scopes={scopes} />}>
      {mayAll ? (
        <div style={{ padding: "0.7rem 1rem" }}>
          <CheckField label={t`Show tokens of all members`} checked={everyone} onChange={(event) => setEveryone(event.target.checked)} />
        </div>
      ) : null}
      {data === undefined || data.tokens.length === 0 ? null : <Conditions where={where} columns={Object.keys(COLUMNS)} example="permissions ~ tune" wrong={wrong} matches={rows.length} onChange={onWhere} />}
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`tokens`} /> : null
      ) : data.tokens.length === 0 ? (
        <Empty title={t`No tokens`}>
          <p>{t`Scripts sign in with a token. A token can have fewer permissions than you, and it expires.`}</p>
        </Empty>
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">{t`Token`}</th>
              <th scope="col">{t`Permissions`}</th>
              {everyone ? <th scope="col">{t`Owner`}</th> : null}
              <th scope="col">{t`Last used`}</th>
              <th scope="col">{t`Expires`}</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {rows.map((token) => (
              <tr key={token.id}>
                <th scope="row">
                  <span>
                    {token.name}
                    <code className={table.about}>{token.hint}…</code>
                  </span>
                </th>
                <td data-label={t`Permissions`}>
                  {token.scopes.join(", ")}
                  {token.study === null ? "" : t`, only in study ${token.study}`}
                </td>
                {everyone ? (
                  <td data-label={t`Owner`}>
                    {token.owner} ({token.role})
                  </td>
                ) : null}
                <td data-label={t`Last used`}>{token.last_used_at === null ? t`never` : <Ago at={token.last_used_at} />}</td>
                <td data-label={t`Expires`}>
                  {formatTime(new Date(token.expires_at))}
                  {token.sign_in_by !== null && token.sign_in_by < token.expires_at ? (
                    <div>{t`Suspended from ${formatTime(new Date(token.sign_in_by))} unless ${token.owner} signs in`}</div>
                  ) : null}
                </td>
                <td className={table.number}>
                  <Revoke token={token} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  );
}

function Revoke({ token }: { token: ApiToken }) {
  const [open, setOpen] = useState(false);
  const revoke = useRevokeToken();
  return (
    <Dialog
      open={open}
      onOpenChange={setOpen}
      title={t`Revoke ${token.name}?`}
      trigger={
        <Button small kind="danger" aria-label={t`Revoke ${token.name}`}>
          {t`Revoke …`}
        </Button>
      }
    >
      <p>{t`Within two seconds, the service refuses scripts that use this token. A revoked token cannot be restored.`}</p>
      {revoke.error === null ? null : <Problem error={revoke.error} />}
      <DialogActions>
        <Button onClick={() => setOpen(false)}>{t`Cancel`}</Button>
        <Button kind="danger" disabled={revoke.isPending} onClick={() => revoke.mutate(token.id)}>
          {t`Revoke`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}

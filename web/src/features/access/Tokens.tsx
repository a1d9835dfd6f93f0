import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Dialog, DialogActions } from "@/components/Dialog";
import { CheckField } from "@/components/Field";
import { Empty, Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import type { ApiToken } from "@/lib/api/client";
import { formatTime } from "@/lib/format";
import { CreateToken } from "./CreateToken";
import { tokensQuery, useRevokeToken } from "./api";

interface Props {
  /** Whether who looks may see those of everybody. */
  mayAll: boolean;
  /** The scopes that a new token can have. */
  scopes: readonly string[];
}

/** API tokens: what scripts sign in with. */
export function Tokens({ mayAll, scopes }: Props) {
  const [everyone, setEveryone] = useState(false);
  const { data, error, refetch } = useQuery(tokensQuery(everyone));
  return (
    <Card title="API tokens" flush actions={<CreateToken scopes={scopes} />}>
      {mayAll ? (
        <div style={{ padding: "0.7rem 1rem" }}>
          <CheckField label="Those of everybody" checked={everyone} onChange={(event) => setEveryone(event.target.checked)} />
        </div>
      ) : null}
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what="tokens" /> : null
      ) : data.tokens.length === 0 ? (
        <Empty title="No tokens">
          <p>A script signs in with a token of its own, which may do less than you and ends by itself.</p>
        </Empty>
      ) : (
        <table className={table.table}>
          <thead>
            <tr>
              <th scope="col">Token</th>
              <th scope="col">May</th>
              {everyone ? <th scope="col">Owner</th> : null}
              <th scope="col">Last used</th>
              <th scope="col">Expires</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {data.tokens.map((token) => (
              <tr key={token.id}>
                <th scope="row">
                  <span>
                    {token.name}
                    <code className={table.about}>{token.hint}…</code>
                  </span>
                </th>
                <td data-label="May">
                  {token.scopes.join(", ")}
                  {token.study === null ? "" : `, in ${token.study} alone`}
                </td>
                {everyone ? (
                  <td data-label="Owner">
                    {token.owner} ({token.role})
                  </td>
                ) : null}
                <td data-label="Last used">{token.last_used_at === null ? "never" : <Ago at={token.last_used_at} />}</td>
                <td data-label="Expires">{formatTime(new Date(token.expires_at))}</td>
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
      title={`Revoke ${token.name}?`}
      trigger={
        <Button small kind="danger" aria-label={`Revoke ${token.name}`}>
          Revoke …
        </Button>
      }
    >
      <p>Scripts that use it are refused within two seconds. It cannot be brought back.</p>
      {revoke.error === null ? null : <Problem error={revoke.error} />}
      <DialogActions>
        <Button onClick={() => setOpen(false)}>Cancel</Button>
        <Button kind="danger" disabled={revoke.isPending} onClick={() => revoke.mutate(token.id)}>
          Revoke
        </Button>
      </DialogActions>
    </Dialog>
  );
}

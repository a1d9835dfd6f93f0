import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button, CopyButton } from "@/components/Button";
import { Card } from "@/components/Card";
import type { Filtered } from "@/components/Conditions";
import { Dialog, DialogActions } from "@/components/Dialog";
import { CheckField, SelectField, TextField } from "@/components/Field";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import type { Channel } from "@/lib/api/client";
import { formatList } from "@/lib/format";
import { channelsQuery, useCreateChannel, useDeleteChannel, useTestChannel } from "./api";
import { Deliveries } from "./Deliveries";
import styles from "./notifications.module.css";
import { KINDS, kindText } from "./titles";

/** Show the webhooks and mail addresses that receive notifications, and the log of their deliveries. */
export function Channels({ where, onWhere }: Filtered) {
  const { data, error, refetch } = useQuery(channelsQuery);
  const [logged, setLogged] = useState<string | null>(null);
  const channel = data?.channels.find(({ id }) => id === logged);
  return (
    <>
      <Card title={t`Channels for notifications`} flush actions={data === undefined ? null : <CreateChannel mail={data.mail} />}>
        {error === null ? null : <Problem error={error} again={() => void refetch()} />}
        {data === undefined ? (
          error === null ? <Loading what={t`channels`} /> : null
        ) : data.channels.length === 0 ? (
          <Empty title={t`No channels`}>
            <p>{t`A channel sends notifications to a chat, a program or a mail address when a study ends, fails or proves a gain.`}</p>
          </Empty>
        ) : (
          <table className={table.table}>
            <thead>
              <tr>
                <th scope="col">{t`Channel`}</th>
                <th scope="col">{t`Notifications`}</th>
                <th scope="col">{t`Created`}</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {data.channels.map((one) => (
                <tr key={one.id}>
                  <th scope="row" className={styles.target}>
                    <span>
                      {one.target}
                      <span className={table.about}>{one.medium === "mail" ? t`Mail` : t`Webhook`}</span>
                    </span>
                  </th>
                  <td data-label={t`Notifications`}>{formatList(one.kinds.map(kindText), "conjunction")}</td>
                  <td data-label={t`Created`}>
                    <Ago at={one.created_at} />
                  </td>
                  <td className={table.number}>
                    <Actions channel={one} onLog={() => setLogged(one.id)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Card>
      {channel === undefined ? null : <Deliveries key={channel.id} channel={channel} where={where} onWhere={onWhere} onClose={() => setLogged(null)} />}
    </>
  );
}

function Actions({ channel, onLog }: { channel: Channel; onLog: () => void }) {
  const [open, setOpen] = useState(false);
  const test = useTestChannel();
  const remove = useDeleteChannel();
  return (
    <span className={styles.buttons}>
      <Button small aria-label={t`Deliveries to ${channel.target}`} onClick={onLog}>
        {t`Deliveries`}
      </Button>
      <Button small aria-label={t`Send a test to ${channel.target}`} disabled={test.isPending} onClick={() => test.mutate(channel.id, { onSuccess: onLog })}>
        {t`Send a test`}
      </Button>
      <Dialog
        open={open}
        onOpenChange={setOpen}
        title={t`Delete the channel to ${channel.target}?`}
        trigger={
          <Button small kind="danger" aria-label={t`Delete ${channel.target}`}>
            {t`Delete …`}
          </Button>
        }
      >
        <p>{t`The log of its deliveries is deleted too.`}</p>
        {remove.error === null ? null : <Problem error={remove.error} />}
        <DialogActions>
          <Button onClick={() => setOpen(false)}>{t`Cancel`}</Button>
          <Button kind="danger" disabled={remove.isPending} onClick={() => remove.mutate(channel.id)}>
            {t`Delete`}
          </Button>
        </DialogActions>
      </Dialog>
      {test.error === null ? null : <Problem error={test.error} />}
    </span>
  );
}

function CreateChannel({ mail }: { mail: boolean }) {
  const [open, setOpen] = useState(false);
  return (
    <Dialog open={open} onOpenChange={setOpen} title={t`New channel`} trigger={<Button small>{t`New channel …`}</Button>}>
      <Form mail={mail} onDone={() => setOpen(false)} />
    </Dialog>
  );
}

function Form({ mail, onDone }: { mail: boolean; onDone: () => void }) {
  const [medium, setMedium] = useState("webhook");
  const [target, setTarget] = useState("");
  const [kinds, setKinds] = useState<ReadonlySet<string>>(new Set(KINDS.map(([kind]) => kind)));
  const create = useCreateChannel();
  if (create.data?.secret) {
    return (
      <>
        <p>{t`The service signs each request with this secret, as the specification Standard Webhooks describes. It is not shown again.`}</p>
        <Code>{create.data.secret}</Code>
        <DialogActions>
          <CopyButton label={t`Copy the secret`} text={create.data.secret} />
          <Button kind="primary" onClick={onDone}>{t`Done`}</Button>
        </DialogActions>
      </>
    );
  }
  return (
    <form
      className={styles.fields}
      onSubmit={(event) => {
        event.preventDefault();
        create.mutate({ medium, target: target.trim(), kinds: [...kinds] }, { onSuccess: ({ secret }) => (secret === "" ? onDone() : undefined) });
      }}
    >
      <SelectField
        label={t`Medium`}
        value={medium}
        hint={mail ? undefined : t`The operator has not set a mail server, so the service cannot send mail.`}
        onChange={(event) => setMedium(event.target.value)}
      >
        <option value="webhook">{t`Webhook`}</option>
        <option value="mail" disabled={!mail}>{t`Mail`}</option>
      </SelectField>
      <TextField
        label={medium === "mail" ? t`Mail address` : t`Address of the webhook`}
        type={medium === "mail" ? "email" : "url"}
        required
        placeholder={medium === "mail" ? "team@example.org" : "https://chat.example.org/hooks/1"}
        value={target}
        error={create.error?.message}
        onChange={(event) => setTarget(event.target.value)}
      />
      <fieldset className={styles.kinds}>
        <legend>{t`Send a notification when`}</legend>
        {KINDS.map(([kind, text]) => (
          <CheckField
            key={kind}
            label={i18n._(text)}
            checked={kinds.has(kind)}
            onChange={(event) => setKinds(new Set(event.target.checked ? [...kinds, kind] : [...kinds].filter((one) => one !== kind)))}
          />
        ))}
      </fieldset>
      <DialogActions>
        <Button onClick={onDone}>{t`Cancel`}</Button>
        <Button kind="primary" type="submit" disabled={create.isPending || kinds.size === 0}>
          {t`Create the channel`}
        </Button>
      </DialogActions>
    </form>
  );
}

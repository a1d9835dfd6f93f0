import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useId, useRef, useState } from "react";
import { Button } from "@/components/Button";
import { Code } from "@/components/Message";
import { ApiError, type Provider, type Session } from "@/lib/api/client";
import { sessionQuery } from "@/lib/session";
import { quoted } from "@/lib/words";
import { signIn, signInQuery } from "./api";
import { comeBack, enter, leaveFor } from "./provider";
import styles from "./SignIn.module.css";

const WHY: Record<string, MessageDescriptor> = {
  invalid_login_code: msg`This login link has been used or has expired. Sign in with the token, or create a new link.`,
};

interface Props {
  /** The error code of a login link. */
  error?: string | undefined;
  /** Whether the identity provider has just sent the browser back. */
  back: boolean;
  /** Where to go afterwards. */
  next: string;
  onSignedIn: (next: string) => void;
}

/** The sign-in page: by the identity provider, if the service has one, or with the administrator's token. */
export function SignIn({ error, back, next, onSignedIn }: Props) {
  const options = useQuery(signInQuery);
  const queries = useQueryClient();
  const done = (session: Session, to: string) => {
    queries.setQueryData(sessionQuery.queryKey, session);
    onSignedIn(to);
  };
  const why = error === undefined || back ? "" : i18n._(WHY[error] ?? msg`Sign in to continue.`);
  if (options.isPending) return <main className={styles.page} aria-busy="true" />;
  const provider = options.data?.provider;
  return (
    <main className={styles.page}>
      <div className={styles.card}>
        <img src="/favicon.svg" alt="" width="44" height="44" />
        <h1>{t`Sign in to Trimtab`}</h1>
        {provider ? (
          <>
            <ByProvider provider={provider} back={back} next={next} why={why} onSignedIn={done} />
            {options.data?.token ? (
              <details className={styles.help}>
                <summary>{t`Use the administrator token`}</summary>
                <ByToken why="" onSignedIn={(session) => done(session, next)} />
              </details>
            ) : null}
          </>
        ) : (
          <>
            <ByToken why={why} onSignedIn={(session) => done(session, next)} />
            <details className={styles.help}>
              <summary>{t`Where is the token?`}</summary>
              <p>{t`The token is in the data folder of the service, in a file that only the service's user can read:`}</p>
              <Code>{showToken(options.data?.token_file ?? "")}</Code>
              <p>{t`Or create a one-time login link:`}</p>
              <Code>{loginLink(options.data?.token_file ?? "")}</Code>
            </details>
          </>
        )}
      </div>
    </main>
  );
}

/* eslint-disable lingui/no-unlocalized-strings -- commands */
/** Return the command that shows the token; without its path, for the usual data folder. */
function showToken(tokenFile: string): string {
  return `cat ${tokenFile === "" ? "~/.local/share/trimtab/admin-token" : quoted(tokenFile)}`;
}

/** Return the command that makes a login link, for the data folder with this token. */
function loginLink(tokenFile: string): string {
  const folder = tokenFile.replace(/\/?[^/]*$/, "");
  return ["trimtab-service login-link", ...(folder === "" ? [] : ["--data-dir", quoted(folder)])].join(" ");
}
/* eslint-enable lingui/no-unlocalized-strings */

interface ByProviderProps {
  provider: Provider;
  back: boolean;
  next: string;
  why: string;
  onSignedIn: (session: Session, next: string) => void;
}

function ByProvider({ provider, back, next, why, onSignedIn }: ByProviderProps) {
  const [afterwards, setAfterwards] = useState(next);
  const leave = useMutation({ mutationFn: () => leaveFor(provider, next) });
  const arrive = useMutation({
    mutationFn: async () => {
      const to = await comeBack(provider);
      setAfterwards(to);
      return { session: await enter(provider), to };
    },
    onSuccess: ({ session, to }) => onSignedIn(session, to),
  });
  const choose = useMutation({
    mutationFn: (tenant: string) => enter(provider, tenant),
    onSuccess: (session) => onSignedIn(session, afterwards),
  });
  const begun = useRef(false);
  const come = arrive.mutate;
  useEffect(() => {
    // Only once: the code in the address is valid for one exchange.
    if (!back || begun.current) return;
    begun.current = true;
    come();
  }, [back, come]);

  const tenants = tenantsToChoose(arrive.error);
  const fault = choose.error ?? (tenants.length > 0 ? null : arrive.error) ?? leave.error;
  if (tenants.length > 0) {
    return (
      <>
        <p id="tenants">{t`You are a member of several tenants. Choose one:`}</p>
        <div className={styles.choice} role="group" aria-labelledby="tenants">
          {tenants.map((tenant) => (
            <Button key={tenant} disabled={choose.isPending} onClick={() => choose.mutate(tenant)}>
              {tenant}
            </Button>
          ))}
        </div>
        <p className={styles.fault} role="alert">
          {fault?.message}
        </p>
      </>
    );
  }
  const busy = arrive.isPending || leave.isPending || (back && arrive.isIdle);
  return (
    <>
      <Button kind="primary" disabled={busy} onClick={() => leave.mutate()}>
        {busy ? t`Signing in …` : t`Sign in with your account`}
      </Button>
      <p className={styles.fault} role="alert">
        {fault?.message ?? why}
      </p>
    </>
  );
}

function tenantsToChoose(error: Error | null): string[] {
  if (!(error instanceof ApiError) || error.code !== "tenant_required") return [];
  const named = error.data["tenants"];
  return Array.isArray(named) ? named.filter((name) => typeof name === "string") : [];
}

function ByToken({ why, onSignedIn }: { why: string; onSignedIn: (session: Session) => void }) {
  const id = useId();
  const [token, setToken] = useState("");
  const attempt = useMutation({ mutationFn: signIn, onSuccess: onSignedIn });
  const fault = attempt.error?.message ?? why;
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        if (token.trim() !== "") attempt.mutate(token.trim());
      }}
    >
      <div className={styles.field}>
        <label htmlFor={id}>{t`Administrator token`}</label>
        <input
          id={id}
          type="password"
          autoComplete="current-password"
          required
          value={token}
          aria-invalid={fault !== ""}
          aria-describedby={`${id}-fault`}
          onChange={(event) => setToken(event.target.value)}
        />
        <p id={`${id}-fault`} className={styles.fault} role="alert">
          {fault}
        </p>
      </div>
      <Button kind="primary" type="submit" disabled={attempt.isPending}>
        {attempt.isPending ? t`Signing in …` : t`Sign in`}
      </Button>
    </form>
  );
}

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Button } from "@/components/Button";
import { Code } from "@/components/Message";
import { sessionQuery, signIn } from "./api";
import styles from "./SignIn.module.css";

const WHY: Record<string, string> = {
  invalid_login_code: "This login link was used before or is too old. Sign in with the token, or ask for a new link.",
};

/** Sign in with the administrator's token. `error` is the code of what went wrong with a login link. */
export function SignIn({ error, onSignedIn }: { error?: string | undefined; onSignedIn: () => void }) {
  const id = useId();
  const [token, setToken] = useState("");
  const queries = useQueryClient();
  const attempt = useMutation({
    mutationFn: signIn,
    onSuccess: (session) => {
      queries.setQueryData(sessionQuery.queryKey, session);
      onSignedIn();
    },
  });
  const fault = attempt.error?.message ?? (error === undefined ? "" : (WHY[error] ?? "Sign in to go on."));

  return (
    <main className={styles.page}>
      <form
        className={styles.card}
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim() !== "") attempt.mutate(token.trim());
        }}
      >
        <img src="/favicon.svg" alt="" width="44" height="44" />
        <h1>Sign in to Trimtab</h1>
        <div className={styles.field}>
          <label htmlFor={id}>Administrator token</label>
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
          {attempt.isPending ? "Signing in …" : "Sign in"}
        </Button>
        <details className={styles.help}>
          <summary>Where is the token?</summary>
          <p>In the data folder of the service, in a file that only its user can read:</p>
          <Code>{"cat ~/.local/share/trimtab/admin-token"}</Code>
          <p>Or let the service make a one-time link:</p>
          <Code>{"trimtab-service login-link"}</Code>
        </details>
      </form>
    </main>
  );
}

import { useQuery } from "@tanstack/react-query";
import { Card } from "@/components/Card";
import { Tokens } from "@/features/access/Tokens";
import { sessionQuery, useMay } from "@/lib/session";
import { useTitle } from "@/lib/title";
import styles from "./pages.module.css";

const SCOPES = ["read", "tune", "agent", "admin"];

export function AdministrationPage() {
  useTitle("Administration");
  const may = useMay();
  const { data: session } = useQuery(sessionQuery);
  const scopes = SCOPES.filter((scope) => {
    if (scope === "tune") return may("trial.suggest");
    return scope === "agent" ? may("agent.run") : (session?.scopes.includes(scope) ?? false);
  });
  return (
    <>
      <div className={styles.head}>
        <h1>Administration</h1>
      </div>
      {session === undefined ? null : (
        <Card title="You">
          <dl className={styles.facts}>
            <div>
              <dt>Name</dt>
              <dd>{session.actor}</dd>
            </div>
            <div>
              <dt>Tenant</dt>
              <dd>{session.tenant || "none"}</dd>
            </div>
            <div>
              <dt>Role</dt>
              <dd>{session.role}</dd>
            </div>
          </dl>
        </Card>
      )}
      {may("token.own") ? <Tokens mayAll={may("token.all")} scopes={scopes} /> : null}
    </>
  );
}

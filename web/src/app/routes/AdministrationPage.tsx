import { useQuery } from "@tanstack/react-query";
import { Card } from "@/components/Card";
import { Segments } from "@/components/Segments";
import { Audit } from "@/features/access/Audit";
import { Members } from "@/features/access/Members";
import { Quota } from "@/features/access/Quota";
import { Tenants } from "@/features/access/Tenants";
import { Tokens } from "@/features/access/Tokens";
import { sessionQuery, useMay } from "@/lib/session";
import { useTitle } from "@/lib/title";
import { administrationRoute, type Section } from "../router";
import styles from "./pages.module.css";

const SECTIONS: readonly { value: Section; text: string; needs: string }[] = [
  { value: "tokens", text: "API tokens", needs: "token.own" },
  { value: "members", text: "Members", needs: "member.read" },
  { value: "quota", text: "Quota", needs: "quota.read" },
  { value: "audit", text: "Audit trail", needs: "audit.read" },
  { value: "tenants", text: "Tenants", needs: "tenant.manage" },
];
const SCOPES = ["read", "tune", "agent", "admin"];

export function AdministrationPage() {
  useTitle("Administration");
  const may = useMay();
  const { section = "tokens" } = administrationRoute.useSearch();
  const navigate = administrationRoute.useNavigate();
  const { data: session } = useQuery(sessionQuery);
  const scopes = SCOPES.filter((scope) => {
    if (scope === "tune") return may("trial.suggest");
    return scope === "agent" ? may("agent.run") : (session?.scopes.includes(scope) ?? false);
  });
  const sections = SECTIONS.filter(({ needs }) => may(needs));
  const shown = sections.some(({ value }) => value === section) ? section : "tokens";
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
      {sections.length < 2 ? null : <Segments label="Section" value={shown} onChange={(next) => void navigate({ search: { section: next }, replace: true })} options={sections} />}
      {shown === "members" ? <Members mayPutOut={may("access.revoke")} /> : null}
      {shown === "quota" ? <Quota /> : null}
      {shown === "audit" ? <Audit /> : null}
      {shown === "tenants" ? <Tenants /> : null}
      {shown === "tokens" && may("token.own") ? <Tokens mayAll={may("token.all")} scopes={scopes} /> : null}
    </>
  );
}

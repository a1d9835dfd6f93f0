import { getRouteApi } from "@tanstack/react-router";
import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { Card } from "@/components/Card";
import { SelectField } from "@/components/Field";
import { Segments } from "@/components/Select";
import { Audit } from "@/features/access/Audit";
import { Members } from "@/features/access/Members";
import { Queue } from "@/features/access/Queue";
import { Quota } from "@/features/access/TenantLimits";
import { Tenants } from "@/features/access/Tenants";
import { Tokens } from "@/features/access/Tokens";
import { Channels } from "@/features/notifications/Channels";
import { sessionQuery, useMay } from "@/lib/session";
import { chooseLanguage, chosenLanguage, LANGUAGES } from "@/lib/texts";
import { useTitle } from "@/lib/browser";
import type { Section } from "../addresses";
import styles from "./pages.module.css";

const route = getRouteApi("/signed-in/administration");

const SECTIONS: readonly { value: Section; text: MessageDescriptor; needs: string }[] = [
  { value: "tokens", text: msg`API tokens`, needs: "token.own" },
  { value: "members", text: msg`Members`, needs: "member.read" },
  { value: "quota", text: msg`Quota`, needs: "quota.read" },
  { value: "channels", text: msg`Notifications`, needs: "notice.configure" },
  { value: "audit", text: msg`Audit trail`, needs: "audit.read" },
  { value: "tenants", text: msg`Tenants`, needs: "tenant.manage" },
  { value: "queue", text: msg`Queue`, needs: "tenant.manage" },
];
// eslint-disable-next-line lingui/no-unlocalized-strings -- the service's words
const SCOPES = ["read", "tune", "agent", "admin"];

export function AdministrationPage() {
  useTitle(t`Administration`);
  const may = useMay();
  const { section = "tokens", ...filter } = route.useSearch();
  const navigate = route.useNavigate();
  const { data: session } = useQuery(sessionQuery);
  const scopes = SCOPES.filter((scope) => {
    if (scope === "tune") return may("trial.suggest");
    return scope === "agent" ? may("agent.run") : (session?.scopes.includes(scope) ?? false);
  });
  const sections = SECTIONS.filter(({ needs }) => may(needs)).map(({ value, text }) => ({ value, text: i18n._(text) }));
  const where = { where: filter.where ?? [], onWhere: (next: string[] | undefined) => void navigate({ search: (before) => ({ ...before, where: next }), replace: true }) };
  const shown: Section = sections.some(({ value }) => value === section) ? section : "tokens";
  return (
    <>
      <div className={styles.head}>
        <h1>{t`Administration`}</h1>
      </div>
      {session === undefined ? null : (
        <Card title={t`Your account`}>
          <dl className={styles.facts}>
            <div>
              <dt>{t`Name`}</dt>
              <dd>{session.actor}</dd>
            </div>
            <div>
              <dt>{t`Tenant`}</dt>
              <dd>{session.tenant || t`none`}</dd>
            </div>
            <div>
              <dt>{t`Role`}</dt>
              <dd>{session.role}</dd>
            </div>
            <div>
              <dt>{t`Language`}</dt>
              <dd>
                <SelectField bare label={t`Language`} value={chosenLanguage()} onChange={(event) => chooseLanguage(event.target.value)}>
                  <option value="">{t`as in the browser`}</option>
                  {Object.entries(LANGUAGES).map(([tag, name]) => (
                    <option key={tag} value={tag} lang={tag}>
                      {name}
                    </option>
                  ))}
                </SelectField>
              </dd>
            </div>
          </dl>
        </Card>
      )}
      {sections.length < 2 ? null : <Segments label={t`Section`} value={shown} onChange={(next) => void navigate({ search: { section: next }, replace: true })} options={sections} />}
      {shown === "members" ? <Members {...where} mayRevoke={may("access.revoke")} /> : null}
      {shown === "quota" ? <Quota /> : null}
      {shown === "channels" ? <Channels {...where} /> : null}
      {shown === "audit" ? <Audit filter={filter} onFilter={(changes) => void navigate({ search: (before) => ({ ...before, ...changes }), replace: true })} /> : null}
      {shown === "tenants" ? <Tenants {...where} /> : null}
      {shown === "queue" ? <Queue {...where} /> : null}
      {shown === "tokens" && may("token.own") ? <Tokens {...where} mayAll={may("token.all")} scopes={scopes} /> : null}
    </>
  );
}

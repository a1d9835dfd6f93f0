import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { Conditions } from "@/components/Conditions";
import { TextField } from "@/components/Field";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { componentsQuery } from "@/features/components/api";
import { ComponentTable } from "@/features/components/ComponentTable";
import type { Component } from "@/lib/api/client";
import { select, type Columns } from "@/lib/conditions";
import { contains } from "@/lib/words";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/browser";
import styles from "./pages.module.css";

const route = getRouteApi("/signed-in/components");

const applicationsOf = ({ versions }: Component) => versions.flatMap(({ applications }) => applications).join(" ");
const agentsOf = ({ versions }: Component) => versions.flatMap(({ agents }) => agents);

const COLUMNS: Columns<Component> = {
  name: { text: ({ name }) => name },
  description: { text: ({ versions }) => versions[0]?.description ?? null },
  applications: { text: applicationsOf },
  agents: { text: (one) => agentsOf(one).map(({ name }) => name).join(" ") },
  online: { number: (one) => agentsOf(one).filter(({ online }) => online).length },
  versions: { number: ({ versions }) => versions.length },
  studies: { number: ({ studies }) => studies },
};

export function ComponentsPage() {
  useTitle(t`Components`);
  const may = useMay();
  const { data, error, refetch } = useQuery(componentsQuery);
  const { q = "", where = [] } = route.useSearch();
  const navigate = route.useNavigate();
  const { rows: shown, wrong } = select(
    data?.components.filter((one) => contains(q, [one.name, applicationsOf(one), ...one.versions.map(({ description }) => description), ...agentsOf(one).map(({ name }) => name)])) ?? [],
    where,
    COLUMNS,
  );
  return (
    <>
      <div className={styles.head}>
        <h1>{t`Components`}</h1>
        <div className={styles.buttons}>
          <Link to="/gallery" className={styles.secondary}>
            {t`What do you run?`}
          </Link>
          {may("component.write") ? (
            <Link to="/write-component" className={styles.primary}>
              {t`Write a component`}
            </Link>
          ) : null}
        </div>
      </div>
      {data === undefined || data.components.length === 0 ? null : (
        <div className={styles.filters}>
          <TextField
            bare
            label={t`Search components`}
            type="search"
            placeholder={t`Name, application, agent …`}
            value={q}
            onChange={(event) => void navigate({ search: (before) => ({ ...before, q: event.target.value || undefined }), replace: true })}
          />
          <Conditions bare where={where} columns={Object.keys(COLUMNS)} example="studies > 0" wrong={wrong} matches={shown.length} onChange={(next) => void navigate({ search: (before) => ({ ...before, where: next }), replace: true })} />
        </div>
      )}
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`components`} /> : null
      ) : (
        <div className={styles.panel}>
          {shown.length > 0 ? (
            <ComponentTable
              components={shown}
              link={(name) => (
                <Link to="/components/$name" params={{ name }}>
                  {name}
                </Link>
              )}
            />
          ) : data.components.length > 0 ? (
            <Empty title={t`No matching components`} />
          ) : (
            <Empty title={t`No components yet`}>
              <p>
                <Trans>
                  A component describes what is tuned: its parameters, how their values reach the system, and how its metrics are read. It is a file on the machine of an{" "}
                  <Link to="/agents">agent</Link>, and the agent offers it here. You can also write it here and install it later. Test it on that machine first:
                </Trans>
              </p>
              <Code>{"trimtab-agent check ./components\ntrimtab-agent try NAME --components ./components"}</Code>
            </Empty>
          )}
        </div>
      )}
    </>
  );
}

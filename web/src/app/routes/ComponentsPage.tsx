import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { TextField } from "@/components/Field";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { componentsQuery } from "@/features/components/api";
import { ComponentTable } from "@/features/components/ComponentTable";
import { contains } from "@/lib/contains";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/title";
import styles from "./pages.module.css";

const route = getRouteApi("/signed-in/components");

export function ComponentsPage() {
  useTitle(t`Components`);
  const may = useMay();
  const { data, error, refetch } = useQuery(componentsQuery);
  const { q = "" } = route.useSearch();
  const navigate = route.useNavigate();
  const shown = data?.components.filter((one) =>
    contains(q, [one.name, ...one.versions.flatMap(({ description, applications, agents }) => [description, ...applications, ...agents.map(({ name }) => name)])]),
  );
  return (
    <>
      <div className={styles.head}>
        <h1>{t`Components`}</h1>
        {may("component.write") ? (
          <Link to="/write-component" className={styles.primary}>
            {t`Write a component`}
          </Link>
        ) : null}
      </div>
      {data === undefined || data.components.length === 0 ? null : (
        <div className={styles.filters}>
          <TextField
            bare
            label={t`Search components`}
            type="search"
            placeholder={t`Name, application, agent …`}
            value={q}
            onChange={(event) => void navigate({ search: { q: event.target.value || undefined }, replace: true })}
          />
        </div>
      )}
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what={t`components`} /> : null
      ) : (
        <div className={styles.panel}>
          {shown !== undefined && shown.length > 0 ? (
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

import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { Card } from "@/components/Card";
import { SelectField } from "@/components/Field";
import { Empty, Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import { componentQuery } from "@/features/components/api";
import { BestSettings } from "@/features/components/BestSettings";
import { domainOf } from "@/features/components/domain";
import { Files } from "@/features/components/Files";
import { ApiError, type ComponentDetail, type Scalar } from "@/lib/api/client";
import { formatList, formatValue } from "@/lib/format";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/browser";
import styles from "./pages.module.css";

const route = getRouteApi("/signed-in/components/$name");

export function ComponentPage() {
  const { name } = route.useParams();
  useTitle(name);
  const may = useMay();
  const { data, error, refetch } = useQuery(componentQuery(name));
  if (error instanceof ApiError && error.status === 404) {
    return (
      <Empty title={t`There is no component ${name}`}>
        <Link to="/components">{t`Go to components`}</Link>
      </Empty>
    );
  }
  if (data === undefined) return error === null ? <Loading what={name} /> : <Problem error={error} again={() => void refetch()} />;
  const newest = data.versions[0];
  return (
    <>
      <div className={styles.head}>
        <div>
          <h1>{name}</h1>
          <p className={styles.soft}>{newest?.description}</p>
        </div>
        <div className={styles.title}>
          <Link to="/studies" search={{ component: name }}>
            {plural(data.studies, { one: "# study", other: "# studies" })}
          </Link>
          {may("study.create") && newest !== undefined ? (
            <Link to="/new" search={{ component: name }} className={styles.primary}>
              {t`Tune this component`}
            </Link>
          ) : null}
        </div>
      </div>
      <Files
        name={name}
        files={data.files}
        mayWrite={may("component.write")}
        edit={(version) =>
          may("component.write") ? (
            <Link to="/write-component" search={{ name, version }} aria-label={t`Edit version ${version}`}>
              {t`Edit`}
            </Link>
          ) : null
        }
      />
      <Card title={t`Best known settings`}>
        {data.best.length === 0 ? (
          <p className={styles.soft}>{t`None yet. Settings appear here after a study with one objective has measured the default and at least one other configuration.`}</p>
        ) : (
          <BestSettings
            best={data.best}
            space={newest?.space ?? []}
            link={(study) => (
              <Link to="/studies/$name" params={{ name: study }}>
                {study}
              </Link>
            )}
          />
        )}
      </Card>
      {newest === undefined ? (
        <Card title={t`Versions`}>
          <p className={styles.soft}>{data.files.length > 0 ? t`No agent offers this component.` : t`No agent offers this component any longer.`}</p>
        </Card>
      ) : (
        <>
          <Versions versions={data.versions} />
          <Parameters key={newest.digest} versions={data.versions} />
        </>
      )}
    </>
  );
}

function Versions({ versions }: Pick<ComponentDetail, "versions">) {
  return (
    <Card title={t`Versions`} flush>
      <table className={table.table}>
        <thead>
          <tr>
            <th scope="col">{t`Digest`}</th>
            <th scope="col">{t`Applications`}</th>
            <th scope="col">{t`Metrics`}</th>
            <th scope="col">{t`Agents`}</th>
            <th scope="col" className={table.number}>
              {t`Last seen`}
            </th>
          </tr>
        </thead>
        <tbody>
          {versions.map(({ digest, applications, metrics, injected, agents, seen_at }) => (
            <tr key={digest}>
              <th scope="row">
                <code title={digest}>{digest.slice(0, 12)}</code>
              </th>
              <td data-label={t`Applications`}>
                {applications.join(", ")}
                {injected.map((one) => (
                  <span key={JSON.stringify(one)} className={table.about}>
                    {injectedText(one)}
                  </span>
                ))}
              </td>
              <td data-label={t`Metrics`}>{metrics.join(", ")}</td>
              <td data-label={t`Agents`}>{agents.map((agent) => (agent.online ? agent.name : t`${agent.name} (offline)`)).join(", ")}</td>
              <td data-label={t`Last seen`} className={table.number}>
                <Ago at={seen_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

/** Say what is injected into the measurements, and into which of them. */
function injectedText({ text, application, parameter, values }: ComponentDetail["versions"][number]["injected"][number]): string {
  const where = [application, parameter === "" ? "" : `${parameter} ${(values as Scalar[]).map((value) => formatValue(value)).join(", ")}`].filter(Boolean).join(", ");
  return where === "" ? t`injected: ${text}` : t`injected: ${text} (${where})`;
}

function Parameters({ versions }: Pick<ComponentDetail, "versions">) {
  const [digest, setDigest] = useState(versions[0]?.digest ?? "");
  const version = versions.find((one) => one.digest === digest) ?? versions[0];
  if (version === undefined) return null;
  const { space } = version;
  return (
    <Card
      title={plural(space.length, { one: "# parameter", other: "# parameters" })}
      flush
      actions={
        versions.length < 2 ? undefined : (
          <SelectField bare label={t`Version`} value={version.digest} onChange={(event) => setDigest(event.target.value)}>
            {versions.map((one) => (
              <option key={one.digest} value={one.digest}>
                {one.digest.slice(0, 12)}
              </option>
            ))}
          </SelectField>
        )
      }
    >
      <table className={table.table}>
        <thead>
          <tr>
            <th scope="col">{t`Parameter`}</th>
            <th scope="col">{t`Values`}</th>
            <th scope="col">{t`Default`}</th>
            <th scope="col">{t`Condition`}</th>
          </tr>
        </thead>
        <tbody>
          {space.map((parameter) => (
            <tr key={parameter.name}>
              <th scope="row">{parameter.name}</th>
              <td data-label={t`Values`}>{domainOf(parameter)}</td>
              <td data-label={t`Default`}>{formatValue(parameter.default)}</td>
              <td data-label={t`Condition`}>
                {parameter.condition === undefined ? null : t`${parameter.condition.parent} is ${formatList(parameter.condition.values.map(String))}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

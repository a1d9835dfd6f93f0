import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Card } from "@/components/Card";
import { SelectField } from "@/components/Field";
import { Empty, Loading, Problem } from "@/components/Message";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import { componentQuery } from "@/features/components/api";
import { BestSettings } from "@/features/components/BestSettings";
import { domainOf } from "@/features/components/domain";
import { ApiError, type ComponentDetail } from "@/lib/api/client";
import { formatValue } from "@/lib/format";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/title";
import { componentRoute } from "../router";
import styles from "./pages.module.css";

export function ComponentPage() {
  const { name } = componentRoute.useParams();
  useTitle(name);
  const may = useMay();
  const { data, error, refetch } = useQuery(componentQuery(name));
  if (error instanceof ApiError && error.status === 404) {
    return (
      <Empty title={`Nobody knows a component ${name}`}>
        <Link to="/components">To the components</Link>
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
            {data.studies} {data.studies === 1 ? "study" : "studies"}
          </Link>
          {may("study.create") && newest !== undefined ? (
            <Link to="/new" search={{ component: name }} className={styles.primary}>
              Tune it
            </Link>
          ) : null}
        </div>
      </div>
      <Card title="Best settings known">
        {data.best.length === 0 ? (
          <p className={styles.soft}>None yet. They appear here when a study with one objective has measured the default and something else.</p>
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
        <Card title="Versions">
          <p className={styles.soft}>No agent offers it any more.</p>
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
    <Card title="Versions" flush>
      <table className={table.table}>
        <thead>
          <tr>
            <th scope="col">Digest</th>
            <th scope="col">Applications</th>
            <th scope="col">Metrics</th>
            <th scope="col">Agents</th>
            <th scope="col" className={table.number}>
              Last seen
            </th>
          </tr>
        </thead>
        <tbody>
          {versions.map(({ digest, applications, metrics, agents, seen_at }) => (
            <tr key={digest}>
              <th scope="row">
                <code title={digest}>{digest.slice(0, 12)}</code>
              </th>
              <td data-label="Applications">{applications.join(", ")}</td>
              <td data-label="Metrics">{metrics.join(", ")}</td>
              <td data-label="Agents">{agents.map((agent) => (agent.online ? agent.name : `${agent.name} (offline)`)).join(", ")}</td>
              <td data-label="Last seen" className={table.number}>
                <Ago at={seen_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

function Parameters({ versions }: Pick<ComponentDetail, "versions">) {
  const [digest, setDigest] = useState(versions[0]?.digest ?? "");
  const version = versions.find((one) => one.digest === digest) ?? versions[0];
  if (version === undefined) return null;
  const { space } = version;
  return (
    <Card
      title={`${space.length} ${space.length === 1 ? "parameter" : "parameters"}`}
      flush
      actions={
        versions.length < 2 ? undefined : (
          <SelectField bare label="Version" value={version.digest} onChange={(event) => setDigest(event.target.value)}>
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
            <th scope="col">Parameter</th>
            <th scope="col">Values</th>
            <th scope="col">Default</th>
            <th scope="col">Only while</th>
          </tr>
        </thead>
        <tbody>
          {space.map((parameter) => (
            <tr key={parameter.name}>
              <th scope="row">{parameter.name}</th>
              <td data-label="Values">{domainOf(parameter)}</td>
              <td data-label="Default">{formatValue(parameter.default)}</td>
              <td data-label="Only while">
                {parameter.condition === undefined ? null : `${parameter.condition.parent} is ${parameter.condition.values.map(String).join(" or ")}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Card>
  );
}

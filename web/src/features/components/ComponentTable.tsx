import { plural, t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import table from "@/components/Table.module.css";
import type { Component } from "@/lib/api/client";
import { formatNumber } from "@/lib/format";
import { FileState } from "./Files";

/** A table of components and the agents that offer them. */
export function ComponentTable({ components, link }: { components: Component[]; link: (name: string) => ReactNode }) {
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">{t`Component`}</th>
          <th scope="col">{t`Applications`}</th>
          <th scope="col">{t`Offered by`}</th>
          <th scope="col" className={table.number}>
            {t`Versions`}
          </th>
          <th scope="col" className={table.number}>
            {t`Studies`}
          </th>
        </tr>
      </thead>
      <tbody>
        {components.map(({ name, versions, studies, files }) => (
          <tr key={name}>
            <th scope="row">
              <span>
                {link(name)}
                <span className={table.about}>{versions[0]?.description}</span>
              </span>
            </th>
            <td data-label={t`Applications`}>{[...new Set(versions.flatMap((version) => version.applications))].join(", ") || "—"}</td>
            <td data-label={t`Offered by`}>{files[0]?.agents.length === 0 ? <FileState file={files[0]} newest /> : <Offers versions={versions} />}</td>
            <td data-label={t`Versions`} className={table.number}>
              {formatNumber(versions.length)}
            </td>
            <td data-label={t`Studies`} className={table.number}>
              {formatNumber(studies)}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Offers({ versions }: Pick<Component, "versions">) {
  const agents = versions.flatMap((version) => version.agents);
  const online = agents.filter((agent) => agent.online);
  if (agents.length === 0) return <span className={table.soft}>{t`no agent any longer`}</span>;
  const text =
    online.length === 0
      ? t`no agent online`
      : online.length > 3
        ? plural(online.length, { one: "# agent", other: "# agents" })
        : online.map(({ name }) => name).join(", ");
  const away = agents.length - online.length;
  return (
    <span>
      {text} {away > 0 ? <span className={table.soft}>{t`(${formatNumber(away)} offline)`}</span> : null}
    </span>
  );
}

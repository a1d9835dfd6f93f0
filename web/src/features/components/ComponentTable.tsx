import type { ReactNode } from "react";
import table from "@/components/Table.module.css";
import type { Component } from "@/lib/api/client";

/** Components, one a row: what there is to tune, and who offers it. */
export function ComponentTable({ components, link }: { components: Component[]; link: (name: string) => ReactNode }) {
  return (
    <table className={table.table}>
      <thead>
        <tr>
          <th scope="col">Component</th>
          <th scope="col">Applications</th>
          <th scope="col">Offered by</th>
          <th scope="col" className={table.number}>
            Versions
          </th>
          <th scope="col" className={table.number}>
            Studies
          </th>
        </tr>
      </thead>
      <tbody>
        {components.map(({ name, versions, studies }) => (
          <tr key={name}>
            <th scope="row">
              <span>
                {link(name)}
                <span className={table.about}>{versions[0]?.description}</span>
              </span>
            </th>
            <td data-label="Applications">{[...new Set(versions.flatMap((version) => version.applications))].join(", ") || "—"}</td>
            <td data-label="Offered by">
              <Offers versions={versions} />
            </td>
            <td data-label="Versions" className={table.number}>
              {versions.length}
            </td>
            <td data-label="Studies" className={table.number}>
              {studies}
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
  if (agents.length === 0) return <span className={table.soft}>nobody any more</span>;
  const text = online.length === 0 ? "nobody who is online" : online.length > 3 ? `${online.length} agents` : online.map(({ name }) => name).join(", ");
  const away = agents.length - online.length;
  return (
    <span>
      {text} {away > 0 ? <span className={table.soft}>({away} offline)</span> : null}
    </span>
  );
}

import { t } from "@lingui/core/macro";
import { Button } from "@/components/Button";
import { Problem } from "@/components/Message";
import type { Agent } from "@/lib/api/client";
import { useOrder } from "./api";
import styles from "./AgentList.module.css";

type Installable = Agent["installable"][number];
type Order = Agent["orders"][number];

/** The components that people may install on an agent, with what becomes of their orders. */
export function Installables({ agent }: { agent: Agent }) {
  return (
    <details className={styles.installable}>
      <summary>{t`Components that ship with the agent`}</summary>
      <ul>
        {agent.installable.map((one) => (
          <li key={one.name}>
            <b>{one.name}</b>
            <OrderButtons agent={agent} component={one} />
          </li>
        ))}
      </ul>
    </details>
  );
}

/** The buttons that install, update or remove a component on an agent, and the answer to the last order. */
function OrderButtons({ agent, component: { name, version, installed } }: { agent: Agent; component: Installable }) {
  const order = useOrder(agent.agent_id);
  const last = agent.orders.find(({ component }) => component === name);
  const disabled = !agent.online || order.isPending || last?.state === "waiting";
  return (
    <>
      <span className={styles.actions}>
        {installed === version ? null : (
          <Button small disabled={disabled} onClick={() => order.mutate({ component: name, action: "install" })}>
            {installed === "" ? t`Install` : t`Update to ${version}`}
          </Button>
        )}
        {installed === "" ? null : (
          <Button small disabled={disabled} onClick={() => order.mutate({ component: name, action: "remove" })}>
            {t`Remove`}
          </Button>
        )}
      </span>
      <Answer order={last} installed={installed} />
      {order.error === null ? null : <Problem error={order.error} />}
    </>
  );
}

function Answer({ order, installed }: { order: Order | undefined; installed: string }) {
  const text =
    order?.state === "waiting"
      ? t`waiting for the agent …`
      : order?.state === "unanswered"
        ? t`The agent has not answered in time.`
        : order?.state === "refused"
          ? t`Refused: ${order.message} (${order.code})`
          : installed === ""
            ? ""
            : t`version ${installed}`;
  return (
    <span className={order?.state === "refused" ? styles.refused : styles.since} role="status">
      {text}
    </span>
  );
}

/** A button that installs a component on the first agent that allows it; nothing if none does. */
export function InstallButton({ agents, component }: { agents: readonly Agent[]; component: string }) {
  const agent = agents.find((one) => one.online && one.installable.some(({ name }) => name === component));
  const found = agent?.installable.find(({ name }) => name === component);
  if (agent === undefined || found === undefined) return null;
  return (
    <div className={styles.install}>
      <span className={styles.since}>{t`Agent ${agent.name} can install it:`}</span>
      <OrderButtons agent={agent} component={found} />
    </div>
  );
}

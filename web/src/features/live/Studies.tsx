import { plural, t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import { Badge, StateBadge } from "@/components/Badge";
import type { LiveBoard, LiveBrief } from "@/lib/api/client";
import styles from "./live.module.css";

/** Show the live studies to choose from. */
export function Studies({ board, link }: { board: LiveBoard; link: (name: string, content: ReactNode) => ReactNode }) {
  return (
    <nav aria-label={t`Live studies`}>
      <ul className={styles.studies}>
        {board.studies.map((one) => (
          <li key={one.name}>
            {link(
              one.name,
              <>
                <strong>{one.name}</strong>
                <StateBadge state={one.state} />
                <Counts brief={one} />
              </>,
            )}
          </li>
        ))}
      </ul>
      {board.left_off === 0 ? null : <p className={styles.soft}>{plural(board.left_off, { one: "# older study is not listed.", other: "# older studies are not listed." })}</p>}
    </nav>
  );
}

function Counts({ brief: { waiting, running, instances } }: { brief: LiveBrief }) {
  const { kept = 0, stuck = 0 } = instances as { kept?: number; stuck?: number };
  return (
    <>
      {stuck === 0 ? null : <Badge tone="bad">{plural(stuck, { one: "# instance stuck", other: "# instances stuck" })}</Badge>}
      {waiting === 0 ? null : <Badge tone="warn">{plural(waiting, { one: "# approval", other: "# approvals" })}</Badge>}
      {running === 0 ? null : <Badge tone="accent" alive>{t`trial runs`}</Badge>}
      {kept === 0 ? null : <Badge tone="good">{t`kept settings`}</Badge>}
    </>
  );
}

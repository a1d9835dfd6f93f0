import { t } from "@lingui/core/macro";
import { Link } from "@tanstack/react-router";
import { Empty } from "@/components/Message";

/** What stands at an address that leads nowhere. */
export function NotFound() {
  return (
    <main>
      <Empty title={t`There is no such page`}>
        <Link to="/studies">{t`To the studies`}</Link>
      </Empty>
    </main>
  );
}

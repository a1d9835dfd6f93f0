import { t } from "@lingui/core/macro";
import { Link } from "@tanstack/react-router";
import { Empty } from "@/components/Message";

/** The page of an unknown address. */
export function NotFound() {
  return (
    <main>
      <Empty title={t`Page not found`}>
        <Link to="/studies">{t`Go to studies`}</Link>
      </Empty>
    </main>
  );
}

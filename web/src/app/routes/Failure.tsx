import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { Link, useLocation, useRouter } from "@tanstack/react-router";
import { useEffect, type ReactNode } from "react";
import { Problem } from "@/components/Message";
import { useTitle } from "@/lib/browser";
import { isUnloaded } from "@/lib/chunks";
import styles from "./pages.module.css";

/** Replace a page that could not be shown. The router's own type depends on the type of this function, which is stated therefore. */
export function Failure({ error }: { error: unknown }): ReactNode {
  const router = useRouter();
  const shown = error instanceof Error ? error : new Error(String(error));
  return (
    <div className={styles.alone}>
      {isUnloaded(error) ? <Unloaded error={shown} /> : <Problem error={shown} again={() => void router.invalidate()} />}
    </div>
  );
}

// Milliseconds. A file that is still missing after a reload is not asked for again without the user.
const AGAIN = 30_000;
const KEY = "trimtab-reloaded";

/** Load the page again when the service answers. A browser does not fetch a script again that it could not fetch once. */
function Unloaded({ error }: { error: Error }) {
  const { isSuccess } = useQuery({
    queryKey: ["healthz"],
    queryFn: async () => {
      const answer = await fetch(`/healthz?at=${Date.now()}`);
      if (!answer.ok) throw new Error(t`The service does not answer.`);
      return true;
    },
    retry: false,
    gcTime: 0,
    staleTime: 0,
    refetchInterval: 2000,
  });
  useEffect(() => {
    if (!isSuccess || Date.now() - Number(sessionStorage.getItem(KEY) ?? 0) < AGAIN) return;
    sessionStorage.setItem(KEY, String(Date.now()));
    location.reload();
  }, [isSuccess]);
  return <Problem error={error} again={() => location.reload()} />;
}

/** The page of an unknown address. */
export function NotFound() {
  const { pathname } = useLocation();
  useTitle(t`Page not found`);
  return (
    <>
      <h1>{t`Page not found`}</h1>
      <p>{t`The console has no page with the address ${pathname}.`}</p>
      <p>
        <Link to="/studies">{t`Go to studies`}</Link>
      </p>
    </>
  );
}

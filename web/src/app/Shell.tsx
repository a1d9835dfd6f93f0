import { i18n } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { useMutation, useQuery, useQueryClient, type QueryClient } from "@tanstack/react-query";
import { CatchBoundary, Link, Outlet, useNavigate } from "@tanstack/react-router";
import { Activity, Blocks, Contrast, FlaskConical, LogOut, Moon, Search, Server, Shield, Shuffle, Sun, type LucideIcon } from "lucide-react";
import { lazy, Suspense, useEffect, useState, type ReactNode } from "react";
import { Button } from "@/components/Button";
import { signInQuery, signOut } from "@/features/session/api";
import { signOutAt } from "@/features/session/provider";
import { changes, KINDS, Paced, type Kind } from "@/lib/changes";
import { part } from "@/lib/chunks";
import { sessionQuery, useMay } from "@/lib/session";
import { setTheme, useTheme, type Theme } from "@/lib/theme";
import { queries } from "./queries";
import styles from "./Shell.module.css";

const Palette = lazy(() => part(() => import("./palette/Palette")));
const Help = lazy(() => part(async () => ({ default: (await import("./parts")).Help })));
const Tour = lazy(() => part(() => import("./Tour")));
const NotificationList = lazy(() => part(async () => ({ default: (await import("./parts")).NotificationList })));

/** Frame every page except the sign-in page. */
export function Shell() {
  const [palette, setPalette] = usePalette();
  const [tour, setTour] = useState(false);
  const may = useMay();
  useLiveLists();
  return (
    <>
      <a className={styles.skip} href="#content">
        {t`Skip to content`}
      </a>
      <header className={styles.header}>
        <Link to="/" className={styles.brand} aria-label={t`Trimtab, home`}>
          <img src="/favicon.svg" alt="" width="26" height="26" />
          Trimtab
        </Link>
        <nav className={styles.nav} aria-label={t`Main`}>
          <Link to="/studies" activeProps={{ "aria-current": "page" }}>
            <FlaskConical />
            {t`Studies`}
          </Link>
          <Link to="/components" activeProps={{ "aria-current": "page" }}>
            <Blocks />
            {t`Components`}
          </Link>
          <Link to="/agents" activeProps={{ "aria-current": "page" }}>
            <Server />
            {t`Agents`}
          </Link>
          <Link to="/live" activeProps={{ "aria-current": "page" }}>
            <Activity />
            {t`Live`}
          </Link>
          {may("record.read") ? (
            <Link to="/matching" activeProps={{ "aria-current": "page" }}>
              <Shuffle />
              {t`Matching`}
            </Link>
          ) : null}
          <Link to="/administration" activeProps={{ "aria-current": "page" }}>
            <Shield />
            {t`Administration`}
          </Link>
        </nav>
        <div className={styles.tools}>
          <Button small kind="quiet" aria-label={t`Command palette, Ctrl K`} aria-keyshortcuts="Control+K Meta+K" onClick={() => setPalette(true)}>
            <Search />
            <kbd className={styles.keys} aria-hidden="true">
              Ctrl K
            </kbd>
          </Button>
          {may("notice.read") ? (
            <Part>
              <NotificationList
                link={({ study, record }, text, close) =>
                  record !== null ? (
                    <Link to="/matching/records/$id" params={{ id: String(record) }} onClick={close}>
                      {text}
                    </Link>
                  ) : study === "" ? (
                    text
                  ) : (
                    <Link to="/studies/$name" params={{ name: study }} onClick={close}>
                      {text}
                    </Link>
                  )
                }
              />
            </Part>
          ) : null}
          <Who />
          <Part>
            <Help onTour={() => setTour(true)} />
          </Part>
          <ThemeButton />
          <SignOutButton />
        </div>
      </header>
      <main id="content" className={styles.content} tabIndex={-1}>
        <Outlet />
      </main>
      {tour ? (
        <Part>
          <Tour onClose={() => setTour(false)} />
        </Part>
      ) : null}
      {palette ? (
        <Part>
          <Palette onClose={() => setPalette(false)} />
        </Part>
      ) : null}
    </>
  );
}

/** A part of the frame with a file of its own. Without the file it is missing, and the rest of the frame works. */
function Part({ children }: { children: ReactNode }) {
  return (
    <CatchBoundary getResetKey={() => 0} errorComponent={() => null}>
      <Suspense>{children}</Suspense>
    </CatchBoundary>
  );
}

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const SIGNS: Record<Theme, LucideIcon> = { system: Contrast, light: Sun, dark: Moon };
const NAMES = { system: msg`system`, light: msg`light`, dark: msg`dark` };

function ThemeButton() {
  const theme = useTheme();
  const [name, next] = [i18n._(NAMES[theme]), i18n._(NAMES[NEXT[theme]])];
  const text = t`Theme: ${name}. Change to ${next}.`;
  const Sign = SIGNS[theme];
  return (
    <Button small kind="quiet" aria-label={text} title={text} onClick={() => setTheme(NEXT[theme])}>
      <Sign />
      <span className={styles.themeName}>{name}</span>
    </Button>
  );
}

/** Show who is signed in. Without an identity provider there is one account, so nothing is shown. */
function Who() {
  const { data: session } = useQuery(sessionQuery);
  const { data: options } = useQuery(signInQuery);
  if (!session || !options?.provider) return null;
  const text = session.tenant === "" ? session.actor : `${session.actor} · ${session.tenant}`;
  return (
    <span className={styles.who} title={t`Signed in as ${session.actor}, ${session.role}`}>
      {text}
    </span>
  );
}

function SignOutButton() {
  const navigate = useNavigate();
  const { data: options } = useQuery(signInQuery);
  const leave = useMutation({
    mutationFn: async () => {
      await signOut();
      return options?.provider ? signOutAt(options.provider) : false;
    },
    onSuccess: async (elsewhere) => {
      // The browser leaves for the identity provider, which sends it back.
      if (elsewhere) return;
      await navigate({ to: "/sign-in" });
      queries.clear();
    },
  });
  return (
    <Button small kind="quiet" aria-label={t`Sign out`} title={t`Sign out`} disabled={leave.isPending} onClick={() => leave.mutate()}>
      <LogOut />
      <span className={styles.themeName}>{t`Sign out`}</span>
    </Button>
  );
}

// Milliseconds: the least time between two requests for the same list, whatever the rate of changes.
const PAUSE = 2000;

/** Refetch the shown lists of studies, agents and components when the service reports that they have changed. */
function useLiveLists(): void {
  const queries = useQueryClient();
  useEffect(() => {
    const refetches = new Map(KINDS.map((kind) => [kind, new Paced(() => refetch(queries, kind), PAUSE)]));
    const stream = changes((kinds) => {
      for (const kind of kinds) refetches.get(kind)?.ask();
    });
    stream.start();
    return () => {
      stream.stop();
      for (const paced of refetches.values()) paced.stop();
    };
  }, [queries]);
}

// What depends on all studies, and not on each of their trials, has an interval of its own.
// eslint-disable-next-line lingui/no-unlocalized-strings -- parts of keys
const OWN_INTERVAL: readonly unknown[] = ["facets", "sample-data"];

/** Refetch the shown queries of a kind; their keys begin with its name. */
function refetch(queries: QueryClient, kind: Kind): Promise<unknown> {
  return queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] === kind && !OWN_INTERVAL.includes(queryKey[1]) });
}

/** Return whether the palette is open, and a setter. Ctrl-K or ⌘K toggles it, wherever the focus is. */
function usePalette(): [boolean, (open: boolean) => void] {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    function press(event: KeyboardEvent) {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
      event.preventDefault();
      setOpen((before) => !before);
    }
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  return [open, setOpen];
}

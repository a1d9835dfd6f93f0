import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet, redirect } from "@tanstack/react-router";
import { signInQuery } from "@/features/session/api";
import type { StudySort } from "@/features/studies/api";
import { keepSignedIn, renewSession } from "@/features/session/provider";
import { isSignedOut } from "@/lib/api/client";
import { sessionQuery } from "@/lib/session";
import { onSignedOut, queries } from "./queries";
import { Failure } from "./routes/Failure";
import { NotFound } from "./routes/NotFound";
import { SignInPage } from "./routes/SignInPage";
import { Shell } from "./Shell";

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound, errorComponent: Failure });

interface SignInSearch {
  next?: string | undefined;
  error?: string | undefined;
  /** What the identity provider sends the browser back with, beside a code or an error. */
  state?: string | undefined;
}

export const signInRoute = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: ({ next, error, state }: Record<string, unknown>): SignInSearch => ({
    // Only paths of this site: not //elsewhere.example. What is left out here would come through as it is.
    next: typeof next === "string" && /^\/(?![/\\])/.test(next) ? next : undefined,
    error: typeof error === "string" ? error : undefined,
    // One of digits alone has become a number.
    state: typeof state === "string" || typeof state === "number" ? String(state) : undefined,
  }),
  component: SignInPage,
});

const signedIn = createRoute({
  getParentRoute: () => root,
  id: "signed-in",
  beforeLoad: async ({ location }) => {
    try {
      await queries.query({ ...sessionQuery, staleTime: "static" });
    } catch (error) {
      if (!isSignedOut(error)) throw error;
      if (!(await renewed())) throw redirect({ to: "/sign-in", search: { next: location.href } });
    }
    const { provider } = await queries.query({ ...signInQuery, staleTime: "static" });
    if (provider) void keepSignedIn(provider);
  },
  component: Shell,
});

const home = createRoute({
  getParentRoute: () => signedIn,
  path: "/",
  component: lazyRouteComponent(() => import("./routes/HomePage"), "HomePage"),
});

/** What is looked for in the list of studies. */
export interface StudiesSearch {
  q?: string | undefined;
  show?: "all" | "open" | "ended" | "attention" | undefined;
  component?: string | undefined;
  application?: string | undefined;
  owner?: string | undefined;
  tag?: string | undefined;
  sort?: StudySort | undefined;
}

export const studiesRoute = createRoute({
  getParentRoute: () => signedIn,
  path: "/studies",
  validateSearch: (search: Record<string, unknown>): StudiesSearch => ({
    q: text(search.q),
    show: (["all", "open", "ended", "attention"] as const).find((one) => one === search.show),
    component: text(search.component),
    application: text(search.application),
    owner: text(search.owner),
    tag: text(search.tag),
    // The service refuses what it does not know, and says what it knows.
    sort: text(search.sort) as StudySort | undefined,
  }),
  component: lazyRouteComponent(() => import("./routes/StudiesPage"), "StudiesPage"),
});

/** The parts of a study's page, each with an address. */
export const STUDY_TABS = ["overview", "trials", "analysis", "trade-offs", "timeline"] as const;
export type StudyTab = (typeof STUDY_TABS)[number];

export const studyRoute = createRoute({
  getParentRoute: () => signedIn,
  path: "/studies/$name",
  validateSearch: ({ tab }: Record<string, unknown>): { tab?: StudyTab | undefined } => ({
    tab: STUDY_TABS.find((one) => one === tab && one !== "overview"),
  }),
  component: lazyRouteComponent(() => import("./routes/StudyPage"), "StudyPage"),
});

export const trialRoute = createRoute({
  getParentRoute: () => signedIn,
  path: "/studies/$name/trials/$number",
  component: lazyRouteComponent(() => import("./routes/TrialPage"), "TrialPage"),
});

export const reportRoute = createRoute({
  getParentRoute: () => signedIn,
  path: "/studies/$name/report",
  component: lazyRouteComponent(() => import("./routes/ReportPage"), "ReportPage"),
});

export const compareRoute = createRoute({
  getParentRoute: () => signedIn,
  path: "/compare",
  validateSearch: (search: Record<string, unknown>): { study: string[]; metric?: string | undefined } => ({
    study: [search.study].flat().flatMap((name) => text(name) ?? []),
    metric: text(search.metric),
  }),
  component: lazyRouteComponent(() => import("./routes/ComparePage"), "ComparePage"),
});

/** Where a new study starts from: another study, or a component. */
export const newStudyRoute = createRoute({
  getParentRoute: () => signedIn,
  path: "/new",
  validateSearch: (search: Record<string, unknown>): { clone?: string | undefined; component?: string | undefined } => ({
    clone: text(search.clone),
    component: text(search.component),
  }),
  component: lazyRouteComponent(() => import("./routes/NewStudyPage"), "NewStudyPage"),
});

const components = createRoute({
  getParentRoute: () => signedIn,
  path: "/components",
  component: lazyRouteComponent(() => import("./routes/ComponentsPage"), "ComponentsPage"),
});

export const componentRoute = createRoute({
  getParentRoute: () => signedIn,
  path: "/components/$name",
  component: lazyRouteComponent(() => import("./routes/ComponentPage"), "ComponentPage"),
});

export type Section = "tokens" | "members" | "quota" | "audit" | "tenants";
const SECTIONS: readonly Section[] = ["tokens", "members", "quota", "audit", "tenants"];

export const administrationRoute = createRoute({
  getParentRoute: () => signedIn,
  path: "/administration",
  validateSearch: (search: Record<string, unknown>): { section?: Section | undefined } => ({
    section: SECTIONS.find((one) => one === search.section),
  }),
  component: lazyRouteComponent(() => import("./routes/AdministrationPage"), "AdministrationPage"),
});

const agents = createRoute({
  getParentRoute: () => signedIn,
  path: "/agents",
  component: lazyRouteComponent(() => import("./routes/AgentsPage"), "AgentsPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([signInRoute, signedIn.addChildren([home, studiesRoute, studyRoute, trialRoute, reportRoute, compareRoute, newStudyRoute, components, componentRoute, agents, administrationRoute])]),
  defaultPreload: "intent",
  scrollRestoration: true,
});

/** A search parameter as text; one of digits alone has become a number. */
function text(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Whether the session that is over could be followed by another without asking anybody. */
async function renewed(): Promise<boolean> {
  const { provider } = await queries.query({ ...signInQuery, staleTime: "static" });
  return provider !== null && (await renewSession(provider));
}

let renewing: Promise<void> | undefined;

onSignedOut(() => {
  if (router.state.location.pathname === "/sign-in") return;
  renewing ??= renewed()
    .catch(() => false)
    .then(async (again) => {
      if (again) {
        await queries.invalidateQueries();
        return;
      }
      queries.removeQueries({ queryKey: sessionQuery.queryKey });
      const { pathname, href } = router.state.location;
      if (pathname !== "/sign-in") await router.navigate({ to: "/sign-in", search: { next: href } });
    })
    .finally(() => (renewing = undefined));
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet, redirect } from "@tanstack/react-router";
import { signInQuery } from "@/features/session/api";
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
  beforeLoad: () => {
    throw redirect({ to: "/studies", replace: true });
  },
});

const studies = createRoute({
  getParentRoute: () => signedIn,
  path: "/studies",
  component: lazyRouteComponent(() => import("./routes/StudiesPage"), "StudiesPage"),
});

export const studyRoute = createRoute({
  getParentRoute: () => signedIn,
  path: "/studies/$name",
  component: lazyRouteComponent(() => import("./routes/StudyPage"), "StudyPage"),
});

const agents = createRoute({
  getParentRoute: () => signedIn,
  path: "/agents",
  component: lazyRouteComponent(() => import("./routes/AgentsPage"), "AgentsPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([signInRoute, signedIn.addChildren([home, studies, studyRoute, agents])]),
  defaultPreload: "intent",
  scrollRestoration: true,
});

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

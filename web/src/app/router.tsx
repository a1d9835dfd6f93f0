import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Outlet, redirect } from "@tanstack/react-router";
import { signInQuery } from "@/features/session/api";
import { keepSignedIn, renewSession } from "@/features/session/provider";
import { isSignedOut } from "@/lib/api/client";
import { part } from "@/lib/chunks";
import { sessionQuery } from "@/lib/session";
import { administrationSearch, compareSearch, gallerySearch, liveSearch, matchingSearch, newStudySearch, signInSearch, studiesSearch, studySearch, tableSearch, writeComponentSearch } from "./addresses";
import { onSignedOut, queries } from "./queries";
import { Failure, NotFound } from "./routes/Failure";
import { SignInPage } from "./routes/SignInPage";
import { Shell } from "./Shell";

const root = createRootRoute({ component: Outlet, errorComponent: Failure });

const signIn = createRoute({ getParentRoute: () => root, path: "/sign-in", validateSearch: signInSearch, component: SignInPage });

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
  component: lazyRouteComponent(() => part(() => import("./routes/HomePage")), "HomePage"),
});

const studies = createRoute({
  getParentRoute: () => signedIn,
  path: "/studies",
  validateSearch: studiesSearch,
  component: lazyRouteComponent(() => part(() => import("./routes/StudiesPage")), "StudiesPage"),
});

const study = createRoute({
  getParentRoute: () => signedIn,
  path: "/studies/$name",
  validateSearch: studySearch,
  component: lazyRouteComponent(() => part(() => import("./routes/study/StudyPage")), "StudyPage"),
});

const trial = createRoute({
  getParentRoute: () => signedIn,
  path: "/studies/$name/trials/$number",
  component: lazyRouteComponent(() => part(() => import("./routes/TrialPage")), "TrialPage"),
});

const report = createRoute({
  getParentRoute: () => signedIn,
  path: "/studies/$name/report",
  component: lazyRouteComponent(() => part(() => import("./routes/ReportPage")), "ReportPage"),
});

const compare = createRoute({
  getParentRoute: () => signedIn,
  path: "/compare",
  validateSearch: compareSearch,
  component: lazyRouteComponent(() => part(() => import("./routes/ComparePage")), "ComparePage"),
});

const newStudy = createRoute({
  getParentRoute: () => signedIn,
  path: "/new",
  validateSearch: newStudySearch,
  component: lazyRouteComponent(() => part(() => import("./routes/NewStudyPage")), "NewStudyPage"),
});

const batchScript = createRoute({
  getParentRoute: () => signedIn,
  path: "/batch-script",
  component: lazyRouteComponent(() => part(() => import("./routes/BatchScriptPage")), "BatchScriptPage"),
});

const components = createRoute({
  getParentRoute: () => signedIn,
  path: "/components",
  validateSearch: tableSearch,
  component: lazyRouteComponent(() => part(() => import("./routes/ComponentsPage")), "ComponentsPage"),
});

const gallery = createRoute({
  getParentRoute: () => signedIn,
  path: "/gallery",
  validateSearch: gallerySearch,
  component: lazyRouteComponent(() => part(() => import("./routes/GalleryPage")), "GalleryPage"),
});

const component = createRoute({
  getParentRoute: () => signedIn,
  path: "/components/$name",
  component: lazyRouteComponent(() => part(() => import("./routes/ComponentPage")), "ComponentPage"),
});

const writeComponent = createRoute({
  getParentRoute: () => signedIn,
  path: "/write-component",
  validateSearch: writeComponentSearch,
  component: lazyRouteComponent(() => part(() => import("./routes/WriteComponentPage")), "WriteComponentPage"),
});

const agents = createRoute({
  getParentRoute: () => signedIn,
  path: "/agents",
  validateSearch: tableSearch,
  component: lazyRouteComponent(() => part(() => import("./routes/AgentsPage")), "AgentsPage"),
});

const live = createRoute({
  getParentRoute: () => signedIn,
  path: "/live",
  validateSearch: liveSearch,
  component: lazyRouteComponent(() => part(() => import("./routes/LivePage")), "LivePage"),
});

const matching = createRoute({
  getParentRoute: () => signedIn,
  path: "/matching",
  validateSearch: matchingSearch,
  component: lazyRouteComponent(() => part(() => import("./routes/matching/MatchingPage")), "MatchingPage"),
});

const record = createRoute({
  getParentRoute: () => signedIn,
  path: "/matching/records/$id",
  component: lazyRouteComponent(() => part(() => import("./routes/matching/RecordPage")), "RecordPage"),
});

/** Any other address. A page of its own keeps the navigation, and asks for the sign-in like all others. */
const unknown = createRoute({ getParentRoute: () => signedIn, path: "$", component: NotFound });

const administration = createRoute({
  getParentRoute: () => signedIn,
  path: "/administration",
  validateSearch: administrationSearch,
  component: lazyRouteComponent(() => part(() => import("./routes/AdministrationPage")), "AdministrationPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    signIn,
    signedIn.addChildren([home, studies, study, trial, report, compare, newStudy, batchScript, gallery, components, component, writeComponent, agents, live, matching, record, administration, unknown]),
  ]),
  // A page that fails is replaced inside the frame.
  defaultErrorComponent: Failure,
  defaultPreload: "intent",
  scrollRestoration: true,
});

/** Renew the session at the identity provider without asking the user, and return whether that succeeded. */
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

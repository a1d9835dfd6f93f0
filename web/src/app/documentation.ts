/** The page of the documentation for each page of the console, by the route. A test checks that the site has each. */
const PAGES: Record<string, string> = {
  "/": "/docs/tutorials/first-study.html",
  "/studies": "/docs/tutorials/first-study.html",
  "/studies/$name": "/docs/explanation/final-check.html",
  "/studies/$name/trials/$number": "/docs/explanation/one-tell.html",
  "/studies/$name/report": "/docs/explanation/final-check.html#the-verdict",
  "/compare": "/docs/how-to/noisy-systems.html",
  "/new": "/docs/reference/study-files.html",
  "/batch-script": "/docs/how-to/sbatch-file.html",
  "/components": "/docs/how-to/write-component.html",
  "/components/$name": "/docs/reference/component-files.html",
  "/write-component": "/docs/reference/component-files.html",
  "/agents": "/docs/how-to/many-machines.html",
  "/matching": "/docs/how-to/matching.html",
  "/matching/records/$id": "/docs/explanation/matching.html",
  "/administration": "/docs/explanation/tenancy.html",
};

/** Return the address of the documentation's page for a route; its first page for any other route. */
export function documentation(route: string): string {
  return PAGES[route] ?? "/docs/";
}

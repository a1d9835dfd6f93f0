import { i18n } from "@lingui/core";
import { queryOptions } from "@tanstack/react-query";
import { api, unwrap, type Gallery } from "@/lib/api/client";

/** What people run, with the components that ship with the agent. It is a part of the service and never changes. */
export const galleryQuery = queryOptions({
  queryKey: ["gallery"],
  queryFn: () => unwrap(api.GET("/api/v1/gallery")),
  staleTime: Infinity,
});

/** Return the text in the language of the console, or in English. */
export function inLanguage(text: Gallery["machine"]): string {
  return i18n.locale === "de" ? text.de : text.en;
}

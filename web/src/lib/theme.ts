import { useSyncExternalStore } from "react";

/** "system" follows the operating system's preference. */
export type Theme = "system" | "light" | "dark";

const KEY = "trimtab-theme"; // public/theme.js reads it before the first paint
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

/** Return the viewer's choice. */
function getTheme(): Theme {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

/** Set the theme and remember it in this browser. */
export function setTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // Without storage the choice holds until the page is loaded again.
  }
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  dark.addEventListener("change", listener);
  return () => {
    listeners.delete(listener);
    dark.removeEventListener("change", listener);
  };
}

/** Return the viewer's choice, kept up to date. */
export function useTheme(): Theme {
  return useSyncExternalStore(subscribe, getTheme);
}

/** Return whether the page is dark, by choice or by the system's preference. */
export function useIsDark(): boolean {
  return useSyncExternalStore(subscribe, () => {
    const theme = getTheme();
    return theme === "dark" || (theme === "system" && dark.matches);
  });
}

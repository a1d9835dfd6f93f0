import { useEffect } from "react";

/** Set the title of the browser's tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Trimtab`;
  }, [title]);
}

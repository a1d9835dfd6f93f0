import { useEffect } from "react";

/** Set the title of the browser's tab. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Trimtab`;
  }, [title]);
}

/** Return whether the window is so narrow that tables are lists of cards. */
export function isNarrow(): boolean {
  return matchMedia("(max-width: 760px)").matches;
}

/** Download a text as a file. */
export function saveText(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  saveAddress(name, address);
  URL.revokeObjectURL(address);
}

/** Download what an address of the page itself holds as a file. */
export function saveAddress(name: string, address: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}

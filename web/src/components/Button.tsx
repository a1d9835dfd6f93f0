import { t } from "@lingui/core/macro";
import { useEffect, useState, type ButtonHTMLAttributes } from "react";
import styles from "./Button.module.css";

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: "primary" | "plain" | "danger" | "quiet";
  small?: boolean;
}

/** A button. The kind `quiet` has no frame. */
export function Button({ kind = "plain", small = false, className = "", type = "button", ...rest }: Props) {
  return <button type={type} className={`${styles.button} ${styles[kind]} ${small ? styles.small : ""} ${className}`} {...rest} />;
}

/** A button that copies a text and confirms it for two seconds. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (said === "") return;
    const timer = setTimeout(() => setSaid(""), 2000);
    return () => clearTimeout(timer);
  }, [said]);

  async function copy() {
    setSaid((await copyText(text)) ? t`Copied` : t`The browser does not allow copying here`);
  }

  return (
    <Button small onClick={() => void copy()}>
      <span aria-live="polite">{said || label}</span>
    </Button>
  );
}

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // The clipboard needs a secure context, and http://other-host is not one. The deprecated command works there too.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    // eslint-disable-next-line @typescript-eslint/no-deprecated
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  }
}

interface MoreButtonProps {
  /** An infinite query of a list. */
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => Promise<unknown> };
}

/** A button that loads the next page of a list; nothing on the last page. */
export function MoreButton({ query: { hasNextPage, isFetchingNextPage, fetchNextPage } }: MoreButtonProps) {
  return hasNextPage ? (
    <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
      {isFetchingNextPage ? t`Loading …` : t`Show more`}
    </Button>
  ) : null;
}

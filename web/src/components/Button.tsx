import type { ButtonHTMLAttributes } from "react";
import styles from "./Button.module.css";

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: "primary" | "plain" | "danger" | "quiet";
  small?: boolean;
}

/** A button. The kind `quiet` has no frame. */
export function Button({ kind = "plain", small = false, className = "", type = "button", ...rest }: Props) {
  return <button type={type} className={`${styles.button} ${styles[kind]} ${small ? styles.small : ""} ${className}`} {...rest} />;
}

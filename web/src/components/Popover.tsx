import { Popover as Radix } from "radix-ui";
import type { ReactNode } from "react";
import styles from "./Popover.module.css";

interface Props {
  trigger: ReactNode;
  label: string;
  /** Given if something inside also closes the panel. */
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
  align?: "start" | "end";
  children: ReactNode;
}

/** A small panel that a button opens. Escape or a click outside closes it. */
export function Popover({ trigger, label, align = "end", children, ...control }: Props) {
  return (
    <Radix.Root {...control}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className={styles.panel} align={align} sideOffset={6} collisionPadding={8} aria-label={label}>
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

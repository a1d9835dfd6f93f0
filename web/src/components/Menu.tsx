import { DropdownMenu } from "radix-ui";
import { Ellipsis } from "lucide-react";
import type { ReactNode } from "react";
import { Button } from "./Button";
import styles from "./Menu.module.css";

/** A button that opens a menu of rare actions. The children are `MenuItem` and `MenuLink`. */
export function Menu({ label, children }: { label: string; children: ReactNode }) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>
        <Button aria-label={label} title={label}>
          <Ellipsis />
        </Button>
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content className={styles.menu} align="end" sideOffset={6} collisionPadding={8}>
          {children}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

/** An action of a menu. `danger`: it destroys something. */
export function MenuItem({ icon, danger = false, onSelect, children }: { icon: ReactNode; danger?: boolean; onSelect: () => void; children: ReactNode }) {
  return (
    <DropdownMenu.Item className={danger ? `${styles.item} ${styles.danger}` : styles.item} onSelect={onSelect}>
      {icon}
      {children}
    </DropdownMenu.Item>
  );
}

/** A link in a menu: the only child is the element of the link, and `icon` stands before its text. */
export function MenuLink({ children }: { children: ReactNode }) {
  return (
    <DropdownMenu.Item asChild className={styles.item}>
      {children}
    </DropdownMenu.Item>
  );
}

/** A line between the groups of a menu. */
export function MenuLine() {
  return <DropdownMenu.Separator className={styles.line} />;
}

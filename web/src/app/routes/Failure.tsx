import { useRouter } from "@tanstack/react-router";
import { Problem } from "@/components/Message";
import styles from "./pages.module.css";

/** What stands in place of a page that could not be made. */
export function Failure({ error }: { error: unknown }) {
  const router = useRouter();
  return (
    <div className={styles.alone}>
      <Problem error={error instanceof Error ? error : new Error(String(error))} again={() => void router.invalidate()} />
    </div>
  );
}

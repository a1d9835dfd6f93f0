import { useRouter } from "@tanstack/react-router";
import { Problem } from "@/components/Message";
import styles from "./pages.module.css";

/** Replace a page that could not be shown. */
export function Failure({ error }: { error: unknown }) {
  const router = useRouter();
  return (
    <div className={styles.alone}>
      <Problem error={error instanceof Error ? error : new Error(String(error))} again={() => void router.invalidate()} />
    </div>
  );
}

import { useRouter } from "@tanstack/react-router";
import { Problem } from "@/components/Message";
import styles from "./pages.module.css";

/** What stands in place of a page that could not be made. */
export function Failure({ error }: { error: Error }) {
  const router = useRouter();
  return (
    <div className={styles.alone}>
      <Problem error={error} again={() => void router.invalidate()} />
    </div>
  );
}

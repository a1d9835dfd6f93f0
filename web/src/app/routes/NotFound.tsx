import { Link } from "@tanstack/react-router";
import { Empty } from "@/components/Message";

/** What stands at an address that leads nowhere. */
export function NotFound() {
  return (
    <main>
      <Empty title="There is no such page">
        <Link to="/studies">To the studies</Link>
      </Empty>
    </main>
  );
}

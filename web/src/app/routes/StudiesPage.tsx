import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useDeferredValue, useId, useState } from "react";
import { Button } from "@/components/Button";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { Segments } from "@/components/Segments";
import { studiesQuery } from "@/features/studies/api";
import { StudyTable } from "@/features/studies/StudyTable";
import type { StudyState } from "@/lib/api/client";
import { useTitle } from "@/lib/title";
import styles from "./pages.module.css";

type Show = "all" | "open" | "ended";
const STATES: Record<Show, StudyState[]> = { all: [], open: ["ACTIVE", "PAUSED"], ended: ["COMPLETED", "ABORTED"] };

export function StudiesPage() {
  useTitle("Studies");
  const id = useId();
  const [prefix, setPrefix] = useState("");
  const [show, setShow] = useState<Show>("all");
  const filter = { name_prefix: useDeferredValue(prefix.trim()), state: STATES[show] };
  const { data, error, refetch, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(studiesQuery(filter));
  const studies = data?.pages.flatMap((page) => page.studies) ?? [];
  const filtered = filter.name_prefix !== "" || show !== "all";

  return (
    <>
      <div className={styles.head}>
        <h1>Studies</h1>
        <div className={styles.filters}>
          <label htmlFor={id} className="visually-hidden">
            Name begins with
          </label>
          <input id={id} type="search" placeholder="Name begins with …" value={prefix} onChange={(event) => setPrefix(event.target.value)} />
          <Segments
            label="Show"
            value={show}
            onChange={setShow}
            options={[
              { value: "all", text: "All" },
              { value: "open", text: "Open" },
              { value: "ended", text: "Ended" },
            ]}
          />
        </div>
      </div>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what="studies" /> : null
      ) : (
        <div className={styles.panel}>
          {studies.length > 0 ? (
            <StudyTable
              studies={studies}
              link={(name) => (
                <Link to="/studies/$name" params={{ name }}>
                  {name}
                </Link>
              )}
            />
          ) : filtered ? (
            <Empty title="No study matches" />
          ) : (
            <FirstStudy />
          )}
        </div>
      )}
      {hasNextPage ? (
        <div className={styles.more}>
          <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            {isFetchingNextPage ? "Loading …" : "Show more"}
          </Button>
          <span>
            {studies.length} of {data?.pages[0]?.total_count}
          </span>
        </div>
      ) : null}
    </>
  );
}

function FirstStudy() {
  return (
    <Empty title="No studies yet">
      <p>
        See a real one first: <code>make demo</code> tunes a compiler&rsquo;s flags on this machine and shows up here.
      </p>
      <p>Or tune something of your own, from Python:</p>
      <Code>{`import trimtab

client = trimtab.Client("${location.hostname}:8471", token="…")
study = client.create_study(
    "my-study",
    space=[trimtab.Float("x", 1e-3, 10, log=True), trimtab.Int("n", 1, 16)],
    objectives=[trimtab.Minimize("seconds")],
)
study.optimize(measure, n_trials=50)   # measure(params) -> seconds`}</Code>
    </Empty>
  );
}

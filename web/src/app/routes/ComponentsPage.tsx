import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { componentsQuery } from "@/features/components/api";
import { ComponentTable } from "@/features/components/ComponentTable";
import { useTitle } from "@/lib/title";
import styles from "./pages.module.css";

export function ComponentsPage() {
  useTitle("Components");
  const { data, error, refetch } = useQuery(componentsQuery);
  return (
    <>
      <div className={styles.head}>
        <h1>Components</h1>
      </div>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what="components" /> : null
      ) : (
        <div className={styles.panel}>
          {data.components.length > 0 ? (
            <ComponentTable
              components={data.components}
              link={(name) => (
                <Link to="/components/$name" params={{ name }}>
                  {name}
                </Link>
              )}
            />
          ) : (
            <Empty title="No components yet">
              <p>
                A component says what is tuned: its parameters, how their values reach the system, how its metrics are read. It is a file on the machine of an{" "}
                <Link to="/agents">agent</Link>, which offers it here. Try one there first:
              </p>
              <Code>{"trimtab-agent check ./components\ntrimtab-agent try NAME --components ./components"}</Code>
            </Empty>
          )}
        </div>
      )}
    </>
  );
}

import { t } from "@lingui/core/macro";
import { Plural, Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Code, Empty } from "@/components/Message";
import { agentsQuery } from "@/features/fleet/api";
import { SampleData } from "@/features/planning/SampleData";
import { useMay, useServer } from "@/lib/session";

/** Explain in a tenant without studies how to get a first one. */
export function FirstSteps() {
  const server = useServer();
  const may = useMay();
  const { data } = useQuery({ ...agentsQuery, enabled: may("agent.read") });
  const agents = data?.agents ?? [];
  const create = may("study.create");
  const navigate = useNavigate();
  return (
    <Empty title={t`No studies yet`}>
      <p>
        <Trans>
          To see an example first, run <code>make demo</code>: it tunes the flags of a compiler, and its study appears here. Or let the service create sample data, which it measures with a formula in a few minutes.
        </Trans>
      </p>
      {create ? (
        <SampleData onOpen={(name) => void navigate({ to: "/studies/$name", params: { name } })} />
      ) : null}
      {agents.length === 0 ? (
        <p>
          <Trans>
            Or tune your own system: <Link to="/agents">enrol an agent</Link> on the machine where it runs, with a{" "}
            <Link to="/components">component</Link> that describes it.
          </Trans>{" "}
          {create ? (
            <Trans>
              Then create a <Link to="/new">new study</Link>.
            </Trans>
          ) : (
            t`Then a member can create a study.`
          )}
        </p>
      ) : create ? (
        <p>
          <Trans>
            <Plural value={agents.length} one="# agent is registered" other="# agents are registered" />. Create a <Link to="/new">new study</Link> of a component that{" "}
            <Plural value={agents.length} one="it offers" other="they offer" />.
          </Trans>
        </p>
      ) : null}
      <p>{t`Your own script needs no agent:`}</p>
      <Code>{`import trimtab

client = trimtab.Client("${server}", token="…")
study = client.create_study(
    "my-study",
    space=[trimtab.Float("x", 1e-3, 10, log=True), trimtab.Int("n", 1, 16)],
    objectives=[trimtab.Minimize("seconds")],
)
study.optimize(measure, n_trials=50)   # measure(params) -> seconds`}</Code>
    </Empty>
  );
}

import { plural, t } from "@lingui/core/macro";
import { Code } from "@/components/Message";
import type { InsightData } from "@/lib/api/client";
import { formatSpace } from "@/lib/format";

/** Say how many configurations the constraints leave, and how to report configurations that do not work. */
export function Notes({ data: { space, penalties } }: { data: Pick<InsightData, "space" | "penalties"> }) {
  const { size = null, feasible = null } = space ?? {};
  return (
    <>
      {size === null || feasible === null ? null : <p>{t`The constraints leave ${formatSpace({ size, feasible })}.`}</p>}
      {penalties ? (
        <div role="note">
          <p>{plural(penalties.trials.length, { one: "# value looks like a penalty: report this trial as infeasible.", other: "# values look like penalties: report these trials as infeasible." })}</p>
          {penalties.call === "" ? (
            <p>{t`The application then ends with an exit code other than 0, and without the metric.`}</p>
          ) : (
            <>
              <Code>{penalties.call}</Code>
              <Code>{penalties.command}</Code>
            </>
          )}
        </div>
      ) : null}
    </>
  );
}

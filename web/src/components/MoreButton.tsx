import { t } from "@lingui/core/macro";
import { Button } from "./Button";

interface Props {
  /** An infinite query of a list. */
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => Promise<unknown> };
}

/** A button that loads the next page of a list; nothing on the last page. */
export function MoreButton({ query: { hasNextPage, isFetchingNextPage, fetchNextPage } }: Props) {
  return hasNextPage ? (
    <Button disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
      {isFetchingNextPage ? t`Loading …` : t`Show more`}
    </Button>
  ) : null;
}

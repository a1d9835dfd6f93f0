import { t } from "@lingui/core/macro";
import { getRouteApi, useRouter } from "@tanstack/react-router";
import { SignIn } from "@/features/session/SignIn";
import { useTitle } from "@/lib/browser";

const route = getRouteApi("/sign-in");

export function SignInPage() {
  useTitle(t`Sign in`);
  const { next, error, state } = route.useSearch();
  const router = useRouter();
  return (
    <SignIn
      error={error}
      back={state !== undefined}
      next={next ?? "/"}
      onSignedIn={(to) => router.history.push(to)}
    />
  );
}

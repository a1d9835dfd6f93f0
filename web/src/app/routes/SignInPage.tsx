import { useRouter } from "@tanstack/react-router";
import { SignIn } from "@/features/session/SignIn";
import { useTitle } from "@/lib/title";
import { signInRoute } from "../router";

export function SignInPage() {
  useTitle("Sign in");
  const { next, error, state } = signInRoute.useSearch();
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

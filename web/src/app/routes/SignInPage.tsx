import { useRouter } from "@tanstack/react-router";
import { SignIn } from "@/features/session/SignIn";
import { useTitle } from "@/lib/title";
import { signInRoute } from "../router";

export function SignInPage() {
  useTitle("Sign in");
  const { next, error } = signInRoute.useSearch();
  const router = useRouter();
  return <SignIn error={error} onSignedIn={() => router.history.push(next ?? "/studies")} />;
}

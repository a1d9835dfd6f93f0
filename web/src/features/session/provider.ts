// Sign-in at an identity provider (OpenID Connect, authorization code with PKCE). Its access token is exchanged for the
// service's own cookie, which scripts cannot read and which a stream of events needs; whenever the token is renewed, so is
// the cookie.
import { t } from "@lingui/core/macro";
import type { User, UserManager } from "oidc-client-ts";
import { api, unwrap, type Provider, type Session } from "@/lib/api/client";

const TENANT = "trimtab-tenant"; // chosen by a member of several, for this tab
const RETURN = "/sign-in"; // where the provider sends the browser back to

// The router writes addresses its own way: what the provider appended is read as it came.
const arrival = location.href;

let made: Promise<UserManager> | undefined;
let kept = false;

function manager(provider: Provider): Promise<UserManager> {
  made ??= import("oidc-client-ts").then(
    ({ UserManager, WebStorageStateStore }) =>
      new UserManager({
        authority: provider.issuer,
        client_id: provider.client_id,
        redirect_uri: location.origin + RETURN,
        post_logout_redirect_uri: location.origin + RETURN,
        scope: "openid",
        userStore: new WebStorageStateStore({ store: sessionStorage }),
        stateStore: new WebStorageStateStore({ store: sessionStorage }),
        automaticSilentRenew: true,
      }),
  );
  return made;
}

/** Leave for the provider's page; `next` is where to go afterwards. */
export async function leaveFor(provider: Provider, next: string): Promise<void> {
  const found = await manager(provider);
  try {
    await found.signinRedirect({ state: next });
  } catch (error) {
    // What a browser says then is "Failed to fetch".
    if (error instanceof TypeError) throw new Error(t`The sign-in service at ${provider.issuer} cannot be reached.`);
    throw error;
  }
}

/** Back from the provider: where to go next. Throws what went wrong there. */
export async function comeBack(provider: Provider): Promise<string> {
  const user = await (await manager(provider)).signinRedirectCallback(arrival);
  // The code in the address is used up.
  history.replaceState(null, "", RETURN);
  return typeof user.state === "string" ? user.state : "/studies";
}

/** Exchange what the provider gave for a session. `tenant`: which one is meant, for a member of several. */
export async function enter(provider: Provider, tenant?: string): Promise<Session> {
  if (tenant !== undefined) sessionStorage.setItem(TENANT, tenant);
  const user = await (await manager(provider)).getUser();
  if (user === null) throw new Error(t`You have not signed in yet.`);
  return exchange(user);
}

/** Renew the session in time, for as long as the page is open. */
export async function keepSignedIn(provider: Provider): Promise<void> {
  if (kept) return;
  kept = true;
  const found = await manager(provider);
  // What fails shows at the next request.
  found.events.addUserLoaded((user) => void exchange(user).catch(() => undefined));
  await found.getUser();
}

/** After the session has ended: whether the provider gave another one without asking anybody. */
export async function renewSession(provider: Provider): Promise<boolean> {
  try {
    const found = await manager(provider);
    const user = await found.getUser();
    if (!user?.refresh_token) return false;
    const fresh = await found.signinSilent();
    if (fresh === null) return false;
    await exchange(fresh);
    return true;
  } catch {
    return false;
  }
}

/** Leave for the provider's page, to sign out there too. False where nobody had signed in by it. */
export async function signOutAt(provider: Provider): Promise<boolean> {
  const found = await manager(provider);
  sessionStorage.removeItem(TENANT);
  if ((await found.getUser()) === null) return false;
  await found.signoutRedirect();
  return true;
}

function exchange(user: User): Promise<Session> {
  const tenant = sessionStorage.getItem(TENANT) ?? "";
  return unwrap(api.POST("/api/v1/session", { body: { token: user.access_token, tenant } }));
}

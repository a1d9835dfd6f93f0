// Sign-in at an identity provider (OpenID Connect, authorization code with PKCE). Its access token is exchanged for the
// service's own cookie, which scripts cannot read and which an event stream needs. Whenever the token is renewed, the cookie
// is renewed too.
import { t } from "@lingui/core/macro";
import type { User, UserManager } from "oidc-client-ts";
import { api, unwrap, type Provider, type Session } from "@/lib/api/client";

const TENANT = "trimtab-tenant"; // chosen by a member of several tenants, for this tab
const RETURN = "/sign-in"; // the address to which the provider sends the browser back

// The router rewrites addresses, so the provider's parameters are read from the original one.
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

/** Leave for the provider's page. `next`: the page to open afterwards. */
export async function leaveFor(provider: Provider, next: string): Promise<void> {
  const found = await manager(provider);
  try {
    await found.signinRedirect({ state: next });
  } catch (error) {
    // The browser's own message would be "Failed to fetch".
    if (error instanceof TypeError) throw new Error(t`The sign-in service at ${provider.issuer} cannot be reached.`);
    throw error;
  }
}

/** Complete the provider's sign-in and return the page to open next. Throws the provider's error. */
export async function comeBack(provider: Provider): Promise<string> {
  const user = await (await manager(provider)).signinRedirectCallback(arrival);
  // The code in the address has been used.
  history.replaceState(null, "", RETURN);
  return typeof user.state === "string" ? user.state : "/studies";
}

/** Exchange the provider's token for a session. `tenant`: the choice of a member of several tenants. */
export async function enter(provider: Provider, tenant?: string): Promise<Session> {
  if (tenant !== undefined) sessionStorage.setItem(TENANT, tenant);
  const user = await (await manager(provider)).getUser();
  if (user === null) throw new Error(t`You have not signed in yet.`);
  return exchange(user);
}

/** Renew the session before it expires, while the page is open. */
export async function keepSignedIn(provider: Provider): Promise<void> {
  if (kept) return;
  kept = true;
  const found = await manager(provider);
  // The next request shows a failure.
  found.events.addUserLoaded((user) => void exchange(user).catch(() => undefined));
  await found.getUser();
}

/** Renew an expired session without asking the user, and return whether that succeeded. */
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

/** Leave for the provider's page to sign out there too. Return false if nobody had signed in through it. */
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

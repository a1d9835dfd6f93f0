import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import createClient from "openapi-fetch";
import type { components, paths } from "@/lib/api/_gen/schema";

type Schemas = components["schemas"];
export type Study = Schemas["Study"];
export type ListedStudy = Schemas["ListedStudy"];
export type StudyState = Schemas["StudyState"];
export type StudyEvent = Schemas["StudyEvent"];
export type StudySpec = Schemas["StudySpec"];
export type Objective = Schemas["Objective"];
export type ObjectiveProgress = Schemas["ObjectiveProgress"];
export type Analysis = Schemas["Analysis"];
export type Measured = Schemas["Measured"];
export type Trial = Schemas["Trial"];
export type TrialDetail = Schemas["TrialDetail"];
export type TrialState = Schemas["TrialState"];
export type Lease = Schemas["Lease"];
export type Invocation = Schemas["Invocation"];
export type Artifact = Schemas["Artifact"];
export type Failure = Schemas["Failure"];
export type Parameter = Schemas["Parameter"];
export type Insight = Schemas["Insight"];
export type InsightData = Schemas["InsightData"];
export type ObjectiveInsight = Schemas["ObjectiveInsight"];
export type Effect = Schemas["Effect"];
export type Surface = Schemas["Surface"];
export type Dependence = Schemas["Dependence"];
export type LogEvent = Schemas["LogEvent"];
export type Agent = Schemas["ListedAgent"];
export type StudyFacets = Schemas["StudyFacets"];
export type SummarisedObjective = Schemas["SummarisedObjective"];
export type Comparison = Schemas["Comparison"];
export type Component = Schemas["ComponentSummary"];
export type ComponentDetail = Schemas["ComponentDetail"];
export type WrittenComponent = Schemas["Written"];
export type ComponentCheck = Schemas["Checked"];
export type Gallery = Schemas["Gallery"];
export type Plan = Schemas["Plan"];
export type DryRun = Schemas["DryRun"];
export type Methods = Schemas["Methods"];
export type Method = Schemas["Method"];
export type ApiToken = Schemas["ApiToken"];
export type Member = Schemas["Member"];
export type Tenant = Schemas["Tenant"];
export type QueuedTenant = Schemas["Depth"];
export type Session = Schemas["Session"];
export type Provider = Schemas["Provider"];
export type MatchingRecord = Schemas["Record"];
export type RecordMatch = Schemas["RecordMatch"];
export type JobToMatch = Schemas["SubmittedJobRequest"];
export type ReportedJob = Schemas["ReportedJob"];
export type MatchingSettings = Schemas["MatchingSettings"];
export type NewMatchingSettings = Schemas["UpdateMatchingSettingsRequest"];
export type MatchingQuality = Schemas["Quality"];
export type Curves = Schemas["Curves"];
export type Note = Schemas["Note"];
export type Notice = Schemas["Notice"];
export type Channel = Schemas["Channel"];
export type LiveBoard = Schemas["LiveBoard"];
export type LiveBrief = Schemas["LiveBrief"];
export type LiveStatus = Schemas["LiveStatus"];
export type LiveInstance = Schemas["LiveInstance"];
export type LiveReading = Schemas["LiveReading"];
export type LiveLook = Schemas["LiveLook"];
export type LivePlan = Schemas["LivePlan"];
export type LiveKept = Schemas["Kept"];
export type LiveBudget = Schemas["LiveBudget"];
export type LiveWindow = Schemas["LiveWindow"];
export type LiveOutcome = Schemas["LiveOutcome"];
type Fault = Schemas["Fault"];
export type Scalar = number | string | boolean;
export type Configuration = Record<string, Scalar>;

/** The REST client. The header shows the service that a write comes from the console and not from another site. */
export const api = createClient<paths>({ baseUrl: "/", headers: { "X-Trimtab-Console": "1" } });

// The uid of the study that a page shows, by its name. A study that was deleted and created again has another uid.
const identities = new Map<string, string>();

/** Send this uid with each write to the study, so that the service refuses it if another study has the name by now. Returns an undo. */
export function identify(name: string, uid: string): () => void {
  identities.set(name, uid);
  return () => {
    if (identities.get(name) === uid) identities.delete(name);
  };
}

/** Return the headers of a write to a study of a list, as `identify` does for the study of a page. */
export function meaning({ uid }: { uid: string }): Record<string, string> {
  return { "X-Trimtab-Study-Uid": uid };
}

/** Return the uid to send with a request; undefined for a reading request, or one about no shown study. */
export function identityFor(method: string, path: string): string | undefined {
  const [, name] = /^\/api\/v1\/studies\/([^/]+)/.exec(path) ?? [];
  return method === "GET" || name === undefined ? undefined : identities.get(decodeURIComponent(name));
}

api.use({
  onRequest({ request }) {
    const uid = identityFor(request.method, new URL(request.url).pathname);
    if (uid !== undefined && !request.headers.has("X-Trimtab-Study-Uid")) request.headers.set("X-Trimtab-Study-Uid", uid);
  },
});

/** An error of the service, from its problem document. Status 0: the service could not be reached. */
export class ApiError extends Error {
  readonly code: string;
  readonly status: number;
  readonly data: Record<string, unknown>;
  /** Path of the documentation's page about the error, if there is one. */
  readonly docs: string | undefined;

  constructor(message: string, code: string, status: number, data: Record<string, unknown> = {}, docs?: string) {
    super(message);
    this.name = "ApiError";
    this.code = code;
    this.status = status;
    this.data = data;
    this.docs = docs;
  }
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Return the data of an answer. Throws ApiError. */
export async function unwrap<T>(call: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await call;
  } catch {
    throw new ApiError(t`The service cannot be reached. Is it running?`, "unreachable", 0);
  }
  const { data, error, response } = answer;
  if (!response.ok) {
    const fault = (typeof error === "object" && error !== null ? error : {}) as Partial<Fault>;
    throw new ApiError(
      fault.detail === undefined ? t`The service answered with status ${response.status}.` : faultText(fault.code, fault.detail),
      fault.code ?? "unknown",
      response.status,
      fault.data,
      fault.docs,
    );
  }
  return data as T;
}

/** Return whether an error says that nobody is signed in. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof ApiError && error.status === 401;
}

/** The errors of the service that users meet most, by their codes. English readers see the service's own sentence, which says more. */
const FAULTS: Record<string, MessageDescriptor> = {
  invalid_token: msg`The token is wrong.`,
  unauthenticated: msg`You are not signed in.`,
  not_permitted: msg`Your role does not permit this.`,
  study_exists: msg`There is already a study with this name.`,
  study_not_found: msg`The study does not exist.`,
  study_replaced: msg`The study was deleted, and another one has its name by now.`,
  trial_not_found: msg`The trial does not exist.`,
  record_not_found: msg`The record does not exist.`,
  component_not_found: msg`The component does not exist.`,
  channel_exists: msg`There is already a channel to this address.`,
  quota_exceeded: msg`The tenant has reached a limit.`,
  invalid_step: msg`The present state does not allow this step.`,
  mail_not_configured: msg`The service has no mail server.`,
};

/** Return the text of an error in the language of the console. A code without a text has the service's own sentence. */
function faultText(code: string | undefined, detail: string): string {
  const known = code === undefined ? undefined : FAULTS[code];
  return known === undefined || i18n.locale === "en" ? detail : `${i18n._(known)} (${detail})`;
}

import { t } from "@lingui/core/macro";
import { ApiError } from "./api/client";

/** The code of an error that says that a part of the console could not be loaded. */
const UNLOADED = "part_unloaded";

/** Load a part of the console that has a file of its own. Throws ApiError of the code UNLOADED if the file cannot be fetched. */
export async function part<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch {
    throw new ApiError(t`This part of the console could not be loaded. The page tries again as soon as the service answers.`, UNLOADED, 0);
  }
}

export function isUnloaded(error: unknown): boolean {
  return error instanceof ApiError && error.code === UNLOADED;
}

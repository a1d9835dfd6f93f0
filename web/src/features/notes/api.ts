import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";

/** The notes of a study and its trials; with a trial, only its note. `revision`: a change of the study has them fetched again. */
export function notesQuery(study: string, trial: number | undefined, revision: number) {
  return queryOptions({
    queryKey: ["notes", study, trial ?? null, revision],
    queryFn: () => unwrap(api.GET("/api/v1/studies/{name}/notes", { params: { path: { name: study }, query: trial === undefined ? {} : { trial } } })),
    placeholderData: (before) => before,
  });
}

export interface NoteChange {
  text?: string;
  tags?: string[];
}

/** Change the note of a trial, or without a number the note of the study. */
export function useChangeNote(study: string, trial: number | undefined) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (change: NoteChange) =>
      trial === undefined
        ? unwrap(api.PATCH("/api/v1/studies/{name}/note", { params: { path: { name: study } }, body: change }))
        : unwrap(api.PATCH("/api/v1/studies/{name}/trials/{number}/note", { params: { path: { name: study, number: trial } }, body: change })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["notes", study] }),
  });
}

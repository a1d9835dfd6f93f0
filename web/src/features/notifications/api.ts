import { infiniteQueryOptions, keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";

/** The latest notifications that meet all conditions. The stream of changes has it fetched again. */
export function noticesQuery(where: readonly string[]) {
  return queryOptions({
    queryKey: ["notices", where],
    queryFn: () => unwrap(api.GET("/api/v1/notices", { params: { query: { page_size: 30, where: [...where] } } })),
    placeholderData: keepPreviousData,
  });
}

export function useReadNotices() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (through: number) => unwrap(api.POST("/api/v1/notices/read", { body: { through } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["notices"] }),
  });
}

export const channelsQuery = queryOptions({
  queryKey: ["channels"],
  queryFn: () => unwrap(api.GET("/api/v1/notice-channels")),
});

export interface NewChannel {
  medium: string;
  target: string;
  kinds: string[];
}

export function useCreateChannel() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (channel: NewChannel) => unwrap(api.POST("/api/v1/notice-channels", { body: channel })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["channels"] }),
  });
}

export function useDeleteChannel() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (channel_id: string) => unwrap(api.DELETE("/api/v1/notice-channels/{channel_id}", { params: { path: { channel_id } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["channels"] }),
  });
}

export function useTestChannel() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (channel_id: string) => unwrap(api.POST("/api/v1/notice-channels/{channel_id}/test", { params: { path: { channel_id } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["deliveries"] }),
  });
}

/** The log of a channel. It is polled while it is shown: a delivery may be tried again hours later, without an event. */
export function deliveriesQuery(channel_id: string, where: readonly string[]) {
  return infiniteQueryOptions({
    queryKey: ["deliveries", channel_id, where],
    queryFn: ({ pageParam }) =>
      unwrap(
        api.GET("/api/v1/notice-channels/{channel_id}/deliveries", { params: { path: { channel_id }, query: { page_size: 20, page_token: pageParam, where: [...where] } } }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_page_token || undefined,
    refetchInterval: 2000,
  });
}

// The parts of the frame that no page waits for, in one file.
export { default as Help } from "./Help";
export { default as NotificationList } from "@/features/notifications/NotificationList";

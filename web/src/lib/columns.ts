/** The columns by which the service filters its lists, as the words of conditions. They are the same in every language. */
export const STUDY_COLUMNS = ["name", "component", "application", "algorithm", "state", "reason", "owner", "trials", "best", "gain", "created", "updated"];
export const AUDIT_COLUMNS = ["time", "actor", "action", "target", "credential", "address"];
export const RECORD_COLUMNS = ["component", "application", "study", "job", "user", "program", "nodes", "gain", "state", "written"];
export const JOB_COLUMNS = ["job", "user", "program", "command", "cluster", "partition", "nodes", "end", "seconds", "ended"];
export const NOTICE_COLUMNS = ["kind", "study", "reason", "time"];
export const DELIVERY_COLUMNS = ["kind", "study", "state", "attempts", "status", "error", "time"];

"""From an ask to trials and from a report to the next ask. The only room that calls designers."""

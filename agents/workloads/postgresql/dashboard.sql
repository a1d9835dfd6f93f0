-- A report with one row for each of 3,000 groups of 20 accounts. The planner expects 5,000 accounts in each group.
\set low random(1, 100000 * :scale - 60000)
select part, found.* from generate_series(0, 2999) as part cross join lateral (
  select count(*) as accounts, sum(abalance) as total, count(*) filter (where abalance < 0) as overdrawn,
    avg(abalance) filter (where abalance > 0) as credit, max(abalance) - min(abalance) as spread
  from pgbench_accounts where aid between :low + part * 20 and :low + part * 20 + 19) as found
  order by overdrawn desc, part limit 20;

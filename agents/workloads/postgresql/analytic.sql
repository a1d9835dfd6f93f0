-- Two reports over 50,000 accounts: an ordering that needs memory, and an aggregation.
\set low random(1, 100000 * :scale - 50000)
\set high :low + 49999
select count(*), max(place) from (select rank() over (partition by bid order by md5(aid::text)) as place
  from pgbench_accounts where aid between :low and :high) as ranked;
select b.bid, a.aid % 1000 as segment, count(*), sum(a.abalance) from pgbench_accounts a join pgbench_branches b using (bid)
  where a.aid between :low and :high group by 1, 2 order by 3 desc limit 10;

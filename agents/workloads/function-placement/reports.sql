\set account random(1, 100000)
SELECT b.bid, count(*), sum(a.abalance), max(t.tbalance)
  FROM pgbench_accounts a JOIN pgbench_branches b USING (bid) LEFT JOIN pgbench_tellers t USING (bid)
 WHERE a.aid BETWEEN :account AND :account + 20 GROUP BY b.bid ORDER BY 3 DESC;
WITH near AS (SELECT aid, abalance, row_number() OVER (ORDER BY abalance, aid) AS place
                FROM pgbench_accounts WHERE aid BETWEEN :account AND :account + 30)
SELECT place % 7 AS part, avg(abalance)::numeric(10, 2), string_agg(to_char(aid, 'FM000000'), ',' ORDER BY aid)
  FROM near WHERE aid % 3 <> 0 GROUP BY 1 HAVING count(*) > 1;
SELECT date_trunc('minute', now()) - interval '1 day', upper(substr(md5(:account::text), 1, 8)),
       regexp_replace('account ' || :account, '\d+', 'x'), to_jsonb(ARRAY[1, :account]) -> 1;

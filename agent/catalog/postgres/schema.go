package postgres

import "strings"

// version is that of what is in the schema.
const version = 1

// leadBytes is how much of a key an index has: one of its entries is 2,704 bytes at most.
const leadBytes = 2560

// Keys that are longer are told apart by a digest, and ordered by what follows the lead. No committed record has neither value nor
// count: such a row is a lock on an absent key, which ends with its transaction.
const tables = `
create schema if not exists $schema;
create table $schema.format (version integer not null);
create table $schema.records (
  lead bytea not null, digest bytea not null, tail bytea not null, value bytea, count bigint, primary key (lead, digest)
);
create table $schema.told (
  lead bytea not null, digest bytea not null, tail bytea not null, at xid8 not null, primary key (lead, digest)
);
create index on $schema.told (at);
insert into $schema.format values ($version);
`

// apply makes updates that exclude none of one another. It locks what they name in ascending order of keys, so that none waits for
// another in a circle, compares what is then there, and makes those whose checks hold. What it answers is which checks failed, by
// position, and which updates increment what is no counter.
//
// Who only checks shares a row with others of the kind, who may come and go for ever while one waits who writes it. So once a second,
// for a moment, nobody shares, and all wait in the order in which they came.
//
// Every statement has a snapshot of its own, taken after the locks, which is what the isolation level is checked for. Plans go by the
// primary key whatever is known of the tables: they are kept while these grow.
const apply = `
create function $schema.apply(
  leads bytea[], digests bytea[], tails bytea[], exclusive boolean[],
  check_owners integer[], check_keys integer[], check_values bytea[],
  write_owners integer[], write_keys integer[], write_kinds integer[], write_values bytea[], write_counts bigint[], write_tells boolean[],
  out failed integer[], out broken integer[]
) language plpgsql volatile
  set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off
  set enable_hashjoin = off set enable_mergejoin = off as $body$
declare
  wanted integer[];
  absent integer[];
  made integer[] := '{}';
  refused integer[] := '{}';
  added bigint;
  alone boolean := extract(milliseconds from clock_timestamp())::integer % 1000 < 50;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'the transaction is %, not read committed', current_setting('transaction_isolation')
      using errcode = 'invalid_transaction_state';
  end if;
  if current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  wanted := array(select generate_series(1, cardinality(leads)));
  loop
    select array_agg(k.i order by k.i) into absent from (
      select w.i, case when alone or exclusive[w.i]
        then (select true from $schema.records r where r.lead = leads[w.i] and r.digest = digests[w.i] for update)
        else (select true from $schema.records r where r.lead = leads[w.i] and r.digest = digests[w.i] for share)
      end as locked from unnest(wanted) w(i) offset 0
    ) k where k.locked is null;
    exit when absent is null;
    insert into $schema.records (lead, digest, tail)
      select leads[a.i], digests[a.i], tails[a.i] from unnest(absent) a(i) on conflict do nothing;
    get diagnostics added = row_count;
    made := made || absent;
    exit when added = cardinality(absent);
    wanted := absent;
  end loop;

  if cardinality(check_keys) > 0 then
    select array_agg(c.i - 1 order by c.i), array_agg(c.owner) into failed, refused
      from unnest(check_owners, check_keys, check_values) with ordinality c(owner, k, v, i)
      left join $schema.records r on r.lead = leads[c.k] and r.digest = digests[c.k]
      where coalesce(r.value, convert_to(r.count::text, 'UTF8')) is distinct from c.v;
    refused := coalesce(refused, '{}');
  end if;
  if 3 = any(write_kinds) then
    select array_agg(w.owner) into broken
      from unnest(write_owners, write_keys, write_kinds) w(owner, k, kind)
      join $schema.records r on r.lead = leads[w.k] and r.digest = digests[w.k]
      where w.kind = 3 and r.value is not null and w.owner <> all(refused);
    refused := refused || coalesce(broken, '{}');
    update $schema.records r set count = coalesce(r.count, 0) + s.added
      from (select w.k, sum(w.count)::bigint as added
        from unnest(write_owners, write_keys, write_kinds, write_counts) w(owner, k, kind, count)
        where w.kind = 3 and w.owner <> all(refused) group by w.k) s
      where r.lead = leads[s.k] and r.digest = digests[s.k];
  end if;
  update $schema.records r set value = w.value, count = w.count
    from unnest(write_owners, write_keys, write_kinds, write_values, write_counts) w(owner, k, kind, value, count)
    where w.kind in (0, 2) and w.owner <> all(refused) and r.lead = leads[w.k] and r.digest = digests[w.k];
  if 1 = any(write_kinds) then
    delete from $schema.records r using unnest(write_owners, write_keys, write_kinds) w(owner, k, kind)
      where w.kind = 1 and w.owner <> all(refused) and r.lead = leads[w.k] and r.digest = digests[w.k];
  end if;
  if cardinality(made) > 0 then
    delete from $schema.records r using unnest(made) m(i)
      where r.lead = leads[m.i] and r.digest = digests[m.i] and r.value is null and r.count is null;
  end if;

  if true = any(write_tells) then
    insert into $schema.told select leads[t.k], digests[t.k], tails[t.k], pg_current_xact_id() from (
        select distinct w.k from unnest(write_owners, write_keys, write_tells) w(owner, k, tells)
        where w.tells and w.owner <> all(refused) order by w.k
      ) t on conflict (lead, digest) do update set at = excluded.at;
    perform pg_notify($channel, pg_current_xact_id()::text || ' ' || encode(leads[t.k] || tails[t.k], 'base64')) from (
        select distinct w.k from unnest(write_owners, write_keys, write_tells) w(owner, k, tells)
        where w.tells and w.owner <> all(refused)
      ) t;
  end if;
end $body$;
`

// What reads refuses a server that follows another: it may be behind.
const reads = `
create function $schema.fetch(leads bytea[], digests bytea[]) returns table (content bytea) language plpgsql stable
  set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off
  set enable_hashjoin = off set enable_mergejoin = off as $body$
begin
  if pg_is_in_recovery() then
    raise exception 'the server is a standby' using errcode = 'read_only_sql_transaction';
  end if;
  return query select coalesce(r.value, convert_to(r.count::text, 'UTF8'))
    from unnest(leads, digests) with ordinality k(lead, digest, i)
    left join $schema.records r on r.lead = k.lead and r.digest = k.digest order by k.i;
end $body$;

create function $schema.list(from_lead bytea, from_tail bytea, beyond boolean, to_lead bytea, to_tail bytea, most bigint)
  returns table (key bytea, content bytea) language plpgsql stable
  set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off as $body$
begin
  if pg_is_in_recovery() then
    raise exception 'the server is a standby' using errcode = 'read_only_sql_transaction';
  end if;
  return query select r.lead || r.tail, coalesce(r.value, convert_to(r.count::text, 'UTF8')) from $schema.records r
    where r.lead >= from_lead and (to_lead is null or r.lead <= to_lead)
      and (r.lead > from_lead or r.tail > from_tail or r.tail = from_tail and not beyond)
      and (to_lead is null or r.lead < to_lead or r.tail < to_tail)
    order by r.lead, r.tail limit most;
end $body$;

create function $schema.told_since(since xid8) returns table (key bytea, at xid8, next xid8) language plpgsql stable
  set search_path = pg_catalog, pg_temp as $body$
begin
  if pg_is_in_recovery() then
    raise exception 'the server is a standby' using errcode = 'read_only_sql_transaction';
  end if;
  return query select null::bytea, null::xid8, pg_snapshot_xmin(pg_current_snapshot());
  return query select t.lead || t.tail, t.at, null::xid8 from $schema.told t where t.at >= since;
end $body$;
`

// privileges are what a role needs to work with a catalog that is there, and the question whether it has it.
var privileges = []struct{ grant, question string }{
	{"usage on schema $schema", "has_schema_privilege($name, 'usage')"},
	{"select on $schema.format", "has_table_privilege($name || '.format', 'select')"},
	{"select, insert, update, delete on $schema.records",
		"(select bool_and(has_table_privilege($name || '.records', p)) from unnest('{select,insert,update,delete}'::text[]) p)"},
	{"select, insert, update on $schema.told",
		"(select bool_and(has_table_privilege($name || '.told', p)) from unnest('{select,insert,update}'::text[]) p)"},
	{"execute on all functions in schema $schema",
		"(select bool_and(has_function_privilege(p.oid, 'execute')) from pg_proc p where p.pronamespace = $name::regnamespace)"},
}

// in fills in the name of a schema, which has letters, digits and underscores alone.
func in(schema, text string) string {
	return strings.NewReplacer("$schema", schema, "$name", "'"+schema+"'", "$channel", "'"+channel(schema)+"'", "$version", "1").Replace(text)
}

// channel is what a catalog tells of its keys.
func channel(schema string) string { return schema + "_told" }

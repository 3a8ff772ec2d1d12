package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/restripe/restripe/agent/catalog/kv"
)

// oldest is the first release of PostgreSQL that has what is used.
const oldest = 140000

// inspect makes the schema if it is not there, refuses what cannot be worked with, and collects what the operator should know.
func (e *Engine) inspect(ctx context.Context) error {
	c, err := e.reads.take(ctx)
	if err != nil {
		return fmt.Errorf("opening the catalog %s: %w", e.target.location, err)
	}
	err = errors.Join(e.judge(ctx, c), e.prepare(ctx, c))
	e.reads.give(c, c.IsClosed())
	if err != nil {
		return fmt.Errorf("opening the catalog %s: %w", e.target.location, err)
	}
	return nil
}

// words asks for one row of text.
func (c *connection) words(ctx context.Context, sql string) ([]string, error) {
	result := c.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
	if result.Err != nil {
		return nil, result.Err
	}
	var words []string
	for _, row := range result.Rows {
		for _, word := range row {
			words = append(words, string(word))
		}
	}
	return words, nil
}

// judge says what the server loses in a crash.
func (e *Engine) judge(ctx context.Context, c *connection) error {
	answer, err := c.words(ctx, `select current_setting('server_version_num'), current_setting('server_version'),
		current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_standby_names'),
		(select count(*) from pg_stat_replication), current_setting('transaction_isolation')`)
	if err != nil {
		return fmt.Errorf("asking how the server is configured: %w", err)
	}
	if number, err := strconv.Atoi(answer[0]); err != nil || number < oldest {
		return fmt.Errorf("the server is PostgreSQL %s: use 14 or newer", answer[1])
	}
	if answer[6] != "read committed" {
		return fmt.Errorf("transactions are %s by default: alter role %s set default_transaction_isolation = 'read committed'",
			answer[6], quoted(e.target.config.User))
	}
	warn := func(text string) {
		e.mayLose = true
		e.warnings = append(e.warnings, "The catalog "+e.target.location+" "+text)
	}
	if answer[2] != "on" {
		warn("does not wait for its disk (fsync off): a crash of the machine loses acknowledged writes, or everything. Set fsync on.")
	}
	if answer[3] != "on" {
		warn("does not protect pages that are written in part (full_page_writes off): a crash of the machine may spoil it. " +
			"Set full_page_writes on.")
	}
	if answer[4] == "" && answer[5] != "0" {
		warn("has standbys that may take its place without the newest writes. Set synchronous_standby_names.")
	}
	return nil
}

// prepare sees that the schema is there, is one that this program knows, and may be used.
func (e *Engine) prepare(ctx context.Context, c *connection) error {
	schema := e.target.schema
	for attempt := 0; ; attempt++ {
		there, err := c.words(ctx, in(schema, "select 1 from pg_tables where schemaname = $name and tablename = 'format'"))
		if err != nil {
			return fmt.Errorf("looking for the schema %s: %w", schema, err)
		}
		if len(there) > 0 {
			break
		}
		_, err = c.Exec(ctx, in(schema, tables+apply+reads)).ReadAll()
		var answer *pgconn.PgError
		switch {
		case err == nil:
		case errors.As(err, &answer) && answer.Code == "42501":
			return fmt.Errorf("making the schema %s: %w; let another role make it, or: grant create on database %s to %s",
				schema, err, quoted(e.target.config.Database), quoted(e.target.config.User))
		case attempt < 3 && refused(err) != nil: // another one may have made it meanwhile
		default:
			return fmt.Errorf("making the schema %s: %w", schema, err)
		}
	}
	for _, privilege := range privileges {
		granted, err := c.words(ctx, in(schema, "select coalesce("+privilege.question+", false)"))
		if err != nil {
			return fmt.Errorf("asking for privileges: %w", err)
		}
		if granted[0] != "t" {
			return fmt.Errorf("the role %s may not use it: grant %s to %s",
				quoted(e.target.config.User), in(schema, privilege.grant), quoted(e.target.config.User))
		}
	}
	found, err := c.words(ctx, in(schema, "select version from $schema.format"))
	if err != nil {
		return fmt.Errorf("reading the version of the schema %s: %w", schema, err)
	}
	if len(found) != 1 {
		return fmt.Errorf("the schema %s says no version: it is not one of a catalog", schema)
	}
	number, err := strconv.Atoi(found[0])
	switch {
	case err != nil || number < version:
		return fmt.Errorf("the schema %s is of version %s, which no release has had", schema, found[0])
	case number > version:
		return fmt.Errorf("%w: its schema %s is of version %d, this program knows %d; use the newer release",
			kv.ErrNewer, schema, number, version)
	}
	return nil
}

// quoted returns a name as a statement has it.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

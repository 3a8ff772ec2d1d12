//go:build linux

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/restripe/restripe/agent/catalog/postgres/postgrestest"
)

// postgresVariable names the folder with the programs of PostgreSQL for the test inside its namespaces.
const postgresVariable = "RESTRIPE_TEST_POSTGRES"

// managerPatience is how long a primary is away until its standby is promoted, as docs/catalog.md asks of who manages them.
const managerPatience = 2500 * time.Millisecond

// What the servers say on their command line besides where they are: they notice soon that another is away.
var postgresSettings = []string{
	"wal_keep_size=128MB", "max_wal_size=128MB", "wal_sender_timeout=5s", "wal_receiver_timeout=5s", "wal_retrieve_retry_interval=200ms",
	"tcp_user_timeout=5s",
}

// startPostgres starts a primary in one place of the catalog and its synchronous standby in the other, and returns their address.
func (c *networkChaos) startPostgres(base string) (address string, err error) {
	first, second := c.catalogs[0], c.catalogs[1]
	for _, p := range c.catalogs {
		if err := os.Mkdir(postgresFolder(p), 0o700); err != nil {
			return "", err
		}
		if _, err := postgrestest.Account(postgresFolder(p)); err != nil {
			return "", err
		}
	}
	for folder := base; ; folder = filepath.Dir(folder) { // another user goes through them
		if err := os.Chmod(folder, 0o755); err != nil {
			return "", err
		}
		if folder == filepath.Dir(base) {
			break
		}
	}
	c.primary = first
	err = c.runPostgres(first, "initdb", "--pgdata="+dataFolder(first), "--username=owner", "--auth=trust", "--encoding=UTF8",
		"--locale=C", "--no-sync")
	if err != nil {
		return "", err
	}
	rules := "host all all 198.18.0.0/24 trust\nhost replication all 198.18.0.0/24 trust\n"
	if err := os.WriteFile(filepath.Join(dataFolder(first), "pg_hba.conf"), []byte(rules), 0o600); err != nil {
		return "", err
	}
	for _, p := range c.catalogs {
		if p == second {
			if err := c.copyPrimary(p); err != nil {
				return "", err
			}
		}
		program, err := postgresCommand(p, "postgres", "-D", dataFolder(p))
		if err != nil {
			return "", err
		}
		for _, setting := range append([]string{
			"port=" + storePort[1:], "listen_addresses=" + p.address, "unix_socket_directories=",
		}, postgresSettings...) {
			program = append(program, "-c", setting)
		}
		if err := p.run(c.t, base, "catalog", storePort, "", program...); err != nil {
			return "", err
		}
		if err := c.insist(p.name+" answers", func(ctx context.Context) error { return says(ctx, p, "select 1", "1") }); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("postgres://owner@%s,%s/postgres?sslmode=disable&target_session_attrs=read-write",
		first.address+storePort, second.address+storePort), c.waitForStandby()
}

func postgresFolder(p *place) string { return filepath.Join(p.disk, "postgres") }
func dataFolder(p *place) string     { return filepath.Join(postgresFolder(p), "data") }

// postgresCommand is a program of PostgreSQL in its folder of a place, as the user that it runs as.
func postgresCommand(p *place, program string, arguments ...string) ([]string, error) {
	credential, err := postgrestest.Account(postgresFolder(p))
	if err != nil {
		return nil, err
	}
	return append([]string{"env", "--chdir=" + postgresFolder(p), "setpriv", "--reuid=" + strconv.Itoa(int(credential.Uid)),
		"--regid=" + strconv.Itoa(int(credential.Gid)), "--clear-groups", filepath.Join(os.Getenv(postgresVariable), program)}, arguments...), nil
}

// runPostgres runs a program of PostgreSQL in a place to its end.
func (c *networkChaos) runPostgres(p *place, program string, arguments ...string) error {
	command, err := postgresCommand(p, program, arguments...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	if text, err := exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", p.name}, command...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s in %s: %w: %s", program, p.name, err, text)
	}
	return nil
}

// copyPrimary makes a standby of what a place has, whatever that was.
func (c *networkChaos) copyPrimary(p *place) error {
	if err := os.RemoveAll(dataFolder(p)); err != nil {
		return err
	}
	host, port, _ := strings.Cut(c.primary.address+storePort, ":")
	return c.runPostgres(p, "pg_basebackup", "-D", dataFolder(p), "-R", "-c", "fast", "--no-sync",
		"-d", fmt.Sprintf("host=%s port=%s user=owner connect_timeout=2 tcp_user_timeout=5000", host, port))
}

// waitForStandby has the primary wait for its standby, once that follows.
func (c *networkChaos) waitForStandby() error {
	const following = "select count(*) from pg_stat_replication where state = 'streaming'"
	err := c.insist("the standby follows", func(ctx context.Context) error { return says(ctx, c.primary, following, "1") })
	if err == nil {
		err = c.setStandbys(c.primary, "set synchronous_standby_names = '*'")
	}
	if err != nil {
		return err
	}
	return c.insist("the primary waits for its standby", func(ctx context.Context) error {
		return says(ctx, c.primary, "select count(*) from pg_stat_replication where sync_state = 'sync'", "1")
	})
}

// setStandbys changes for whom a server waits.
func (c *networkChaos) setStandbys(p *place, change string) error {
	return c.insist(p.name+" is told to "+change, func(ctx context.Context) error {
		if _, err := query(ctx, p, "alter system "+change); err != nil {
			return err
		}
		return says(ctx, p, "select pg_reload_conf()", "t")
	})
}

// query returns the first column of the last row with which a server answers a statement.
func query(ctx context.Context, p *place, statement string) (text string, err error) {
	connection, err := pgconn.Connect(ctx, "postgres://owner@"+p.address+storePort+"/postgres?sslmode=disable")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, connection.Close(ctx)) }()
	results, err := connection.Exec(ctx, statement).ReadAll()
	if err != nil {
		return "", fmt.Errorf("%s: %w", statement, err)
	}
	for _, result := range results {
		for _, row := range result.Rows {
			text = string(row[0])
		}
	}
	return text, nil
}

// says reports what is wrong if a server does not answer a statement as wanted.
func says(ctx context.Context, p *place, statement, want string) error {
	got, err := query(ctx, p, statement)
	if err == nil && got != want {
		err = fmt.Errorf("%s says %q to %s, not %q", p.name, got, statement, want)
	}
	return err
}

// insist tries until it succeeds, for ten minutes.
func (c *networkChaos) insist(what string, once func(ctx context.Context) error) error {
	for deadline := time.Now().Add(10 * time.Minute); ; c.pause(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
		err := once(ctx)
		cancel()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) || c.t.Context().Err() != nil {
			return fmt.Errorf("after ten minutes it does not hold that %s: %w", what, err)
		}
	}
}

// failOver has something happen to the primary, and its standby promoted, as who manages them does once the primary has been away for
// long enough. Nobody tells the old primary.
func failOver(hurt func(context.Context, *networkChaos, *place) error) func(context.Context, *networkChaos, *place) error {
	return func(ctx context.Context, c *networkChaos, p *place) error {
		if err := hurt(ctx, c, p); err != nil {
			return err
		}
		c.pause(managerPatience)
		standby := otherCatalogs(c, p)[0]
		if err := c.setStandbys(standby, "reset synchronous_standby_names"); err != nil {
			return err
		}
		if err := c.insist(standby.name+" is promoted", func(ctx context.Context) error {
			return says(ctx, standby, "select case when pg_is_in_recovery() then pg_promote() else true end", "t")
		}); err != nil {
			return err
		}
		c.primary = standby
		return nil
	}
}

// fillAndEnd fills the disk of a primary and then ends it: it may go on for long with what it has room for already, and its standby
// follows. A standby is not promoted while it does, unless its primary has ended.
func fillAndEnd(ctx context.Context, c *networkChaos, p *place) error {
	if err := fillCatalog(ctx, c, p); err != nil {
		return err
	}
	c.pause(time.Second)
	return p.processes["catalog"].kill()
}

// takeBack has the old primary come back, as one that knows of nothing and is obeyed by nobody, and then makes it the standby of the
// new one.
func takeBack(heal func(context.Context, *networkChaos, *place) error) func(context.Context, *networkChaos, *place) error {
	return func(ctx context.Context, c *networkChaos, p *place) error {
		if err := heal(ctx, c, p); err != nil {
			return err
		}
		if err := c.insist("the old primary takes itself for one", func(ctx context.Context) error {
			return says(ctx, p, "select pg_is_in_recovery()", "f")
		}); err != nil {
			return err
		}
		enough := c.acknowledged() + 10
		c.await("clients get on beside the old primary", func() bool { return c.acknowledged() >= enough })
		if err := errors.Join(p.processes["catalog"].kill(), c.copyPrimary(p)); err != nil {
			return err
		}
		if err := p.processes["catalog"].start(ctx); err != nil {
			return err
		}
		return c.waitForStandby()
	}
}

// comeBack starts an old primary, and a gateway that has met neither server before.
func comeBack(ctx context.Context, c *networkChaos, p *place) error {
	newcomer := c.gateways[c.strikes%len(c.gateways)].processes["gateway"]
	if err := errors.Join(p.processes["catalog"].start(ctx), newcomer.kill()); err != nil {
		return err
	}
	return newcomer.start(ctx)
}

// withOneGateway are all of the network but p and the last gateway, which p stays together with.
func withOneGateway(c *networkChaos, p *place) []*place {
	return append(otherCatalogs(c, p), c.gateways[:len(c.gateways)-1]...)
}

// isolate leaves p and the last gateway alone with one another and the nodes; join ends it.
func isolate(ctx context.Context, c *networkChaos, p *place) error {
	last := c.gateways[len(c.gateways)-1]
	return errors.Join(cut(withOneGateway)(ctx, c, p), cut(otherCatalogsThan(p))(ctx, c, last))
}

func join(ctx context.Context, c *networkChaos, p *place) error {
	last := c.gateways[len(c.gateways)-1]
	return errors.Join(mend(withOneGateway)(ctx, c, p), mend(otherCatalogsThan(p))(ctx, c, last))
}

func otherCatalogsThan(p *place) func(*networkChaos, *place) []*place {
	return func(c *networkChaos, _ *place) []*place { return otherCatalogs(c, p) }
}

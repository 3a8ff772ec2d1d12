package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/open"
	"github.com/restripe/restripe/agent/catalog/transfer"
	"github.com/restripe/restripe/agent/gateway/client"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/daemon"
	"github.com/restripe/restripe/tui/cli/program"
	"github.com/restripe/restripe/tui/progress"
)

// partialSuffix ends the name of a backup that is not whole yet.
const partialSuffix = ".partial"

func catalogBackup(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "backup FILE", Short: "Copy the catalog, while it is at work, into a file",
		Long: "Copy the catalog, while it is at work, into a file: all records as they are at one instant, verified. It is\n" +
			"asked of the gateway, or with --catalog of the engine itself. The copy is made in FILE" + partialSuffix + ", where one\n" +
			"that was broken off goes on, and takes the place of FILE once it is whole.",
		Example: "  restripe catalog backup /backup/catalog.db",
		Args:    cobra.ExactArgs(1),
	}
	address := command.Flags().String("catalog", "", "engine to ask in place of the gateway: its address, or @FILE with it")
	format := outputFlag(command, "table", "json", "yaml")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		from, closeSource, err := s.copySource(command, *address)
		if err != nil {
			return err
		}
		made, err := s.backup(command.Context(), from, arguments[0])
		if err := errors.Join(err, closeSource()); err != nil {
			return err
		}
		return s.showCopied(format, made, fmt.Sprintf("backed up are %s as of %s", copiedText(made), words.Time(made.At)))
	}
	return command
}

// copySource opens what is copied: an engine, or the catalog of the gateway.
func (s *session) copySource(command *cobra.Command, flag string) (transfer.Source, func() error, error) {
	address, err := daemon.SecretAddress(command, "catalog", flag, "")
	if err != nil {
		return nil, nil, err
	}
	if address != "" {
		engine, err := open.Engine(command.Context(), address)
		if err != nil {
			return nil, nil, fmt.Errorf("opening the catalog: %w", err)
		}
		return engine, engine.Close, nil
	}
	c, err := s.client()
	if err != nil {
		return nil, nil, err
	}
	return served{c}, func() error { c.Close(); return nil }, nil
}

// served is the catalog of a gateway.
type served struct{ gateway *client.Client }

// Snapshot implements transfer.Source.
func (s served) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	records, err := s.gateway.CopyCatalog(ctx)
	if err != nil {
		return nil, err
	}
	return transfer.NewStream(records), nil
}

// Size implements transfer.Source.
func (s served) Size(ctx context.Context) (kv.Size, error) {
	lineage, err := s.gateway.Lineage(ctx)
	return kv.Size(lineage.Size), err
}

func (s *session) backup(ctx context.Context, from transfer.Source, path string) (made transfer.Copied, err error) {
	partial := path + partialSuffix
	to, err := open.Engine(ctx, "sqlite:"+partial)
	if err != nil {
		return made, fmt.Errorf("opening the file of the backup: %w", err)
	}
	show, clear := s.copyProgress()
	made, err = transfer.Backup(ctx, from, to, show)
	clear()
	if err := errors.Join(err, to.Close()); err != nil {
		return made, fmt.Errorf("%w; what there is of it is in %s", err, partial)
	}
	if err := os.Rename(partial, path); err != nil {
		return made, fmt.Errorf("putting the backup in its place: %w", err)
	}
	_ = os.Remove(partial + ".lock") // what is left of it harms nobody
	return made, nil
}

// copyProgress shows how far a copy is until it is told to stop.
func (s *session) copyProgress() (show transfer.Progress, stop func()) {
	m := progress.New(s.Messages)
	began, doing := time.Now(), ""
	return func(now string, records int64, part float64) {
		if now != doing {
			began, doing = time.Now(), now
		}
		m.Show(time.Now(), func() string {
			left := time.Duration(float64(time.Since(began)) * (1/max(part, 0.001) - 1))
			return fmt.Sprintf("%s records %s, about %.0f %%, %s left", words.Number(records), now, 100*part, words.About(left))
		})
	}, m.Clear
}

func copiedText(made transfer.Copied) string {
	return fmt.Sprintf("%s, %s", words.Count(made.Records, "record"), words.Bytes(made.Bytes))
}

func (s *session) showCopied(format *formatValue, made transfer.Copied, lines ...string) error {
	if format.chosen != "table" {
		return s.show(format, listing{value: made})
	}
	return program.WriteLines(s.Out, lines)
}

func catalogRestore(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "restore FILE --to ADDRESS", Short: "Make a catalog, on any engine, of a backup",
		Long: "Make a catalog of a backup, on any engine, which must be empty. It is the catalog as it was: what was stored\n" +
			"since is in the stores, and `restripe catalog rebuild --into` brings it back before the first gateway starts. Where\n" +
			"nothing was stored since, gateways work with it at once; where something was, agents refuse it until then, or\n" +
			"until `restripe catalog claim`.",
		Example: "  restripe catalog restore /backup/catalog.db --to sqlite:/var/lib/restripe/catalog.db",
		Args:    cobra.ExactArgs(1),
	}
	to := command.Flags().String("to", "", "empty catalog to fill: its address, or @FILE with it (required)")
	format := outputFlag(command, "table", "json", "yaml")
	command.RunE = func(command *cobra.Command, arguments []string) (err error) {
		if _, err := os.Stat(arguments[0]); err != nil {
			return fmt.Errorf("opening the backup: %w", err)
		}
		destination, address, err := openDestination(command, *to)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, destination.Close()) }()
		backup, err := open.Engine(command.Context(), "sqlite:"+arguments[0])
		if err != nil {
			return fmt.Errorf("opening the backup: %w", err)
		}
		show, clear := s.copyProgress()
		made, err := transfer.Restore(command.Context(), backup, destination, show)
		clear()
		if err := errors.Join(err, backup.Close()); err != nil {
			return err
		}
		return s.showCopied(format, made, fmt.Sprintf("%s has %s as of %s", address, copiedText(made), words.Time(made.At)),
			"what was stored since: restripe catalog rebuild --into --catalog "+address+" --nodes FILE; then start the gateways")
	}
	return command
}

// openDestination opens the engine that --to names, and returns its address without secrets.
func openDestination(command *cobra.Command, flag string) (kv.Engine, string, error) {
	if flag == "" {
		return nil, "", program.Misuse(command, "say which catalog to fill: --to ADDRESS")
	}
	address, err := daemon.SecretAddress(command, "to", flag, "")
	if err != nil {
		return nil, "", err
	}
	engine, err := open.Engine(command.Context(), address)
	if err != nil {
		return nil, "", fmt.Errorf("opening the destination: %w", err)
	}
	return engine, open.WithoutSecrets(address), nil
}

func catalogCopy(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "copy --catalog ADDRESS --to ADDRESS", Short: "Move the catalog to another engine, while it is at work",
		Long: "Move the catalog to another engine, which must be empty. The records are copied while gateways work; then the\n" +
			"catalog is set aside, so that its gateways end, what has changed since is copied and verified, and the copy is in\n" +
			"service: start the gateways with its address. One that was broken off goes on when it is said again; --abort gives\n" +
			"it up, and the catalog is in service as before. A catalog in a file is asked of the gateway that has it open, so\n" +
			"say this on its machine.",
		Example: "  restripe catalog copy --catalog sqlite:/var/lib/restripe/catalog.db --to redis://10.0.0.1:6379",
		Args:    cobra.NoArgs,
	}
	flags := command.Flags()
	catalogFlag := flags.String("catalog", "",
		"catalog to move: its address, or @FILE with it, or what "+daemon.CatalogVariable+" says (required)")
	to := flags.String("to", "", "empty catalog to move it to: its address, or @FILE with it (required)")
	abort := flags.Bool("abort", false, "give up a copy that has not ended")
	format := outputFlag(command, "table", "json", "yaml")
	command.RunE = func(command *cobra.Command, _ []string) (err error) {
		source, err := daemon.SecretAddress(command, "catalog", *catalogFlag, daemon.CatalogVariable)
		if err != nil {
			return err
		}
		if source == "" {
			return program.Misuse(command, "say which catalog to move: --catalog ADDRESS")
		}
		if path, isFile := strings.CutPrefix(source, "sqlite:"); isFile {
			if _, err := os.Stat(path); err != nil {
				return fmt.Errorf("opening the catalog: %w", err)
			}
		}
		destination, address, err := openDestination(command, *to)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, destination.Close()) }()
		m := mover{session: s, source: source, address: address}
		defer func() { err = errors.Join(err, m.close()) }()
		if *abort {
			return m.abort(command.Context(), destination)
		}
		made, err := m.move(command.Context(), destination)
		if err != nil {
			return err
		}
		if made.Already {
			return s.showCopied(format, made, "the catalog was moved to "+address+" before; start the gateways with it")
		}
		return s.showCopied(format, made, fmt.Sprintf("%s has %s, and is in service; the catalog was set aside %s before", address,
			copiedText(made), words.Span(time.Duration(made.AwaySeconds*float64(time.Second)))), "start the gateways with it")
	}
	return command
}

// mover moves a catalog from one address to another.
type mover struct {
	*session
	source, address string
	engine          kv.Engine
	gateway         *client.Client
}

func (m *mover) close() error {
	if m.gateway != nil {
		m.gateway.Close()
	}
	if m.engine != nil {
		return m.engine.Close()
	}
	return nil
}

// reach opens the engine of the catalog, or turns to the gateway that has it open.
func (m *mover) reach(ctx context.Context) error {
	engine, err := open.Engine(ctx, m.source)
	switch {
	case err == nil:
		m.engine = engine
	case errors.Is(err, kv.ErrInUse):
		m.gateway, err = m.client()
	}
	if err != nil {
		return fmt.Errorf("opening the catalog: %w", err)
	}
	return nil
}

func (m *mover) move(ctx context.Context, to kv.Engine) (made transfer.Copied, err error) {
	if err := m.reach(ctx); err != nil {
		return made, err
	}
	show, clear := m.copyProgress()
	defer clear()
	move := transfer.Move{Aside: m.aside, To: to, Progress: show}
	if m.gateway != nil {
		move.Live = served{m.gateway}
		return move.Run(ctx)
	}
	values, err := m.engine.Read(ctx, catalog.KeySchema)
	if err != nil {
		return made, fmt.Errorf("reading the catalog: %w", err)
	}
	if !transfer.IsMoved(values[0], m.address) {
		move.Live = m.engine
	}
	return move.Run(ctx)
}

// freedWithin is how long a gateway may have its catalog open after that was set aside.
const freedWithin = 2 * time.Minute

// aside sets the catalog aside, and opens it once its gateway has ended.
func (m *mover) aside(ctx context.Context) (kv.Engine, error) {
	if m.engine != nil {
		return m.engine, transfer.SetAside(ctx, m.engine, transfer.Moved(m.address))
	}
	if err := m.gateway.SetCatalogAside(ctx, m.address); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, freedWithin)
	defer cancel()
	for {
		engine, err := open.Engine(ctx, m.source)
		if err == nil {
			m.engine = engine
			return engine, nil
		}
		if !errors.Is(err, kv.ErrInUse) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the gateway has not ended within %s: stop it: %w", freedWithin, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (m *mover) abort(ctx context.Context, to kv.Engine) error {
	engine, err := open.Engine(ctx, m.source)
	if err != nil {
		return fmt.Errorf("opening the catalog: %w", err)
	}
	m.engine = engine
	if err := transfer.Abort(ctx, m.engine, to, m.address); err != nil {
		return err
	}
	return program.WriteLines(m.Out, []string{"the copy is given up; the catalog is in service as before"})
}

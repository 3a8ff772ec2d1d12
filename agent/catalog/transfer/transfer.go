package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/restripe/restripe/agent/catalog"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// ErrDiffers says that a copy is not what was copied.
var ErrDiffers = errors.New("the copy differs from what was copied")

// Why catalogs are set aside.
const (
	backingUp = "a backup into it did not end: say `restripe catalog backup` again"
	isBackup  = "it is a backup: make a catalog of it with `restripe catalog restore`"
	restoring = "restoring a backup into it did not end: say `restripe catalog restore` again"
	copying   = "a copy into it did not end: say `restripe catalog copy` again, or give it up with --abort"
	givenUp   = "the copy into it was given up: remove it"
)

// backupOf returns the schema record of a backup of a catalog of this version. Releases take those alone that they can restore.
func backupOf(version []byte) []byte {
	if is := schema.VersionOf(version); is > schema.OldestVersion {
		return catalog.Aside(fmt.Sprintf("%s [%d]", isBackup, is))
	}
	return catalog.Aside(isBackup)
}

// isBackedUp reports whether a schema record is that of a backup which this program can restore.
func isBackedUp(record []byte) bool {
	for version := schema.OldestVersion; version <= schema.Version; version++ {
		if bytes.Equal(record, backupOf([]byte(strconv.Itoa(version)))) {
			return true
		}
	}
	return false
}

// Moved is why a catalog is set aside that is moved to an address, which has no secrets in it.
func Moved(address string) string {
	return "its records were moved to " + address + ", or are on the way: start gateways with that, or see `restripe catalog copy`"
}

// Source is a catalog that is copied.
type Source interface {
	Snapshot(ctx context.Context) (kv.Snapshot, error)
	Size(ctx context.Context) (kv.Size, error)
}

// Progress is told what a copy is doing, how many records it has dealt with, and which part of all that is, about.
type Progress func(doing string, records int64, part float64)

// of returns what tells p of sums, up to one of about the size.
func (p Progress) of(doing string, size kv.Size) func(*sum) {
	return func(s *sum) {
		part := float64(s.bytes) / float64(max(1, size.Bytes))
		if size.Records > 0 {
			part = float64(s.records) / float64(size.Records)
		}
		p(doing, s.records, min(1, part))
	}
}

// Copied says what a copy has in it.
type Copied struct {
	Records  int64     `json:"records"`
	Bytes    int64     `json:"bytes"`    // of keys and values
	At       time.Time `json:"at"`       // when the records were as they are in it
	Checksum string    `json:"checksum"` // SHA-256 of all records in order, in hexadecimal digits

	// What the work was, which a backup does not say of itself.
	Written     int64   `json:"written,omitempty"`     // records that were not there yet, or not as they had to be
	AwaySeconds float64 `json:"awaySeconds,omitempty"` // for how long no gateway could work
	Already     bool    `json:"already,omitempty"`     // it had been done before
}

func copied(s *sum, at time.Time, d *destination) Copied {
	return Copied{Records: s.records, Bytes: s.bytes, At: at.UTC().Truncate(time.Millisecond), Checksum: s.checksum(), Written: d.made}
}

// open takes an engine that is empty, or that a copy for the same reason was begun in, as a destination.
func open(ctx context.Context, engine kv.Engine, reason string) (*destination, error) {
	values, err := engine.Read(ctx, catalog.KeySchema)
	if err != nil {
		return nil, err
	}
	if was := values[0]; !isMarked(was, reason) && !isMarked(was, givenUp) {
		there, err := engine.Scan(ctx, "", "", 1)
		if err == nil && len(there) > 0 {
			err = fmt.Errorf("%w: the destination holds records; name one that is empty", kv.ErrInUse)
		}
		if err != nil {
			return nil, err
		}
	}
	d := &destination{engine: engine, mark: mark(reason)}
	return d, replace(ctx, engine, values[0], d.mark)
}

// end verifies what the destination has and gives it the schema record for its version.
func (d *destination) end(
	ctx context.Context, want *sum, progress Progress, record func(version []byte) []byte, writes ...kv.Write,
) error {
	have, err := total(ctx, d.engine, progress.of("verified", kv.Size{Records: want.records}))
	if err != nil {
		return err
	}
	if have.checksum() != want.checksum() {
		return fmt.Errorf("%w: %d records and %d bytes, want %d and %d, or other ones",
			ErrDiffers, have.records, have.bytes, want.records, want.bytes)
	}
	values, err := d.engine.Read(ctx, schema.KeyVersion)
	if err != nil {
		return err
	}
	return d.update(ctx, append(writes, kv.Write{Key: catalog.KeySchema, Value: record(values[0])}))
}

// levelFrom gives the destination the records that a source has at one instant.
func (d *destination) levelFrom(
	ctx context.Context, from Source, wanted func(schema []byte) bool, progress Progress,
) (s *sum, at time.Time, err error) {
	size, err := from.Size(ctx)
	if err != nil {
		return nil, at, err
	}
	snapshot, err := from.Snapshot(ctx)
	if err != nil {
		return nil, at, err
	}
	at = time.Now()
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	s, err = d.level(ctx, snapshot, wanted, progress.of("compared", size))
	return s, at, err
}

// Backup makes an empty engine, or one in which a backup was begun, a backup of a catalog, which may be at work.
func Backup(ctx context.Context, from Source, to kv.Engine, progress Progress) (made Copied, err error) {
	d, err := open(ctx, to, backingUp)
	if err != nil {
		return made, fmt.Errorf("backing up the catalog: %w", err)
	}
	s, at, err := d.levelFrom(ctx, from, isInService, progress)
	if err != nil {
		return made, fmt.Errorf("backing up the catalog: %w", err)
	}
	made = copied(s, at, d)
	text, err := json.Marshal(Copied{Records: made.Records, Bytes: made.Bytes, At: made.At, Checksum: made.Checksum})
	if err != nil {
		return made, fmt.Errorf("backing up the catalog: %w", err)
	}
	if err := d.end(ctx, s, progress, backupOf, kv.Write{Key: keyBackup, Value: text}); err != nil {
		return made, fmt.Errorf("backing up the catalog: %w", err)
	}
	return made, nil
}

// Restore makes an empty engine, or one in which that was begun, a catalog of what a backup has. It is one that went back in time:
// what agents say of it decides whether it is obeyed as it is.
func Restore(ctx context.Context, backup, to kv.Engine, progress Progress) (made Copied, err error) {
	values, err := backup.Read(ctx, keyBackup)
	if err != nil {
		return made, fmt.Errorf("restoring a backup: %w", err)
	}
	if values[0] == nil {
		return made, fmt.Errorf("restoring a backup: %w: it is none, or one that is not whole", catalog.ErrBadChange)
	}
	var was Copied
	if err := json.Unmarshal(values[0], &was); err != nil {
		return made, fmt.Errorf("restoring a backup: %w: what it says of itself: %w", catalog.ErrCorrupt, err)
	}
	d, err := open(ctx, to, restoring)
	if err != nil {
		return made, fmt.Errorf("restoring a backup: %w", err)
	}
	s, _, err := d.levelFrom(ctx, backup, isBackedUp, progress)
	if err != nil {
		return made, fmt.Errorf("restoring a backup: %w", err)
	}
	if s.checksum() != was.Checksum {
		return made, fmt.Errorf("restoring a backup: %w: it has %d records and had %d, or other ones than were copied",
			catalog.ErrCorrupt, s.records, was.Records)
	}
	made = copied(s, was.At, d)
	if err := d.end(ctx, s, progress, schema.InService); err != nil {
		return made, fmt.Errorf("restoring a backup: %w", err)
	}
	return made, nil
}

// Move is one move of a catalog to another engine.
type Move struct {
	Live Source // the catalog while it is at work; nil where it has been set aside

	// Aside sets the catalog aside for Moved(address), and returns it. The gateways at work end then.
	Aside func(ctx context.Context) (kv.Engine, error)

	To       kv.Engine
	Progress Progress
}

// settledWrites is how few records differ between two passes where one more would not make the last any quicker.
const (
	settledWrites = 1000
	mostPasses    = 5
)

// Run copies the catalog while it is at work, again until little differs, then sets it aside, copies what has changed since and puts
// the destination into service. It can be run again after it was broken off.
func (m Move) Run(ctx context.Context) (made Copied, err error) {
	if made.Already, err = m.isDone(ctx); err != nil || made.Already {
		return made, err
	}
	d, err := open(ctx, m.To, copying)
	if err != nil {
		return made, fmt.Errorf("copying the catalog: %w", err)
	}
	for pass := 0; m.Live != nil && pass < mostPasses; pass++ {
		before := d.made
		if _, _, err := d.levelFrom(ctx, m.Live, isInService, m.Progress); err != nil {
			return made, fmt.Errorf("copying the catalog: %w", err)
		}
		if d.made-before < settledWrites {
			break
		}
	}
	began := time.Now()
	from, err := m.Aside(ctx)
	if err != nil {
		return made, fmt.Errorf("copying the catalog: %w", err)
	}
	values, err := from.Read(ctx, catalog.KeySchema)
	if err == nil && !bytes.HasPrefix(values[0], catalog.Aside("")) {
		err = fmt.Errorf("%w: somebody else has put it back into service", kv.ErrInUse)
	}
	if err != nil {
		return made, fmt.Errorf("copying the catalog: %w", err)
	}
	s, at, err := d.levelFrom(ctx, from, func(is []byte) bool { return bytes.Equal(is, values[0]) }, m.Progress)
	if err == nil {
		made = copied(s, at, d)
		err = d.end(ctx, s, m.Progress, schema.InService)
	}
	if err != nil {
		return made, fmt.Errorf("copying the catalog, which is set aside and stays so: %w; say it again", err)
	}
	made.AwaySeconds = time.Since(began).Seconds()
	return made, nil
}

// isDone reports whether the catalog was set aside and its records are in service in the destination.
func (m Move) isDone(ctx context.Context) (bool, error) {
	values, err := m.To.Read(ctx, catalog.KeySchema)
	if err != nil {
		return false, fmt.Errorf("copying the catalog: %w", err)
	}
	return m.Live == nil && isInService(values[0]), nil
}

// Abort gives up a move that has not ended, and puts the catalog back into service that was set aside for it.
func Abort(ctx context.Context, from, to kv.Engine, address string) error {
	values, err := to.Read(ctx, catalog.KeySchema)
	if err != nil {
		return fmt.Errorf("giving up a copy: %w", err)
	}
	if was := values[0]; was != nil && !isMarked(was, copying) && !isMarked(was, givenUp) {
		return fmt.Errorf("giving up a copy: %w: the destination is in service or has another use (%s)", catalog.ErrBadChange, was)
	}
	if err := replace(ctx, to, values[0], mark(givenUp)); err != nil {
		return fmt.Errorf("giving up a copy: %w", err)
	}
	return PutBack(ctx, from, Moved(address))
}

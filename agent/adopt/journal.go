package adopt

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // registers the driver

	"github.com/restripe/restripe/agent/flock"
)

// Journal remembers what a job has done, in a file. It is safe for concurrent use by one process at a time.
type Journal struct {
	path     string
	lock     *os.File
	database *sql.DB
}

// The file format: application_id and user_version of the database.
const (
	journalApplication = 0x52534144
	journalVersion     = 1
)

// Entry is what a journal says of one object that was verified.
type Entry struct {
	Source   Version // as it was carried
	Target   string  // the tag of the version it became
	Checksum []byte  // SHA-256 of its bytes
	Trimmed  bool    // it was deleted at the source afterwards
}

// ErrOtherJob says that a journal belongs to a job of other parameters.
var ErrOtherJob = errors.New("the journal is another job's")

// OpenJournal opens the journal at path for the job that identity describes, and makes it if there is none. identity is
// compared byte for byte with that of the job which made it.
func OpenJournal(ctx context.Context, path, identity string) (_ *Journal, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	j := &Journal{path: path}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("opening the journal %s: %w", path, err), j.Close())
		}
	}()
	if j.lock, err = os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := flock.Take(j.lock); err != nil {
		if errors.Is(err, flock.ErrHeld) {
			return nil, errors.New("another process works with it: wait for that one, or name another file with --journal")
		}
		return nil, err
	}
	pragmas := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(NORMAL)", "busy_timeout(10000)"}}
	if j.database, err = sql.Open("sqlite", "file://"+(&url.URL{Path: path}).EscapedPath()+"?"+pragmas.Encode()); err != nil {
		return nil, err
	}
	j.database.SetMaxOpenConns(1)
	return j, j.prepare(ctx, identity)
}

// prepare makes the tables, or sees that they are those of the same job.
func (j *Journal) prepare(ctx context.Context, identity string) error {
	var tables, application, version int
	if err := j.database.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return fmt.Errorf("reading it as a SQLite database: %w", err)
	}
	if tables == 0 {
		return j.create(ctx, identity)
	}
	if err := j.database.QueryRowContext(ctx, "PRAGMA application_id").Scan(&application); err != nil {
		return err
	}
	if application != journalApplication {
		return errors.New("it is a SQLite database of another application: name another file with --journal")
	}
	if err := j.database.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version != journalVersion {
		return fmt.Errorf("its format has version %d and this program knows %d: end the job with the program that began it", version, journalVersion)
	}
	var was string
	if err := j.database.QueryRowContext(ctx, "SELECT identity FROM job").Scan(&was); err != nil {
		return err
	}
	if was != identity {
		return fmt.Errorf("%w: it is of %s, and this is %s; name another file with --journal, or delete that one to begin anew", ErrOtherJob, was, identity)
	}
	return nil
}

func (j *Journal) create(ctx context.Context, identity string) error {
	work, err := j.database.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, statement := range []string{
		"CREATE TABLE job (identity TEXT NOT NULL)",
		"CREATE TABLE objects (name BLOB PRIMARY KEY NOT NULL, entry BLOB NOT NULL) WITHOUT ROWID",
		"CREATE TABLE attempts (name BLOB NOT NULL, checksum BLOB NOT NULL, PRIMARY KEY (name, checksum)) WITHOUT ROWID",
		fmt.Sprintf("PRAGMA application_id = %d", journalApplication),
		fmt.Sprintf("PRAGMA user_version = %d", journalVersion),
	} {
		if _, err := work.ExecContext(ctx, statement); err != nil {
			return errors.Join(err, work.Rollback())
		}
	}
	if _, err := work.ExecContext(ctx, "INSERT INTO job VALUES (?)", identity); err != nil {
		return errors.Join(err, work.Rollback())
	}
	return work.Commit()
}

// Look returns what is known of an object; nil if nothing is.
func (j *Journal) Look(ctx context.Context, name string) (*Entry, error) {
	var text []byte
	switch err := j.database.QueryRowContext(ctx, "SELECT entry FROM objects WHERE name = ?", []byte(name)).Scan(&text); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading the journal %s: %w", j.path, err)
	}
	var entry Entry
	if err := json.Unmarshal(text, &entry); err != nil {
		return nil, fmt.Errorf("reading the journal %s: the entry of %q: %w", j.path, name, err)
	}
	return &entry, nil
}

// Attempt remembers that bytes of this checksum are about to be stored, so that they are known for the job's own should
// nobody see whether that succeeded.
func (j *Journal) Attempt(ctx context.Context, name string, checksum []byte) error {
	return j.change(ctx, func(work *sql.Tx) error {
		_, err := work.ExecContext(ctx, "INSERT OR IGNORE INTO attempts VALUES (?, ?)", []byte(name), checksum)
		return err
	})
}

// Attempted reports whether bytes of this checksum were about to be stored and nothing was recorded since.
func (j *Journal) Attempted(ctx context.Context, name string, checksum []byte) (bool, error) {
	var found int
	err := j.database.QueryRowContext(ctx, "SELECT count(*) FROM attempts WHERE name = ? AND checksum = ?", []byte(name), checksum).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("%w: reading the journal %s: %w", ErrStop, j.path, err)
	}
	return found > 0, nil
}

// Record remembers an object. What was recorded survives the end of the process, however it ends.
func (j *Journal) Record(ctx context.Context, name string, entry Entry) error {
	text, err := json.Marshal(entry)
	if err != nil {
		return fmt.Errorf("%w: encoding an entry of the journal: %w", ErrStop, err)
	}
	return j.change(ctx, func(work *sql.Tx) error {
		_, err := work.ExecContext(ctx, "INSERT OR REPLACE INTO objects VALUES (?, ?)", []byte(name), text)
		if err == nil {
			_, err = work.ExecContext(ctx, "DELETE FROM attempts WHERE name = ?", []byte(name))
		}
		return err
	})
}

// change makes changes in one transaction.
func (j *Journal) change(ctx context.Context, make func(*sql.Tx) error) error {
	work, err := j.database.BeginTx(ctx, nil)
	if err == nil {
		if err = make(work); err != nil {
			err = errors.Join(err, work.Rollback())
		} else {
			err = work.Commit()
		}
	}
	if err != nil {
		return fmt.Errorf("%w: writing the journal %s: %w", ErrStop, j.path, err)
	}
	return nil
}

// Path returns where the journal lies.
func (j *Journal) Path() string { return j.path }

// Close ends the use of the journal; the file stays.
func (j *Journal) Close() error {
	var errs []error
	if j.database != nil {
		errs = append(errs, j.database.Close())
	}
	if j.lock != nil {
		errs = append(errs, flock.Release(j.lock))
	}
	return errors.Join(errs...)
}

package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// List returns the actions that match, newest first, at most limit of them, of those that began before the record before
// (0: all). next is what to give as before for those that follow, 0 where there are none.
func (l *Log) List(filter Filter, before int64, limit int) (actions []Action, next int64, err error) {
	files := l.snapshot()
	for i := len(files) - 1; i >= 0; i-- {
		if before > 0 && files[i].first >= before {
			continue
		}
		some, err := actionsOf(files[i:], filter, before)
		if err != nil {
			return nil, 0, err
		}
		slices.Reverse(some)
		for _, action := range some {
			if len(actions) == limit {
				return actions, actions[limit-1].Sequence, nil
			}
			actions = append(actions, action)
		}
	}
	return actions, 0, nil
}

// Each calls visit with every action that matches, oldest first, until it returns an error.
func (l *Log) Each(filter Filter, visit func(Action) error) error {
	files := l.snapshot()
	for i := range files {
		actions, err := actionsOf(files[i:], filter, 0)
		if err != nil {
			return err
		}
		for _, action := range actions {
			if err := visit(action); err != nil {
				return err
			}
		}
	}
	return nil
}

// snapshot returns the files as far as they are written.
func (l *Log) snapshot() []segment {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.Clone(l.files)
}

// actionsOf returns the actions that began in the first of the files, in order, with their ends, which may be in later
// ones.
func actionsOf(files []segment, filter Filter, before int64) ([]Action, error) {
	var actions []Action
	open := map[int64]int{} // index of actions by sequence
	for i, file := range files {
		if i > 0 && len(open) == 0 {
			break
		}
		records, err := readRecords(file)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			if r.Ends == 0 {
				if i == 0 && (before == 0 || r.Sequence < before) && filter.matches(&r) {
					open[r.Sequence] = len(actions)
					actions = append(actions, Action{Sequence: r.Sequence, Begun: r.Time, Entry: r.Entry, Outcome: Outcome{Result: ResultUnknown}})
				}
				continue
			}
			if at, is := open[r.Ends]; is {
				actions[at].Ended, actions[at].Outcome = r.Time, r.Outcome
				delete(open, r.Ends)
			}
		}
	}
	return actions, nil
}

// readRecords reads one file. Lines that are no records are passed over: Verify is what complains of them.
func readRecords(s segment) (records []record, err error) {
	file, err := os.Open(s.path)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	text, err := io.ReadAll(io.LimitReader(file, s.size))
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	for line := range bytes.Lines(text) {
		if r, _, err := decodeLine(bytes.TrimSuffix(line, []byte("\n"))); err == nil {
			records = append(records, r)
		}
	}
	return records, nil
}

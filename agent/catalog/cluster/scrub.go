package cluster

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// scrubID is the id of the one scrub of a cluster, as its job has it.
const scrubID = "scrub"

// Scrub returns the record of the cluster's scrub. ErrNoJob if there was none yet.
func (w *Work) Scrub(ctx context.Context) (*Job, error) {
	return w.readJob(ctx, schema.KeyScrub, scrubID)
}

// SaveScrub stores the record of the scrub as SaveJob stores a job: over job.Version only, which it raises.
func (w *Work) SaveScrub(ctx context.Context, job *Job) error { return w.saveScrub(ctx, job) }

// TellScrub is SaveScrub of what is more than progress; it tells of it.
func (w *Work) TellScrub(ctx context.Context, job *Job) error {
	return w.saveScrub(ctx, job, tell(SubjectScrub))
}

func (w *Work) saveScrub(ctx context.Context, job *Job, with ...kv.Write) error {
	job.ID = scrubID
	return w.saveJob(ctx, schema.KeyScrub, job, with...)
}

// AddFinding notes what a scrub found, and forgets the oldest findings beyond the number to keep. Newer findings come
// first; those of one instant in any order.
func (w *Work) AddFinding(ctx context.Context, body []byte, keep int) error {
	salt, err := w.draw()
	if err != nil {
		return fmt.Errorf("noting a finding: %w", err)
	}
	var name [16]byte
	binary.BigEndian.PutUint64(name[:], math.MaxUint64-uint64(w.now().UnixNano()))
	binary.BigEndian.PutUint64(name[8:], salt)
	if err := w.assign(ctx, schema.PrefixFinding+hex.EncodeToString(name[:]), body); err != nil {
		return fmt.Errorf("noting a finding: %w", err)
	}
	var old []kv.Write
	seen := 0
	err = w.each(ctx, schema.PrefixFinding, func(record kv.Record) error {
		if seen++; seen > keep {
			old = append(old, kv.Write{Key: record.Key, Kind: kv.Remove})
		}
		return nil
	})
	if err != nil || len(old) == 0 {
		return err
	}
	return w.apply(ctx, old)
}

// Findings returns what scrubs found, newest first.
func (w *Work) Findings(ctx context.Context) ([][]byte, error) {
	var findings [][]byte
	err := w.each(ctx, schema.PrefixFinding, func(record kv.Record) error {
		findings = append(findings, record.Value)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing findings: %w", err)
	}
	return findings, nil
}

package catalog

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
func (j *jobs) Scrub(ctx context.Context) (*Job, error) {
	return j.readJob(ctx, schema.KeyScrub, scrubID)
}

// SaveScrub stores the record of the scrub as SaveJob stores a job: over job.Version only, which it raises.
func (j *jobs) SaveScrub(ctx context.Context, job *Job) error { return j.saveScrub(ctx, job) }

// TellScrub is SaveScrub of what is more than progress; it tells of it.
func (j *jobs) TellScrub(ctx context.Context, job *Job) error {
	return j.saveScrub(ctx, job, tell(SubjectScrub))
}

func (j *jobs) saveScrub(ctx context.Context, job *Job, with ...kv.Write) error {
	job.ID = scrubID
	return j.saveJob(ctx, schema.KeyScrub, job, with...)
}

// AddFinding notes what a scrub found, and forgets the oldest findings beyond the number to keep. Newer findings come
// first; those of one instant in any order.
func (j *jobs) AddFinding(ctx context.Context, body []byte, keep int) error {
	salt, err := j.draw()
	if err != nil {
		return fmt.Errorf("noting a finding: %w", err)
	}
	var name [16]byte
	binary.BigEndian.PutUint64(name[:], math.MaxUint64-uint64(j.now().UnixNano()))
	binary.BigEndian.PutUint64(name[8:], salt)
	if err := j.assign(ctx, schema.PrefixFinding+hex.EncodeToString(name[:]), body); err != nil {
		return fmt.Errorf("noting a finding: %w", err)
	}
	var old []kv.Write
	seen := 0
	err = j.each(ctx, schema.PrefixFinding, func(record kv.Record) error {
		if seen++; seen > keep {
			old = append(old, kv.Write{Key: record.Key, Kind: kv.Remove})
		}
		return nil
	})
	if err != nil || len(old) == 0 {
		return err
	}
	return j.apply(ctx, old)
}

// Findings returns what scrubs found, newest first.
func (j *jobs) Findings(ctx context.Context) ([][]byte, error) {
	var findings [][]byte
	err := j.each(ctx, schema.PrefixFinding, func(record kv.Record) error {
		findings = append(findings, record.Value)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing findings: %w", err)
	}
	return findings, nil
}

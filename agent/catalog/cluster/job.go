package cluster

import (
	"bytes"
	"context"
	"fmt"

	"github.com/restripe/restripe/agent/catalog/codec"
	"github.com/restripe/restripe/agent/catalog/kv"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// Jobs returns all jobs, by id.
func (w *Work) Jobs(ctx context.Context) ([]Job, error) {
	var jobs []Job
	err := w.each(ctx, schema.PrefixJob, func(record kv.Record) error {
		job, err := codec.Decode[Job](record.Key, record.Value)
		jobs = append(jobs, job)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing jobs: %w", err)
	}
	return jobs, nil
}

// Job returns one job. ErrNoJob if there is none.
func (w *Work) Job(ctx context.Context, id string) (*Job, error) {
	return w.readJob(ctx, schema.JobKey(id), id)
}

func (w *Work) readJob(ctx context.Context, key, id string) (*Job, error) {
	values, err := w.engine.Read(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("reading job %s: %w", id, err)
	}
	if values[0] == nil {
		return nil, fmt.Errorf("job %s: %w", id, schema.ErrNoJob)
	}
	job, err := codec.Decode[Job](key, values[0])
	if err != nil {
		return nil, err
	}
	return &job, nil
}

// SaveJob stores job if the catalog has it in job.Version, 0 meaning not at all, and raises job.Version. It fails with
// schema.ErrStale, changing nothing, if somebody else saved it meanwhile; if ErrUnknown is in the chain too, this save may have
// come before theirs.
func (w *Work) SaveJob(ctx context.Context, job *Job) error { return w.save(ctx, job) }

// TellJob is SaveJob of what whoever carries the job out, or should, has to know of; it tells them.
func (w *Work) TellJob(ctx context.Context, job *Job) error {
	return w.save(ctx, job, tell(SubjectJobs))
}

func (w *Work) save(ctx context.Context, job *Job, with ...kv.Write) error {
	if job.ID == "" {
		return fmt.Errorf("saving a job without an id: %w", schema.ErrBadChange)
	}
	return w.saveJob(ctx, schema.JobKey(job.ID), job, with...)
}

// saveJob writes what comes with it if the job is saved.
func (w *Work) saveJob(ctx context.Context, key string, job *Job, with ...kv.Write) error {
	saved := *job
	saved.Version++
	want := codec.Encode(saved)
	unclear := false
	err := w.retry(ctx, func(ctx context.Context) (bool, error) {
		values, err := w.engine.Read(ctx, key)
		if err != nil {
			return false, err
		}
		if unclear && bytes.Equal(values[0], want) {
			return true, nil
		}
		was := Job{}
		if values[0] != nil {
			if was, err = codec.DecodeToChange[Job](key, values[0]); err != nil {
				return false, err
			}
		}
		if was.Version != job.Version && unclear {
			return false, kv.Final(
				fmt.Errorf("version %d was saved after an unclear answer: %w, %w", was.Version, schema.ErrStale, schema.ErrUnknown))
		}
		if was.Version != job.Version {
			return false, kv.Final(fmt.Errorf("version %d was saved meanwhile, over %d: %w", was.Version, job.Version, schema.ErrStale))
		}
		failed, err := w.engine.Update(ctx, []kv.Check{{Key: key, Value: values[0]}}, append(with, kv.Write{Key: key, Value: want}))
		unclear = unclear || err != nil
		return err == nil && len(failed) == 0, err
	})
	if err != nil {
		return fmt.Errorf("saving job %s: %w", job.ID, err)
	}
	job.Version = saved.Version
	return nil
}

// DropJob removes a job if it is still as it was read.
func (w *Work) DropJob(ctx context.Context, job Job) error {
	key := schema.JobKey(job.ID)
	err := w.retry(ctx, func(ctx context.Context) (bool, error) {
		_, err := w.engine.Update(ctx, []kv.Check{{Key: key, Value: codec.Encode(job)}}, []kv.Write{{Key: key, Kind: kv.Remove}})
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("removing job %s: %w", job.ID, err)
	}
	return nil
}

// compactionID is the id of the one compaction of a cluster, as its job has it.
const compactionID = "compaction"

// Compaction returns the record of the cluster's compaction. ErrNoJob if there was none yet.
func (w *Work) Compaction(ctx context.Context) (*Job, error) {
	return w.readJob(ctx, schema.KeyCompact, compactionID)
}

// SaveCompaction stores the record of the compaction as SaveJob stores a job: over job.Version only, which it raises.
func (w *Work) SaveCompaction(ctx context.Context, job *Job) error {
	job.ID = compactionID
	return w.saveJob(ctx, schema.KeyCompact, job)
}

// balanceID is the id of the one balance of a cluster, as its job has it.
const balanceID = "balance"

// Balance returns the record of the cluster's balance. ErrNoJob if there was none yet.
func (w *Work) Balance(ctx context.Context) (*Job, error) {
	return w.readJob(ctx, schema.KeyBalance, balanceID)
}

// SaveBalance stores the record of the balance as SaveJob stores a job: over job.Version only, which it raises.
func (w *Work) SaveBalance(ctx context.Context, job *Job) error { return w.saveBalance(ctx, job) }

// TellBalance is SaveBalance of what is more than progress; it tells of it.
func (w *Work) TellBalance(ctx context.Context, job *Job) error {
	return w.saveBalance(ctx, job, tell(SubjectBalance))
}

func (w *Work) saveBalance(ctx context.Context, job *Job, with ...kv.Write) error {
	job.ID = balanceID
	return w.saveJob(ctx, schema.KeyBalance, job, with...)
}

package mem_test

import (
	"errors"
	"testing"

	"github.com/restripe/restripe/agent/store"
	"github.com/restripe/restripe/agent/store/mem"
	"github.com/restripe/restripe/agent/store/storetest"
)

func newStore(testing.TB) store.Store { return mem.New(0) }

func TestConformance(t *testing.T) {
	storetest.Run(t, newStore, storetest.Options{
		Small: func(testing.TB) store.Store { return mem.New(storetest.SmallBytes) },
	})
}

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, newStore) }

func TestCapacityCountsKeysAndValuesUntilTheyAreDeleted(t *testing.T) {
	s := mem.New(10)
	if err := s.Create(t.Context(), "ab", make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "c", nil); !errors.Is(err, store.ErrFull) {
		t.Fatalf("creating in a full store: %v, want %v", err, store.ErrFull)
	}
	if err := s.Create(t.Context(), "ab", nil); !errors.Is(err, store.ErrExists) {
		t.Fatalf("creating a key again in a full store: %v, want %v", err, store.ErrExists)
	}
	if err := s.Delete(t.Context(), "ab"); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), "c", nil); err != nil {
		t.Fatal(err)
	}
}

func TestValuesOutliveClosingButNotErasing(t *testing.T) {
	s := mem.New(0)
	if err := s.Create(t.Context(), "k", []byte("value")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !s.Damage("k", func(value []byte) []byte { return value[:2] }) {
		t.Fatal("Damage does not find the key")
	}
	p := make([]byte, 5)
	if count, err := s.ReadAt(t.Context(), "k", p, 0); err != nil || string(p[:count]) != "va" {
		t.Fatalf("read %q, %v", p[:count], err)
	}
	s.Erase()
	if _, err := s.ReadAt(t.Context(), "k", p, 0); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("reading after Erase: %v", err)
	}
	if info, err := s.Info(t.Context()); err != nil || info.UsedBytes != 0 {
		t.Fatalf("after Erase: %+v, %v", info, err)
	}
}

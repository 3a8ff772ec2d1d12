//go:build ceph

package ceph

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/restripe/restripe/agent/store"
)

// Info implements store.Store. It asks the monitors, and an OSD whether it answers.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	info, err := s.describe(ctx)
	if err != nil {
		return store.Info{}, fmt.Errorf("describing %s: %w", s.location, err)
	}
	return info, nil
}

func (s *Store) describe(ctx context.Context) (store.Info, error) {
	if _, _, err := s.read(ctx, incarnationKey, nil, 0); err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrCorrupt) {
		return store.Info{}, err
	}
	place, err := s.place(ctx)
	if err != nil {
		if errors.Is(err, ErrPool) {
			err = fmt.Errorf("%w: %w", store.ErrDown, err)
		}
		return store.Info{}, err
	}
	usage, err := s.ask(ctx, "df")
	if err != nil {
		return store.Info{}, err
	}
	info := store.Info{Kind: "ceph", Location: s.location, ValueLimit: valueLimit, Warnings: place.warnings()}
	if info.UsedBytes, info.CapacityBytes, err = place.usage(usage); err != nil {
		return store.Info{}, err
	}
	info.Durable = len(place.inMemory) == 0
	if !info.Durable {
		info.Warnings = append(info.Warnings, fmt.Sprintf("Kept in memory alone by %s, so that a crash loses all blocks there; "+
			"use OSDs with bluestore if they should outlive that.", strings.Join(place.inMemory, ", ")))
	}
	return info, nil
}

package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/restripe/restripe/agent/store"
)

// Info implements store.Store.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	facts, err := s.facts(ctx)
	if err != nil {
		return store.Info{}, err
	}
	return describe(facts, s.location), nil
}

// parseInfo reads the lines name:value of an answer to INFO, with the names CONFIG has where the two differ.
func parseInfo(answer string) map[string]string {
	facts := map[string]string{}
	for line := range strings.Lines(answer) {
		name, value, found := strings.Cut(strings.TrimSpace(line), ":")
		if found {
			facts[name] = value
		}
	}
	facts["maxmemory-policy"] = facts["maxmemory_policy"]
	facts["appendonly"] = "no"
	if facts["aof_enabled"] == "1" {
		facts["appendonly"] = "yes"
	}
	return facts
}

// describe judges what a server says of itself.
func describe(facts map[string]string, location string) store.Info {
	number := func(name string) int64 {
		number, err := strconv.ParseInt(facts[name], 10, 64)
		if err != nil { // a server that does not say
			return 0
		}
		return max(0, number)
	}
	info := store.Info{
		Kind:          "redis",
		Location:      location,
		Durable:       isDurable(facts),
		CapacityBytes: number("maxmemory"),
		UsedBytes:     number("used_memory"),
		ValueLimit:    valueLimit,
		Evicted:       number("evicted_keys"),
	}
	warn := func(format string, values ...any) {
		info.Warnings = append(info.Warnings, fmt.Sprintf(format, values...))
	}
	if policy := facts["maxmemory-policy"]; policy != "noeviction" && policy != "" {
		when := fmt.Sprintf("when its %d bytes (maxmemory) are full", info.CapacityBytes)
		if info.CapacityBytes == 0 {
			when = "as soon as maxmemory is set and reached"
		}
		warn("%s drops values %s (maxmemory-policy %s), and every value dropped is a lost block; set maxmemory-policy to noeviction.", location, when, policy)
	}
	if evicted := info.Evicted; evicted > 0 {
		warn("%s has dropped %d keys since it started; give it more memory or move data to other nodes, and run a repair.", location, evicted)
	}
	if !info.Durable && facts["run_id"] == "" {
		warn("%s does not say its run_id, without which nobody notices that it was started again with fewer values; use a server that does.", location)
	}
	switch {
	case facts["role"] == "slave":
		warn("%s is a replica and refuses writes; give the address of its primary.", location)
	case facts["appendonly"] != "yes":
		warn("%s loses its values when it crashes (appendonly no); set appendonly to yes and appendfsync to always if they should outlive that.", location)
	case !info.Durable:
		warn("%s may lose the values of the last second in a power failure (appendfsync %s); set appendfsync to always to rule that out.",
			location, orUnknown(facts["appendfsync"]))
	}
	if facts["aof_last_write_status"] == "err" {
		warn("%s cannot write its append-only file and refuses writes; look at the free space and the permissions of its data directory.", location)
	}
	return info
}

// orUnknown replaces a missing word.
func orUnknown(word string) string {
	if word == "" {
		return "unknown"
	}
	return word
}

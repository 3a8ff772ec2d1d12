package memcached

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/restripe/restripe/agent/store"
)

// Info implements store.Store.
func (s *Store) Info(ctx context.Context) (store.Info, error) {
	settings, err := s.settings(ctx)
	if err != nil {
		return store.Info{}, fmt.Errorf("describing: %w", err)
	}
	var statistics statistics
	err = s.pool.use(ctx, func(c *connection) (err error) {
		statistics, err = readStatistics(c, "stats")
		return err
	})
	if err != nil {
		return store.Info{}, fmt.Errorf("describing: %w", err)
	}
	info := store.Info{
		Kind:          "memcached",
		Location:      "memcached://" + s.address,
		CapacityBytes: statistics.number("limit_maxbytes"),
		UsedBytes:     statistics.number("bytes"),
		ValueLimit:    valueLimit,
		Discarded:     s.unnamed.Load(),
		Evicted:       statistics.number("evictions"),
	}
	if settings["evictions"] != "off" {
		info.Warnings = append(info.Warnings, fmt.Sprintf("memcached at %s drops values when its %d bytes are full, and every value dropped is a lost block; "+
			"restart it with -M, so that it refuses new values instead, and with enough memory (-m).", s.address, info.CapacityBytes))
	}
	if evicted := info.Evicted; evicted > 0 {
		info.Warnings = append(info.Warnings, fmt.Sprintf("memcached at %s has dropped %d values since it started; "+
			"give it more memory (-m) or move data to other nodes, and run a repair.", s.address, evicted))
	}
	return info, nil
}

// statistics is an answer to stats: names and values.
type statistics map[string]string

// number returns a value that is a number, 0 where it is absent or none.
func (s statistics) number(name string) int64 {
	number, err := strconv.ParseInt(s[name], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// settings asks for the server's settings and takes note of its item size limit.
func (s *Store) settings(ctx context.Context) (settings statistics, err error) {
	err = s.pool.use(ctx, func(c *connection) error {
		settings, err = readStatistics(c, "stats", "settings")
		return err
	})
	if err != nil {
		return nil, err
	}
	limit := settings.number("item_size_max")
	if limit <= itemOverheadBytes {
		return nil, fmt.Errorf("memcached at %s tells no usable item_size_max (%q): %w", s.address, settings["item_size_max"], errProtocol)
	}
	s.itemBytes.Store(limit)
	return settings, nil
}

// readStatistics sends a stats command and reads the answer.
func readStatistics(c *connection, words ...string) (statistics, error) {
	c.request(words...)
	if err := c.flush(); err != nil {
		return nil, err
	}
	result := statistics{}
	for {
		line, err := c.readLine()
		if err != nil {
			return nil, err
		}
		if string(line) == "END" {
			c.pending--
			return result, nil
		}
		words := bytes.SplitN(line, []byte{' '}, 3)
		if len(words) != 3 || string(words[0]) != "STAT" {
			return nil, c.fail(fmt.Errorf("line %.80q among statistics: %w", line, errProtocol))
		}
		result[string(words[1])] = string(words[2])
	}
}

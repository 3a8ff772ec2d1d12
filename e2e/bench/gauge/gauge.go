// Package gauge reads what processes that are measured say of themselves: their metrics, and their memory.
package gauge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// Metrics asks a gateway, at a URL without a path, for its metrics: sums of all series of a name, and of each under its name and labels.
func Metrics(ctx context.Context, gateway string) (_ map[string]float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, gateway+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking for metrics: %s", answer.Status)
	}
	return parseMetrics(answer.Body)
}

// parseMetrics reads metrics in the text format of Prometheus.
func parseMetrics(text io.Reader) (map[string]float64, error) {
	sums := map[string]float64{}
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		name, _, labelled := strings.Cut(line[:at], "{")
		sums[name] += value
		if labelled {
			sums[line[:at]] += value
		}
	}
	return sums, lines.Err()
}

// Resident is the memory that a process has resident, in bytes.
func Resident(pid int) (int64, error) { return memory(pid, "VmRSS:") }

// Peak is the most that a process has had resident since it began, or since ResetPeak, in bytes.
func Peak(pid int) (int64, error) { return memory(pid, "VmHWM:") }

// ResetPeak lets the peak of a process begin again at what it has resident now.
func ResetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("resetting the peak of memory: %w", err)
	}
	return nil
}

func memory(pid int, name string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading memory: %w", err)
	}
	return parseMemory(string(status), name)
}

// parseMemory reads an amount of memory of /proc/PID/status.
func parseMemory(status, name string) (int64, error) {
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == name && fields[2] == "kB" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 50)
			if err != nil || kilobytes < 0 {
				return 0, fmt.Errorf("reading memory: %q is not a size in kB", fields[1])
			}
			return kilobytes << 10, nil
		}
	}
	return 0, fmt.Errorf("reading memory: the status has no %s", name)
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// errandVariable has what this program is to do as a client.
const errandVariable = "RESTRIPE_BENCH_CATALOG"

// errand is what a client does. It is a process of its own, so that what it uses is known.
type errand struct {
	Kind    string        `json:"kind"` // put, get, load, ask, audit, restore
	Address string        `json:"address"`
	Run     string        `json:"run"` // in the keys of its objects
	Clients int           `json:"clients"`
	For     time.Duration `json:"for"`
	From    int64         `json:"from"`    // of load: the first object
	Objects int64         `json:"objects"` // there are, of this run
	Nodes   int           `json:"nodes"`
	Only    string        `json:"only"` // prefix of the records that are loaded; empty: all
}

// result is what came of it.
type result struct {
	Operations int64         `json:"operations"`
	Took       time.Duration `json:"took"`
	Times      times         `json:"times"`
	Processor  time.Duration `json:"processor"` // of the client
	Memory     int64         `json:"memory"`    // the most that the client had, in bytes
	Server     use           `json:"-"`
	Idle       float64       `json:"-"` // part of the time of all processors meanwhile

	Kinds map[string]kindSize `json:"kinds"` // of load: by prefix
	Bytes int64               `json:"bytes"` // that the engine says it has
	Asked []asked             `json:"asked"` // of ask
}

// times are those of operations.
type times struct {
	Median  time.Duration `json:"median"`
	P99     time.Duration `json:"p99"`
	Slowest time.Duration `json:"slowest"`
}

func timesOf(all []time.Duration) times {
	if len(all) == 0 {
		return times{}
	}
	slices.Sort(all)
	at := func(part float64) time.Duration { return all[int(part*float64(len(all)-1))] }
	return times{at(.5), at(.99), at(1)}
}

// run has a child do an errand on the records of a server.
func (e errand) run(ctx context.Context, s *server) (r result, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s, %s with %d clients: %w", s.name, e.Kind, e.Clients, err)
		}
	}()
	e.Address = s.address
	text, err := json.Marshal(e)
	if err != nil {
		return r, err
	}
	self, err := os.Executable()
	if err != nil {
		return r, err
	}
	child := exec.CommandContext(ctx, self)
	child.Env = append(os.Environ(), errandVariable+"="+string(text))
	child.Stderr = os.Stderr
	to, errIn := child.StdinPipe()
	from, errOut := child.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		return r, err
	}
	if err := child.Start(); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, to.Close(), child.Wait()) }()
	lines := bufio.NewReader(from)
	if _, err := lines.ReadString('\n'); err != nil { // it is ready
		return r, err
	}
	before, err := s.use()
	if err != nil {
		return r, err
	}
	idleBefore, allBefore, err := processors()
	if err != nil {
		return r, err
	}
	if _, err := io.WriteString(to, "begin\n"); err != nil {
		return r, err
	}
	answer, err := lines.ReadString('\n')
	if err != nil {
		return r, err
	}
	idleAfter, allAfter, err := processors()
	if err != nil {
		return r, err
	}
	after, err := s.use()
	if err != nil {
		return r, err
	}
	r.Idle = float64(idleAfter-idleBefore) / float64(max(1, allAfter-allBefore))
	r.Server = use{after.processor - before.processor, after.memory}
	return r, json.Unmarshal([]byte(answer), &r)
}

// beClient does an errand: it says when it is ready, begins when it is told, says what came of it, and ends when nobody listens.
func beClient(text string) error {
	var e errand
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return fmt.Errorf("reading the errand: %w", err)
	}
	ctx := context.Background()
	work, err := e.prepare(ctx)
	if err != nil {
		return err
	}
	input := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	if _, err := input.ReadString('\n'); err != nil {
		return errors.Join(err, work.close())
	}
	before, err := ownProcessor()
	if err != nil {
		return errors.Join(err, work.close())
	}
	began := time.Now()
	r, err := work.do(ctx)
	r.Took = time.Since(began)
	if err != nil {
		return errors.Join(err, work.close())
	}
	after, errProcessor := ownProcessor()
	memory, errMemory := ownMemory()
	if err := errors.Join(errProcessor, errMemory); err != nil {
		return errors.Join(err, work.close())
	}
	r.Processor, r.Memory = after-before, memory
	answer, err := json.Marshal(r)
	if err != nil {
		return errors.Join(err, work.close())
	}
	fmt.Println(strings.TrimSpace(string(answer)))
	if _, err := input.ReadString('\n'); !errors.Is(err, io.EOF) {
		return errors.Join(fmt.Errorf("waiting for the end: %w", err), work.close())
	}
	return work.close()
}

// ownProcessor is the processor time that this process has used.
func ownProcessor() (time.Duration, error) {
	var spent syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &spent); err != nil {
		return 0, fmt.Errorf("reading the processor time: %w", err)
	}
	return time.Duration(spent.Utime.Nano() + spent.Stime.Nano()), nil
}

// ownMemory is the most memory that this process had.
func ownMemory() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("reading the memory: %w", err)
	}
	kilobytes, err := field(text, "VmHWM:")
	return kilobytes << 10, err
}

// processors is for how long the processors of this machine were idle so far, and how long that is in all.
func processors() (idle, all int64, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("reading what processors do: %w", err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	for i, word := range strings.Fields(first)[1:] {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("reading what processors do: %w", err)
		}
		switch {
		case i == 3 || i == 4: // also while they wait for disks
			idle, all = idle+n, all+n
		case i < 8: // guests are counted as users
			all += n
		}
	}
	return idle, all, nil
}

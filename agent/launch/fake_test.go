package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the test program play the parts of the real one: an agent or a gateway that only listens, and a
// launcher that can be killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "agent", "gateway":
			os.Exit(playServer(os.Args[1:]))
		case "launcher":
			os.Exit(playLauncher(os.Args[2], StoreKind(os.Args[3])))
		}
	}
	goleak.VerifyTestMain(m)
}

func argument(arguments []string, flag string) string {
	for i, text := range arguments {
		if text == flag {
			return arguments[i+1]
		}
	}
	return ""
}

// playServer listens until it is asked to leave or its standard input closes. A store path that names "broken" makes it
// fail at once.
func playServer(arguments []string) int {
	if strings.Contains(argument(arguments, "--store"), "broken") {
		fmt.Fprintln(os.Stderr, "the store is broken")
		return 1
	}
	listener, err := net.Listen("tcp", argument(arguments, "--listen"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Printf("%s %s%s%s\n", arguments[0], argument(arguments, "--id"), ListeningMark, listener.Addr())
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	go func() {
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		cancel()
	}()
	<-ctx.Done()
	return 0
}

// playLauncher runs a cluster, prints its process ids, and waits to be killed.
func playLauncher(directory string, store StoreKind) int {
	cluster, err := Start(context.Background(), Options{Directory: directory, Store: store, Agents: 2})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(cluster.Pids()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {}
}

package resp

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// redisVersion is the version of Redis whose commands these are.
const redisVersion = "7.0.0"

// doHelp lists the parts of a command.
func doHelp(x *call) error {
	name, _, _ := strings.Cut(x.entry.name, "|")
	parts := x.client.server.entries[name].parts
	x.reply.array(len(parts) + 1)
	x.reply.status(strings.ToUpper(name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, part := range parts {
		x.reply.status(strings.ToUpper(part.name[len(name)+1:]))
	}
	return nil
}

// section is one of INFO.
type section struct {
	name, title string
	lines       func(*Server) []string
}

var sections = []section{
	{"server", "Server", func(s *Server) []string {
		return []string{
			"redis_version:" + redisVersion, "server_name:restripe", "restripe_version:" + s.release, "redis_mode:standalone",
			"os:" + runtime.GOOS + " " + runtime.GOARCH, "arch_bits:" + strconv.Itoa(strconv.IntSize), "process_id:" + strconv.Itoa(os.Getpid()),
			"run_id:" + s.run, fmt.Sprintf("server_time_usec:%d", time.Now().UnixMicro()),
			fmt.Sprintf("uptime_in_seconds:%d", int64(time.Since(s.began).Seconds())),
			fmt.Sprintf("uptime_in_days:%d", int64(time.Since(s.began).Hours()/24)),
		}
	}},
	{"clients", "Clients", func(s *Server) []string {
		return []string{
			fmt.Sprintf("connected_clients:%d", s.connections.Count()), fmt.Sprintf("maxclients:%d", s.connections.Most), "blocked_clients:0",
		}
	}},
	{"memory", "Memory", func(*Server) []string {
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return []string{
			fmt.Sprintf("used_memory:%d", memory.HeapAlloc), fmt.Sprintf("used_memory_rss:%d", memory.Sys), "maxmemory:0",
			"maxmemory_policy:noeviction",
		}
	}},
	{"persistence", "Persistence", func(*Server) []string {
		return []string{"loading:0", "async_loading:0", "aof_enabled:0"}
	}},
	{"stats", "Stats", func(s *Server) []string {
		return []string{
			fmt.Sprintf("total_connections_received:%d", s.clients.Load()), fmt.Sprintf("total_commands_processed:%d", s.commands.Load()),
			"pubsub_channels:0", "pubsub_patterns:0",
		}
	}},
	{"replication", "Replication", func(*Server) []string { return []string{"role:master", "connected_slaves:0"} }},
	{"cluster", "Cluster", func(*Server) []string { return []string{"cluster_enabled:0"} }},
}

// doInfo is INFO [section ...].
func doInfo(x *call) error {
	all := len(x.arguments) == 1
	wanted := map[string]bool{}
	for _, argument := range x.arguments[1:] {
		name := strings.ToLower(string(argument))
		all = all || name == "all" || name == "default" || name == "everything"
		wanted[name] = true
	}
	var text strings.Builder
	for _, section := range sections {
		if !all && !wanted[section.name] {
			continue
		}
		if text.Len() > 0 {
			text.WriteString("\r\n")
		}
		text.WriteString("# " + section.title + "\r\n")
		for _, line := range section.lines(x.client.server) {
			text.WriteString(line + "\r\n")
		}
	}
	x.reply.verbatim(text.String())
	return nil
}

// names are those of all commands.
func (s *Server) names() []string { return slices.Sorted(maps.Keys(s.entries)) }

func doCommandAll(x *call) error {
	names := x.client.server.names()
	x.reply.array(len(names))
	for _, name := range names {
		x.client.server.entries[name].describe(&x.reply)
	}
	return nil
}

func doCommandCount(x *call) error {
	x.reply.count(len(x.client.server.entries))
	return nil
}

func doCommandList(x *call) error {
	names := x.client.server.names()
	x.reply.array(len(names))
	for _, name := range names {
		x.reply.text(name)
	}
	return nil
}

// doCommandDocs is COMMAND DOCS, which tells nothing: docs/clients.md does.
func doCommandDocs(x *call) error {
	x.reply.pairs(0)
	return nil
}

func doCommandInfo(x *call) error {
	if len(x.arguments) == 2 {
		return doCommandAll(x)
	}
	x.reply.array(len(x.arguments) - 2)
	for _, name := range x.arguments[2:] {
		if e := x.client.server.entryOf(name); e != nil {
			e.describe(&x.reply)
		} else {
			x.reply.null()
		}
	}
	return nil
}

// doCommandKeys is COMMAND GETKEYS: which arguments of a command are keys.
func doCommandKeys(x *call) error {
	e := x.client.server.entryOf(x.arguments[2])
	of := x.arguments[2:]
	switch {
	case e == nil:
		return redisError("ERR Invalid command specified")
	case e.first == 0:
		return redisError("ERR The command has no key arguments")
	case !e.takes(len(of)):
		return redisError("ERR Invalid number of arguments specified for command")
	}
	var keys [][]byte
	e.each(len(of), func(i int) bool {
		keys = append(keys, of[i])
		return true
	})
	x.reply.array(len(keys))
	for _, key := range keys {
		x.reply.bulk(key)
	}
	return nil
}

// describe is the command as COMMAND INFO shows it: name, arity, flags, places of keys, categories, tips, key specifications and parts.
func (e *entry) describe(r *reply) {
	var flags []string
	switch {
	case e.writes:
		flags = append(flags, "write")
	case e.first > 0:
		flags = append(flags, "readonly")
	}
	if e.anybody {
		flags = append(flags, "no_auth")
	}
	if e.outside {
		flags = append(flags, "no_multi")
	}
	r.array(10)
	r.text(e.name)
	r.integer(int64(e.arity))
	r.set(len(flags))
	for _, flag := range flags {
		r.status(flag)
	}
	r.count(e.first)
	r.count(e.last)
	r.count(e.step)
	r.set(0)
	r.array(0)
	r.array(0)
	r.array(0)
}

// settings are what CONFIG GET knows, which nobody can change.
func (s *Server) settings() map[string]string {
	return map[string]string{
		"save": "", "appendonly": "no", "maxmemory": "0", "maxmemory-policy": "noeviction", "databases": "1", "timeout": "0",
		"maxclients": strconv.Itoa(s.connections.Most), "proto-max-bulk-len": strconv.FormatInt(s.limits.argument, 10), "cluster-enabled": "no",
	}
}

func doConfigSet(x *call) error {
	return redisError("ERR CONFIG " + strings.ToUpper(x.key(1)) +
		" is not supported: the gateway is set up by its flags, and classes by their policies")
}

func doConfigGet(x *call) error {
	settings := x.client.server.settings()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if slices.ContainsFunc(x.arguments[2:], func(pattern []byte) bool { return matches(pattern, name) }) {
			names = append(names, name)
		}
	}
	x.reply.pairs(len(names))
	for _, name := range names {
		x.reply.text(name)
		x.reply.text(settings[name])
	}
	return nil
}

// doCluster says that there is no cluster of Redis, as CLUSTER, READONLY and READWRITE do.
func doCluster(x *call) error { return errCluster }

func doRole(x *call) error {
	x.reply.array(3)
	x.reply.text("master")
	x.reply.integer(0)
	x.reply.array(0)
	return nil
}

// doWait is WAIT: there are no replicas in Redis's sense. What is acknowledged is on as many nodes as its class says.
func doWait(x *call) error {
	for i := 1; i <= 2; i++ {
		if _, err := x.integer(i); err != nil {
			return err
		}
	}
	x.reply.integer(0)
	return nil
}

func doFlush(x *call) error {
	return redisError("ERR " + strings.ToUpper(x.entry.name) +
		" is not supported: the objects are not this client's alone; delete keys by name, which SCAN lists")
}

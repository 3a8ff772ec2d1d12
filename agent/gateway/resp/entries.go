package resp

// entry is what is known of a command.
type entry struct {
	name              string
	arity             int // how many arguments, with the name; negative: at least so many
	first, last, step int // which of them are keys; last counts from the end where it is negative
	writes            bool
	alone             bool // nothing else of its connection runs beside it
	anybody           bool // clients may who have not said who they are
	unqueued          bool // it is carried out at once after MULTI, too
	outside           bool // it is refused after MULTI
	run               func(*call) error
	now               func(*call) bool // makes the reply where all is in memory, and reports whether it was; nil: it never is
	parts             []*entry         // which its second argument chooses among; their arity counts both
}

// takes reports whether the command may have so many arguments, with its name.
func (e *entry) takes(count int) bool {
	if e.arity < 0 {
		return count >= -e.arity
	}
	return count == e.arity
}

// part is that of its parts which a word chooses, nil where there is none.
func (e *entry) part(word []byte) *entry {
	for _, p := range e.parts {
		if isWord(word, p.name[len(e.name)+1:]) {
			return p
		}
	}
	return nil
}

// each calls do with the places of the keys among so many arguments, until it says no.
func (e *entry) each(count int, do func(i int) bool) {
	if e.first == 0 {
		return
	}
	last := e.last
	if last < 0 {
		last += count
	}
	for i := e.first; i <= min(last, count-1); i += e.step {
		if !do(i) {
			return
		}
	}
}

// longestName is how many bytes the name of a command may have.
const longestName = 16

// entryOf finds a command by its name in any case, nil where there is none.
func (s *Server) entryOf(name []byte) *entry {
	var small [longestName]byte
	if len(name) > longestName {
		return nil
	}
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		small[i] = c
	}
	return s.entries[string(small[:len(name)])]
}

// newEntries lists the commands.
func newEntries() map[string]*entry {
	reads := func(name string, arity int, run func(*call) error) entry {
		return entry{name: name, arity: arity, first: 1, last: 1, step: 1, run: run}
	}
	writes := func(name string, arity int, run func(*call) error) entry {
		e := reads(name, arity, run)
		e.writes = true
		return e
	}
	many := func(e entry, last, step int) entry {
		e.last, e.step = last, step
		return e
	}
	keyless := func(name string, arity int, run func(*call) error) entry {
		return entry{name: name, arity: arity, run: run}
	}
	alone := func(name string, arity int, run func(*call) error) entry {
		return entry{name: name, arity: arity, run: run, alone: true}
	}
	queueing := func(e entry) entry {
		e.alone, e.unqueued = true, true
		return e
	}
	anybody := func(e entry) entry {
		e.anybody, e.outside = true, true
		return e
	}
	container := func(name string, parts ...entry) entry {
		e := alone(name, -2, nil)
		for _, part := range parts {
			part.name, part.alone = name+"|"+part.name, true
			e.parts = append(e.parts, &part)
		}
		return e
	}
	atOnce := func(e entry, now func(*call) bool) entry {
		e.now = now
		return e
	}
	second := func(e entry) entry {
		e.first, e.last, e.step = 2, 2, 1
		return e
	}
	commands := func(e entry) entry {
		e.arity, e.run = -1, doCommandAll
		return e
	}
	list := []entry{
		anybody(alone("auth", -2, doAuth)),
		anybody(alone("hello", -1, doHello)),
		{name: "quit", arity: -1, run: doLeave, alone: true, anybody: true, unqueued: true},
		{name: "reset", arity: 1, run: doReset, alone: true, anybody: true, unqueued: true},
		alone("select", 2, doSelectClass), container("client", keyless("getname", 2, doClientName),
			keyless("id", 2, doClientID), keyless("info", 2, doClientInfo), keyless("list", -2, doClientInfo),
			keyless("no-evict", 3, doClientNoEvict), keyless("reply", 3, doClientReply),
			keyless("setinfo", 4, doClientSetInfo), keyless("setname", 3, doClientSetName), keyless("help", 2, doHelp)),
		keyless("ping", -1, doPing), keyless("echo", 2, doEcho), keyless("time", 1, doTime),
		alone("info", -1, doInfo),
		commands(container("command", keyless("count", 2, doCommandCount), keyless("docs", -2, doCommandDocs),
			keyless("getkeys", -4, doCommandKeys), keyless("info", -2, doCommandInfo), keyless("list", 2, doCommandList),
			keyless("help", 2, doHelp))),
		container("config", keyless("get", -3, doConfigGet), keyless("set", -4, doConfigSet),
			keyless("rewrite", 2, doConfigSet), keyless("help", 2, doHelp)),
		alone("cluster", -2, doCluster), alone("readonly", 1, doCluster), alone("readwrite", 1, doCluster),
		container("acl", keyless("whoami", 2, doWhoAmI), keyless("help", 2, doHelp)), alone("role", 1, doRole), alone("wait", 3, doWait),
		alone("flushall", -1, doFlush), alone("flushdb", -1, doFlush),

		atOnce(reads("get", 2, doGet), getNow), many(reads("mget", -2, doGetMany), -1, 1), reads("strlen", 2, doLength),
		reads("getrange", 4, doGetRange), reads("substr", 4, doGetRange),
		writes("set", -3, doSet), writes("setex", 4, doSetSeconds), writes("psetex", 4, doSetMillis),
		writes("setnx", 3, doSetNew), writes("getset", 3, doGetSet), writes("getex", -2, doGetExpire),
		writes("getdel", 2, doGetDelete), many(writes("mset", -3, doSetMany), -1, 2),
		many(writes("msetnx", -3, doSetManyNew), -1, 2), writes("setrange", 4, doSetRange), writes("append", 3, doAppend),
		writes("incr", 2, doIncrement), writes("decr", 2, doDecrement), writes("incrby", 3, doIncrementBy),
		writes("decrby", 3, doDecrementBy), writes("incrbyfloat", 3, doIncrementFloat),

		many(writes("del", -2, doDelete), -1, 1), many(writes("unlink", -2, doDelete), -1, 1),
		many(reads("exists", -2, doExists), -1, 1), many(reads("touch", -2, doExists), -1, 1), reads("type", 2, doTypeOf),
		many(writes("rename", 3, doRename), 2, 1), many(writes("renamenx", 3, doRenameNew), 2, 1),
		many(writes("copy", -3, doCopy), 2, 1),
		container("object", second(keyless("encoding", 3, doEncoding)), second(keyless("refcount", 3, doReferences)),
			keyless("help", 2, doHelp)),
		alone("scan", -2, doScan), alone("keys", 2, doKeysLike), alone("randomkey", 1, doRandomKey),
		alone("dbsize", 1, doCountKeys),

		writes("expire", -3, doExpire), writes("pexpire", -3, doExpireMillis), writes("expireat", -3, doExpireAt),
		writes("pexpireat", -3, doExpireAtMillis), writes("persist", 2, doPersist), reads("ttl", 2, doTtl),
		reads("pttl", 2, doTtlMillis), reads("expiretime", 2, doExpireTime), reads("pexpiretime", 2, doExpireTimeMillis),

		queueing(many(reads("watch", -2, doWatch), -1, 1)), alone("unwatch", 1, doUnwatch),
		queueing(keyless("multi", 1, doMulti)), queueing(keyless("exec", 1, doExec)),
		queueing(keyless("discard", 1, doDiscard)),
	}
	entries := make(map[string]*entry, len(list))
	for i := range list {
		entries[list[i].name] = &list[i]
	}
	return entries
}

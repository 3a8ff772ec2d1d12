package pools

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Severity string `json:"severity"` // warning or error
	Subject  string `json:"subject"`
	Text     string `json:"text"`
	Cure     string `json:"cure"`
}

// The severities.
const (
	SeverityWarning = "warning"
	SeverityError   = "error"
)

// Client is the client's side of a connection.
type Client struct {
	OSDTimeout     bool // operations on OSDs end by themselves
	MonitorTimeout bool // and commands do
}

// Check compares the pools that Restripe owns with what they were made to be, and looks for what in the cluster stands in
// their way. It is pure. Findings come in the order pools, OSDs, cluster.
func Check(s *State, client Client) []Finding {
	c := &checker{state: s}
	for _, n := range s.Nodes() {
		c.pool(s.Pool(n.Pool))
	}
	c.unmarked()
	c.missing()
	c.osds()
	c.flags()
	c.client(client)
	return c.findings
}

type checker struct {
	state    *State
	findings []Finding
}

func (c *checker) add(severity, subject, cure, format string, values ...any) {
	c.findings = append(c.findings, Finding{Severity: severity, Subject: subject, Text: fmt.Sprintf(format, values...), Cure: cure})
}

// pool checks one owned pool.
func (c *checker) pool(p *Pool) {
	subject, node := "pool "+p.Name, p.mark(markNode)
	if p.Size != 1 {
		c.add(SeverityError, subject, fmt.Sprintf("ceph osd pool set %s nosizechange 0, then set its size to 1 again with --yes-i-really-mean-it", p.Name),
			"its size is %d: every block is stored %d times, and no node stands for one bucket", p.Size, p.Size)
	}
	if p.MinSize > p.Size {
		c.add(SeverityError, subject, fmt.Sprintf("ceph osd pool set %s min_size 1", p.Name), "it serves from %d copies on and has %d: it does not serve at all", p.MinSize, p.Size)
	}
	if p.AutoscaleMode == "on" {
		c.add(SeverityWarning, subject, fmt.Sprintf("ceph osd pool set %s pg_autoscale_mode off", p.Name),
			"the autoscaler may split or merge its placement groups, which moves blocks between the OSDs of %s", node)
	}
	c.rule(p, subject, node)
	b := c.state.bucket(node)
	if b == nil {
		c.add(SeverityError, subject, "put the bucket back (ceph osd crush add-bucket, ceph osd crush move), or replace the node and remove its pool with `restripe ceph remove`",
			"the bucket %s it was made for is gone from the CRUSH hierarchy", node)
		return
	}
	if len(c.state.osdsOf(b, p.mark(markClass))) == 0 {
		c.add(SeverityError, subject, "bring its OSDs back, or replace the node and remove its pool with `restripe ceph remove`",
			"%s %s has no OSDs%s any more", b.Type, b.Name, ofClass(p.mark(markClass)))
	}
	if domain := p.mark(markDomain); domain != "" && !c.above(b, domain) {
		c.add(SeverityWarning, subject, fmt.Sprintf("`restripe node place` with the new domain, then ceph osd pool application set %s %s %s NAME", p.Name, Application, markDomain),
			"%s %s no longer lies in its failure domain %s", b.Type, b.Name, domain)
	}
}

// rule checks that the pool's rule still takes the pool's bucket and nothing else.
func (c *checker) rule(p *Pool, subject, node string) {
	cure := fmt.Sprintf("ceph osd pool set %s crush_rule %s, after `restripe scrub start` has shown what is where", p.Name, p.mark(markRule))
	switch rule := c.state.ruleOf(p); {
	case rule == nil:
		c.add(SeverityError, subject, cure, "it has no CRUSH rule")
	case !placesOn(rule, node, p.mark(markClass)):
		c.add(SeverityError, subject, cure, "its rule %s takes %s, not %s alone: what it stores may lie with other nodes' blocks",
			rule.Name, cmp.Or(strings.Join(rule.Takes, " and "), "nothing"), taken(node, p.mark(markClass)))
	case rule.Name != p.mark(markRule):
		c.add(SeverityWarning, subject, cure, "its rule is %s and was %s; both take %s", rule.Name, p.mark(markRule), node)
	}
}

func (c *checker) above(b *Bucket, name string) bool {
	for up := c.state.bucket(b.Parent); up != nil; up = c.state.bucket(up.Parent) {
		if up.Name == name {
			return true
		}
	}
	return false
}

// unmarked finds pools with the tag that say of no node.
func (c *checker) unmarked() {
	for i := range c.state.Pools {
		if p := &c.state.Pools[i]; p.Owned() && p.mark(markNode) == "" {
			c.add(SeverityWarning, "pool "+p.Name, "`restripe ceph init` completes a pool it began; tag the pool yourself if you made it",
				"it is tagged %s and does not say which bucket it stands for", Application)
		}
	}
}

// missing finds buckets without a pool beside buckets of the same type that have one.
func (c *checker) missing() {
	made, types := map[string]bool{}, map[string]bool{}
	for _, n := range c.state.Nodes() {
		made[n.Node] = true
		types[c.state.Pool(n.Pool).mark(markType)] = true
	}
	for i := range c.state.Buckets {
		if b := &c.state.Buckets[i]; types[b.Type] && !made[b.Name] && len(b.OSDs) > 0 {
			c.add(SeverityWarning, b.Type+" "+b.Name, "`restripe ceph init`, if it shall store blocks", "it has OSDs and no pool of Restripe's")
		}
	}
}

// osds looks at the OSDs below the nodes.
func (c *checker) osds() {
	for _, n := range c.state.Nodes() {
		for _, id := range n.OSDs {
			o := c.state.OSD(id)
			subject := fmt.Sprintf("osd.%d of %s", id, n.Node)
			switch {
			case !o.Up && !o.In && len(n.OSDs) > 1:
				c.add(SeverityError, subject, "bring it back and in (ceph osd in), or let `restripe repair` rebuild its blocks elsewhere",
					"it is down and out: the placement groups it had are empty on the other OSDs of the node, and their blocks count as lost")
			case !o.Up:
				c.add(SeverityError, subject, "start it; until then its blocks are read from the rest of their stripes", "it is down: what lies on it cannot be read")
			case !o.In:
				c.add(SeverityWarning, subject, fmt.Sprintf("ceph osd in %d", id), "it is out: new blocks go to the other OSDs of the node")
			}
			c.full(o, subject)
		}
	}
}

func (c *checker) full(o *OSD, subject string) {
	const cure = "free space, add OSDs to the node, or move blocks away with `restripe node drain`"
	switch {
	case slices.Contains(o.State, "full"):
		c.add(SeverityError, subject, cure, "it is full: writes to its pool are refused")
	case slices.Contains(o.State, "backfillfull"), slices.Contains(o.State, "nearfull"):
		c.add(SeverityWarning, subject, cure, "it is nearly full: when one OSD is full, writes to its whole pool are refused")
	}
}

// flags that get in the way, with what they do here.
var flags = []struct{ name, severity, text string }{
	{"pauserd", SeverityError, "all reads wait until it is unset: every node seems lost"},
	{"pausewr", SeverityError, "all writes wait until it is unset: every node seems lost"},
	{"full", SeverityError, "all writes are refused"},
	{"noup", SeverityWarning, "OSDs that come back are not used"},
	{"nodown", SeverityWarning, "OSDs that died are not noticed but by time-outs, of every operation"},
	{"noin", SeverityWarning, "OSDs that come back get no placement groups"},
	{"noout", SeverityWarning, "OSDs that stay down are not taken out. For pools of size 1 that is harmless and keeps their placement groups where they are; other pools stay degraded"},
	{"norecover", SeverityWarning, "placement groups that move inside a node do not get their objects"},
	{"nobackfill", SeverityWarning, "placement groups that move inside a node do not get their objects"},
	{"norebalance", SeverityWarning, "placement groups that move inside a node do not get their objects"},
}

func (c *checker) flags() {
	for _, f := range flags {
		if slices.Contains(c.state.Flags, f.name) {
			unset := strings.TrimSuffix(strings.TrimSuffix(f.name, "rd"), "wr")
			c.add(f.severity, "flag "+f.name, "ceph osd unset "+unset+" when it is no longer wanted", "%s", f.text)
		}
	}
}

// client compares the daemons' releases, and looks at the client's time-outs.
func (c *checker) client(client Client) {
	releases := map[int]bool{}
	for _, versions := range c.state.Releases {
		for _, version := range versions {
			releases[major(version)] = true
		}
	}
	delete(releases, 0)
	var numbers []int
	for number := range releases {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	if len(numbers) > 1 {
		c.add(SeverityWarning, "releases", "finish the upgrade", "daemons of several releases run: %s", joinNumbers(numbers))
	}
	if !client.OSDTimeout {
		c.add(SeverityError, "client", "give rados_osd_op_timeout a number of seconds in ceph.conf",
			"rados_osd_op_timeout is 0: an operation on an OSD that is dead never ends")
	}
	if !client.MonitorTimeout {
		c.add(SeverityError, "client", "give rados_mon_op_timeout a number of seconds in ceph.conf",
			"rados_mon_op_timeout is 0: a command to monitors that are dead never ends")
	}
}

// major reads the number of the release: 16 of "ceph version 16.2.15 (618f...) pacific (stable)". 0 if there is none.
func major(version string) int {
	var number int
	if _, err := fmt.Sscanf(version, "ceph version %d.", &number); err != nil {
		return 0
	}
	return number
}

func joinNumbers(numbers []int) string {
	var words []string
	for _, n := range numbers {
		words = append(words, fmt.Sprint(n))
	}
	return strings.Join(words, ", ")
}

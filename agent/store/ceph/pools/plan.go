package pools

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Options say which buckets become nodes, and how.
type Options struct {
	NodeType        string   // type of the buckets that are nodes; default host
	DomainType      string   // type of the buckets that are failure domains; default: whatever lies right above a node
	Buckets         []string // only these; default: all of the type that have OSDs
	DeviceClass     string   // only OSDs of this class; default: all
	Prefix          string   // goes before the bucket's name in the names of pool and rule; default restripe.
	PlacementGroups int      // of each pool; default: by its number of OSDs
	User            string   // the cephx user to make, without "client."; "" makes none
}

// DefaultPrefix goes before the names of pools and rules unless told otherwise.
const DefaultPrefix = "restripe."

// The least capabilities of a user that stores and reads blocks: it sees the maps, and reaches the pools that carry the
// tag, present and future, and no others.
const (
	MonitorCapability = "allow r"
	OSDCapability     = "allow rw tag " + Application + " *=*"
)

// Action says what a plan does about a node.
type Action string

// The actions.
const (
	ActionCreate   Action = "create"
	ActionComplete Action = "complete" // an earlier attempt was interrupted
	ActionKeep     Action = "keep"
	ActionRemove   Action = "remove"
)

// NodePlan is what a plan does about one node.
type NodePlan struct {
	Node            string `json:"node"`
	Type            string `json:"type"`
	Domain          string `json:"domain,omitempty"`
	OSDs            []int  `json:"osds"`
	Pool            string `json:"pool"`
	Rule            string `json:"rule"`
	PlacementGroups int    `json:"placementGroups"`
	Action          Action `json:"action"`
}

// Step is one command with a sentence for people.
type Step struct {
	Text    string  `json:"text"`
	Command Command `json:"command"`

	// Cleanup marks a step that is carried out even if an earlier one failed.
	Cleanup bool `json:"cleanup,omitempty"`
	// retryCode: monitors learn of a change of their configuration with a delay; a refusal with this code is tried again.
	retryCode int
}

// Plan is what is to be done. A plan without steps finds everything as it should be.
type Plan struct {
	Nodes []NodePlan `json:"nodes"`
	Steps []Step     `json:"steps"`
	Notes []string   `json:"notes,omitempty"` // whole sentences
}

// RefusedError says why nothing is done: every reason is a whole sentence with its cure.
type RefusedError struct{ Reasons []string }

// Error joins the reasons.
func (e *RefusedError) Error() string { return strings.Join(e.Reasons, "\n") }

func (o *Options) complete() {
	o.NodeType = cmp.Or(o.NodeType, "host")
	o.Prefix = cmp.Or(o.Prefix, DefaultPrefix)
}

var validPrefix = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Prepare plans the rules and pools that are missing. It is pure: the same state and options give the same plan. The
// error is a *RefusedError.
func Prepare(s *State, options Options) (*Plan, error) {
	options.complete()
	if !validPrefix.MatchString(options.Prefix) {
		return nil, &RefusedError{Reasons: []string{fmt.Sprintf("The prefix %q cannot begin the name of a pool: use letters, digits, dots, dashes and underscores.", options.Prefix)}}
	}
	p := &planner{state: s, options: options, plan: &Plan{}}
	buckets := p.choose()
	for _, b := range buckets {
		p.node(b)
	}
	if len(p.refused) > 0 {
		return nil, &RefusedError{Reasons: p.refused}
	}
	p.allowSizeOne()
	p.user()
	p.notes()
	return p.plan, nil
}

// planner gathers a plan and what speaks against it.
type planner struct {
	state   *State
	options Options
	plan    *Plan
	refused []string
}

func (p *planner) refuse(format string, values ...any) {
	p.refused = append(p.refused, fmt.Sprintf(format, values...))
}

func (p *planner) note(format string, values ...any) {
	p.plan.Notes = append(p.plan.Notes, fmt.Sprintf(format, values...))
}

func (p *planner) step(prefix string, arguments map[string]any, format string, values ...any) *Step {
	p.plan.Steps = append(p.plan.Steps, Step{Text: fmt.Sprintf(format, values...), Command: Command{Prefix: prefix, Arguments: arguments}})
	return &p.plan.Steps[len(p.plan.Steps)-1]
}

// choose returns the buckets that are to be nodes.
func (p *planner) choose() (chosen []*Bucket) {
	for i := range p.state.Buckets {
		b := &p.state.Buckets[i]
		named := slices.Contains(p.options.Buckets, b.Name)
		switch {
		case len(p.options.Buckets) > 0 && !named:
		case b.Type != p.options.NodeType:
			if named {
				p.refuse("%s is a %s, and nodes are to be of type %s: choose the type with --node-type.", b.Name, b.Type, p.options.NodeType)
			}
		case len(p.state.osdsOf(b, p.options.DeviceClass)) == 0:
			if named {
				p.refuse("%s %s has no OSDs%s: nothing could be stored there.", b.Type, b.Name, ofClass(p.options.DeviceClass))
			} else {
				p.note("%s %s is left out: it has no OSDs%s.", b.Type, b.Name, ofClass(p.options.DeviceClass))
			}
		default:
			chosen = append(chosen, b)
		}
	}
	for _, name := range p.options.Buckets {
		if p.state.bucket(name) == nil {
			p.refuse("There is no bucket %s in the CRUSH hierarchy; there are %s.", name, p.bucketNames())
		}
	}
	if len(chosen) == 0 && len(p.refused) == 0 {
		p.refuseType()
	}
	slices.SortFunc(chosen, func(a, b *Bucket) int { return compareNames(a.Name, b.Name) })
	return chosen
}

func ofClass(class string) string {
	if class == "" {
		return ""
	}
	return " of class " + class
}

// bucketNames lists the buckets of the wanted type.
func (p *planner) bucketNames() string {
	var names []string
	for _, b := range p.state.Buckets {
		if b.Type == p.options.NodeType {
			names = append(names, b.Name)
		}
	}
	if len(names) == 0 {
		return "none of type " + p.options.NodeType
	}
	slices.SortFunc(names, compareNames)
	return strings.Join(names, ", ")
}

// refuseType says why no bucket is of the wanted type. A rule that takes a single OSD places nothing at all: the steps
// that follow choose among what is in a bucket.
func (p *planner) refuseType() {
	if p.options.NodeType == "osd" {
		p.refuse("A CRUSH rule can take a bucket but no single OSD. To make every OSD a node of its own put each into a bucket of its own, " +
			"for example of type chassis or host (ceph osd crush add-bucket, ceph osd crush move), and name that type with --node-type.")
		return
	}
	p.refuse("No bucket of type %s has OSDs%s: choose another type with --node-type; the hierarchy has %s.",
		p.options.NodeType, ofClass(p.options.DeviceClass), strings.Join(p.types(), ", "))
}

func (p *planner) types() (types []string) {
	for _, b := range p.state.Buckets {
		if !slices.Contains(types, b.Type) {
			types = append(types, b.Type)
		}
	}
	if len(types) == 0 {
		return []string{"no buckets at all"}
	}
	slices.Sort(types)
	return types
}

// node plans one node.
func (p *planner) node(b *Bucket) {
	n := NodePlan{
		Node: b.Name, Type: b.Type, Domain: p.state.domain(b, p.options.DomainType), OSDs: p.state.osdsOf(b, p.options.DeviceClass),
		Pool: p.options.Prefix + b.Name, Rule: p.options.Prefix + b.Name, Action: ActionCreate,
	}
	if p.options.DomainType != "" && n.Domain == "" {
		p.refuse("No bucket of type %s lies above %s %s: it could not be told which nodes fail together.", p.options.DomainType, b.Type, b.Name)
		return
	}
	pool, rule := p.state.Pool(n.Pool), p.state.rule(n.Rule)
	if rule != nil && !placesOn(rule, b.Name, p.options.DeviceClass) {
		p.refuse("There is a rule %s that does not take %s alone: remove it (ceph osd crush rule rm %s) or choose another --name-prefix.", n.Rule, b.Name, n.Rule)
		return
	}
	if pool != nil {
		p.existing(pool, rule, &n)
		return
	}
	if n.PlacementGroups = p.placementGroups(&n); n.PlacementGroups == 0 {
		return
	}
	if rule == nil {
		p.createRule(&n)
	}
	p.createPool(&n)
	p.markPool(&n)
	p.plan.Nodes = append(p.plan.Nodes, n)
}

// placesOn reports whether the rule takes the bucket and nothing else.
func placesOn(r *Rule, bucket, class string) bool {
	return len(r.Takes) == 1 && r.Takes[0] == taken(bucket, class) && r.Spans == "osd"
}

// taken names what a rule takes: the bucket, or its shadow for a device class.
func taken(bucket, class string) string {
	if class == "" {
		return bucket
	}
	return bucket + "~" + class
}

// existing plans a node whose pool is there.
func (p *planner) existing(pool *Pool, rule *Rule, n *NodePlan) {
	n.PlacementGroups = pool.PlacementGroups
	switch {
	case pool.Owned() && pool.mark(markNode) == n.Node:
		n.Action = ActionKeep
	case pool.Owned() && pool.mark(markNode) != "":
		p.refuse("The pool %s is the node %s, not %s: choose another --name-prefix.", pool.Name, pool.mark(markNode), n.Node)
		return
	case (pool.Owned() || len(pool.Applications) == 0) && rule != nil && pool.Rule == rule.ID:
		// Named as this node's pool, on this node's rule and marked by nobody: an attempt that was interrupted left it.
		n.Action = ActionComplete
		p.sizePool(n)
		p.markPool(n)
	case len(pool.Applications) == 0:
		p.refuse("There is a pool %s that Restripe does not own: it has no application tag and another rule. Remove or rename it, or choose another --name-prefix.", pool.Name)
		return
	default:
		p.refuse("There is a pool %s that Restripe does not own: it belongs to %s. Choose another --name-prefix.", pool.Name, strings.Join(applications(pool), ", "))
		return
	}
	p.plan.Nodes = append(p.plan.Nodes, *n)
}

func applications(p *Pool) []string {
	names := make([]string, 0, len(p.Applications))
	for name := range p.Applications {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (p *planner) createRule(n *NodePlan) {
	arguments := map[string]any{"name": n.Rule, "root": n.Node, "type": "osd"}
	if p.options.DeviceClass != "" {
		arguments["class"] = p.options.DeviceClass
	}
	p.step("osd crush rule create-replicated", arguments, "create the rule %s: one copy on any OSD%s of %s %s", n.Rule, ofClass(p.options.DeviceClass), n.Type, n.Node)
}

func (p *planner) createPool(n *NodePlan) {
	p.step("osd pool create", map[string]any{
		"pool": n.Pool, "pg_num": n.PlacementGroups, "pgp_num": n.PlacementGroups, "pool_type": "replicated", "rule": n.Rule,
		"size": 1, "autoscale_mode": "off",
	}, "create the pool %s of size 1 with %d placement groups on that rule", n.Pool, n.PlacementGroups)
	p.sizePool(n)
}

// sizePool makes sure of the size, which releases of Ceph treat differently at creation, and has the monitors keep it.
func (p *planner) sizePool(n *NodePlan) {
	set := func(variable, value string, sure bool, text string) *Step {
		arguments := map[string]any{"pool": n.Pool, "var": variable, "val": value}
		if sure {
			arguments["yes_i_really_mean_it"] = true
		}
		return p.step("osd pool set", arguments, "%s of %s: %s", text, n.Pool, value)
	}
	set("size", "1", true, "set the size").retryCode = codeNotPermitted
	set("min_size", "1", false, "set the least copies to serve with")
	set("nosizechange", "1", false, "have the monitors refuse changes of the size")
}

func (p *planner) markPool(n *NodePlan) {
	p.step("osd pool application enable", map[string]any{"pool": n.Pool, "app": Application}, "tag %s with the application %s", n.Pool, Application)
	marks := [][2]string{{markType, n.Type}, {markRule, n.Rule}, {markDomain, n.Domain}, {markClass, p.options.DeviceClass}, {markNode, n.Node}}
	for _, m := range marks {
		if m[1] != "" {
			p.step("osd pool application set", map[string]any{"pool": n.Pool, "app": Application, "key": m[0], "value": m[1]}, "note on %s: %s is %s", n.Pool, m[0], m[1])
		}
	}
}

// Placement groups: each OSD should carry some tens of a node's, so that its objects spread evenly over the host's OSDs
// and over the shards inside one, and far fewer than at which monitors refuse (mon_max_pg_per_osd, 250).
const (
	groupsPerOSD = 32
	mostPerOSD   = 200
)

// placementGroups returns a power of two; 0 with a refusal where the OSDs have no room for more.
func (p *planner) placementGroups(n *NodePlan) int {
	if p.options.PlacementGroups > 0 {
		return p.options.PlacementGroups
	}
	each := min(groupsPerOSD, mostPerOSD-p.state.groupsOnEachOSD())
	if each < 1 {
		p.refuse("The OSDs carry %d placement groups each on average, and at 250 the monitors refuse more: lower the pg_num of other pools, or choose with --pg-num.",
			p.state.groupsOnEachOSD())
		return 0
	}
	groups := 1
	for groups*2 <= each*len(n.OSDs) {
		groups *= 2
	}
	return groups
}

// groupsOnEachOSD is the average of the pools that are there.
func (s *State) groupsOnEachOSD() int {
	total := 0
	for i := range s.Pools {
		total += s.Pools[i].PlacementGroups * s.Pools[i].Size
	}
	return total / max(1, len(s.OSDs))
}

// allowSizeOne has the monitors allow size 1 while the plan is carried out, where one of its steps needs that.
func (p *planner) allowSizeOne() {
	needed := slices.ContainsFunc(p.plan.Steps, func(s Step) bool { return s.retryCode != 0 })
	if !needed || p.state.SizeOneAllowed {
		return
	}
	allow := Step{
		Text:    "allow pools of size 1 while this plan is carried out",
		Command: Command{Prefix: "config set", Arguments: map[string]any{"who": "mon", "name": optionSizeOne, "value": "true"}},
	}
	p.plan.Steps = append([]Step{allow}, p.plan.Steps...)
	p.step("config rm", map[string]any{"who": "mon", "name": optionSizeOne}, "no longer allow new pools of size 1; those that are there stay").Cleanup = true
}

func (p *planner) user() {
	if p.options.User == "" {
		return
	}
	p.step("auth get-or-create", map[string]any{
		"entity": "client." + p.options.User, "caps": []string{"mon", MonitorCapability, "osd", OSDCapability},
	}, "make the user client.%s, who may read the maps and use pools tagged %s", p.options.User, Application)
}

func (p *planner) notes() {
	if !slices.ContainsFunc(p.plan.Nodes, func(n NodePlan) bool { return n.Action != ActionKeep }) {
		return
	}
	p.note("The pools have one copy of everything: `ceph -s` will say POOL_NO_REDUNDANCY. Redundancy is Restripe's, across these pools.")
	if slices.ContainsFunc(p.state.Pools, func(pool Pool) bool { return pool.AutoscaleMode == "on" && !pool.Owned() }) {
		p.note("The rules of the new pools lie below roots that other pools use: Ceph's autoscaler no longer changes the number of placement groups of pools with overlapping roots.")
	}
}

// compareNames orders names as people count them: node2 before node10.
func compareNames(a, b string) int {
	stemA, stemB := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
	if stemA != stemB {
		return cmp.Compare(stemA, stemB)
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

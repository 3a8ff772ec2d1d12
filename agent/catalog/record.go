package catalog

import (
	"github.com/restripe/restripe/agent/block"
	"github.com/restripe/restripe/agent/catalog/cluster"
	"github.com/restripe/restripe/agent/catalog/schema"
)

// The records, as those who use a catalog know them.
type (
	Object      = schema.Object
	Extent      = schema.Extent
	Group       = schema.Group
	Column      = schema.Column
	Slot        = schema.Slot
	Item        = schema.Item
	Node        = schema.Node
	NodeState   = schema.NodeState
	Drain       = schema.Drain
	Membership  = schema.Membership
	Kind        = schema.Kind
	IntentState = schema.IntentState
	BlockSet    = schema.BlockSet
	Intent      = schema.Intent
	Job         = schema.Job
	Class       = schema.Class

	View          = schema.View
	HeatPart      = cluster.HeatPart
	RepairControl = cluster.RepairControl
	Subject       = cluster.Subject
	GroupSummary  = schema.GroupSummary
	ObjectSummary = schema.ObjectSummary
	Likeness      = schema.Likeness
)

// WholeGroup as an Extent's Column says that the range runs over the cells of the group in row-major order.
const WholeGroup = schema.WholeGroup

// LikenessOf is that of nodes.
func LikenessOf(nodes []block.NodeID) Likeness { return schema.LikenessOf(nodes) }

// What is declared of a node.
const (
	NodeUp       = schema.NodeUp
	NodeDown     = schema.NodeDown
	NodeDraining = schema.NodeDraining
	NodeRemoving = schema.NodeRemoving
	NodeRemoved  = schema.NodeRemoved
)

// The kinds of attempts.
const (
	KindPut        = schema.KindPut
	KindUpdate     = schema.KindUpdate
	KindTransition = schema.KindTransition
	KindRepair     = schema.KindRepair
	KindRelocation = schema.KindRelocation
	KindMove       = schema.KindMove
	KindWiden      = schema.KindWiden
	KindNarrow     = schema.KindNarrow
)

// Where an attempt stands.
const (
	IntentActive    = schema.IntentActive
	IntentCommitted = schema.IntentCommitted
	IntentAborted   = schema.IntentAborted
)

// The subjects that can be watched.
const (
	SubjectClasses = cluster.SubjectClasses
	SubjectMembers = cluster.SubjectMembers
	SubjectJobs    = cluster.SubjectJobs
	SubjectRepair  = cluster.SubjectRepair
	SubjectScrub   = cluster.SubjectScrub
	SubjectViews   = cluster.SubjectViews
	SubjectHeat    = cluster.SubjectHeat
	SubjectBalance = cluster.SubjectBalance
)

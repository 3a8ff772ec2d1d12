// Package compact moves small objects out of groups in which much is dead, together into new groups, so that the old ones are
// freed. Overwriting and deleting small objects leaves holes in the groups that they share, which nothing else fills.
//
// A cluster has one compaction, whose record in the catalog says which gateway carries it out, how far it is, and whether it is
// paused. A pass looks at all packed groups, chooses those of every class that are emptiest until no more is dead than the class
// allows, and moves what lives in them, at the pace that clients leave. Each move proves that the objects are as they were when
// their bytes were read (rule 6): those that changed meanwhile stay where they are.
package compact

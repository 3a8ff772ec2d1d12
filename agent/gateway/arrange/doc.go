// Package arrange says which small objects share a group, and which groups are emptied: decisions over values, which act on nothing.
//
// A group is freed when nothing lives in it any more, and what lives in one that is emptied before has to be moved. So what dies
// about as soon lies together (BCStore, Section III.B): objects that are written often leave whole groups dead, and those that stay
// are left alone. Writes make dead space, and how often a key is written tells how soon what it has now dies; reads do not. Reads make a
// group hot, by which it has its place on the ladder: they decide among objects that are written about as often, which are most of
// them, as most are hardly ever written. So writes come first: by reads first, a group would have to be moved for what died in it.
package arrange

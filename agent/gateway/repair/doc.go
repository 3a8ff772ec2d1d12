// Package repair rebuilds what was lost: it finds the slots of a group whose blocks are gone, plans how the others make them
// anew, and carries that out, for reads and transitions that wait for it and, within declared limits, by itself. Groups
// that survive the fewest further losses come first.
package repair

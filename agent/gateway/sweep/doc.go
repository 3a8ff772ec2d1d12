// Package sweep takes away what nobody names any more: dead blocks whose grace is over, groups without live extents, attempts
// that expired, and leftovers in stores; and it takes nodes back that were given up, once their stores were swept.
package sweep

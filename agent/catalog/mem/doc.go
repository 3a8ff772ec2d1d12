// Package mem is the catalog engine for simulations and tests: everything is in memory, and gone with the process.
package mem

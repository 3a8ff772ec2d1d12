//go:build !amd64

package kernel

// machinePaths returns the paths of this machine, the best one last.
func machinePaths() []path { return []path{generic} }

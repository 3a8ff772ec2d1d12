package adopt

// PoolOptions say which objects of which pool.
type PoolOptions struct {
	Name      string
	Namespace string // "" is the default one
	Prefix    string // as a source: only objects whose names begin so

	// As a source: what Restripe's objects cannot hold is left out instead of the object refused.
	DropXattrs bool
	DropOmap   bool

	// Plain opens objects without a look at their attributes: as a target, what is read back is only compared.
	Plain bool
}

// Survey is what a look at all names of a pool finds.
type Survey struct {
	Objects   int64 // selected
	Elsewhere int64 // in other namespaces
}

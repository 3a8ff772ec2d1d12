package decorate

// Operation names a method of store.Store or store.Lister.
type Operation string

// The operations a decorator tells apart.
const (
	Create Operation = "create"
	ReadAt Operation = "read"
	Delete Operation = "delete"
	List   Operation = "list" // also a page
	Info   Operation = "info"
)

package object

import "github.com/restripe/restripe/agent/catalog"

// readSmall counts a read of a small object by a client, and tells of it if its key is a hot one and lies elsewhere.
func (o *Objects) readSmall(snapshot *catalog.Snapshot, in *catalog.Group) {
	if class := o.heat.Popularity.Read(snapshot.Object.Class, snapshot.Object.Key); class != nil && class.IsColder(in.Scheme) {
		o.hot(class.Name, snapshot.Object.Key)
	}
}

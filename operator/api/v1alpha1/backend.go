package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageBackend is a set of nodes that keep blocks, and the gateways in front of them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=sb,categories=restripe
// +kubebuilder:printcolumn:name="Up",type=string,JSONPath=".status.summary.nodes"
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=".status.summary.used"
// +kubebuilder:printcolumn:name="Can-Lose",type=integer,JSONPath=".status.canLose"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=".status.conditions[?(@.type=='Ready')].status"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=".spec.type"
type StorageBackend struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   StorageBackendSpec   `json:"spec"`
	Status StorageBackendStatus `json:"status,omitzero"`
}

// StorageBackendList is a list of backends.
//
// +kubebuilder:object:root=true
type StorageBackendList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []StorageBackend `json:"items"`
}

// StoreType is what the nodes of a backend keep blocks in.
//
// +kubebuilder:validation:Enum=file;memcached;redis;ceph
type StoreType string

// StorageBackendSpec says where a backend is.
type StorageBackendSpec struct {
	// Type is what the nodes keep blocks in. It cannot be changed: the blocks are there.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the type of a backend cannot change; declare another backend"
	Type StoreType `json:"type"`

	// Gateways are the base addresses of the gateways, such as http://127.0.0.1:7480; any of them answers for all.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	Gateways []GatewayAddress `json:"gateways"`

	// Nodes are the nodes the backend should have. Empty: whatever nodes the gateways know. Those with an address that are no
	// members of the cluster are added to it; those that are members and are not listed stay.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=1024
	// +listType=map
	// +listMapKey=name
	Nodes []BackendNode `json:"nodes,omitempty"`

	// Use says what becomes of nodes that are added because nodes lists them. Absent: Capacity.
	//
	// +optional
	Use NodeUse `json:"use,omitempty"`

	// Repair says how much may be done, and when, to rebuild what was lost. Absent: as the gateways have it.
	//
	// +optional
	Repair *BackendRepair `json:"repair,omitempty"`
}

// NodeUse is how nodes are used that are added: with Capacity they take new groups and what has to leave other nodes, with Balance
// blocks of other nodes are moved to them besides, until every node holds about its share.
//
// +kubebuilder:validation:Enum=Capacity;Balance
type NodeUse string

// The values of NodeUse.
const (
	UseCapacity NodeUse = "Capacity"
	UseBalance  NodeUse = "Balance"
)

// BackendRepair limits the repair of what was lost with nodes and stores. Limits that are absent are as the gateways have them.
type BackendRepair struct {
	// BytesPerSecond counts bytes read, sent and written, at all nodes together.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="give bytes per second above 0, such as 40Mi"
	BytesPerSecond *resource.Quantity `json:"bytesPerSecond,omitempty"`
	// NodeBytesPerSecond is the same for any one node, FailureDomainBytesPerSecond for the nodes of any one domain.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="give bytes per second above 0, such as 40Mi"
	NodeBytesPerSecond *resource.Quantity `json:"nodeBytesPerSecond,omitempty"`
	// FailureDomainBytesPerSecond is the same for the nodes of any one failure domain.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="give bytes per second above 0, such as 40Mi"
	FailureDomainBytesPerSecond *resource.Quantity `json:"failureDomainBytesPerSecond,omitempty"`

	// Windows are when groups are rebuilt that survive a further loss. Those that survive none are always rebuilt, and groups that
	// are being rebuilt when a window closes are finished. Empty: always.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(w, !has(w.overrun) || w.overrun == 'Pause')",message="the groups that are being rebuilt are always finished and no others begun; leave overrun out"
	Windows []Window `json:"windows,omitempty"`
}

// GatewayAddress is the base address of a gateway.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && size(url(self).getHost()) > 0",message="a gateway address is such as http://127.0.0.1:7480"
type GatewayAddress string

// BackendNode is one node a backend should have.
type BackendNode struct {
	// Name is the identity of the node, as its agent states it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// Address is the host:port of the node's agent, at which the node is added if it is no member; empty: it is added by others.
	// Of a member it changes nothing.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=262
	// +kubebuilder:validation:XValidation:rule="self.matches('^([^:/@ ]+|[[][0-9A-Fa-f:.%]+[]]):[0-9]{1,5}$')",message="the address of an agent is such as 10.0.0.15:7400"
	Address string `json:"address,omitempty"`

	// FailureDomain is what the node shares its fate with, such as a rack; empty: as the gateways know it.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	FailureDomain string `json:"failureDomain,omitempty"`

	// Spare says that the node takes no new groups while others can, and takes over the blocks of lost nodes first; absent:
	// as the gateways know it.
	//
	// +optional
	Spare *bool `json:"spare,omitempty"`
}

// StorageBackendStatus is what the gateways say of a backend.
type StorageBackendStatus struct {
	// ObservedGeneration is the generation of the declaration that the status is of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Accepted, CatalogBehind, Degraded, Managed, NodesAdded, Ready, Reconciling and Stalled.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Nodes are the nodes as they are.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	Nodes []NodeStatus `json:"nodes,omitempty"`

	// CanLose is how many nodes every object survives the loss of, now; absent with nothing stored.
	//
	// +optional
	CanLose *int32 `json:"canLose,omitempty"`

	// Groups is how many groups of blocks there are.
	//
	// +optional
	Groups int64 `json:"groups,omitempty"`
	// Objects is how many objects there are.
	//
	// +optional
	Objects int64 `json:"objects,omitempty"`
	// UsedBytes is what the stores of all nodes say is used.
	//
	// +optional
	UsedBytes int64 `json:"usedBytes,omitempty"`
	// CapacityBytes is 0 if a node does not know its own.
	//
	// +optional
	CapacityBytes int64 `json:"capacityBytes,omitempty"`

	// Capabilities are the least that all nodes can do.
	//
	// +optional
	Capabilities Capabilities `json:"capabilities,omitzero"`

	// +optional
	Summary BackendSummary `json:"summary,omitzero"`

	// LastSeen is when a gateway last answered.
	//
	// +optional
	LastSeen *metav1.Time `json:"lastSeen,omitempty"`
}

// BackendSummary is for people and for the columns of kubectl.
type BackendSummary struct {
	// Nodes is "12 of 14".
	//
	// +optional
	Nodes string `json:"nodes,omitempty"`
	// Used is "1.2 of 4.0 TiB".
	//
	// +optional
	Used string `json:"used,omitempty"`
}

// NodeStatus is one node as a gateway sees it.
type NodeStatus struct {
	// Name is the identity of the node, as its agent states it.
	Name string `json:"name"`
	// Address is the host:port of its agent.
	//
	// +optional
	Address string `json:"address,omitempty"`
	// FailureDomain is what the node shares its fate with.
	//
	// +optional
	FailureDomain string `json:"failureDomain,omitempty"`
	// State is up, suspect (it misses probes), down, out (given up: its blocks are rebuilt elsewhere), draining, or missing
	// for a declared node no gateway knows.
	State string `json:"state"`
	// Spare says that the node takes no new groups while others can, and substitutes first.
	//
	// +optional
	Spare bool `json:"spare,omitempty"`
	// UsedBytes is what its store says is used.
	//
	// +optional
	UsedBytes int64 `json:"usedBytes,omitempty"`
	// CapacityBytes is what its store can hold; 0 where it does not know.
	//
	// +optional
	CapacityBytes int64 `json:"capacityBytes,omitempty"`
	// Warnings are what its store says about itself, such as that it may lose blocks.
	//
	// +optional
	Warnings []string `json:"warnings,omitempty"`
}

// Capabilities are what a store can do, as far as policies depend on it.
type Capabilities struct {
	// Evicts: the store may drop blocks by itself, as caches do.
	//
	// +optional
	Evicts bool `json:"evicts,omitempty"`
	// Durable: blocks survive the end of the store's process.
	//
	// +optional
	Durable bool `json:"durable,omitempty"`
	// MaxItemBytes is the largest item the store takes; 0: no limit of its own.
	//
	// +optional
	MaxItemBytes int64 `json:"maxItemBytes,omitempty"`
}

// GatewayAddresses returns where the gateways of the backend are reached, as texts.
func (b *StorageBackend) GatewayAddresses() []string {
	addresses := make([]string, len(b.Spec.Gateways))
	for i, address := range b.Spec.Gateways {
		addresses[i] = string(address)
	}
	return addresses
}

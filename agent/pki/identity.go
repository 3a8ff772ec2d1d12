package pki

import (
	"fmt"
	"strings"

	"github.com/spiffe/go-spiffe/v2/spiffeid"
)

// Role is what a part of a cluster does, and so what others let it do.
type Role string

// The roles.
const (
	RoleAgent    Role = "agent"    // serves blocks to gateways and agents
	RoleGateway  Role = "gateway"  // serves objects
	RoleConsole  Role = "console"  // asks gateways for what it shows
	RoleOperator Role = "operator" // asks gateways to carry out what is declared
	RoleAdmin    Role = "admin"    // a person at a command line
	RoleCatalog  Role = "catalog"  // a member of the etcd that gateways keep the catalog in; it asks nobody for anything
)

// Roles are all roles.
var Roles = []Role{RoleAgent, RoleGateway, RoleConsole, RoleOperator, RoleAdmin, RoleCatalog}

// Identity says who somebody is: of agents the name is that of the node.
type Identity struct {
	Cluster string `json:"cluster"`
	Role    Role   `json:"role"`
	Name    string `json:"name"`
}

// String returns the SPIFFE ID.
func (i Identity) String() string {
	return "spiffe://" + i.Cluster + "/" + string(i.Role) + "/" + i.Name
}

// id returns the identity as the library has it, or what is wrong with it.
func (i Identity) id() (spiffeid.ID, error) {
	domain, err := spiffeid.TrustDomainFromString(i.Cluster)
	if err != nil {
		return spiffeid.ID{}, fmt.Errorf("the name of the cluster, %q: %w: want a-z, 0-9, dot, dash and underscore", i.Cluster, err)
	}
	id, err := spiffeid.FromSegments(domain, string(i.Role), i.Name)
	if err == nil {
		_, err = identityOf(id)
	}
	if err != nil {
		return id, fmt.Errorf("the identity of %s %q: %w", i.Role, i.Name, err)
	}
	return id, nil
}

// identityOf reads an identity out of a SPIFFE ID.
func identityOf(id spiffeid.ID) (Identity, error) {
	parts := strings.Split(strings.TrimPrefix(id.Path(), "/"), "/")
	if len(parts) == 2 {
		for _, role := range Roles {
			if parts[0] == string(role) {
				return Identity{Cluster: id.TrustDomain().Name(), Role: role, Name: parts[1]}, nil
			}
		}
	}
	return Identity{}, fmt.Errorf("%s is no identity of a cluster: want spiffe://CLUSTER/ROLE/NAME, with one of the roles %v", id, Roles)
}

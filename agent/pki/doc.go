// Package pki says who the parts of a cluster are to one another: certificates with an identity in them, an authority that
// issues them, and the configurations of TLS that ask for them.
//
// An identity is a SPIFFE ID: spiffe://CLUSTER/ROLE/NAME. So any authority can issue the certificates that can put one into
// them; files have the names that cert-manager gives them.
package pki

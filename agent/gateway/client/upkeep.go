package client

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strconv"
	"time"

	"github.com/restripe/restripe/agent/gateway/api"
)

// upkeep asks how the gateway and the cluster as a whole are, and puts them in order.
type upkeep struct{ *transport }

// Status returns the cluster at a glance.
func (c *upkeep) Status(ctx context.Context) (status api.Status, err error) {
	return status, c.call(ctx, api.RouteStatus, nil, nil, &status)
}

// StatusBrief returns the nodes and the transitions that have not ended. Counts of objects and groups are those of the
// last heat report, so it costs little however large the cluster is.
func (c *upkeep) StatusBrief(ctx context.Context) (status api.Status, err error) {
	return status, c.call(ctx, api.RouteStatus, map[string][]string{"brief": {"true"}}, nil, &status)
}

// Load returns what clients asked of the gateway in the last seconds.
func (c *upkeep) Load(ctx context.Context) (load api.Load, err error) {
	return load, c.call(ctx, api.RouteLoad, nil, nil, &load)
}

// Doctor returns what the gateway finds right and wrong.
func (c *upkeep) Doctor(ctx context.Context) (findings []api.Finding, err error) {
	return findings, c.call(ctx, api.RouteDoctor, nil, nil, &findings)
}

// Sweep settles expired attempts and deletes dead and orphaned blocks.
func (c *upkeep) Sweep(ctx context.Context, request api.SweepRequest) (result api.SweepResult, err error) {
	query := map[string][]string{}
	if request.Node != "" {
		query["node"] = []string{string(request.Node)}
	}
	if request.BeyondBrake {
		query["beyondBrake"] = []string{"true"}
	}
	return result, c.call(ctx, api.RouteSweep, query, nil, &result)
}

// Lineage returns what the catalog knows of its own timeline.
func (c *upkeep) Lineage(ctx context.Context) (lineage api.Lineage, err error) {
	return lineage, c.call(ctx, api.RouteGetLineage, nil, nil, &lineage)
}

// ClaimCatalog says that the catalog of this gateway counts, and no other timeline of it. Its gateways start anew, and nothing
// from before is deleted until AcceptCatalog.
func (c *upkeep) ClaimCatalog(ctx context.Context) (claimed api.Claimed, err error) {
	return claimed, c.call(ctx, api.RouteClaimCatalog, nil, nil, &claimed)
}

// AcceptCatalog says that a catalog that was rebuilt or claimed has all that is wanted.
func (c *upkeep) AcceptCatalog(ctx context.Context) error {
	return c.call(ctx, api.RouteAcceptCatalog, nil, nil, nil)
}

// UpgradeCatalog lets the catalog have the records that only the present release knows. It is refused while others are at work.
func (c *upkeep) UpgradeCatalog(ctx context.Context) error {
	return c.call(ctx, api.RouteUpgradeCatalog, nil, nil, nil)
}

// CopyCatalog returns all records of the catalog as of one instant, in the form that package transfer reads. The caller closes it.
func (c *upkeep) CopyCatalog(ctx context.Context) (io.ReadCloser, error) {
	reply, err := c.send(ctx, request{route: api.RouteCopyCatalog})
	if err != nil {
		return nil, err
	}
	return reply.Body, nil
}

// SetCatalogAside takes the catalog out of service, as it is moved to an address. Its gateways end by it.
func (c *upkeep) SetCatalogAside(ctx context.Context, address string) error {
	return c.call(ctx, api.RouteAsideCatalog, nil, api.CatalogMoved{Address: address}, nil)
}

// Audit returns a page of what was done to the cluster through this gateway, newest first: at most limit actions (0: as many as the
// gateway gives by itself), of those that began before the record before (0: all).
func (c *upkeep) Audit(ctx context.Context, filter api.AuditFilter, before int64, limit int) (page api.AuditPage, err error) {
	query := url.Values{}
	set := func(name, value string) {
		if value != "" {
			query.Set(name, value)
		}
	}
	set("user", filter.User)
	set("object", filter.Object)
	set("verb", filter.Verb)
	if !filter.Since.IsZero() {
		set("since", filter.Since.UTC().Format(time.RFC3339))
	}
	if !filter.Until.IsZero() {
		set("until", filter.Until.UTC().Format(time.RFC3339))
	}
	if before > 0 {
		set("before", strconv.FormatInt(before, 10))
	}
	if limit > 0 {
		set("limit", strconv.Itoa(limit))
	}
	return page, c.call(ctx, api.RouteListAudit, query, nil, &page)
}

// VerifyAudit has the gateway read its whole audit log. earlier is a head that was kept of an earlier time, or zero.
func (c *upkeep) VerifyAudit(ctx context.Context, earlier api.AuditHead) (report api.AuditReport, err error) {
	query := url.Values{}
	if earlier.Sequence > 0 {
		query.Set("sequence", strconv.FormatInt(earlier.Sequence, 10))
		query.Set("hash", earlier.Hash)
	}
	return report, c.call(ctx, api.RouteVerifyAudit, query, nil, &report)
}

// Healthy reports whether the gateway answers.
func (c *upkeep) Healthy(ctx context.Context) (err error) {
	reply, err := c.send(ctx, request{route: api.RouteHealthy})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reply.Body.Close()) }()
	_, err = io.Copy(io.Discard, reply.Body)
	return err
}

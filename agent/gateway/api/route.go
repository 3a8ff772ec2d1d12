package api

import (
	"net/url"
	"strings"
)

// Route is one request of the API.
type Route struct {
	Method string
	Path   string // with a name in braces for each value that goes into it
}

// Pattern is the route as net/http's ServeMux takes it.
func (r Route) Pattern() string { return r.Method + " " + r.Path }

// With returns the route to something: the values, escaped, in place of the names in braces, of which there are as many.
func (r Route) With(values ...string) Route {
	path := r.Path
	for _, value := range values {
		before, rest, _ := strings.Cut(path, "{")
		_, after, _ := strings.Cut(rest, "}")
		path = before + escapeSegment(value) + after
	}
	return Route{r.Method, path}
}

// escapeSegment makes one path segment of any bytes. The segments "." and ".." would be cleaned away on the way.
func escapeSegment(value string) string {
	if value == "." || value == ".." {
		return strings.ReplaceAll(value, ".", "%2E")
	}
	return url.PathEscape(value)
}

// Objects. A key is one path segment of any bytes, percent-encoded; one of dots alone has them encoded as %2E.
var (
	RoutePutObject    = Route{"PUT", "/v1/objects/{key...}"}
	RouteGetObject    = Route{"GET", "/v1/objects/{key...}"}
	RoutePatchObject  = Route{"PATCH", "/v1/objects/{key...}"}
	RouteDeleteObject = Route{"DELETE", "/v1/objects/{key...}"}
	RouteStatObject   = Route{"GET", "/v1/stat/{key...}"}
	RouteListObjects  = Route{"GET", "/v1/objects"}
	RouteMoveObject   = Route{"POST", "/v1/move"}
)

// Transitions.
var (
	RouteStartTransition    = Route{"POST", "/v1/transitions"}
	RouteListTransitions    = Route{"GET", "/v1/transitions"}
	RouteGetTransition      = Route{"GET", "/v1/transitions/{id}"}
	RoutePauseTransition    = Route{"POST", "/v1/transitions/{id}/pause"}
	RouteCancelTransition   = Route{"POST", "/v1/transitions/{id}/cancel"}
	RouteResumeTransition   = Route{"POST", "/v1/transitions/{id}/resume"}
	RouteThrottleTransition = Route{"POST", "/v1/transitions/{id}/throttle"}
	RouteEstimate           = Route{"POST", "/v1/estimate"}
)

// The cluster as a whole.
var (
	RouteStatus = Route{"GET", "/v1/status"}
	RouteLoad   = Route{"GET", "/v1/load"}
	RouteHeat   = Route{"GET", "/v1/heat"}
	RouteDoctor = Route{"GET", "/v1/doctor"}
	RouteSweep  = Route{"POST", "/v1/sweep"}
)

// Which timeline of the catalog counts.
var (
	RouteGetLineage    = Route{"GET", "/v1/catalog/lineage"}
	RouteClaimCatalog  = Route{"POST", "/v1/catalog/claim"}
	RouteAcceptCatalog = Route{"POST", "/v1/catalog/accept"}
	RouteCopyCatalog   = Route{"GET", "/v1/catalog/records"}
	RouteAsideCatalog  = Route{"POST", "/v1/catalog/aside"}

	RouteUpgradeCatalog = Route{"POST", "/v1/catalog/upgrade"}
)

// The repair of what was lost.
var (
	RouteStartRepair    = Route{"POST", "/v1/repair"}
	RouteGetRepair      = Route{"GET", "/v1/repair"}
	RoutePauseRepair    = Route{"POST", "/v1/repair/pause"}
	RouteResumeRepair   = Route{"POST", "/v1/repair/resume"}
	RouteDeferRepair    = Route{"POST", "/v1/repair/defer"}
	RouteThrottleRepair = Route{"POST", "/v1/repair/throttle"}
)

// Classes of objects.
var (
	RouteListClasses = Route{"GET", "/v1/classes"}
	RoutePutClass    = Route{"PUT", "/v1/classes/{name}"}
	RouteDeleteClass = Route{"DELETE", "/v1/classes/{name}"}
)

// Members.
var (
	RouteListNodes   = Route{"GET", "/v1/nodes"}
	RouteGetNode     = Route{"GET", "/v1/nodes/{id}"}
	RouteAddNode     = Route{"POST", "/v1/nodes/{id}/add"}
	RouteDrainNode   = Route{"POST", "/v1/nodes/{id}/drain"}
	RouteUndrainNode = Route{"POST", "/v1/nodes/{id}/undrain"}
	RouteDownNode    = Route{"POST", "/v1/nodes/{id}/down"}
	RouteUpNode      = Route{"POST", "/v1/nodes/{id}/up"}
	RouteRemoveNode  = Route{"POST", "/v1/nodes/{id}/remove"}
	RouteReplaceNode = Route{"POST", "/v1/nodes/{id}/replace"}
	RoutePlaceNode   = Route{"POST", "/v1/nodes/{id}/place"}
	RoutePutPatience = Route{"PUT", "/v1/patience"}

	RouteGetBalance    = Route{"GET", "/v1/balance"}
	RoutePlanBalance   = Route{"GET", "/v1/balance/plan"}
	RouteStartBalance  = Route{"POST", "/v1/balance"}
	RoutePauseBalance  = Route{"POST", "/v1/balance/pause"}
	RouteResumeBalance = Route{"POST", "/v1/balance/resume"}
	RouteCancelBalance = Route{"POST", "/v1/balance/cancel"}
)

// Scrubs, and a catalog that was rebuilt.
var (
	RouteGetScrub          = Route{"GET", "/v1/scrub"}
	RouteStartScrub        = Route{"POST", "/v1/scrub"}
	RoutePauseScrub        = Route{"POST", "/v1/scrub/pause"}
	RouteResumeScrub       = Route{"POST", "/v1/scrub/resume"}
	RouteListScrubFindings = Route{"GET", "/v1/scrub/findings"}
	RouteGetCompaction     = Route{"GET", "/v1/compaction"}
	RouteStartCompaction   = Route{"POST", "/v1/compaction"}
	RoutePauseCompaction   = Route{"POST", "/v1/compaction/pause"}
	RouteResumeCompaction  = Route{"POST", "/v1/compaction/resume"}
)

// What was done to the cluster.
var (
	RouteListAudit   = Route{"GET", "/v1/audit"}
	RouteVerifyAudit = Route{"GET", "/v1/audit/verify"}
)

// The process.
var (
	RouteHealthy = Route{"GET", "/healthz"} // the process runs
	RouteReady   = Route{"GET", "/readyz"}  // it can answer requests for objects
	RouteMetrics = Route{"GET", "/metrics"}
)

// Routes are all requests that a gateway serves.
var Routes = []Route{
	RoutePutObject, RouteGetObject, RoutePatchObject, RouteDeleteObject, RouteStatObject, RouteListObjects,
	RouteMoveObject,
	RouteStartTransition, RouteListTransitions, RouteGetTransition, RoutePauseTransition, RouteCancelTransition,
	RouteResumeTransition, RouteThrottleTransition, RouteEstimate,
	RouteStatus, RouteLoad, RouteHeat, RouteDoctor, RouteSweep,
	RouteStartRepair, RouteGetRepair, RoutePauseRepair, RouteResumeRepair, RouteDeferRepair, RouteThrottleRepair,
	RouteListClasses, RoutePutClass, RouteDeleteClass,
	RouteListNodes, RouteGetNode, RouteAddNode, RouteDrainNode, RouteUndrainNode, RouteDownNode, RouteUpNode, RouteRemoveNode,
	RouteReplaceNode, RoutePlaceNode, RoutePutPatience,
	RouteGetBalance, RoutePlanBalance, RouteStartBalance, RoutePauseBalance, RouteResumeBalance, RouteCancelBalance,
	RouteGetScrub, RouteStartScrub, RoutePauseScrub, RouteResumeScrub, RouteListScrubFindings,
	RouteGetCompaction, RouteStartCompaction, RoutePauseCompaction, RouteResumeCompaction,
	RouteGetLineage, RouteClaimCatalog, RouteAcceptCatalog, RouteCopyCatalog, RouteAsideCatalog, RouteUpgradeCatalog,
	RouteListAudit, RouteVerifyAudit,
	RouteHealthy, RouteReady, RouteMetrics,
}

package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/restripe/restripe/agent/catalog/transfer"
	"github.com/restripe/restripe/agent/gateway/api"
)

// routeLineage adds the requests of which timeline of the catalog counts.
func (s *Server) routeLineage(route func(route api.Route, serve func(w http.ResponseWriter, r *http.Request) error)) {
	route(api.RouteGetLineage, func(w http.ResponseWriter, r *http.Request) error { return reply(w)(s.lineage(r.Context())) })
	route(api.RouteClaimCatalog, func(w http.ResponseWriter, r *http.Request) error { return reply(w)(s.claim(r.Context())) })
	route(api.RouteAcceptCatalog, func(w http.ResponseWriter, r *http.Request) error {
		if err := s.catalog.Accept(r.Context()); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	route(api.RouteUpgradeCatalog, func(w http.ResponseWriter, r *http.Request) error {
		if err := s.members.UpgradeCatalog(r.Context()); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	route(api.RouteCopyCatalog, s.copyCatalog)
	route(api.RouteAsideCatalog, func(w http.ResponseWriter, r *http.Request) error {
		var moved api.CatalogMoved
		if err := readJSON(r, &moved); err != nil {
			return err
		}
		if moved.Address == "" {
			return api.Refuse(api.ErrBadRequest, "say where the catalog is moved to: address is empty")
		}
		if err := transfer.SetAside(r.Context(), s.catalog.Raw(), transfer.Moved(moved.Address)); err != nil {
			return err
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
}

// copyCatalog sends all records, as they are at one instant. A copy that breaks off is seen by its end that is not there.
func (s *Server) copyCatalog(w http.ResponseWriter, r *http.Request) error {
	records, err := s.catalog.Raw().Snapshot(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	return errors.Join(transfer.Send(r.Context(), w, records), records.Close())
}

// heardLately is how long ago a node may have said what it knows.
const heardLately = 5 * time.Second

// claim says that this catalog counts. The gateway ends by it, as all do that are at work with the catalog.
func (s *Server) claim(ctx context.Context) (api.Claimed, error) {
	starts, unheard := s.members.Starts(time.Now().Add(-heardLately))
	return api.Claimed{Unheard: unheard}, s.catalog.Claim(ctx, starts)
}

func (s *Server) lineage(ctx context.Context) (api.Lineage, error) {
	lineage := api.Lineage{Cluster: s.catalog.Cluster().ID, Address: s.address, Sessions: []api.Session{}}
	size, err := s.catalog.Raw().Size(ctx)
	if err != nil {
		return lineage, err
	}
	lineage.Size = api.CatalogSize(size)
	sessions, err := s.catalog.Sessions(ctx)
	if err != nil {
		return lineage, err
	}
	for _, session := range sessions {
		lineage.Sessions = append(lineage.Sessions, api.Session(session))
	}
	alarm, err := s.catalog.Alarm(ctx)
	if err != nil {
		return lineage, err
	}
	if alarm != nil {
		lineage.Behind = &api.CatalogBehind{
			Gateway: alarm.Gateway, At: time.UnixMilli(alarm.At).UTC(), Node: alarm.Node, Blocks: alarm.Blocks, Stamp: alarm.Stamp,
			Refused: alarm.Refused,
		}
	}
	for _, refusal := range s.members.Refusals() {
		lineage.Refusals = append(lineage.Refusals, api.Refusal{Node: refusal.Node, Text: refusal.String()})
	}
	lineage.KeptBelow, err = s.catalog.Kept(ctx)
	return lineage, err
}

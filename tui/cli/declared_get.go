package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/words"
	"github.com/restripe/restripe/tui/cli/program"
)

// tableType asks the server for the table that its printer columns make, as kubectl does.
const tableType = "application/json;as=Table;v=v1;g=meta.k8s.io"

// table returns the objects of a kind, or one of them, as the server prints them.
func (a *apiServer) table(ctx context.Context, kind *declaredKind, name string) (*metav1.Table, error) {
	config := rest.CopyConfig(a.config)
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.GroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	server, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("reaching the API server at %s: %w", a.config.Host, err)
	}
	request := server.Get().Resource(kind.plural()).SetHeader("Accept", tableType)
	if name != "" {
		request = request.Name(name)
	}
	text, err := request.DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var table metav1.Table
	if err := json.Unmarshal(text, &table); err != nil {
		return nil, fmt.Errorf("decoding the table of %s: %w", kind.words[1], err)
	}
	return &table, nil
}

// getDeclared shows the objects of a kind, or one of them.
func (s *session) getDeclared(ctx context.Context, server *apiServer, kind *declaredKind, name string, format *formatValue) error {
	if name != "" {
		// Whether it is there is asked first: the answer has the same words in every format.
		object := kind.object()
		if err := server.read(ctx, kind, name, object); err != nil {
			return err
		}
		if format.chosen == "json" || format.chosen == "yaml" {
			return s.show(format, listing{value: forPeople(object)})
		}
	}
	if format.chosen == "json" || format.chosen == "yaml" {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind.kind + "List"))
		if err := server.List(ctx, list); err != nil {
			return server.explain(err)
		}
		items := make([]any, len(list.Items))
		for i := range list.Items {
			items[i] = forPeople(&list.Items[i])
		}
		return s.show(format, listing{value: map[string]any{"apiVersion": "v1", "kind": "List", "items": items}})
	}
	table, err := server.table(ctx, kind, name)
	if err != nil {
		return server.explain(err)
	}
	l, err := tableListing(kind, table)
	if err != nil {
		return err
	}
	return s.show(format, l)
}

// forPeople leaves out who set which field: it is long, and `restripe apply` says what matters of it.
func forPeople(object *unstructured.Unstructured) any {
	object.SetManagedFields(nil)
	return object.Object
}

// tableListing makes a listing of a server's table. Transitions are listed in the order they were made.
func tableListing(kind *declaredKind, table *metav1.Table) (listing, error) {
	l := listing{empty: kind.empty}
	for _, definition := range table.ColumnDefinitions {
		l.columns = append(l.columns, column{
			title: strings.ToUpper(definition.Name), wide: definition.Priority > 0,
			right: definition.Type == "integer" || definition.Type == "number",
		})
	}
	type named struct {
		metav1.PartialObjectMetadata
		cells []string
	}
	rows := make([]named, len(table.Rows))
	for i, row := range table.Rows {
		if err := json.Unmarshal(row.Object.Raw, &rows[i].PartialObjectMetadata); err != nil {
			return l, fmt.Errorf("decoding the table of %s: %w", kind.words[1], err)
		}
		for _, cell := range row.Cells {
			rows[i].cells = append(rows[i].cells, cellText(cell))
		}
	}
	if kind.kind == "Transition" {
		slices.SortStableFunc(rows, func(a, b named) int {
			return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
		})
	}
	for _, row := range rows {
		l.names = append(l.names, row.Name)
		l.rows = append(l.rows, row.cells)
	}
	return l, nil
}

func cellText(cell any) string {
	switch cell := cell.(type) {
	case nil:
		return "-"
	case float64:
		return strconv.FormatFloat(cell, 'f', -1, 64)
	case string:
		return cmp.Or(cell, "-")
	}
	return fmt.Sprint(cell)
}

func describeCommand(s *session) *cobra.Command {
	command := &cobra.Command{
		Use: "describe KIND NAME", Short: "Show one declared object at length, with its conditions in words",
		Example: "  restripe describe policy media",
		Args:    cobra.ExactArgs(2),
	}
	where := s.serverFlags(command)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		kind, err := parseKind(command, arguments[0])
		if err != nil {
			return err
		}
		server, err := s.apiServer(where)
		if err != nil {
			return err
		}
		return s.describe(command.Context(), server, kind, arguments[1])
	}
	return command
}

// describe shows one object at length: what it says, and its conditions in words.
func (s *session) describe(ctx context.Context, server *apiServer, kind *declaredKind, name string) error {
	object := kind.object()
	if err := server.read(ctx, kind, name, object); err != nil {
		return err
	}
	lines := []string{fmt.Sprintf("%s/%s, made %s ago", kind, name, words.About(time.Since(object.GetCreationTimestamp().Time)))}
	if object.GetDeletionTimestamp() != nil {
		lines = append(lines, "is being deleted")
	}
	table, err := server.table(ctx, kind, name)
	if err != nil {
		return server.explain(err)
	}
	l, err := tableListing(kind, table)
	if err != nil {
		return err
	}
	lines = append(lines, "")
	for i, c := range l.columns[1:] {
		lines = append(lines, fmt.Sprintf("%-12s %s", strings.ToLower(c.title), l.rows[0][i+1]))
	}
	if err := program.WriteLines(s.Out, append(lines, "")); err != nil {
		return err
	}
	if err := program.WriteLines(s.Out, conditionLines(object)); err != nil {
		return err
	}
	if err := program.WriteLines(s.Out, []string{""}); err != nil {
		return err
	}
	return writeYAML(s.Out, map[string]any{"spec": object.Object["spec"]})
}

func conditionLines(object *unstructured.Unstructured) []string {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil || len(conditions) == 0 {
		return []string{"The operator has not looked at it yet. Does one run? `restripe up` starts one."}
	}
	var rows [][]string
	for _, condition := range conditions {
		fields, is := condition.(map[string]any)
		if !is {
			continue
		}
		text := func(name string) string { return cellText(fields[name]) }
		rows = append(rows, []string{text("type"), text("status"), text("reason"), text("message")})
	}
	return tableLines([]column{{title: "CONDITION"}, {title: "STATUS"}, {title: "REASON"}, {title: "MESSAGE"}}, rows, true)
}

// transition returns the Transition object of a name.
func (a *apiServer) transition(ctx context.Context, name string) (*v1alpha1.Transition, error) {
	var transition v1alpha1.Transition
	if err := a.read(ctx, kindNamed("transition"), name, &transition); err != nil {
		return nil, err
	}
	return &transition, nil
}

// change writes the difference between two states of an object, unless somebody else changed it meanwhile.
func (a *apiServer) change(ctx context.Context, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := a.Patch(ctx, after, patch, client.FieldOwner(fieldOwner)); err != nil {
		return a.explain(err)
	}
	return nil
}

package policies

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/restripe/restripe/agent/stripe"
	"github.com/restripe/restripe/operator/api/v1alpha1"
	"github.com/restripe/restripe/operator/config"
	"github.com/restripe/restripe/operator/decide"
)

// server validates like an API server that has the CustomResourceDefinitions.
type server struct {
	schema *structural.Structural
	fields validation.SchemaValidator
	rules  *cel.Validator
}

func servers(t *testing.T) map[string]*server {
	t.Helper()
	definitions, err := config.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	byKind := make(map[string]*server)
	for _, definition := range definitions {
		var internal apiextensions.JSONSchemaProps
		schema := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(schema, &internal, nil); err != nil {
			t.Fatal(err)
		}
		s := &server{}
		if s.schema, err = structural.NewStructural(&internal); err != nil {
			t.Fatal(err)
		}
		if s.fields, _, err = validation.NewSchemaValidator(&internal); err != nil {
			t.Fatal(err)
		}
		s.rules = cel.NewValidator(s.schema, true, celconfig.PerCallLimit)
		byKind[definition.Spec.Names.Kind] = s
	}
	return byKind
}

func (s *server) refuses(object map[string]any) (reasons field.ErrorList) {
	defaulting.Default(object, s.schema)
	reasons = append(reasons, validation.ValidateCustomResource(nil, object, s.fields)...)
	reasons = append(reasons, listtype.ValidateListSetsAndMaps(nil, s.schema, object)...)
	if len(reasons) == 0 {
		wrong, _ := s.rules.Validate(context.Background(), nil, s.schema, object, nil, celconfig.RuntimeCELCostBudget)
		reasons = append(reasons, wrong...)
	}
	return reasons
}

// tried are values that every field is given in turn; what stands there otherwise is tried as well.
var tried = []any{
	"", "a", "A", "a b", "a/b", "rep(0)", "rep(1)", "rep(3)", "rep(9)", "rep(10)", "rep(03)", "REP(3)", "rs(1,2)", "rs(2,1)", "rs(4,2)", "rs(4,0)",
	"rs(64,8)", "rs(65,8)", "rs(8,9)", "rs(04,2)", "rs(4, 2)", "cold", "-cold", "cold-", "co.ld",
	"0s", "1ns", "5ms", "1.5h", "24h", "168h", "168h1s", "1d", "1h30m", "-1h", "h", "60s", "61s", strings.Repeat("1h", 17), "5", "0.5", "1.", ".5", "1e3", "1e-3", "1E3", "-1", "+1", "0", "00", "0.0", "0Mi",
	"10", "64Ki", "64Mi", "65Mi", "10k", "10K", "10MB", "10MiB", "1m", "1u", "1n", "1.5Gi", "99", "100", "101", "1.01", "1.0", "999999999999999999",
	"auto", "rules", "Allow", "allow", "Deny", "Finish", "Pause", "Auto", "Manual", "ManualAbove", "None", "Hold", "HoldAndDrain", "file", "memcached", "redis", "ceph", "s3",
	"0 22 * * *", "0 22 * *", "* * * * * *", "@daily", "@every 1h", "@Daily", "TZ=UTC 0 1 * * *", "0 1 * * MON-FRI", "*/5 0-6 1,15 * ?", "0  22 * * *", " 0 22 * * *",
	"UTC", "Local", "Europe/Berlin", "Europe/", "/etc", "../x", "http://127.0.0.1:7480", "https://a", "http://", "ftp://a", "127.0.0.1:7480", "http://a b", "http:///x",
	strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("a", 253), strings.Repeat("a", 254), strings.Repeat("ä", 513), strings.Repeat("ä", 1025),
	true, false, int64(-1), int64(0), int64(1), int64(2), int64(8), int64(9), int64(10), int64(15), int64(16), int64(17), int64(64), int64(65), int64(90), int64(91),
	int64(100), int64(101), int64(1) << 40, 0.5, 1.5, nil, []any{}, []any{"a", "a"}, map[string]any{}, map[string]any{"a": "b"},
}

// stricter are refusals that an API server does not know of, by words of the message: what CEL cannot say, or what the
// operator would refuse later.
var stricter = []string{
	"give a size from 64Ki to 64Mi", "more than the", // the gateways' bounds of groups
	"there is no time zone", "is no schedule", "never comes",
	"never holds", // a temperature rule behind others
	"there is no value",
	"there is no such field", // servers drop it, and clients ask them to refuse it
}

// TestSchemaRefusesWhatTheServerRefuses sets every field of every spec to every value tried and compares the verdicts:
// what is accepted here is accepted by the CustomResourceDefinitions with their CEL rules, and what is refused here and
// not there is refused for one of the reasons above.
func TestSchemaRefusesWhatTheServerRefuses(t *testing.T) {
	text, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents, findings := readYAML(Source{Name: "full.yaml", Text: text})
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	servers, e := servers(t), newEvaluator()
	compared := 0
	for _, document := range documents {
		bothSay(t, e, servers, document, "")
		for _, place := range nodes(document.get("spec"), "spec") {
			before := *place.node
			for _, value := range tried {
				*place.node = *treeOf(value)
				bothSay(t, e, servers, document, fmt.Sprintf("%s = %.80v", place.path, value))
				compared++
			}
			*place.node = before
		}
	}
	if compared < 5000 {
		t.Errorf("only %d values were compared", compared)
	}
}

// bothSay compares what is said of one object here and there.
func bothSay(t *testing.T, e *evaluator, servers map[string]*server, document *node, what string) {
	t.Helper()
	l := loader{evaluator: e}
	l.object(document)
	wrong := l.findings.Errors()
	kind, _ := document.get("kind").text()
	plain, _ := document.plain(nil)
	refused := servers[kind].refuses(plain.(map[string]any))
	switch {
	case what == "" && (len(wrong) > 0 || len(refused) > 0):
		t.Fatalf("the object to start from is refused: %v, %v", wrong, refused)
	case len(wrong) == 0 && len(l.objects) != 1:
		t.Errorf("%s %s: accepted, but not decoded", kind, what)
	case len(wrong) == 0 && len(refused) > 0:
		t.Errorf("%s %s: accepted here, refused by the server: %v", kind, what, refused.ToAggregate())
	case len(wrong) > 0 && len(refused) == 0:
		for _, finding := range wrong {
			if !slices.ContainsFunc(stricter, func(words string) bool { return strings.Contains(finding.Message, words) }) {
				t.Errorf("%s %s: accepted by the server, refused here: %v", kind, what, finding)
			}
		}
	}
	if len(wrong) == 0 && len(l.objects) == 1 {
		if problem := declined(l.objects[0]); problem != nil {
			t.Errorf("%s %s: accepted here, declined by the operator: %v", kind, what, problem)
		}
	}
	for _, finding := range wrong {
		if strings.HasPrefix(finding.Message, "does not fit") {
			t.Errorf("%s %s: refused in words that are not for people: %v", kind, what, finding)
		}
	}
}

// declined is what the operator says of a policy by itself. Schemes that are called by a name have one code each.
func declined(object Object) *decide.Problem {
	policy, is := object.Value.(*v1alpha1.RedundancyPolicy)
	if !is || policy.Spec.Reliability != nil {
		return nil
	}
	schemes := decide.Schemes{}
	for i, name := range policy.Spec.Ladder {
		if !strings.Contains(string(name), "(") {
			schemes[string(name)] = stripe.RS(2, i+3)
		}
	}
	if slices.ContainsFunc(policy.Spec.Ladder, func(name v1alpha1.SchemeName) bool { return name == "rs(64,8)" }) {
		return nil // it goes with few others; that a ladder can be laid out is not said of a policy by itself
	}
	_, problem := decide.Declare(policy, schemes, nil)
	return problem
}

type place struct {
	path string
	node *node
}

// nodes lists the nodes of a tree.
func nodes(n *node, path string) []place {
	list := []place{{path, n}}
	for _, f := range n.fields {
		list = append(list, nodes(f.value, join(path, f.name))...)
	}
	for i, item := range n.items {
		list = append(list, nodes(item, index(path, i))...)
	}
	return list
}

func treeOf(value any) *node {
	n := &node{kind: scalarNode, scalar: value}
	switch value := value.(type) {
	case nil:
		n.kind = nullNode
	case []any:
		n.kind = listNode
		for _, item := range value {
			n.items = append(n.items, treeOf(item))
		}
	case map[string]any:
		n.kind = mappingNode
		for name, below := range value {
			n.add(&property{name: name, value: treeOf(below)})
		}
	}
	return n
}

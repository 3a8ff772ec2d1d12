package policies

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// Render returns objects as YAML, a document each, as a person would write them: without status and without what an API
// server fills in.
func Render(objects ...Object) ([]byte, error) {
	var out bytes.Buffer
	for i, object := range objects {
		text, err := json.Marshal(object.Value)
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", object, err)
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			return nil, fmt.Errorf("rendering %s: %w", object, err)
		}
		delete(fields, "status")
		fields["apiVersion"], fields["kind"] = APIVersion, object.Kind
		if metadata, is := fields["metadata"].(map[string]any); is {
			for name := range metadata {
				if name != "name" && name != "labels" && name != "annotations" {
					delete(metadata, name)
				}
			}
		}
		document, err := yaml.Marshal(plainly("", fields))
		if err != nil {
			return nil, fmt.Errorf("rendering %s: %w", object, err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(document)
	}
	return out.Bytes(), nil
}

// plainly spells durations and fractions as a person would: 24h for 24h0m0s, and 0.5 for 500m where it is no size.
func plainly(name string, value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, below := range value {
			value[name] = plainly(name, below)
		}
	case []any:
		for i, below := range value {
			value[i] = plainly(name, below)
		}
	case string:
		switch name {
		case "halfLife", "dwell", "delay", "duration", "settled", "foregroundLatency", "expireAfter":
			if strings.HasSuffix(value, "m0s") {
				value = strings.TrimSuffix(value, "0s")
			}
			if strings.HasSuffix(value, "h0m") {
				value = strings.TrimSuffix(value, "0m")
			}
			return value
		case "atLeast", "below", "annualFailurePercent", "maxOverhead", "aboveCost", "storageGiBMonth", "networkGiB", "millionOperations", "paybackMonths":
			if quantity, err := resource.ParseQuantity(value); err == nil && strings.ContainsAny(value, "mun") {
				return strings.TrimRight(quantity.AsDec().String(), "0")
			}
		}
	}
	return value
}

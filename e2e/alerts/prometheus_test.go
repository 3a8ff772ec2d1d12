package alerts_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/restripe/restripe/agent/pki"
)

// programVariable names the Prometheus that asks.
const programVariable = "RESTRIPE_PROMETHEUS"

// prometheus is one that runs.
type prometheus struct {
	*world
	address string
}

// configuration is what playbooks/monitoring/README.md says, with everything in a hurry.
const configuration = `global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: [rules.yaml]
scrape_configs:
- job_name: restripe
  scheme: https
  tls_config: {ca_file: %[1]s}
  authorization: {credentials_file: token}
  static_configs:
  - targets: [%[2]q, %[3]q, %[4]q]
- job_name: other
  scheme: https
  tls_config: {ca_file: %[1]s}
  authorization: {credentials_file: token}
  static_configs:
  - targets: [%[5]q]
`

// watch starts a Prometheus that asks gateway, operator and console, over the rules that lie there.
func (w *world) watch() *prometheus {
	w.t.Helper()
	authority := filepath.Join(w.cluster.Certificate("ca"), pki.AuthorityFile)
	w.write("prometheus.yaml", fmt.Sprintf(configuration, authority, w.cluster.Gateway(), w.operator, w.console, w.other))
	p := &prometheus{world: w, address: freeAddress(w.t)}
	w.runs("prometheus", exec.Command(os.Getenv(programVariable), "--config.file="+w.at("prometheus.yaml"),
		"--storage.tsdb.path="+w.at("prometheus"), "--web.listen-address="+p.address, "--log.level=warn"))
	w.prometheus = p
	return p
}

// ask asks the interface of Prometheus for something, into a value.
func (p *prometheus) ask(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/api/v1/"+path, http.NoBody)
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	err = json.NewDecoder(reply.Body).Decode(&answer)
	if err := errors.Join(err, reply.Body.Close()); err != nil {
		return err
	}
	if answer.Status != "success" {
		return errors.New(answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}

// await waits until an expression has a result.
func (p *prometheus) await(what, expression string) {
	p.t.Helper()
	p.world.await(what, func(ctx context.Context) error { return p.holds(ctx, expression) })
}

// holds reports why an expression has no result.
func (p *prometheus) holds(ctx context.Context, expression string) error {
	var data struct{ Result []any }
	err := p.ask(ctx, "query?query="+url.QueryEscape(expression), &data)
	if err == nil && len(data.Result) == 0 {
		err = fmt.Errorf("%s is empty", expression)
	}
	return err
}

// names are those of all metrics that were ever shown.
func (p *prometheus) names() (names []string) {
	p.t.Helper()
	p.ok(p.ask(p.t.Context(), "label/__name__/values", &names))
	return names
}

// alert is one that Prometheus has sent, or would have.
type alert struct {
	State               string
	Labels, Annotations map[string]string
}

// alerts are those that fire.
func (p *prometheus) alerts() []alert {
	p.t.Helper()
	list, err := p.firing(p.t.Context())
	p.ok(err)
	return list
}

func (p *prometheus) firing(ctx context.Context) (list []alert, err error) {
	var data struct{ Alerts []alert }
	err = p.ask(ctx, "alerts", &data)
	for _, one := range data.Alerts {
		if one.State == "firing" {
			list = append(list, one)
		}
	}
	return list, err
}

// fires waits until an alert does that has labels, and looks at its words.
func (p *prometheus) fires(name string, labels map[string]string, words string) {
	p.t.Helper()
	p.world.await(name, func(ctx context.Context) error {
		list, err := p.firing(ctx)
		if err != nil {
			return err
		}
		for _, one := range list {
			if !one.is(name, labels) {
				continue
			}
			says := one.Annotations
			if !strings.Contains(says["summary"], words) || says["description"] == "" || one.Labels["severity"] == "" ||
				!strings.HasSuffix(says["runbook_url"], "/"+name+".md") {
				p.t.Errorf("%s fires with %v and says %v, where %q was expected", name, one.Labels, says, words)
			}
			return nil
		}
		return fmt.Errorf("there are %+v", list)
	})
}

func (a *alert) is(name string, labels map[string]string) bool {
	is := a.Labels["alertname"] == name
	for label, value := range labels {
		is = is && a.Labels[label] == value
	}
	return is
}

{{- define "restripe.image" -}}
{{ index .root.Values.images .program }}:{{ .root.Values.images.tag | default .root.Chart.AppVersion }}
{{- end -}}

{{/* Labels that choose the pods of a component. */}}
{{- define "restripe.chosen" -}}
app.kubernetes.io/name: restripe
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "restripe.labels" -}}
{{ include "restripe.chosen" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{- define "restripe.pod" -}}
automountServiceAccountToken: {{ .token | default false }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.images.pullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- end -}}

{{- define "restripe.container" -}}
imagePullPolicy: {{ .root.Values.images.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{/* The nodes of Restripe, as JSON: id, set, service, domain, store, storage, storeSecret, pool, nodeSelector, tolerations. */}}
{{- define "restripe.nodes" -}}
{{- $nodes := list -}}
{{- range $set := .Values.agents -}}
  {{- $count := int (default 0 $set.replicas) -}}
  {{- with $set.stores }}{{ $count = len . }}{{ end -}}
  {{- with $set.storeSecrets }}{{ $count = len . }}{{ end -}}
  {{- with $set.pools }}{{ $count = len . }}{{ end -}}
  {{- range $i := until $count -}}
    {{- $id := printf "%s-%d" $set.name $i -}}
    {{- $node := dict "id" $id "set" $set.name "service" (printf "%s-%s" $.Release.Name $id) "domain" ($set.domain | default "") -}}
    {{- $_ := set $node "nodeSelector" ($set.nodeSelector | default dict) -}}
    {{- $_ := set $node "tolerations" ($set.tolerations | default list) -}}
    {{- if $set.storage }}{{ $_ := set $node "storage" $set.storage }}{{ end -}}
    {{- if $set.stores }}{{ $_ := set $node "store" (index $set.stores $i) }}{{ end -}}
    {{- if $set.storeSecrets }}{{ $_ := set $node "storeSecret" (index $set.storeSecrets $i) }}{{ end -}}
    {{- if $set.pools }}{{ $_ := set $node "pool" (index $set.pools $i) }}{{ end -}}
    {{- $nodes = append $nodes $node -}}
  {{- end -}}
{{- end -}}
{{- toJson $nodes -}}
{{- end -}}

{{/* Whether clients reach gateways over TLS: where these ask who they are. */}}
{{- define "restripe.scheme" -}}
{{- if .Values.gateways.anybody }}http{{ else }}https{{ end -}}
{{- end -}}

{{/* Whether the catalog is a file, on a volume of the gateway. */}}
{{- define "restripe.catalogFile" -}}
{{- with .Values.catalog }}{{ and (not .secret) (or (not .address) (hasPrefix "sqlite:" .address)) }}{{ end -}}
{{- end -}}

{{/* What most of the nodes keep blocks in, as a StorageBackend says it: that of the first set. */}}
{{- define "restripe.kind" -}}
{{- $first := first .Values.agents -}}
{{- if .Values.operator.backendType }}{{ .Values.operator.backendType }}
{{- else if $first.storage }}file
{{- else if $first.storeSecrets }}redis
{{- else if $first.pools }}ceph
{{- else }}{{ first ($first.stores | default (list "file:")) | regexFind "^[a-z]+" | replace "rediss" "redis" }}{{ end -}}
{{- end -}}

{{/* What an agent reads. */}}
{{- define "restripe.agent" -}}
command: agent
id: {{ .node.id | quote }}
{{- if .node.storeSecret }}
store: "@/etc/restripe/store/store"
{{- else if .node.pool }}
store: {{ printf "ceph:%s?conf=/etc/ceph/ceph.conf&keyring=/etc/ceph/keyring&user=%s" .node.pool .root.Values.ceph.user | quote }}
{{- else }}
store: {{ .node.store | default "file:/var/lib/restripe/store" | quote }}
{{- end }}
{{- if regexMatch "^(memcached|rediss?):" (.node.store | default "") }}
direct: {{ .node.store | quote }}
{{- end }}
listen: "0.0.0.0:7481"
allow-remote: known
tls: /etc/restripe/tls
{{- with .root.Values.traces.collector }}
traces: {{ . | quote }}
traces-share: {{ $.root.Values.traces.share }}
{{- end }}
{{- end -}}

{{/*
What a value of the sidecar must be, since Helm holds no schema against what a chart gives to a template: its JSON matches
`json` (of a list: each item's), a number is within `least` and `most`. Rules and sentences are those of values.schema.json;
tests/chart/chart_test compares them.
*/}}
{{- define "purser.sidecarRules" -}}
queueMemoryMiB:
  json: '^[0-9]{1,9}$'
  least: 1
  most: 205019
  must: a whole number of MiB, at least 1 and at most 205019 (what a node can have), without a unit (64, not 64Mi or 0.5)
queueMemoryUnitMiB:
  json: '^[0-9]{1,9}$'
  least: 1
  most: 65536
  must: a whole number of MiB from 1 to 65536, that of config.resources.queueMemory.unit
hcaResource:
  json: '^"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"$'
  not: '^"rdma/(wqe-[0-9]*mib|qp(-[0-9]*)?)"$'
  must: the resource of a pool with its prefix, such as rdma/hca
devices:
  list: true
  json: '^"[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}"$'
  must: a list of RDMA devices, such as [mlx5_0]; empty for all that the pool gives
logLevel:
  json: '^"(debug|info|warn|error)"$'
  must: one of 'debug', 'info', 'warn', 'error'
metricsPort:
  json: '^[0-9]{1,9}$'
  least: 1
  most: 65535
  must: a port, from 1 to 65535
baseMemoryMiB:
  json: '^[0-9]{1,9}$'
  least: 24
  most: 1048576
  must: a whole number of MiB, at least 24, which the sidecar itself takes
reservedBy:
  json: '^"(sidecar|node)"$'
  must: one of 'sidecar', 'node'
cpuRequest:
  json: '^([0-9]{1,5}(\.[0-9]{1,3})?|"([0-9]{1,5}(\.[0-9]{1,3})?|[0-9]{1,8}m)")$'
  must: a quantity of CPU in steps of 1m, such as 10m or 0.5
cpuLimit:
  json: '^([0-9]{1,5}(\.[0-9]{1,3})?|"([0-9]{1,5}(\.[0-9]{1,3})?|[0-9]{1,8}m)?")$'
  not: '^"?[0.]+m?"?$'
  must: a quantity of CPU above 0 in steps of 1m, such as 500m or 1; empty for no limit
runAsUser:
  json: '^[0-9]{1,10}$'
  least: 1
  most: 2147483647
  must: a user id from 1 to 2147483647 (for uid 0 there is ipcLock)
ipcLock:
  json: '^(true|false)$'
  must: true or false, without quotes
sharedVolumeMiB:
  json: '^[0-9]{1,9}$'
  least: 1
  most: 16777216
  must: a whole number of MiB, at least 1, without a unit (64, not 64Mi or 0.5)
{{- end }}

{{/* "" where the value keeps the rule: (dict "rule" … "value" …). */}}
{{- define "purser.breaksRule" -}}
{{- $rule := .rule -}}
{{- $items := list .value -}}
{{- if $rule.list -}}
{{- if kindIs "slice" .value }}{{ $items = .value }}{{ else }}no list{{ end -}}
{{- end -}}
{{- range $items -}}
{{- $json := mustToRawJson . -}}
{{- if not (regexMatch $rule.json $json) }}another form{{ end -}}
{{- if $rule.not }}{{ if regexMatch $rule.not $json }}excluded{{ end }}{{ end -}}
{{- if and $rule.most (regexMatch "^[0-9]{1,10}$" $json) -}}
{{- if or (lt (int64 $json) (int64 $rule.least)) (gt (int64 $json) (int64 $rule.most)) }}out of range{{ end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Thousandths of a CPU. */}}
{{- define "purser.milliCpu" -}}
{{- $text := toString . -}}
{{- if hasSuffix "m" $text }}{{ trimSuffix "m" $text | int64 }}{{ else }}{{ round (mulf 1000 (float64 $text)) 0 | int64 }}{{ end -}}
{{- end }}

{{/* As JSON: the chart's `sidecar` values with the overrides, all held against the rules; and the image. */}}
{{- define "purser.sidecarValues" -}}
{{- $purser := .root -}}
{{- if not (.root.Values.images).devicePlugin -}}
{{- $purser = index .root.Subcharts "purser" | required (printf "template purser.sidecar: chart %s has no dependency named purser, from which the template takes its values" .root.Chart.Name) -}}
{{- end -}}
{{- $rules := include "purser.sidecarRules" . | fromYaml -}}
{{- $values := merge (deepCopy $purser.Values.sidecar) (dict "devices" list "cpuLimit" "") -}}
{{- range $key, $value := default dict .sidecar -}}
{{- if not (hasKey $rules $key) -}}
{{- fail (printf "template purser.sidecar: %q is no value of the sidecar; there are %s" $key (keys $rules | sortAlpha | join ", ")) -}}
{{- end -}}
{{- if ne nil $value }}{{ $_ := set $values $key $value }}{{ end -}}
{{- end -}}
{{- range $key, $rule := $rules -}}
{{- $value := get $values $key -}}
{{- if include "purser.breaksRule" (dict "rule" $rule "value" $value) -}}
{{- fail (printf "template purser.sidecar: %s is %s, and must be %s" $key (mustToRawJson $value) $rule.must) -}}
{{- end -}}
{{- end -}}
{{- if $values.cpuLimit -}}
{{- if gt (include "purser.milliCpu" $values.cpuRequest | int64) (include "purser.milliCpu" $values.cpuLimit | int64) -}}
{{- fail (printf "template purser.sidecar: cpuRequest, %v, is more than cpuLimit, %v" $values.cpuRequest $values.cpuLimit) -}}
{{- end -}}
{{- end -}}
{{- $image := include "purser.image" (dict "root" $purser "image" "sidecar") -}}
{{- dict "values" $values "image" $image "pullPolicy" $purser.Values.images.sidecar.pullPolicy | mustToRawJson -}}
{{- end }}

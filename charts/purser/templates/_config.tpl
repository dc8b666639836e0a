{{/* The values of `config` as the device plugin takes them, where more than the schema's patterns is to be known. */}}

{{/* The pools that it makes of these values, as YAML: [{name: rdma/hca, shares: 1000, ifNames: false}]. */}}
{{- define "purser.pools" -}}
{{- $resources := default dict .Values.config.resources -}}
{{- $pools := list (dict "resourceName" "hca") -}}
{{- if hasKey $resources "pools" }}{{ $pools = default list $resources.pools }}{{ end -}}
{{- $made := list -}}
{{- range $pools -}}
{{- $prefix := default "rdma" .resourcePrefix -}}
{{- $stem := ternary .resourceName (printf "%s_%s" $prefix .resourceName) (eq $prefix "rdma") -}}
{{- $made = append $made (dict
  "name" (printf "%s/%s" $prefix .resourceName)
  "shares" (ternary .rdmaHcaMax 1000 (hasKey . "rdmaHcaMax"))
  "ifNames" (not (empty (dig "selectors" "ifNames" list .)))
  "variable" (printf "PURSER_POOL_%s_DEVICES" (regexReplaceAll "[^A-Z0-9]" (upper $stem) "_"))) -}}
{{- end -}}
{{- toYaml $made -}}
{{- end }}

{{/* A quantity in bytes, as text. */}}
{{- define "purser.bytes" -}}
{{- $text := ternary . (printf "%v" .) (kindIs "string" .) -}}
{{- $number := regexFind "^[0-9.]+" $text -}}
{{- $factors := dict "" 1 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18
  "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "Pi" 1125899906842624 "Ei" 1152921504606846976 -}}
{{- $suffix := trimPrefix $number $text -}}
{{- if hasKey $factors $suffix -}}
{{- printf "%.0f" (mulf (float64 $number) (get $factors $suffix)) -}}
{{- else -}}
{{- printf "%.0f" (float64 $text) -}}
{{- end -}}
{{- end }}

{{/* A duration in milliseconds, as text; seconds where it has no unit. */}}
{{- define "purser.milliseconds" -}}
{{- $sum := 0.0 -}}
{{- if regexMatch "[a-z]$" (toString .) -}}
{{- range regexFindAll "[0-9.]+[a-z]+" . -1 -}}
{{- $unit := regexFind "[a-z]+" . -}}
{{- $sum = addf $sum (mulf (trimSuffix $unit . | float64) (get (dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000) $unit)) -}}
{{- end -}}
{{- else -}}
{{- $sum = mulf 1000 (float64 .) -}}
{{- end -}}
{{- round $sum 6 -}}
{{- end }}

{{/* Why there is no pod for `helm test`; "" if there is one. */}}
{{- define "purser.noTest" -}}
{{- $queueMemory := default dict (default dict .Values.config.resources).queueMemory -}}
{{- $shares := 0 -}}
{{- range include "purser.pools" . | fromYamlArray -}}
{{- if eq .name $.Values.sidecar.hcaResource }}{{ $shares = .shares }}{{ end -}}
{{- end -}}
{{- if eq (toString $queueMemory.enabled) "false" -}}
queue memory is not advertised (config.resources.queueMemory.enabled is false)
{{- else if not $shares -}}
no share of {{ .Values.sidecar.hcaResource }} is advertised (config.resources.pools)
{{- else if and $queueMemory.capacity (lt (include "purser.bytes" $queueMemory.capacity | float64) 2097152.0) -}}
it takes 2 MiB of queue memory (config.resources.queueMemory.capacity is {{ $queueMemory.capacity }})
{{- end -}}
{{- end }}

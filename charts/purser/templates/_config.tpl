{{/* The values of `config` as the device plugin takes them, where more than the schema's patterns is to be known. */}}

{{/*
The pools that it makes of these values, as YAML. byNetwork: whether it selects by what is seen from the node's network alone;
ranges: those of its pfNames.
*/}}
{{- define "purser.pools" -}}
{{- $resources := default dict .Values.config.resources -}}
{{- $pools := list (dict "resourceName" "hca") -}}
{{- if hasKey $resources "pools" }}{{ $pools = default list $resources.pools }}{{ end -}}
{{- $made := list -}}
{{- range $pools -}}
{{- $prefix := default "rdma" .resourcePrefix -}}
{{- $stem := ternary .resourceName (printf "%s_%s" $prefix .resourceName) (eq $prefix "rdma") -}}
{{- $byNetwork := list -}}
{{- $ranges := list -}}
{{- range $selectors := list .selectors .exclude -}}
{{- range ternary $selectors (list (default dict $selectors)) (kindIs "slice" $selectors) -}}
{{- $byNetwork = concat $byNetwork (default list .ifNames) (default list .pfNames) -}}
{{- range .pfNames }}{{ $ranges = concat $ranges (regexFindAll "[0-9]+-[0-9]+" (splitList "#" . | rest | join "") -1) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $made = append $made (dict
  "name" (printf "%s/%s" $prefix .resourceName)
  "shares" (ternary .rdmaHcaMax 1000 (hasKey . "rdmaHcaMax"))
  "byNetwork" (not (empty $byNetwork))
  "ranges" $ranges
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

{{/* Units of queue memory: MiB of one, as text. The schema has held its form. */}}
{{- define "purser.unitMiB" -}}
{{- $unit := (default dict (default dict .Values.config.resources).queueMemory).unit -}}
{{- if kindIs "invalid" $unit }}1{{ else }}{{ divf (include "purser.bytes" $unit | float64) 1048576 }}{{ end -}}
{{- end }}

{{/* The resource of queue memory whose units have so many MiB. */}}
{{- define "purser.queueMemoryResource" -}}
{{- if eq (toString .) "1" }}rdma/wqe-mib{{ else }}{{ printf "rdma/wqe-%vmib" . }}{{ end -}}
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
{{- if .Values.configFile -}}
what configFile advertises is not known here
{{- else -}}
{{- $queueMemory := default dict (default dict .Values.config.resources).queueMemory -}}
{{- $shares := 0 -}}
{{- range include "purser.pools" . | fromYamlArray -}}
{{- if eq .name $.Values.sidecar.hcaResource }}{{ $shares = .shares }}{{ end -}}
{{- end -}}
{{- if eq (toString $queueMemory.enabled) "false" -}}
queue memory is not advertised (config.resources.queueMemory.enabled is false)
{{- else if not $shares -}}
no share of {{ .Values.sidecar.hcaResource }} is advertised (config.resources.pools)
{{- else if and $queueMemory.capacity (not (hasSuffix "%" (toString $queueMemory.capacity))) (lt (include "purser.bytes" $queueMemory.capacity | float64) 2097152.0) -}}
it takes 2 MiB of queue memory (config.resources.queueMemory.capacity is {{ $queueMemory.capacity }})
{{- end -}}
{{- end -}}
{{- end }}

{{/* Fails where the device plugin would end on `config`, or pods would wait for what it does not advertise. */}}
{{- define "purser.checkConfig" -}}
{{- $resources := default dict .Values.config.resources -}}
{{- $queueMemory := default dict $resources.queueMemory -}}
{{- $pools := include "purser.pools" . | fromYamlArray -}}
{{- $names := list -}}
{{- $variables := dict -}}
{{- range $pools -}}
  {{- if has .name $names -}}
    {{- fail (printf "config.resources.pools: %s is the name of two pools" .name) -}}
  {{- end -}}
  {{- if regexMatch "^rdma/(wqe-[0-9]*mib|qp(-[0-9]*)?)$" .name -}}
    {{- fail (printf "config.resources.pools: %s is a name for queue memory or queue pairs; call the pool otherwise" .name) -}}
  {{- end -}}
  {{- if hasKey $variables .variable -}}
    {{- fail (printf "config.resources.pools: %s and %s would both set %s in a container; rename one" (get $variables .variable) .name .variable) -}}
  {{- end -}}
  {{- $names = append $names .name -}}
  {{- $_ := set $variables .variable .name -}}
  {{- if and .byNetwork (not $.Values.devicePlugin.hostNetwork) -}}
    {{- fail (printf "config.resources.pools: the pool %s selects by ifNames or pfNames, which are seen from the node's network alone: set devicePlugin.hostNetwork to true, or select by devices or drivers" .name) -}}
  {{- end -}}
  {{- range .ranges -}}
    {{- $ends := splitList "-" . -}}
    {{- if gt (first $ends | int64) (last $ends | int64) -}}
      {{- fail (printf "config.resources.pools: pfNames: the range %s ends before it begins" .) -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if and $names (not (has .Values.sidecar.hcaResource $names)) -}}
  {{- fail (printf "sidecar.hcaResource is %s, which no pool of config.resources.pools advertises (there are: %s): pods with the sidecar would stay Pending. Name one of them" .Values.sidecar.hcaResource (join ", " $names)) -}}
{{- end -}}
{{- $hasCapacity := not (kindIs "invalid" $queueMemory.capacity) -}}
{{- if and $hasCapacity (not (kindIs "invalid" $queueMemory.nodeMemoryFraction)) -}}
  {{- fail "config.resources.queueMemory has both capacity and nodeMemoryFraction; keep one of them, and set the other to null if it comes from another values file" -}}
{{- end -}}
{{- $unit := include "purser.unitMiB" . | float64 -}}
{{- if or (lt $unit 1.0) (gt $unit 65536.0) (ne $unit (floor $unit)) -}}
  {{- fail (printf "config.resources.queueMemory.unit is %v, and must be whole MiB from 1Mi to 64Gi, such as 16Mi" $queueMemory.unit) -}}
{{- end -}}
{{- if ne (int64 $unit) (int64 .Values.sidecar.queueMemoryUnitMiB) -}}
  {{- fail (printf "sidecar.queueMemoryUnitMiB is %d, but config.resources.queueMemory.unit makes units of %d MiB: pods with the sidecar would stay Pending. Set it to %d" (int64 .Values.sidecar.queueMemoryUnitMiB) (int64 $unit) (int64 $unit)) -}}
{{- end -}}
{{- if and $hasCapacity (not (hasSuffix "%" (toString $queueMemory.capacity))) -}}
  {{- $units := floor (divf (include "purser.bytes" $queueMemory.capacity | float64) (mulf $unit 1048576)) -}}
  {{- if or (lt $units 1.0) (gt $units 205019.0) -}}
    {{- fail (printf "config.resources.queueMemory.capacity is %v, and must be from %vMi to %.0fMi, the most that the kubelet takes in units of %v MiB. For more set a larger unit, to advertise none set enabled to false" $queueMemory.capacity $unit (mulf $unit 205019) $unit) -}}
  {{- end -}}
{{- end -}}
{{- $queuePairs := default dict $resources.queuePairs -}}
{{- if not (kindIs "invalid" $queuePairs.capacity) -}}
  {{- if not (kindIs "invalid" $queuePairs.perDevice) -}}
    {{- fail "config.resources.queuePairs has both capacity and perDevice; keep one of them, and set the other to null if it comes from another values file" -}}
  {{- end -}}
  {{- $reserve := ternary "2%" $queuePairs.reserve (kindIs "invalid" $queuePairs.reserve) -}}
  {{- if hasSuffix "%" (toString $reserve) -}}
    {{- $reserve = ceil (mulf $queuePairs.capacity (divf (trimSuffix "%" $reserve | float64) 100)) -}}
  {{- end -}}
  {{- $units := floor (divf (subf $queuePairs.capacity $reserve) (default 1 $queuePairs.unit)) -}}
  {{- if or (lt $units 1.0) (gt $units 205019.0) -}}
    {{- fail (printf "config.resources.queuePairs: a capacity of %v less its reserve (%v) makes %.0f units; there must be from 1 to 205019, the most that the kubelet takes. For more set a larger unit, to advertise none set enabled to false" (int64 $queuePairs.capacity) (int64 $reserve) $units) -}}
  {{- end -}}
{{- end -}}
{{- if and (hasKey $resources "overlap") (hasKey $resources "allowOverlap") -}}
  {{- fail "config.resources has both overlap and allowOverlap; keep overlap" -}}
{{- end -}}
{{- if not (kindIs "invalid" .Values.config.rescanInterval) -}}
  {{- $interval := include "purser.milliseconds" .Values.config.rescanInterval | float64 -}}
  {{- if or (lt $interval 100.0) (gt $interval 31536000000.0) (ne $interval (floor $interval)) -}}
    {{- fail (printf "config.rescanInterval is %v, and must be whole milliseconds from 100ms to 8760h, such as 10s" .Values.config.rescanInterval) -}}
  {{- end -}}
{{- end -}}
{{- $pairsEnabled := ternary (dig "enabled" true $queuePairs) false (hasKey $resources "queuePairs") -}}
{{- if and (not $names) (eq (toString $queueMemory.enabled) "false") (not $pairsEnabled) -}}
  {{- fail "config.resources: nothing to advertise: no pool, and neither queueMemory nor queuePairs is enabled. To deploy no device plugin set devicePlugin.enabled to false" -}}
{{- end -}}
{{- end }}

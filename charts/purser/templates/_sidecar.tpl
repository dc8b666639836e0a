{{/*
The sidecar as a native sidecar: an entry of initContainers that starts before the pod's containers and is ready only when
its budget is. Include it with (dict "root" $), or with overrides of the chart's `sidecar` values:
  securityContext: {fsGroup: 65532}
  initContainers:
    {{- include "purser.sidecar" (dict "root" $ "sidecar" (dict "queueMemoryMiB" 128)) | nindent 4 }}
  volumes:
    {{- include "purser.volume" (dict "root" $) | nindent 4 }}
and give each application container
  volumeMounts: [{name: purser, mountPath: /run/purser}]
Works in this chart and in one that has it as a dependency (named purser, devicePlugin.enabled false where it runs already).
*/}}
{{- define "purser.sidecar" -}}
{{- $purser := .root -}}
{{- if not (.root.Values.images).devicePlugin -}}
{{- $purser = index .root.Subcharts "purser" | required (printf "template purser.sidecar: chart %s has no dependency named purser, from which the template takes its values" .root.Chart.Name) -}}
{{- end -}}
{{- range $key, $value := default dict .sidecar -}}
{{- if not (hasKey $purser.Values.sidecar $key) -}}
{{- fail (printf "template purser.sidecar: %q is no value of the sidecar; there are %s" $key (keys $purser.Values.sidecar | sortAlpha | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- $sidecar := mergeOverwrite (deepCopy $purser.Values.sidecar) (default dict .sidecar) -}}
{{- $queueMemory := int $sidecar.queueMemoryMiB -}}
{{- if lt $queueMemory 1 -}}
{{- fail (printf "template purser.sidecar: queueMemoryMiB is %v, and must be a whole number of MiB, at least 1" $sidecar.queueMemoryMiB) -}}
{{- end -}}
{{- if not (has $sidecar.reservedBy (list "sidecar" "node")) -}}
{{- fail (printf "template purser.sidecar: reservedBy is %q, and must be sidecar or node" $sidecar.reservedBy) -}}
{{- end -}}
{{- $memory := int $sidecar.baseMemoryMiB -}}
{{- if eq $sidecar.reservedBy "sidecar" }}{{ $memory = add $memory $queueMemory }}{{ end -}}
- name: purser-sidecar
  image: {{ include "purser.image" (dict "root" $purser "image" "sidecar") }}
  imagePullPolicy: {{ $purser.Values.images.sidecar.pullPolicy }}
  restartPolicy: Always
  args:
    - --shared-volume=/run/purser
    - --metrics-address=:{{ $sidecar.metricsPort }}
    - --log-level={{ $sidecar.logLevel }}
    {{- range $sidecar.devices }}
    - --device={{ . }}
    {{- end }}
    {{- if eq $sidecar.reservedBy "sidecar" }}
    # {{ $queueMemory }} of the {{ $memory }} MiB below are for queues.
    - --memory-limit-fraction={{ divf (ceil (mulf 10000 (divf $queueMemory $memory))) 10000 }}
    {{- end }}
  ports:
    - name: purser-metrics
      containerPort: {{ $sidecar.metricsPort }}
  startupProbe:
    # It waits by itself, so that no look comes too early (each would be an event of type Warning).
    exec: {command: [purser, --wait, "30", --rpc-timeout, "20", budget]}
    timeoutSeconds: 60
  livenessProbe:
    # Patient, since a restart costs the pod its queue pairs.
    httpGet: {path: /healthz, port: purser-metrics}
    periodSeconds: 10
    timeoutSeconds: 10
    failureThreshold: 12
  # Why it does not start is in `kubectl describe pod`.
  terminationMessagePolicy: FallbackToLogsOnError
  resources:
    requests: {cpu: {{ $sidecar.cpuRequest }}, memory: {{ $memory }}Mi}
    limits:
      {{- with $sidecar.cpuLimit }}
      cpu: {{ . }}
      {{- end }}
      memory: {{ $memory }}Mi
      rdma/wqe-mib: {{ $queueMemory | quote }}
      {{ $sidecar.hcaResource }}: "1"
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    {{- if $sidecar.ipcLock }}
    runAsUser: 0
    capabilities: {drop: [ALL], add: [IPC_LOCK]}
    {{- else }}
    runAsNonRoot: true
    runAsUser: {{ $sidecar.runAsUser }}
    capabilities: {drop: [ALL]}
    {{- end }}
    seccompProfile: {type: RuntimeDefault}
  volumeMounts:
    - name: purser
      mountPath: /run/purser
{{- end }}

{{/* The volume that sidecar and application share: socket and payload. In memory: registered pages are pinned. */}}
{{- define "purser.volume" -}}
{{- $purser := .root -}}
{{- if not (.root.Values.images).devicePlugin }}{{ $purser = index .root.Subcharts "purser" }}{{ end -}}
{{- $sidecar := mergeOverwrite (deepCopy $purser.Values.sidecar) (default dict .sidecar) -}}
- name: purser
  emptyDir: {medium: Memory, sizeLimit: {{ $sidecar.sharedVolumeMiB }}Mi}
{{- end }}

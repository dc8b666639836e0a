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
{{- $made := include "purser.sidecarValues" . | fromJson -}}
{{- $sidecar := $made.values -}}
{{- $unit := int64 $sidecar.queueMemoryUnitMiB -}}
{{- $units := div (add $sidecar.queueMemoryMiB $unit -1) $unit -}}
{{- $queueMemory := mul $units $unit -}}
{{- $memory := int64 $sidecar.baseMemoryMiB -}}
{{- if eq $sidecar.reservedBy "sidecar" }}{{ $memory = add $memory $queueMemory }}{{ end -}}
- name: purser-sidecar
  image: {{ $made.image | quote }}
  imagePullPolicy: {{ $made.pullPolicy | quote }}
  restartPolicy: Always
  args:
    - --shared-volume=/run/purser
    - --metrics-address=:{{ int64 $sidecar.metricsPort }}
    - {{ printf "--log-level=%s" $sidecar.logLevel | quote }}
    {{- range $sidecar.devices }}
    - {{ printf "--device=%s" . | quote }}
    {{- end }}
    {{- if eq $sidecar.reservedBy "sidecar" }}
    # {{ $queueMemory }} of the {{ $memory }} MiB below are for queues.
    - --memory-limit-fraction={{ divf (ceil (mulf 10000 (divf $queueMemory $memory))) 10000 }}
    {{- end }}
  ports:
    - name: purser-metrics
      containerPort: {{ int64 $sidecar.metricsPort }}
  startupProbe:
    # It waits by itself, so that no look comes too early (each would be an event of type Warning).
    exec: {command: [purser, --wait, "30", --rpc-timeout, "20", budget]}
    # The kubelet first looks before the container runs, and then again after this.
    periodSeconds: 1
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
    requests: {cpu: {{ $sidecar.cpuRequest | quote }}, memory: {{ $memory }}Mi}
    limits:
      {{- with $sidecar.cpuLimit }}
      cpu: {{ . | quote }}
      {{- end }}
      memory: {{ $memory }}Mi
      {{ include "purser.queueMemoryResource" $unit }}: {{ $units | quote }}
      {{ $sidecar.hcaResource | quote }}: "1"
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    {{- if $sidecar.ipcLock }}
    runAsUser: 0
    capabilities: {drop: [ALL], add: [IPC_LOCK]}
    {{- else }}
    runAsNonRoot: true
    runAsUser: {{ int64 $sidecar.runAsUser }}
    capabilities: {drop: [ALL]}
    {{- end }}
    seccompProfile: {type: RuntimeDefault}
  volumeMounts:
    - name: purser
      mountPath: /run/purser
{{- end }}

{{/* The volume that sidecar and application share: socket and payload. In memory: registered pages are pinned. */}}
{{- define "purser.volume" -}}
{{- $sidecar := (include "purser.sidecarValues" . | fromJson).values -}}
- name: purser
  emptyDir: {medium: Memory, sizeLimit: {{ int64 $sidecar.sharedVolumeMiB }}Mi}
{{- end }}

{{/*
The sidecar as a native sidecar: an entry of initContainers that starts before the pod's containers and is ready only when
its budget is. Include it with (dict "root" $), or with overrides of .Values.sidecar:
  initContainers:
    {{- include "purser.sidecar" (dict "root" $ "sidecar" (dict "queueMemoryMiB" 128)) | nindent 4 }}
  volumes:
    {{- include "purser.volume" $ | nindent 4 }}
and give each application container
  volumeMounts: [{name: purser, mountPath: /run/purser}]
*/}}
{{- define "purser.sidecar" -}}
{{- $sidecar := mergeOverwrite (deepCopy .root.Values.sidecar) (default dict .sidecar) -}}
{{- $queueMemory := int $sidecar.queueMemoryMiB -}}
{{- $memory := int $sidecar.baseMemoryMiB -}}
{{- if ne $sidecar.chargedTo "node" }}{{ $memory = add $memory $queueMemory }}{{ end -}}
- name: purser-sidecar
  image: {{ include "purser.image" (dict "root" .root "image" "sidecar") }}
  imagePullPolicy: {{ .root.Values.images.sidecar.pullPolicy }}
  restartPolicy: Always
  args:
    - --shared-volume=/run/purser
    - --metrics-address=:{{ $sidecar.metricsPort }}
    - --log-level={{ $sidecar.logLevel }}
  ports:
    - name: purser-metrics
      containerPort: {{ $sidecar.metricsPort }}
  startupProbe:
    httpGet: {path: /readyz, port: purser-metrics}
    periodSeconds: 1
    failureThreshold: 60
  livenessProbe:
    httpGet: {path: /healthz, port: purser-metrics}
    periodSeconds: 10
    timeoutSeconds: 5
  resources:
    requests: {cpu: 10m, memory: {{ $memory }}Mi}
    limits:
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
    runAsUser: 65532
    capabilities: {drop: [ALL]}
    {{- end }}
    seccompProfile: {type: RuntimeDefault}
  volumeMounts:
    - name: purser
      mountPath: /run/purser
{{- end }}

{{/* The volume that sidecar and application share: socket and payload. In memory: registered pages are pinned. */}}
{{- define "purser.volume" -}}
- name: purser
  emptyDir: {medium: Memory}
{{- end }}

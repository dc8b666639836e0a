{{- define "purser.name" -}}
{{- regexReplaceAll "[-.]+$" (default .Chart.Name .Values.nameOverride | trunc 63) "" }}
{{- end }}

{{- define "purser.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride }}
{{- else if contains (include "purser.name" .) .Release.Name }}
{{- .Release.Name }}
{{- else }}
{{- regexReplaceAll "[-.]+$" (printf "%s-%s" .Release.Name (include "purser.name" .) | trunc 63) "" }}
{{- end }}
{{- end }}

{{- define "purser.labels" -}}
{{ include "purser.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ regexReplaceAll "[-_.]+$" (printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63) "" | quote }}
{{- end }}

{{- define "purser.selectorLabels" -}}
app.kubernetes.io/name: {{ include "purser.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{/* The image of .Values.images.<name>: (dict "root" $ "image" "sidecar"). */}}
{{- define "purser.image" -}}
{{- $image := index .root.Values.images .image -}}
{{ $image.repository }}:{{ default .root.Chart.AppVersion $image.tag }}
{{- end }}

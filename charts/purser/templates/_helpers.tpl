{{- define "purser.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "purser.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "purser.name" .) .Release.Name }}
{{- .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "purser.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "purser.labels" -}}
{{ include "purser.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "purser.selectorLabels" -}}
app.kubernetes.io/name: {{ include "purser.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The image of .Values.images.<name>: (dict "root" $ "image" "sidecar"). */}}
{{- define "purser.image" -}}
{{- $image := index .root.Values.images .image -}}
{{ $image.repository }}:{{ default .root.Chart.AppVersion $image.tag }}
{{- end }}

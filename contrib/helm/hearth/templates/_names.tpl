{{- define "hearth.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "hearth" $name) -}}{{- $name = printf "%s-hearth" $name -}}{{- end -}}
{{- $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "hearth.selector" -}}
app.kubernetes.io/name: hearth
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "hearth.labels" -}}
{{ include "hearth.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* What goes into the file: the values of `config`, and those that have a name of their own here. */}}
{{- define "hearth.config" -}}
{{- $name := required "serverName must be set: it is part of every user id and cannot be changed later" .Values.serverName -}}
{{- $own := dict "server_name" $name -}}
{{- if .Values.publicBaseUrl -}}{{- $_ := set $own "public_base_url" .Values.publicBaseUrl -}}{{- end -}}
{{- toYaml (mergeOverwrite (deepCopy .Values.config) $own) -}}
{{- end -}}

{{/* Where a secret option is read from: its key is the option's name, such as database.url. */}}
{{- define "hearth.secret" -}}
- name: HEARTH__{{ .option | replace "." "__" | upper }}_FILE
  value: /secrets/{{ .option }}
{{- end -}}

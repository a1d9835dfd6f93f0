{{- define "trimtab.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "trimtab.selector" -}}
app.kubernetes.io/name: trimtab
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "trimtab.labels" -}}
{{ include "trimtab.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{/* An image by its digest if it has one. The argument: image, and root. */}}
{{- define "trimtab.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "trimtab.secret" -}}
secretKeyRef: {name: {{ .name | quote }}, key: {{ .key | quote }}}
{{- end -}}

{{/* The variables of all processes of the service. */}}
{{- define "trimtab.environment" -}}
- name: DJANGO_SETTINGS_MODULE
  value: service.config.settings.hosted
- name: DATABASE_URL
  valueFrom: {{ include "trimtab.secret" .Values.secrets.database | fromYaml | toJson }}
- name: CELERY_BROKER_URL
  valueFrom: {{ include "trimtab.secret" .Values.secrets.broker | fromYaml | toJson }}
- name: TRIMTAB_SECRET_KEY
  valueFrom: {{ include "trimtab.secret" .Values.secrets.secretKey | fromYaml | toJson }}
{{- if .Values.secrets.listenDatabase.name }}
- name: TRIMTAB_LISTEN_DATABASE_URL
  valueFrom: {{ include "trimtab.secret" .Values.secrets.listenDatabase | fromYaml | toJson }}
{{- end }}
{{- if .Values.secrets.adminToken.name }}
- name: TRIMTAB_ADMIN_TOKEN
  valueFrom: {{ include "trimtab.secret" .Values.secrets.adminToken | fromYaml | toJson }}
{{- end }}
{{- if not (or .Values.keycloak.issuer .Values.secrets.adminToken.name) }}
{{- fail "keycloak.issuer is not set, and secrets.adminToken has no name. Set one of them, so that people can sign in." }}
{{- end }}
{{- with .Values.keycloak.issuer }}
- name: TRIMTAB_OIDC_ISSUER
  value: {{ . | quote }}
{{- end }}
{{- with .Values.keycloak.jwksUrl }}
- name: TRIMTAB_OIDC_JWKS_URL
  value: {{ . | quote }}
{{- end }}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
# Probes and Prometheus use the address of the pod.
- name: TRIMTAB_ALLOWED_HOSTS
  value: {{ printf "%s,%s-web,$(POD_IP)" (required "host is not set. Set it to the name by which browsers reach the service." .Values.host) (include "trimtab.name" .) | quote }}
{{- with .Values.trustedProxies }}
- name: FORWARDED_ALLOW_IPS
  value: {{ . | quote }}
{{- end }}
- name: TRIMTAB_ALIVE_FILE
  value: /tmp/alive
{{- range $name, $value := .Values.environment }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end -}}

{{- define "trimtab.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "trimtab.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* A process touches its file every few seconds, also while it computes. */}}
{{- define "trimtab.alive" -}}
exec:
  command: [sh, -c, 'test $(($(date +%s) - $(stat -c %Y /tmp/alive))) -lt 60']
periodSeconds: 20
timeoutSeconds: 10
failureThreshold: 3
{{- end -}}

{{/* What all pods of the service share. The arguments: root, component, arguments, resources. */}}
{{- define "trimtab.pod" -}}
serviceAccountName: {{ include "trimtab.name" .root }}
automountServiceAccountToken: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . | quote }}
{{- end }}
{{- end }}
securityContext:
  {{- include "trimtab.podSecurity" . | nindent 2 }}
{{- with .root.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: tmp
    emptyDir: {sizeLimit: 256Mi}
{{- end -}}

{{/* What all containers of the service share. */}}
{{- define "trimtab.container" -}}
name: {{ .component }}
{{- $_ := required "image.repository is not set. Set it to the image that deploy/images/service.Dockerfile makes." .root.Values.image.repository }}
image: {{ include "trimtab.image" (dict "image" .root.Values.image "root" .root) | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
args: {{ toJson .arguments }}
securityContext:
  {{- include "trimtab.containerSecurity" . | nindent 2 }}
resources:
  {{- toYaml .resources | nindent 2 }}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
env:
  {{- include "trimtab.environment" .root | nindent 2 }}
{{- end -}}

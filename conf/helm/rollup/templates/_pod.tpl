{{/* The labels by which a part (job, serve) is selected. */}}
{{- define "rollup.labels" -}}
app.kubernetes.io/name: rollup
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{/* The name of a release's objects. */}}
{{- define "rollup.name" -}}
{{ printf "%s-rollup" .Release.Name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{/* The pod of a part: `args` after `rollup`, `ports`, `resources`, and `grace` in seconds. */}}
{{- define "rollup.pod" -}}
{{- $values := .root.Values -}}
metadata:
  labels:
    {{- include "rollup.labels" . | nindent 4 }}
  annotations:
    # A change of the files starts the pod anew: a job reads them when it starts.
    rollup/files: {{ toJson $values.files | sha256sum | quote }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- with $values.serviceAccount }}
  serviceAccountName: {{ . | quote }}
  {{- end }}
  automountServiceAccountToken: {{ ne $values.serviceAccount "" }}
  {{- with $values.imagePullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . | quote }}
    {{- end }}
  {{- end }}
  terminationGracePeriodSeconds: {{ .grace }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 10001
    runAsGroup: 10001
    fsGroup: 10001
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: rollup
      image: {{ printf "%s:%s" $values.image.repository $values.image.tag | quote }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args: {{ toJson .args }}
      env:
        - {name: TMPDIR, value: /scratch}
        - {name: ROLLUP_LOCAL, value: /scratch}
        - {name: ROLLUP_CACHE_OBJECTS, value: /scratch/objects}
        {{- range $name, $value := $values.env }}
        - name: {{ $name | quote }}
          value: {{ $value | quote }}
        {{- end }}
      {{- with $values.secrets }}
      envFrom:
        {{- range . }}
        - secretRef: {name: {{ . | quote }}}
        {{- end }}
      {{- end }}
      {{- with .ports }}
      ports:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .probe }}
      readinessProbe:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      resources:
        {{- toYaml .resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        capabilities: {drop: [ALL]}
      volumeMounts:
        - {name: files, mountPath: /conf, readOnly: true}
        - {name: scratch, mountPath: /scratch}
        {{- if $values.claim }}
        - {name: data, mountPath: /data}
        {{- end }}
  volumes:
    - name: files
      configMap: {name: {{ include "rollup.name" .root | quote }}}
    - name: scratch
      emptyDir: {sizeLimit: {{ $values.scratch | quote }}}
    {{- if $values.claim }}
    - name: data
      persistentVolumeClaim: {claimName: {{ $values.claim | quote }}}
    {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

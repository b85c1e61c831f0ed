#!/usr/bin/env bash
# Makes the role that Grafana reads with. PostgreSQL's image runs this once, when the database is made.
set -euo pipefail
sed -e "s/{role}/grafana/g; s/{database}/\"$POSTGRES_DB\"/g; s/{schema}/public/g; s/{owner}/\"$POSTGRES_USER\"/g" \
    -e "s/{password}/:'password'/g" "${ROLES:-/ddl/gateway_roles.sql}" |
  psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 --set password="$READER_PASSWORD" \
    --username "$POSTGRES_USER" --dbname "$POSTGRES_DB"

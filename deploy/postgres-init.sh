#!/bin/sh
# PostgreSQL's image runs this once, in an empty data folder. It creates the owner of Trimtab's tables and Keycloak's
# database. `trimtab-service migrate` creates the service's own role.
set -eu
psql --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" \
    --set=owner="$TRIMTAB_OWNER_PASSWORD" --set=keycloak="$KEYCLOAK_DATABASE_PASSWORD" <<'SQL'
CREATE ROLE trimtab_owner LOGIN CREATEROLE PASSWORD :'owner';
CREATE DATABASE trimtab OWNER trimtab_owner;
CREATE ROLE keycloak LOGIN PASSWORD :'keycloak';
CREATE DATABASE keycloak OWNER keycloak;
\connect trimtab
-- Large objects belong to no table, so no policy separates those of tenants.
SELECT format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', oid::regprocedure) FROM pg_proc
    WHERE pronamespace = 'pg_catalog'::regnamespace
    AND (proname LIKE 'lo\_%' OR proname IN ('loread', 'lowrite')) \gexec
SQL

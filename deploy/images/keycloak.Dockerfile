# Keycloak with Trimtab's realm, built for PostgreSQL and for the path /sso, so that its file system can be read-only.
ARG KEYCLOAK_IMAGE=quay.io/keycloak/keycloak:26.4.2
FROM ${KEYCLOAK_IMAGE} AS build
RUN /opt/keycloak/bin/kc.sh build --db=postgres --http-relative-path=/sso --health-enabled=true

FROM ${KEYCLOAK_IMAGE}
COPY --from=build /opt/keycloak/lib/quarkus /opt/keycloak/lib/quarkus
COPY deploy/keycloak/realm.json /opt/keycloak/data/import/realm.json
USER 1000
ENTRYPOINT ["/opt/keycloak/bin/kc.sh"]
CMD ["start", "--optimized", "--import-realm"]

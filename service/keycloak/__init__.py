"""The set-up of Keycloak: `trimtab-service keycloak`."""

# Caddy for an unprivileged user: its ports are above 1024, and the copy of the program has no file capabilities.
ARG CADDY_IMAGE=caddy:2.10.2-alpine
FROM ${CADDY_IMAGE}
RUN cp /usr/bin/caddy /usr/local/bin/caddy && chown 1000:1000 /data /config
COPY deploy/proxy/Caddyfile /etc/caddy/Caddyfile
USER 1000:1000
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
